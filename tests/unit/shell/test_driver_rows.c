/* A batch of effects and its rows: written together as one after another, of each row the last
 * state. */
#include "pg_private.h"

#include "db.h"
#include "db_rows.h"
#include "driver_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

struct got {
    bool done;
    int rc;
    char text[4096];
};

static void on_got(void *arg, const struct db_result *r)
{
    struct got *g = arg;
    g->done = true;
    g->rc = db_rc(r);
    snprintf(g->text, sizeof g->text, "%s",
             g->rc        ? db_error(r)->text
             : db_rows(r) ? db_text(r, 0, 0)
                          : "");
}

static int setup(void **state)
{
    struct det_err err;
    if (pg_private_start(&pg) < 0)
        return -1;
    uv_loop_init(&loop);
    struct db_options o = {.conninfo = pg.uri};
    assert_int_equal(db_migrate(pg.uri, &err), 0);
    assert_int_equal(db_create(&loop, &o, NULL, &db, &err), 0);
    assert_int_equal(db_start(db, &err), 0);
    return 0;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static int teardown(void **state)
{
    bool closed = false;
    db_close(db, on_closed, &closed);
    assert_true(loop_until(&loop, &closed, 60000));
    pg_private_down(&pg);
    return 0;
}

static void save(struct core_effect *v, size_t n)
{
    struct got g = {0};
    struct core_effects f = {.v = v, .n = n};
    struct db_tx *tx = db_tx_begin(db);
    driver_rows_save(tx, &f, NULL);
    db_tx_commit(tx, on_got, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_string_equal(g.rc ? g.text : "", "");
}

static void expect(const char *sql, const char *want)
{
    struct got g = {0};
    db_query(db, sql, NULL, on_got, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_int_equal(g.rc, 0);
    assert_string_equal(g.text, want);
}

static struct core_effect experiment(int64_t id, bool is_new, enum exp_state state)
{
    static char job[8][16];
    snprintf(job[id % 8], sizeof job[0], "job-%d", (int)id);
    return (struct core_effect){.kind = CORE_SAVE_EXPERIMENT,
                                .experiment = {.is_new = is_new,
                                               .id = id,
                                               .job_id = job[id % 8],
                                               .owner_id = 1,
                                               .config = is_new ? "{\"name\": \"n\"}" : NULL,
                                               .start_us = 1,
                                               .state = state,
                                               .progress = -1,
                                               .weight = 1,
                                               .max_slots = -1}};
}

static struct core_effect trial(int64_t exp, int64_t id, bool is_new, int64_t run)
{
    static char ids[64][2][32];
    snprintf(ids[id % 64][0], sizeof ids[0][0], "request-%d", (int)id);
    snprintf(ids[id % 64][1], sizeof ids[0][1], "%d.task-%d", (int)exp, (int)id);
    return (struct core_effect){
        .kind = CORE_SAVE_TRIAL,
        .trial = {.is_new = is_new,
                  .id = id,
                  .experiment_id = exp,
                  .request_id = ids[id % 64][0],
                  .task_id = ids[id % 64][1],
                  .hparams = is_new ? "{\"odd\": \"a\\\\b \\\"c\\\" {,} \xc3\xa4 NULL\"}" : NULL,
                  .seed = 7,
                  .start_us = 2000000,
                  .warm_start_checkpoint = id % 2 ? "NULL" : NULL,
                  .state = TRIAL_ACTIVE,
                  .run_id = run,
                  .end_us = run > 2 ? 3000000 : 0,
                  .core = "{\"k\": \"v\"}"}};
}

static struct core_effect allocation(int64_t exp, int64_t trial, bool is_new, const char *reason)
{
    static char ids[64][2][32];
    snprintf(ids[trial % 64][0], sizeof ids[0][0], "%d.task-%d.1", (int)exp, (int)trial);
    snprintf(ids[trial % 64][1], sizeof ids[0][1], "%d.task-%d", (int)exp, (int)trial);
    return (struct core_effect){.kind = CORE_SAVE_ALLOCATION,
                                .allocation = {.is_new = is_new,
                                               .id = ids[trial % 64][0],
                                               .task_id = ids[trial % 64][1],
                                               .experiment_id = exp,
                                               .trial_id = trial,
                                               .run_id = 1,
                                               .kind = "TRIAL",
                                               .slots = 1,
                                               .resource_pool = "default",
                                               .start_us = 1000000,
                                               .state = reason ? ALLOC_TERMINATED : ALLOC_PENDING,
                                               .exit_reason = reason,
                                               .status_code = reason ? 3 : -1,
                                               .core = "{}"}};
}

static struct core_effect event(int64_t exp, int64_t seq)
{
    return (struct core_effect){.kind = CORE_SAVE_SEARCH_EVENT,
                                .search_event = {exp, seq, "{\"type\": \"created\"}"}};
}

static const char all_trials[] =
    "SELECT string_agg(concat_ws('|', id, state, run_id, hparams->>'odd', core, request_id, seed, "
    "extract(epoch FROM end_time)::integer, warm_start_checkpoint), ' ; ' ORDER BY id) "
    "FROM trials WHERE experiment_id = %d";
static const char all_allocations[] =
    "SELECT string_agg(concat_ws('|', split_part(id, '.', 2), state, is_ready, exit_reason, "
    "status_code, slots), ' ; ' ORDER BY id) FROM allocations WHERE experiment_id = %d";

static void check(int exp, int first)
{
    char sql[512], want[1024];
    const char *odd = "a\\b \"c\" {,} \xc3\xa4 NULL";
    snprintf(sql, sizeof sql, all_trials, exp);
    snprintf(want, sizeof want,
             "%d|ACTIVE|3|%s|{\"k\": \"v\"}|request-%d|7|3%s ; "
             "%d|ACTIVE|1|%s|{\"k\": \"v\"}|request-%d|7%s",
             first, odd, first, first % 2 ? "|NULL" : "", first + 1, odd, first + 1,
             first % 2 ? "" : "|NULL");
    expect(sql, want);
    snprintf(sql, sizeof sql, all_allocations, exp);
    snprintf(want, sizeof want, "task-%d|TERMINATED|f|said \"no\", {\\}|3|1 ; task-%d|PENDING|f|1",
             first, first + 1);
    expect(sql, want);
}

/* The same changes in one batch, and each in a batch of its own. */
static void test_together_as_alone(void **state)
{
    for (int exp = 1, first = 11; exp <= 2; exp++, first += 2) {
        struct core_effect v[] = {
            experiment(exp, true, EXP_ACTIVE),  event(exp, 1),
            trial(exp, first, true, 1),         trial(exp, first + 1, true, 1),
            allocation(exp, first, true, NULL), allocation(exp, first + 1, true, NULL),
            trial(exp, first, false, 2),        experiment(exp, false, EXP_PAUSED),
            trial(exp, first, false, 3),        allocation(exp, first, false, "said \"no\", {\\}"),
        };
        size_t n = sizeof v / sizeof *v;
        if (exp == 1)
            save(v, n);
        for (size_t i = 0; exp == 2 && i < n; i++)
            save(&v[i], 1);
        check(exp, first);
    }
    expect("SELECT string_agg(state, ' ') FROM experiments", "PAUSED PAUSED");
    expect("SELECT count(*) FROM search_events", "2");
}

static void test_repeat_is_harmless(void **state)
{
    struct core_effect v[] = {experiment(1, true, EXP_ACTIVE), trial(1, 11, true, 1),
                              trial(1, 12, true, 1)};
    save(v, 3);
    check(1, 11);
}

static void test_order(void **state)
{
    struct core_effect snapshot = {.kind = CORE_SAVE_SEARCH_SNAPSHOT,
                                   .search_snapshot = {3, 2, "{}"}};
    struct core_effect drop = {.kind = CORE_DELETE_EXPERIMENT, .exp_id = 4};
    struct core_effect v[] = {
        experiment(3, true, EXP_ACTIVE), event(3, 1),           event(3, 2), snapshot, event(3, 3),
        experiment(4, true, EXP_ACTIVE), trial(4, 21, true, 1), drop,
    };
    save(v, sizeof v / sizeof *v);
    expect("SELECT string_agg(seq::text, ' ') FROM search_events WHERE experiment_id = 3", "1 2 3");
    expect("SELECT count(*) FROM experiments WHERE id = 4", "0");
    expect("SELECT count(*) FROM trials WHERE id = 21", "0");
}

/* More than one statement takes. */
static void test_many(void **state)
{
    enum { N = 5000 };
    static struct core_effect v[N + 1];
    static char ids[N][2][32];
    v[0] = experiment(5, true, EXP_ACTIVE);
    for (int i = 0; i < N; i++) {
        v[i + 1] = trial(5, 1000 + i, true, 1);
        snprintf(ids[i][0], sizeof ids[0][0], "many-%d", i);
        snprintf(ids[i][1], sizeof ids[0][1], "5.many-%d", i);
        v[i + 1].trial.request_id = ids[i][0];
        v[i + 1].trial.task_id = ids[i][1];
    }
    save(v, N + 1);
    expect("SELECT count(DISTINCT request_id) FROM trials WHERE experiment_id = 5", "5000");
}

static struct core_effect read_back[] = {
    {.kind = CORE_SAVE_AGENT, .agent = {"agent-1", true, true, "[1]", "[2]"}},
    {.kind = CORE_SAVE_STORE,
     .store = {"/there", "00000000-0000-4000-8000-000000000001", "[\"u\"]", "agent-1", 1, 4000000}},
    {.kind = CORE_SAVE_EXPERIMENT,
     .experiment = {true, 6, "job-6", 1, 1, 5, "{\"name\": \"n\"}", NULL, 1500000, EXP_PAUSED,
                    2500000, 0.25, "pool", 7, 2.5, 0, -1.5, "{\"k\": 1}"}},
    {.kind = CORE_SAVE_SEARCH_SNAPSHOT, .search_snapshot = {6, 1, "{\"s\": 1}"}},
    {.kind = CORE_SAVE_SEARCH_EVENT, .search_event = {6, 2, "{\"e\": 1}"}},
    {.kind = CORE_SAVE_TRIAL,
     .trial = {true, 31, 6, "request-31", "6.31", "{\"lr\": 0.1}", -7, 1500001, "warm",
               TRIAL_STOPPING_KILLED, 2, 1, 2500001, "{\"k\": 2}"}},
    {.kind = CORE_SAVE_ALLOCATION,
     .allocation = {true, "6.31.2", "6.31", 6, 31, 2, "TRIAL", 4, "pool", 1500002, ALLOC_PULLING,
                    true, 2000002, 2500002, "said \"no\"", 0, "{\"k\": 3}"}},
};

struct reading {
    size_t n; /* of read_back[], of which row i is of kind i */
    int64_t refused;
};

static bool is_same(enum row_kind kind, const void *a, const void *b)
{
    const struct row_column *v[ROW_COLUMNS_MAX];
    size_t n = rowtable_written(kind, true, v);
    for (size_t i = 0; i < n; i++) {
        char num[2][ROW_TEXT_MAX];
        const char *was = rowtable_text(v[i], a, num[0]), *is = rowtable_text(v[i], b, num[1]);
        if (was ? !is || strcmp(was, is) != 0 : is != NULL) {
            if (v[i]->when != COL_KEY) /* another row */
                fail_msg("%s: %s is read as %s", v[i]->name, was ? was : "null", is ? is : "null");
            return false;
        }
    }
    return true;
}

static int on_row(void *arg, enum row_kind kind, const union row_any *r, struct det_err *err)
{
    struct reading *g = arg;
    g->n += is_same(kind, &read_back[kind].experiment, r);
    if (kind == ROW_TRIAL && r->trial.id == 31)
        assert_string_equal(r->trial.latest_checkpoint, "a");
    bool is_refused = g->refused && rowtable_exp_id(kind, r) == g->refused && kind == ROW_TRIAL;
    return is_refused ? det_fail(err, DET_ECORRUPT, "not this one") : 0;
}

static void reopen(void)
{
    struct det_err err;
    struct db_options o = {.conninfo = pg.uri};
    bool closed = false;
    db_close(db, on_closed, &closed);
    assert_true(loop_until(&loop, &closed, 60000));
    assert_int_equal(db_create(&loop, &o, NULL, &db, &err), 0);
}

static void read_now(struct reading *g, const char *change, int rc, int64_t whose)
{
    struct det_err err;
    int64_t exp_id;
    assert_int_equal(db_query_now(db, change, NULL, NULL, NULL, &err), 0);
    assert_int_equal(db_restore(db, on_row, g, &exp_id, &err), rc);
    assert_int_equal(exp_id, whose);
}

/* The database's words for which states are over, and those of rows.h. */
static void test_ended_states(void **state)
{
    char sql[128];
    for (enum exp_state s = 0; s < EXP_STATE_COUNT; s++) {
        enum trial_state t;
        bool is_trials = trial_state_parse(exp_state_text(s), &t);
        snprintf(sql, sizeof sql, "SELECT is_terminal('%s')", exp_state_text(s));
        expect(sql, exp_state_is_terminal(s) ? "t" : "f");
        snprintf(sql, sizeof sql, "SELECT has_ended('%s')", exp_state_text(s));
        expect(sql, is_trials && trial_state_is_terminal(t) ? "t" : "f");
    }
}

/* Every column of every kind comes back as it was saved. */
static void test_read_back(void **state)
{
    struct reading g = {0};
    struct det_err err;
    save(read_back, sizeof read_back / sizeof *read_back);
    reopen();
    read_now(&g,
             "INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, run_id, steps, "
             "state, report_time) VALUES ('a', 6, 31, '6.31', 2, 9, 'COMPLETED', now())",
             0, 0);
    assert_int_equal(g.n, ROW_KIND_COUNT);
    g.refused = 6;
    read_now(&g, "SELECT 1", DET_ECORRUPT, 6);
    read_now(&g, "UPDATE experiments SET state = 'MOVED' WHERE id = 5", DET_ECORRUPT, 5);
    read_now(&g, "UPDATE experiments SET state = 'COMPLETED' WHERE id >= 5", 0, 0);
    assert_int_equal(db_start(db, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together_as_alone),
        cmocka_unit_test(test_repeat_is_harmless),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_ended_states),
        cmocka_unit_test(test_read_back),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
