/* Answers that are given again for a moment (db_recent.h). */
#include "db_logs.h"
#include "db_recent.h"
#include "mem.h"
#include "pg_private.h"
#include "shared_buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

struct got {
    bool done;
    int rc;
    int64_t i64;
};

static void on_got(void *arg, const struct db_result *r)
{
    *(struct got *)arg =
        (struct got){.done = true, .rc = db_rc(r), .i64 = db_rows(r) ? db_i64(r, 0, 0) : 0};
}

static void on_done(void *arg, int rc, const struct det_err *err)
{
    *(struct got *)arg = (struct got){.done = true, .rc = rc};
}

static int64_t wait(const struct got *g)
{
    assert_true(g->done || loop_until(&loop, &g->done, 60000));
    assert_int_equal(g->rc, 0);
    return g->i64;
}

static void write_wait(const char *sql)
{
    struct got g = {0};
    db_write(db, sql, NULL, on_got, &g);
    wait(&g);
}

static int start_as(struct db_options o)
{
    if (pg_private_open_as(&pg, &loop, o, &db) < 0)
        return -1;
    write_wait("CREATE SEQUENCE asked");
    return 0;
}

static int start(void **state)
{
    return start_as((struct db_options){0});
}

static int start_anew(void **state)
{
    return start_as((struct db_options){.always_anew = true});
}

static int end(void **state)
{
    pg_private_close(&pg, &loop, db);
    return 0;
}

typedef void query(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                   void *arg);

/* Each run of the statement takes a number, so that an answer tells which run it is of. */
static void list(query *ask, double seconds, struct got *g)
{
    *g = (struct got){0};
    ask(db, "SELECT nextval('asked') FROM pg_sleep($1::float8)", db_f64_arg(DB_ARGS, seconds),
        on_got, g);
    assert_false(g->done); /* never from inside */
}

static int64_t listed(query *ask, double seconds)
{
    struct got g;
    list(ask, seconds, &g);
    return wait(&g);
}

static void write_quietly(void)
{
    struct got tx_done = {0}, logged = {0};
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx, "SELECT 1", DB_ARGS);
    db_tx_quiet(tx);
    db_tx_commit(tx, on_got, &tx_done);
    wait(&tx_done);
    struct db_log_line line = {.task_id = "t", .log = "x", .log_len = 1, .rank = -1, .offset = -1};
    db_logs_write(db, &line, 1, on_done, &logged);
    wait(&logged);
}

/* The number of an answer that is given again after what was done in between: of another one,
 * where the machine stood still for as long as an answer is kept. It takes long to look up, and is
 * kept for a multiple of that. */
static int64_t listed_again(query *ask, void (*between)(void))
{
    int64_t number = listed(ask, 0.1), again = number - 1;
    for (int i = 0; i < 10 && again != number; i++) {
        number = i ? again : number;
        if (between)
            between();
        again = listed(ask, 0.1);
    }
    assert_int_equal(again, number);
    return number;
}

static void check(query *ask)
{
    struct got first, second;
    list(ask, 0.05, &first);
    list(ask, 0.05, &second); /* while that is looked up */
    assert_int_equal(wait(&second), wait(&first));
    int64_t other = listed(ask, 0.001);
    assert_int_not_equal(other, first.i64);
    assert_int_not_equal(listed_again(ask, NULL), other);
    int64_t number = listed_again(ask, write_quietly);
    write_wait("SELECT 1");
    assert_int_not_equal(listed(ask, 0.1), number);
}

/* One answer for who asks while it is looked up and for who asks soon after it, but for none after
 * a write that is not quiet. */
static void lists(void **state)
{
    check(db_query_list);
}

static void charts(void **state)
{
    check(db_query_chart);
}

/* A write begins while a list is looked up: who asks after its end hears what it wrote. */
static void not_joined_after_a_write(void **state)
{
    struct got first, second;
    list(db_query_list, 0.3, &first);
    write_wait("SELECT 1");
    list(db_query_list, 0.3, &second);
    wait(&first);
    assert_int_not_equal(wait(&second), first.i64);
}

static void anew(void **state)
{
    query *asks[] = {db_query_list, db_query_chart};
    for (size_t i = 0; i < 2; i++) {
        int64_t number = listed(asks[i], 0.1);
        assert_int_equal(listed(asks[i], 0.1), number + 1);
    }
}

static void validate(void)
{
    struct got g = {0};
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx, "SELECT 1", DB_ARGS);
    db_tx_validates(tx);
    db_tx_commit(tx, on_got, &g);
    wait(&g);
}

static void list_state(struct db *to, const char *sql, const struct db_args *args, db_cb *cb,
                       void *arg)
{
    db_query_list_lasting(to, DB_RESTS_STATE, sql, args, cb, arg);
}

static void list_validations(struct db *to, const char *sql, const struct db_args *args, db_cb *cb,
                             void *arg)
{
    db_query_list_lasting(to, DB_RESTS_VALIDATIONS, sql, args, cb, arg);
}

static void list_reports(struct db *to, const char *sql, const struct db_args *args, db_cb *cb,
                         void *arg)
{
    db_query_list_lasting(to, DB_RESTS_REPORTS, sql, args, cb, arg);
}

static void read_state(struct db *to, const char *sql, const struct db_args *args, db_cb *cb,
                       void *arg)
{
    db_query_lasting(to, DB_RESTS_STATE, sql, args, cb, arg);
}

static void chart_state(struct db *to, const char *sql, const struct db_args *args, db_cb *cb,
                        void *arg)
{
    db_query_chart_lasting(to, DB_RESTS_STATE, sql, args, cb, arg);
}

/* What misses nothing is given again, though each question is to be looked up anew: until what it
 * rests on was written. */
static void lasting(void **state)
{
    int64_t number = listed_again(list_state, validate);
    write_wait("SELECT 1");
    assert_int_not_equal(listed(list_state, 0.1), number);
    write_wait("SELECT 1"); /* the same question rests on something else from here on */
    number = listed_again(list_validations, write_quietly);
    validate();
    assert_int_not_equal(listed(list_validations, 0.1), number);
    number = listed_again(list_validations, NULL);
    write_wait("SELECT 1");
    assert_int_not_equal(listed(list_validations, 0.1), number);
    write_wait("SELECT 1");
    number = listed(list_reports, 0.1);
    assert_int_equal(listed(list_reports, 0.1), number + 1);
}

static void lasting_of_all_kinds(void **state)
{
    query *asks[] = {read_state, chart_state};
    for (size_t i = 0; i < 2; i++) {
        int64_t number = listed_again(asks[i], write_quietly);
        write_wait("SELECT 1");
        assert_int_not_equal(listed(asks[i], 0.1), number);
    }
}

/* A validation is written while what rests on it is looked up: who asks after its end hears of it.
 */
static void not_joined_after_a_validation(void **state)
{
    struct got first, second;
    list(list_validations, 0.3, &first);
    validate();
    list(list_validations, 0.3, &second);
    wait(&first);
    assert_int_not_equal(wait(&second), first.i64);
}

/* Its size is that of what was made of it; nobody asked a database for it. */
static void keep(struct db_recents *all, int64_t id, size_t bytes)
{
    struct db_result r = {.pg = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK)};
    struct shared_buf *made = shared_buf_create();
    buf_reserve(&made->b, bytes);
    made->b.len = bytes;
    db_recent_keep(all, db_stmt_create("SELECT $1::bigint", db_i64_arg(DB_ARGS, id)), &r, made,
                   &(struct db_recent_at){.ms = 100});
    shared_buf_unref(made);
}

static bool is_kept(const struct db_recents *all, int64_t id)
{
    struct db_stmt *s = db_stmt_create("SELECT $1::bigint", db_i64_arg(DB_ARGS, id));
    bool is = db_recent_find(all, s, &(struct db_recent_at){.ms = 99}) != NULL;
    free(s);
    return is;
}

/* However many are asked, and however much they were told. */
static void the_oldest_go(void **state)
{
    (void)state;
    struct db_recents all = {0};
    for (int64_t id = 0; id < 257; id++)
        keep(&all, id, 10);
    assert_int_equal(all.n, 256);
    assert_false(is_kept(&all, 0));
    assert_true(is_kept(&all, 1) && is_kept(&all, 256));
    keep(&all, 300, (size_t)40 << 20);
    keep(&all, 301, (size_t)30 << 20);
    assert_true(is_kept(&all, 301) && !is_kept(&all, 300) && !is_kept(&all, 256));
    keep(&all, 302, (size_t)65 << 20);
    assert_true(all.n == 0 && all.bytes == 0);
    keep(&all, 303, 10);
    db_recent_forget(&all, &(struct db_recent_at){.ms = 100});
    assert_true(all.n == 0 && all.bytes == 0);
}

/* What is asked may be longer than its answer: the ids of all that a search found. */
static void questions_count(void **state)
{
    (void)state;
    struct db_recents all = {0};
    det_cleanup(freep) char *ids = det_zalloc(1 << 20);
    memset(ids, '1', (1 << 20) - 1);
    struct db_result r = {.pg = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK)};
    struct shared_buf *made = shared_buf_create();
    db_recent_keep(&all, db_stmt_create("SELECT $1", db_str_arg(DB_ARGS, ids)), &r, made,
                   &(struct db_recent_at){.ms = 100});
    shared_buf_unref(made);
    assert_true(all.n == 1 && all.bytes > 1 << 20);
    db_recent_forget(&all, &(struct db_recent_at){.ms = 100});
    assert_true(all.n == 0 && all.bytes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(charts),
        cmocka_unit_test(not_joined_after_a_write),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(anew), cmocka_unit_test(lasting),
                                         cmocka_unit_test(lasting_of_all_kinds),
                                         cmocka_unit_test(not_joined_after_a_validation)};
    const struct CMUnitTest alone[] = {cmocka_unit_test(the_oldest_go),
                                       cmocka_unit_test(questions_count)};
    int failed = cmocka_run_group_tests(tests, start, end);
    failed += cmocka_run_group_tests(without, start_anew, end);
    return failed + cmocka_run_group_tests(alone, NULL, NULL);
}
