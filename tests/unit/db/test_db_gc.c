/* The journal of checkpoint collection: every way through its steps, and who can prevent what. */
#include "db_ckpt_read.h"
#include "db_gc.h"
#include "mem.h"
#include "pg_private.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

struct got {
    bool done;
    int columns;     /* wanted */
    char rows[2048]; /* columns by ' ', rows by ';' */
};

static void on_rows(void *arg, const struct db_result *r)
{
    struct got *g = arg;
    g->done = true;
    g->rows[0] = '\0';
    if (db_rc(r) < 0) {
        snprintf(g->rows, sizeof g->rows, "%s", db_error(r)->text);
        return;
    }
    for (int i = 0; i < db_rows(r); i++)
        for (int c = 0; c < g->columns; c++) {
            size_t used = strlen(g->rows);
            snprintf(g->rows + used, sizeof g->rows - used, "%s%s",
                     c   ? " "
                     : i ? ";"
                         : "",
                     db_is_null(r, i, c) ? "-" : db_text(r, i, c));
        }
}

static struct got got;

static struct got *wanted(int columns)
{
    got = (struct got){.columns = columns};
    return &got;
}

static const char *wait(struct got *g)
{
    assert_true(loop_until(&loop, &g->done, 60000));
    return g->rows;
}

static const char *ask(const char *sql)
{
    db_write(db, sql, NULL, on_rows, wanted(1));
    return wait(&got);
}

static const char *step(const char *uuid)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "SELECT state || '/' || coalesce(gc_step, '') FROM checkpoints "
             "WHERE uuid = '%s'",
             uuid);
    return ask(sql);
}

static const char *hashes_shown(const char *uuid)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT coalesce(checkpoint_doc('%s')->>'hashes', 'none')", uuid);
    return ask(sql);
}

/* text begins with want */
static void is(const char *text, const char *want)
{
    if (strncmp(text, want, strlen(want)) != 0)
        fail_msg("'%s' instead of '%s'", text, want);
}

static const char *intend(const char *uuids, unsigned mask, int64_t rest_s, const char *globs)
{
    struct db_gc_intent in = {
        .uuids = uuids, .mask = mask, .rest_s = rest_s, .globs = globs, .all = true};
    db_gc_intend(db, &in, on_rows, wanted(3));
    return wait(&got);
}

static const char *report(const char *patch)
{
    db_ckpt_patch(db, patch, 1, on_rows, wanted(1));
    return wait(&got);
}

static const char *undo(const char *uuids)
{
    db_gc_undo(db, uuids, on_rows, wanted(2));
    return wait(&got);
}

static const char *open_steps(int64_t exp_id)
{
    db_gc_open(db, exp_id, on_rows, wanted(7));
    return wait(&got);
}

static const char *const seed[] = {
    "INSERT INTO experiments (id, job_id, owner_id, state, start_time, end_time, name, labels, "
    "config, original_config, model_def, searcher_metric) SELECT i, 'j' || i, 1, 'COMPLETED', now(), "
    "now(), 'x', '[]', '{\"checkpoint_storage\":{\"save_trial_latest\":2}}', '', '', 'loss' "
    "FROM generate_series(1, 2) i",
    "INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, "
    "start_time) SELECT i, i, 'r', 't' || i, 'COMPLETED', 1, '{}', now() FROM generate_series(1, 2) i",
    "INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, run_id, state, steps, "
    "report_time, resources, bytes, hashes) SELECT n, 1, 1, 't', 1, 'COMPLETED', ascii(n), now(), "
    "'{\"f\":5,\"g\":6}', 11, '{\"f\":\"1\",\"g\":\"2\"}' FROM unnest('{a,b,c,d}'::text[]) n",
};

static int start(void **state)
{
    return pg_private_open(&pg, &loop, &db);
}

static int end(void **state)
{
    pg_private_close(&pg, &loop, db);
    return 0;
}

static int fresh(void **state)
{
    ask("DELETE FROM experiments");
    for (size_t i = 0; i < DET_ARRAY_LEN(seed); i++)
        assert_string_equal(ask(seed[i]), "");
    return 0;
}

static void there_and_back(void **state)
{
    is(intend("[\"a\",\"b\"]", 255, 60, NULL), "a 1 0");
    is(step("a"), "COMPLETED/remove");
    is(undo("[\"a\"]"), "a it is being deleted just now");
    is(open_steps(1), "1 1 j1 {\"checkpoint_storage\": {\"save_trial_latest\": 2}} quarantine - "
                      "[\"a\", \"b\"]");
    is(report("[{\"uuid\":\"a\",\"resources\":{}},{\"uuid\":\"b\",\"resources\":{}}]"), "2");
    is(step("a"), "DELETED/rest");
    is(report("[{\"uuid\":\"a\",\"resources\":{}}]"), "1"); /* a repeat */
    is(step("a"), "DELETED/rest");
    is(hashes_shown("a"), "none");
    is(undo("[\"a\",\"c\"]"), "a -");
    assert_non_null(strstr(got.rows, "c it is not deleted"));
    is(step("a"), "DELETED/rest"); /* all or none */
    is(undo("[\"a\"]"), "a -");
    is(undo("[\"a\"]"), "a -");
    is(open_steps(0), "1 1 j1 {\"checkpoint_storage\": {\"save_trial_latest\": 2}} restore - "
                      "[\"a\"]");
    is(report("[{\"uuid\":\"a\",\"resources\":{\"f\":5,\"g\":6}}]"), "1");
    is(step("a"), "COMPLETED/");
    is(ask("SELECT kept || ' ' || bytes FROM checkpoints WHERE uuid = 'a'"), "true 11");
    is(hashes_shown("a"), "{\"f\": \"1\", \"g\": \"2\"}");
}

static void purged_when_its_time_is_over(void **state)
{
    intend("[\"a\"]", 255, 60, NULL);
    report("[{\"uuid\":\"a\",\"resources\":{}}]");
    db_gc_expire(db, on_rows, wanted(0));
    wait(&got);
    is(step("a"), "DELETED/rest");
    ask("UPDATE checkpoints SET gc_until = now() - interval '1 second' WHERE uuid = 'a'");
    is(undo("[\"a\"]"), "a its files are gone");
    db_gc_expire(db, on_rows, wanted(0));
    wait(&got);
    is(step("a"), "DELETED/purge");
    is(undo("[\"a\"]"), "a its files are gone");
    assert_non_null(strstr(open_steps(0), " purge "));
    report("[{\"uuid\":\"a\",\"resources\":{}}]");
    is(step("a"), "DELETED/");
    is(open_steps(0), "");
    is(ask("SELECT hashes IS NULL FROM checkpoints WHERE uuid = 'a'"), "t");
}

static void without_a_quarantine(void **state)
{
    intend("[\"a\"]", 255, 0, NULL);
    assert_non_null(strstr(open_steps(1), " purge "));
    report("[{\"uuid\":\"a\",\"resources\":{}}]");
    is(step("a"), "DELETED/");
    is(intend("[\"a\"]", 255, 0, NULL), "a 1 -1"); /* nothing left to remove */
}

static void cut(void **state)
{
    intend("[\"a\"]", 255, 0, "[\"g*\"]");
    assert_non_null(strstr(open_steps(1), " cut [\"g*\"] "));
    report("[{\"uuid\":\"a\",\"resources\":{\"f\":5}}]");
    is(step("a"), "PARTIALLY_DELETED/");
    is(ask("SELECT bytes FROM checkpoints WHERE uuid = 'a'"), "5");
    is(hashes_shown("a"), "{\"f\": \"1\"}");
}

static void asked_again_until_reported(void **state)
{
    intend("[\"a\"]", 255, 60, NULL);
    assert_non_null(strstr(open_steps(1), "quarantine"));
    is(open_steps(0), "");
    ask("UPDATE checkpoints SET gc_next = now() WHERE uuid = 'a'");
    ask("INSERT INTO allocations (id, task_id, experiment_id, run_id, kind, state, slots, "
        "start_time) VALUES ('g', 'g', 1, 1, 'CHECKPOINT_GC', 'RUNNING', 0, now())");
    is(open_steps(0), ""); /* somebody is at it */
    ask("UPDATE allocations SET state = 'TERMINATED'");
    assert_non_null(strstr(open_steps(0), "quarantine"));
}

static void held(void **state)
{
    ask("UPDATE trials SET state = 'PAUSED' WHERE id = 1");
    is(ask("SELECT uuid || ' ' || checkpoint_held(c) FROM checkpoints c ORDER BY uuid"), "a 0");
    assert_non_null(strstr(got.rows, "d 8")); /* only what the live trial would resume from */
    is(intend("[\"c\",\"d\"]", 8 | 16 | 64, 60, NULL), "d 1 8");
    is(step("c"), "COMPLETED/"); /* all or none */
    ask("UPDATE trials SET warm_start_checkpoint = 'a', state = 'ACTIVE' WHERE id = 2");
    is(intend("[\"a\"]", 8 | 16 | 64, 60, NULL), "a 1 16");
    ask("UPDATE trials SET state = 'COMPLETED'");
    is(intend("[\"a\"]", 255, 60, NULL), "a 1 32");        /* the policy leaves a source alone */
    is(intend("[\"a\"]", 8 | 16 | 64, 60, NULL), "a 1 0"); /* a person need not */
}

static void version_of_a_model(void **state)
{
    ask("INSERT INTO models (id, name, description, notes, labels, metadata, workspace_id, user_id) "
        "VALUES (7, 'm', '', '', '[]', '{}', 1, 1)");
    is(ask("SELECT r_why FROM model_register('M', 'a', 1, '', '', '', '[]', '{}')"), "0");
    is(intend("[\"a\"]", 8 | 16 | 64 | 256, 60, NULL), "a 1 256");
    is(ask("SELECT checkpoint_models('a')"), "version 1 of model \"m\"");
    ask("DELETE FROM models");
    is(intend("[\"a\"]", 8 | 16 | 64 | 256, 60, NULL), "a 1 0");
}

static void pinned(void **state)
{
    db_ckpt_pin(db, "a", 60, on_rows, wanted(1));
    char first[64], second[64];
    snprintf(first, sizeof first, "%.63s", wait(&got));
    is(intend("[\"a\"]", 8 | 16 | 64, 60, NULL), "a 1 64");
    db_ckpt_pin(db, "a", 120, on_rows, wanted(1));
    snprintf(second, sizeof second, "%.63s", wait(&got));
    db_ckpt_unpin(db, "a", first, on_rows, wanted(0));
    wait(&got);
    is(intend("[\"a\"]", 8 | 16 | 64, 60, NULL), "a 1 64"); /* the second still reads */
    db_ckpt_unpin(db, "a", second, on_rows, wanted(0));
    wait(&got);
    is(intend("[\"a\"]", 8 | 16 | 64, 60, NULL), "a 1 0");
    db_ckpt_pin(db, "a", 60, on_rows, wanted(1));
    assert_string_equal(wait(&got), ""); /* on its way out: nobody can hold it any more */
}

static void listed(void **state)
{
    ask("UPDATE experiments SET collected_at = now() WHERE id = 2");
    db_gc_list(db, &(struct db_gc_scope){.due = true}, on_rows, wanted(4));
    is(wait(&got), "1 a 1 97;1 b ");
    assert_null(strstr(got.rows, ";2 "));
    db_gc_list(db, &(struct db_gc_scope){.exp_id = 2}, on_rows, wanted(4));
    is(wait(&got), "2 - - -");
}

/* Each row has the metric of its steps' validation and who holds it; the documents are told apart.
 */
static void judged(void **state)
{
    ask("UPDATE checkpoints SET validation = '{\"loss\": 0.5, \"other\": 1}' WHERE uuid = 'b'");
    ask("UPDATE trials SET state = 'ACTIVE', warm_start_checkpoint = 'c' WHERE id = 1");
    db_gc_list(db, &(struct db_gc_scope){.exp_id = 1}, on_rows, wanted(14));
    wait(&got);
    assert_non_null(strstr(got.rows, " - 0 11 0 1 2 t f loss"));
    assert_non_null(strstr(got.rows, " 0.5 0 11 0 1 2"));
    assert_non_null(strstr(got.rows, " - 48 11 0 1 2"));
    assert_non_null(strstr(got.rows, " - 8 11 0 1 2"));
    db_gc_docs(db, "[\"b\", \"none\"]", on_rows, wanted(1));
    wait(&got);
    assert_non_null(strstr(got.rows, "\"UUID\" : \"b\""));
    assert_non_null(strstr(got.rows, "\"ValidationMetrics\" : {\"loss\": 0.5, \"other\": 1}"));
    assert_null(strstr(got.rows, "\"UUID\" : \"a\""));
    db_gc_docs(db, "[]", on_rows, wanted(1));
    is(wait(&got), "[]");
    is(ask("SELECT count(value_at(trial_id, steps)) FROM checkpoints"),
       "0"); /* the former release's */
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup(fn, fresh)
    const struct CMUnitTest tests[] = {T(there_and_back),
                                       T(purged_when_its_time_is_over),
                                       T(without_a_quarantine),
                                       T(cut),
                                       T(asked_again_until_reported),
                                       T(held),
                                       T(version_of_a_model),
                                       T(pinned),
                                       T(listed),
                                       T(judged)};
    return cmocka_run_group_tests(tests, start, end);
}
