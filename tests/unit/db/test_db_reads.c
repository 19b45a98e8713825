/* Every read runs against a real PostgreSQL: statements, parameters and documents fit the tables.
 */
#include "db_ckpt_read.h"
#include "db_doc.h"
#include "db_exp_edit.h"
#include "db_exp_read.h"
#include "db_exp_search.h"
#include "db_log_read.h"
#include "db_task_read.h"
#include "db_trial_read.h"
#include "expsearch.h"
#include "json.h"
#include "pg_private.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

struct got {
    bool done;
    int rc, rows;
    char doc[4096], state[64], total[32], error[DET_ERR_TEXT_MAX];
};

/* Column c of the first row. */
static void keep(char *out, size_t n, const struct db_result *r, int c)
{
    snprintf(out, n, "%s", db_rows(r) ? db_text(r, 0, c) : "");
}

static void on_list(void *arg, const struct db_result *r)
{
    struct got *g = arg;
    *g = (struct got){.done = true, .rc = db_rc(r), .rows = db_rows(r)};
    snprintf(g->error, sizeof g->error, "%s", db_error(r)->text);
    if (g->rc == 0) {
        keep(g->total, sizeof g->total, r, LIST_TOTAL);
        keep(g->state, sizeof g->state, r, LIST_STATE);
        keep(g->doc, sizeof g->doc, r, LIST_DOC);
    }
}

static void on_row(void *arg, const struct db_result *r)
{
    struct got *g = arg;
    *g = (struct got){.done = true, .rc = db_rc(r), .rows = db_rows(r)};
    snprintf(g->error, sizeof g->error, "%s", db_error(r)->text);
    if (g->rc == 0)
        keep(g->doc, sizeof g->doc, r, 0);
}

static void on_second(void *arg, const struct db_result *r)
{
    struct got *g = arg;
    on_row(g, r);
    if (g->rc == 0)
        keep(g->doc, sizeof g->doc, r, 1);
}

/* The first row's columns behind its first, as an object. */
static void on_members(void *arg, const struct db_result *r)
{
    struct got *g = arg;
    struct buf out = BUF_INIT;
    on_row(g, r);
    if (g->rc == 0 && g->rows)
        db_put_members(&out, r, 0, 1, -1);
    snprintf(g->doc, sizeof g->doc, "{%s}", buf_str(&out));
    buf_finish(&out);
}

static void ok(struct got *g)
{
    assert_true(loop_until(&loop, &g->done, 60000));
    if (g->rc)
        print_error("%s\n", g->error);
    assert_int_equal(g->rc, 0);
}

static void must_parse(const char *doc)
{
    struct det_err err;
    JSON_OWN j = json_parse(doc, strlen(doc), &err);
    assert_non_null(j);
}

static const char *const seed[] = {
    "INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, labels, config, "
    "original_config, "
    "model_def, searcher_metric) VALUES (7, 'j7', 1, 'ACTIVE', now(), 'Digits', '[\"a\",\"b\"]', "
    "'{\"max_restarts\":1,\"searcher\":{\"name\":\"grid\"},\"resources\":{},\"checkpoint_storage\":"
    "{},"
    "\"labels\":[]}', 'x: y', 'abc', 'loss')",
    "INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, restarts, hparams, "
    "start_time) "
    "VALUES (9, 7, 'r', '9.t', 'ACTIVE', 1, 5, '{\"lr\":0.1}', now())",
    "INSERT INTO allocations (id, task_id, experiment_id, trial_id, run_id, state, slots, "
    "start_time) "
    "VALUES ('9.t.1', '9.t', 7, 9, 1, 'PENDING', 1, now())",
    "SELECT report_metrics(9, 1, 'validation', 10, '{\"validation_metrics\":{\"loss\":0.5}}', "
    "now())",
    "SELECT report_metrics(9, 1, 'training', 10, "
    "'{\"avg_metrics\":{\"loss\":0.25}}', now(), '[{\"a\":1}]')",
    "INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, allocation_id, run_id, "
    "state, steps, "
    "report_time, resources, bytes) VALUES ('c', 7, 9, '9.t', '9.t.1', 1, 'COMPLETED', 10, now(), "
    "'{\"a\":5,\"d/\":0}', 5)",
    "INSERT INTO task_logs (task_id, container_id, rank_id, level, time, log) "
    "VALUES ('9.t', '0123456789', 3, 3, '2024-01-02T03:04:05.6Z', 'hello')",
    "INSERT INTO profiler_metrics (trial_id, labels, batch) VALUES (9, '{\"name\":\"cpu\"}', '{}')",
};

static int start(void **state)
{
    if (pg_private_open(&pg, &loop, &db) < 0)
        return -1;
    for (size_t i = 0; i < DET_ARRAY_LEN(seed); i++)
        pg_private_write(&loop, db, seed[i]);
    struct got g = {.rc = DET_EUNAVAIL}; /* the readers connect in the loop */
    for (int i = 0; i < 10000 && g.rc == DET_EUNAVAIL; i++) {
        g.done = false;
        db_exp_best_metric(db, 7, on_row, &g);
        if (!loop_until(&loop, &g.done, 60000))
            return -1;
    }
    return g.rc;
}

static int stop(void **state)
{
    pg_private_close(&pg, &loop, db);
    return 0;
}

/* What columns become as members of an object: every type, and values that JSON has no form for. */
static void test_members(void **state)
{
    static const struct {
        const char *sql, *doc;
    } cases[] = {
        {"SELECT 0, true a, false b, -5::smallint c, 2147483647 d, 9007199254740993 e, "
         "NULL::integer f",
         "{\"a\":true,\"b\":false,\"c\":-5,\"d\":2147483647,\"e\":9007199254740993,\"f\":null}"},
        {"SELECT 0, 0.1::float8 a, '-1e300'::float8 b, 'NaN'::float8 c, '-Infinity'::float8 d, "
         "12345678901234567890.5::numeric e, 'NaN'::numeric f",
         "{\"a\":0.1,\"b\":-1e+300,\"c\":\"NaN\",\"d\":\"-Infinity\",\"e\":12345678901234567890.5,"
         "\"f\":\"NaN\"}"},
        {"SELECT 0, E'q\"\\\\\t\\u00e9' a, '[1, null]'::jsonb b, '{\"x\": 1.50}'::json c, ''::text "
         "d",
         "{\"a\":\"q\\\"\\\\\\u0009\xc3\xa9\",\"b\":[1, null],\"c\":{\"x\": 1.50},\"d\":\"\"}"},
        {"SELECT 0, '2024-02-29 23:59:59.5Z'::timestamptz a, '2024-02-29 23:59:59+02'::timestamptz "
         "b, "
         "'1969-12-31 23:59:59.999999Z'::timestamptz c, 'infinity'::timestamptz d",
         "{\"a\":\"2024-02-29T23:59:59.500000Z\",\"b\":\"2024-02-29T21:59:59.000000Z\","
         "\"c\":\"1969-12-31T23:59:59.999999Z\",\"d\":\"infinity\"}"},
        {"SELECT 0, NULL::text \"a?\", 1 \"b?\", 2 \"c.x\", NULL::text \"c.y\", NULL::text "
         "\"d.x\", "
         "3 \"d.y\", 4 \"dd.x\", 5 e",
         "{\"b\":1,\"c\":{\"x\":2,\"y\":null},\"d\":null,\"dd\":{\"x\":4},\"e\":5}"},
        {"SELECT 0", "{}"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct got g = {0};
        db_query(db, cases[i].sql, NULL, on_members, &g);
        ok(&g);
        assert_string_equal(g.doc, cases[i].doc);
    }
}

static void test_experiments(void **state)
{
    struct got g = {0};
    db_exp_read(db, 7, on_members, &g);
    ok(&g);
    must_parse(g.doc);
    assert_non_null(strstr(g.doc, "\"checkpointSize\":\"5\""));
    assert_non_null(strstr(g.doc, "\"bestTrialId\":9"));
    struct db_exp_filter all = {.archived = -1};
    for (int sort = 0; sort <= 17; sort++)
        for (int desc = 0; desc < 2; desc++) {
            g.done = false;
            db_exp_list(db, &all, &(struct db_page){.sort = sort, .desc = desc}, on_list, &g);
            ok(&g);
            assert_string_equal(g.state, "ACTIVE");
        }
    struct db_exp_filter f = {.name = "dig",
                              .labels = "[\"a\"]",
                              .archived = 0,
                              .states = "[\"ACTIVE\"]",
                              .users = "[\"admin\"]",
                              .user_ids = "[1]",
                              .project_id = 1,
                              .id_filter = "{\"gte\":7,\"lt\":8,\"incl\":[7],\"notIn\":[8]}",
                              .ids = "[7]",
                              .not_ids = "[9]"};
    g.done = false;
    db_exp_list(db, &f, &(struct db_page){0}, on_list, &g);
    ok(&g);
    assert_string_equal(g.total, "1");
    f.labels = "[\"c\"]";
    g.done = false;
    db_exp_list(db, &f, &(struct db_page){.offset = -5, .limit = -1}, on_list, &g);
    ok(&g);
    assert_string_equal(g.total, "0");
    assert_string_equal(g.doc, "");
    g.done = false;
    db_exp_find(db, &all, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "7");
}

static void test_experiment_parts(void **state)
{
    struct got g = {0};
    db_exp_model_def_part(db, &(struct db_part){.exp_id = 7}, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "\\x616263");
    g.done = false;
    db_exp_model_def_part(db, &(struct db_part){.exp_id = 7, .from = 1}, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "\\x6263");
    g.done = false;
    db_exp_model_def_part(db, &(struct db_part){.exp_id = 7, .from = 1}, on_second, &g);
    ok(&g);
    assert_string_equal(g.doc, "3");
    g.done = false;
    db_exp_history(db, 7, on_row, &g);
    ok(&g);
    assert_non_null(strstr(g.doc, "\"searcherMetric\" : 0.5"));
    g.done = false;
    db_exp_best_metric(db, 7, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "0.5");
    g.done = false;
    db_exp_labels(db, 0, on_row, &g);
    ok(&g);
    assert_non_null(strstr(g.doc, "[\"a\", \"b\"]"));
    g.done = false;
    db_exp_owners(db, "[7]", on_row, &g);
    ok(&g);
    g.done = false;
    db_exp_origin(db, &(struct db_exp_origin){.parent_id = 7, .source_trial_id = 9}, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "1");
}

static void test_experiment_edits(void **state)
{
    struct got g = {0};
    db_exp_edit(db, 7,
                &(struct db_exp_edit){.name = "n",
                                      .labels = "[\"z\"]",
                                      .storage = "{\"save_trial_best\":2}",
                                      .resources = "{\"weight\":2}"},
                on_row, &g);
    ok(&g);
    assert_int_equal(g.rows, 1);
    g.done = false;
    db_exp_archive(db, 7, true, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "ACTIVE");
    for (int add = 1; add >= 0; add--) {
        g.done = false;
        db_exp_label(db, 7, "new", add, on_row, &g);
        ok(&g);
        assert_string_equal(g.doc,
                            add ? "{\"labels\": [\"z\", \"new\"]}" : "{\"labels\": [\"z\"]}");
    }
}

/* The list's total is kept, not counted: it must follow whatever becomes of experiments. */
static void test_counts(void **state)
{
    static const char *const changes[] = {
        "INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, config, "
        "original_config) SELECT i, 'j' || i, 1, 'ACTIVE', now(), 'n', '{}', '' "
        "FROM generate_series(71, 74) i",
        "UPDATE experiments SET state = 'COMPLETED' WHERE id IN (71, 72)",
        "UPDATE experiments SET archived = true, state = state WHERE id = 71",
        "UPDATE experiments SET notes = 'x', state = state WHERE id > 70",
        "DELETE FROM experiments WHERE id IN (72, 73, 71, 74)",
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(changes); i++) {
        struct got g = {0};
        db_write(db, changes[i], NULL, on_row, &g);
        ok(&g);
        g.done = false;
        db_query(
            db,
            "SELECT count(*) FROM (SELECT project_id, owner_id, state, archived, count(*) n "
            "FROM experiments GROUP BY 1, 2, 3, 4) e FULL JOIN (SELECT * FROM "
            "experiment_counts WHERE n > 0) c USING (project_id, owner_id, state, archived, n) "
            "WHERE e.n IS NULL OR c.n IS NULL",
            NULL, on_row, &g);
        ok(&g);
        assert_string_equal(g.doc, "0");
    }
}

static void test_trials(void **state)
{
    struct got g = {0};
    db_trial_read(db, 9, on_members, &g);
    ok(&g);
    must_parse(g.doc);
    assert_non_null(strstr(g.doc, "\"restarts\":1"));
    assert_non_null(strstr(g.doc, "\"bestCheckpoint\":{"));
    for (int sort = 0; sort <= 12; sort++) {
        g.done = false;
        db_trial_list(db, 7, "[\"ACTIVE\"]", &(struct db_page){.sort = sort, .desc = sort & 1},
                      on_list, &g);
        ok(&g);
        assert_string_equal(g.total, "1");
    }
    static const char *const totals[] = {"3", "1", "1", "2"};
    for (int filter = 0; filter < 4; filter++) {
        g.done = false;
        db_workload_list(
            db, &(struct db_workloads){.trial_id = 9, .filter = filter, .batch_metrics = true},
            &(struct db_page){0}, on_list, &g);
        ok(&g);
        assert_string_equal(g.total, totals[filter]);
    }
    g.done = false;
    db_workload_list(
        db, &(struct db_workloads){.trial_id = 9, .group = "validation", .sort_metric = "loss"},
        &(struct db_page){.desc = true}, on_list, &g);
    ok(&g);
    g.done = false;
    db_metrics_read(db, "[9]", "training", -1, 0, on_row, &g);
    ok(&g);
    assert_int_equal(g.rows, 1);
    g.done = false;
    db_profile_read(db, 9, "{\"name\":\"cpu\"}", 0, on_row, &g);
    ok(&g);
    assert_int_equal(g.rows, 1);
    g.done = false;
    db_profile_series(db, 9, on_row, &g);
    ok(&g);
}

struct page {
    bool done;
    int n;
    char doc[64][400];
};

static void on_page(void *arg, const struct db_result *r)
{
    struct page *p = arg;
    p->done = true;
    assert_int_equal(db_rc(r), 0);
    for (int i = 0; i < db_rows(r) && p->n < 64; i++)
        if (!db_is_null(r, i, LIST_DOC))
            snprintf(p->doc[p->n++], sizeof *p->doc, "%s", db_text(r, i, LIST_DOC));
}

static void page_read(const struct db_workloads *w, int offset, int limit, bool desc,
                      struct page *ret)
{
    *ret = (struct page){0};
    db_workload_list(db, w, &(struct db_page){.offset = offset, .limit = limit, .desc = desc},
                     on_page, ret);
    assert_true(loop_until(&loop, &ret->done, 60000));
}

/* Each page is that part of the whole list, whatever groups, runs and checkpoints meet at a step.
 */
static void test_workload_pages(void **state)
{
    static struct page whole, part;
    struct got g = {0};
    db_write(db,
             "WITH t AS (INSERT INTO trials (id, experiment_id, request_id, task_id, state, "
             "run_id, hparams, "
             "start_time) VALUES (8, 7, 'w', '8.t', 'ACTIVE', 1, '{}', now())), h AS (INSERT INTO "
             "metric_heads "
             "(trial_id, grp, run_id, steps) SELECT 8, x, 2, 9 FROM unnest(ARRAY['training', "
             "'validation', 'own']) x), "
             "c AS (INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, run_id, "
             "state, steps, report_time) "
             "SELECT 'w' || s, 7, 8, '8.t', 1, CASE s WHEN 3 THEN 'DELETED' ELSE 'COMPLETED' END, "
             "s, now() "
             "FROM generate_series(1, 5, 2) s) "
             "INSERT INTO metrics (trial_id, grp, steps, run_id, archived, end_time, metrics, "
             "batch_metrics) "
             "SELECT 8, x, s, r, s = 4 AND r = 1, now(), "
             "CASE x WHEN 'validation' THEN '{\"validation_metrics\": {\"a\": 1}}' ELSE '{}' "
             "END::jsonb, '[{\"b\": 1}]' "
             "FROM unnest(ARRAY['training', 'validation', 'own']) x, generate_series(1, 6) s, "
             "generate_series(1, 2) r "
             "WHERE r = 1 OR s > 3",
             NULL, on_row, &g);
    ok(&g);
    for (int desc = 0; desc < 2; desc++)
        for (int filter = 0; filter < 4; filter++) {
            struct db_workloads w = {
                .trial_id = 8, .filter = filter, .no_deleted_checkpoints = desc};
            page_read(&w, 0, -1, desc, &whole);
            const int live[] = {24 + 3 - desc, 3 - desc, 8, 8 + 3 - desc};
            assert_int_equal(whole.n, live[filter]);
            for (int offset = 0; offset <= whole.n; offset++) {
                page_read(&w, offset, 4, desc, &part);
                assert_int_equal(part.n, whole.n - offset < 4 ? whole.n - offset : 4);
                for (int i = 0; i < part.n; i++)
                    assert_string_equal(part.doc[i], whole.doc[offset + i]);
            }
        }
    g.done = false;
    db_write(db, "DELETE FROM trials WHERE id = 8", NULL, on_row, &g);
    ok(&g);
}

static void test_checkpoints(void **state)
{
    struct got g = {0};
    db_ckpt_read(db, "c", on_row, &g);
    ok(&g);
    must_parse(g.doc);
    assert_non_null(strstr(g.doc, "\"searcherMetric\" : 0.5"));
    for (int sort = 0; sort <= 6; sort++) {
        g.done = false;
        db_ckpt_list(db, &(struct db_ckpt_filter){.exp_id = 7, .states = "[\"COMPLETED\"]"},
                     &(struct db_page){.sort = sort}, on_list, &g);
        ok(&g);
        assert_string_equal(g.total, "1");
    }
    g.done = false;
    db_ckpt_list(db, &(struct db_ckpt_filter){.trial_id = 9, .metric = "loss"},
                 &(struct db_page){0}, on_list, &g);
    ok(&g);
    g.done = false;
    db_ckpt_set_metadata(db, "c", "{\"k\":1}", on_row, &g);
    ok(&g);
    assert_non_null(strstr(g.doc, "\"metadata\": {\"k\": 1}"));
    g.done = false;
    db_ckpt_missing(db, "[\"c\",\"x\"]", on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "x");
    g.done = false;
    db_ckpt_of_experiment(db, 7, on_row, &g);
    ok(&g);
    g.done = false;
    db_ckpt_patch(db, "[{\"uuid\":\"c\",\"resources\":{\"a\":5}}]", 7, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "1");
    g.done = false;
    db_ckpt_read(db, "c", on_row, &g);
    ok(&g);
    assert_non_null(strstr(g.doc, "STATE_PARTIALLY_DELETED"));
}

static void test_logs_and_tasks(void **state)
{
    struct got g = {0};
    struct db_log_filter f = {.task_id = "9.t",
                              .trial_id = 9,
                              .rank_ids = "[3]",
                              .levels = "[3]",
                              .search = "ell",
                              .after_us = 1};
    for (int desc = 0; desc < 2; desc++) {
        f.desc = desc;
        g.done = false;
        db_log_read(db, &f, 0, 10, on_second, &g);
        ok(&g);
        assert_string_equal(g.doc, "1704164645600000");
    }
    f.is_regex = true;
    f.search = "^h.l+o$";
    g.done = false;
    db_log_read(db, &f, 0, 10, on_second, &g);
    ok(&g);
    assert_string_equal(g.doc, "1704164645600000");
    g.done = false;
    db_log_regex_check(db, "a(", on_second, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_int_equal(g.rc, DET_EINVAL);
    g.done = false;
    db_log_fields(db, "9.t", false, on_row, &g);
    ok(&g);
    assert_non_null(strstr(g.doc, "\"rankIds\": [3]"));
    g.done = false;
    db_task_read(db, "9.t", on_row, &g);
    ok(&g);
    assert_non_null(strstr(g.doc, "STATE_QUEUED"));
    g.done = false;
    db_task_read(db, "none", on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "");
    g.done = false;
    db_allocation_read(db, "9.t.1", on_row, &g);
    ok(&g);
    g.done = false;
    db_accelerators_read(db, "9.t", on_row, &g);
    ok(&g);
    g.done = false;
    db_exp_model_def_part(db, &(struct db_part){.task_id = "9.t"}, on_row, &g);
    ok(&g);
    assert_string_equal(g.doc, "\\x616263");
    for (int sort = 0; sort <= 8; sort++) {
        g.done = false;
        db_user_list(db, &(struct db_user_filter){.name = "ADM", .active = 1, .admin = -1},
                     &(struct db_page){.sort = sort}, on_list, &g);
        ok(&g);
        assert_string_equal(g.total, "1");
    }
}

/* Connections come up one by one, in the loop. */
static void until_up(void (*ask)(struct got *g))
{
    struct got g = {.rc = DET_EUNAVAIL};
    for (int i = 0; i < 10000 && g.rc == DET_EUNAVAIL; i++) {
        g = (struct got){0};
        ask(&g);
        assert_true(loop_until(&loop, &g.done, 60000));
    }
    assert_int_equal(g.rc, 0);
}

static void search_all(struct got *g)
{
    JSON_OWN asked = NULL;
    assert_int_equal(expsearch_read(NULL, NULL, &asked, NULL), 0);
    db_exp_search(db, asked, 0, &(struct db_page){.limit = 10}, on_list, g);
}

static void chart_nothing(struct got *g)
{
    db_query_chart(db, "SELECT 1", NULL, on_row, g);
}

static void wake(const struct got *sleeps)
{
    for (int i = 0; i < 1000 && !sleeps->done; i++) {
        struct got g = {0};
        db_query(db,
                 "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query LIKE "
                 "'%pg_sleep($1%' AND pid <> pg_backend_pid()",
                 NULL, on_row, &g);
        ok(&g);
    }
}

/* A search is answered while charts of others take all that charts have. */
static void test_search_beside_charts(void **state)
{
    (void)state;
    enum { CHARTS = 16 };
    static struct got charts[CHARTS];
    until_up(search_all);
    until_up(chart_nothing);
    for (int i = 0; i < CHARTS; i++)
        db_query_chart(db, "SELECT 1 FROM pg_sleep($1::float8)", db_f64_arg(DB_ARGS, 1000 + i),
                       on_row, &charts[i]);
    pg_private_write(&loop, db, "SELECT 1"); /* no answer of before */
    struct got found = {0};
    search_all(&found);
    ok(&found);
    assert_string_equal(found.total, "1");
    assert_false(charts[CHARTS - 1].done);
    for (int i = 0; i < CHARTS; i++)
        wake(&charts[i]);
    assert_true(charts[CHARTS - 1].done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),          cmocka_unit_test(test_experiments),
        cmocka_unit_test(test_experiment_parts), cmocka_unit_test(test_trials),
        cmocka_unit_test(test_workload_pages),   cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_logs_and_tasks),   cmocka_unit_test(test_experiment_edits),
        cmocka_unit_test(test_counts),           cmocka_unit_test(test_search_beside_charts),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
