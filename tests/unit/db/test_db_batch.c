/* Reports that come together against a real PostgreSQL: what is kept of them is what is kept when
 * they come one by one, and the chunks that are made of them on their way are those that the
 * database makes. */
#include "pg_private.h"

#include "buf.h"
#include "db.h"
#include "db_reports.h"
#include "mem.h"
#include "metric_bundle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TIME_US 1700000000000000

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;

static const char *ask(const char *sql)
{
    return pg_private_read(&loop, db, sql);
}

static void run_sql(const char *sql)
{
    pg_private_write(&loop, db, sql);
}

static int setup(void **state)
{
    if (pg_private_open(&pg, &loop, &db) < 0)
        return -1;
    run_sql("INSERT INTO experiments (id, job_id, owner_id, state, start_time, name, config, "
            "original_config, searcher_metric) SELECT i, 'j' || i, 1, 'ACTIVE', now(), 'n', '{}', "
            "'', 'a' FROM generate_series(1, 9) i");
    run_sql("INSERT INTO trials (id, experiment_id, request_id, task_id, state, run_id, hparams, "
            "start_time) SELECT i, i, 'r' || i, '1.r' || i, 'ACTIVE', 1, '{}', now() "
            "FROM generate_series(1, 9) i");
    return 0;
}

static int teardown(void **state)
{
    pg_private_close(&pg, &loop, db);
    return 0;
}

/* ---- Reports --------------------------------------------------------------------------------- */

struct batch {
    struct db_metrics_report v[METRIC_BATCH_MAX];
    int rc[METRIC_BATCH_MAX];
    size_t n, answered;
    bool done;
};

static void on_report(void *arg, size_t i, int rc, const struct det_err *err)
{
    struct batch *b = arg;
    assert_int_equal(b->rc[i], 1); /* once */
    b->rc[i] = rc;
    b->done = ++b->answered == b->n;
}

static void add(struct batch *b, const char *group, int64_t steps, const char *values)
{
    JSON_OWN j = json_parse(values, strlen(values), NULL);
    struct metric_values found = {0};
    struct buf text = BUF_INIT;
    size_t head = strlen(metric_doc_head(group));
    buf_add_str(&text, metric_doc_head(group));
    metric_values_write(&text, j, &found);
    buf_add_ch(&text, '}');
    b->v[b->n++] = (struct db_metrics_report){.run_id = 1,
                                              .steps = steps,
                                              .group = group,
                                              .metrics = text.p,
                                              .time_us = TIME_US + steps * 100001,
                                              .object = text.p + head,
                                              .values = found.v,
                                              .values_n = found.n};
}

static void clear(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        free((char *)b->v[i].metrics);
        free((struct metric_value *)b->v[i].values);
    }
    b->n = 0;
}

static void begin(struct batch *b, int64_t trial)
{
    b->done = false;
    b->answered = 0;
    for (size_t i = 0; i < b->n; i++) {
        b->rc[i] = 1;
        b->v[i].trial_id = trial;
    }
}

static void send_together(struct batch *b, int64_t trial)
{
    begin(b, trial);
    db_report_metrics_batch(db, b->v, b->n, on_report, b);
    assert_true(loop_until(&loop, &b->done, 600000));
}

struct one {
    int rc;
    bool done;
};

static void on_one(void *arg, int rc, const struct det_err *err)
{
    *(struct one *)arg = (struct one){rc, true};
}

static void send_each(struct batch *b, int64_t trial)
{
    begin(b, trial);
    for (size_t i = 0; i < b->n; i++) {
        struct one x = {0};
        db_report_metrics(db, &b->v[i], on_one, &x);
        assert_true(loop_until(&loop, &x.done, 60000));
        b->rc[i] = x.rc;
    }
}

/* ---- What is kept ---------------------------------------------------------------------------- */

#define ROWS(trial)                                                                                \
    "(SELECT jsonb_agg(jsonb_build_array(grp, steps, run_id, archived, end_time, metrics, "        \
    "batch_metrics) ORDER BY grp, steps) FROM metrics WHERE trial_id = " trial ")"
#define SUMMARY(trial)                                                                             \
    "(SELECT jsonb_build_array(trial_summary(id, summary_metrics), latest_validation, "            \
    "searcher_metric_value, trial_batches(id)) FROM trials WHERE id = " trial ")"
#define DRAWN(trial)                                                                               \
    "(SELECT jsonb_agg(jsonb_build_array(grp, n, series_lines(" trial                              \
    ", grp, 0, 1000000, n, 1000000, false)) ORDER BY grp, n) FROM metric_heads, "                  \
    "unnest('{a,lr,big,zero,count}'::text[]) n WHERE trial_id = " trial ")"
/* Those of closed chunks alone, whose bounds differ. */
#define STEPS(trial)                                                                               \
    "(SELECT jsonb_agg(jsonb_build_array(k.grp, k.steps, names) ORDER BY k.grp, k.steps) "         \
    "FROM metric_steps k WHERE k.experiment_id = " trial " AND k.steps <= (SELECT "                \
    "min(closed_steps) FROM metric_heads h WHERE h.grp = k.grp AND trial_id IN (1, 2)))"
#define HEADS(trial)                                                                               \
    "(SELECT jsonb_agg(jsonb_build_array(grp, run_id, steps) ORDER BY grp) FROM metric_heads "     \
    "WHERE trial_id = " trial ")"
#define IS_SAME(what) "SELECT coalesce(" what("1") " = " what("2") ", false)"

/* Chunks that are not what the database makes of the same rows; but of equal highest points it may
 * be any. */
#define BUT_HIGHEST(doc)                                                                           \
    "(SELECT jsonb_object_agg(key, value #- '{3,2}' #- '{3,1}')::text FROM jsonb_each(" doc "))"
static const char spoiled[] =
    "SELECT count(*) FROM metric_chunks c, LATERAL chunk_made(c.trial_id, c.grp, c.after_steps, "
    "c.last_steps) m WHERE level = 1 AND (" BUT_HIGHEST(
        "c.doc") ", c.report_steps, "
                 "c.report_times, c.n) IS DISTINCT FROM (" BUT_HIGHEST(
                     "m.doc") ", m.report_steps, "
                              "m.report_times, (SELECT count(*) FROM metrics r WHERE r.trial_id = c.trial_id AND r.grp = "
                              "c.grp AND steps > after_steps AND steps <= last_steps)) "
                              "OR level = 1 AND c.report_values::text <> m.report_values::text";
static const char not_reported[] =
    "SELECT count(*) FROM metric_chunks c, jsonb_each(doc) d, (SELECT 2 UNION SELECT 3) x(i) "
    "WHERE jsonb_typeof(value->1) = 'number' AND NOT EXISTS (SELECT 1 FROM metrics m WHERE "
    "m.trial_id = c.trial_id AND m.grp = c.grp AND steps = (value->i->>1)::integer AND "
    "(metrics->metrics_key(c.grp)->key)::float8 = (value->i->0)::float8 AND date_part('epoch', end_time) = "
    "(value->i->>2)::float8)";
static const char spoiled_above[] =
    "SELECT count(*) FROM metric_chunks c, LATERAL (SELECT chunk_of_chunks(array_agg(doc ORDER BY "
    "seq)) doc, sum(n) n, count(*) k, min(after_steps) low, max(last_steps) high FROM "
    "metric_chunks b WHERE b.trial_id = c.trial_id AND b.grp = c.grp AND b.level = c.level - 1 "
    "AND b.seq / 4 = c.seq) x WHERE level > 1 AND (c.doc::text, c.n, 4, after_steps, last_steps) "
    "IS DISTINCT FROM (x.doc::text, x.n, k, low, high)";
static const char gaps[] =
    "SELECT count(*) FROM metric_heads h, LATERAL (SELECT count(*) k, max(last_steps) upto, "
    "(SELECT count(*) FROM metric_chunks b WHERE b.trial_id = h.trial_id AND b.grp = h.grp AND "
    "b.level = 2) above, (SELECT count(*) FROM metrics m WHERE m.trial_id = h.trial_id AND m.grp = "
    "h.grp AND NOT archived AND steps > h.closed_steps) left_over FROM metric_chunks c WHERE "
    "c.trial_id = h.trial_id AND c.grp = h.grp AND c.level = 1) x WHERE closed > 0 AND "
    "(closed, closed_steps, tail, closed / 4) IS DISTINCT FROM (k, upto, left_over, above)";

static void check_chunks(void)
{
    assert_string_equal(ask(spoiled), "0");
    assert_string_equal(ask(not_reported), "0");
    assert_string_equal(ask(spoiled_above), "0");
    assert_string_equal(ask(gaps), "0");
}

static void check_same(void)
{
    assert_string_equal(ask(IS_SAME(ROWS)), "t");
    assert_string_equal(ask(IS_SAME(SUMMARY)), "t");
    assert_string_equal(ask(IS_SAME(DRAWN)), "t");
    assert_string_equal(ask(IS_SAME(STEPS)), "t");
    assert_string_equal(ask(IS_SAME(HEADS)), "t");
    check_chunks();
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static uint32_t random_number(uint32_t below)
{
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x % below;
}

/* Sums of them are exact, in whatever order. */
static char *random_values(bool is_odd)
{
    struct buf b = BUF_INIT;
    buf_addf(&b, "{\"a\":%.17g", (double)random_number(1000) / 64 - 5);
    buf_addf(&b, ",\"lr\":%.17g", (double)random_number(1000) / (1ll << 40));
    buf_addf(&b, ",\"big\":%.16g", (double)random_number(20) * 1e15);
    buf_addf(&b, ",\"zero\":%s", random_number(2) ? "-0.0" : "0");
    buf_addf(&b, ",\"count\":%d", (int)random_number(1000) - 500);
    if (is_odd)
        switch (random_number(4)) {
        case 0: buf_add_str(&b, ",\"odd\":\"NaN\""); break;
        case 1: buf_add_str(&b, ",\"odd\":[1,2]"); break;
        case 2: buf_add_str(&b, ",\"odd\":null"); break;
        default: buf_add_str(&b, ",\"o\\\"dd,{}\":6.310887241768095e-30"); break;
        }
    buf_add_ch(&b, '}');
    return buf_steal(&b);
}

static int64_t fill_batch(struct batch *b, int64_t steps)
{
    size_t n = random_number(4) ? 1 + random_number(METRIC_BATCH_MAX) : 1 + random_number(20);
    bool has_odd = random_number(3) == 0, has_other = random_number(4) == 0;
    for (size_t i = 0; i < n; i++) {
        bool is_other = has_other && random_number(10) == 0;
        det_cleanup(freep) char *text = random_values(has_odd && random_number(5) == 0);
        steps += 1 + random_number(3);
        add(b, !is_other ? "training" : random_number(2) ? "validation" : "mine", steps, text);
    }
    return steps;
}

static void as_one_by_one(void **state)
{
    struct batch b = {0};
    int64_t steps = 0;
    for (int i = 0; i < 15; i++) {
        int rc[METRIC_BATCH_MAX];
        steps = fill_batch(&b, steps);
        for (int resent = random_number(6) == 0; resent >= 0; resent--) /* a lost answer */
            send_together(&b, 1);
        memcpy(rc, b.rc, sizeof rc);
        send_each(&b, 2);
        assert_memory_equal(rc, b.rc, b.n * sizeof *rc);
        clear(&b);
    }
    check_same();
    run_sql("UPDATE trials SET state = 'COMPLETED' WHERE id < 3"); /* what is left is closed */
    check_same();
}

/* Each report is refused by itself, at its own place. */
static void some_refused(void **state)
{
    struct batch b = {0};
    for (int i = 0; i < 20; i++)
        add(&b, "training", i + 1, "{\"a\":1}");
    free((char *)b.v[3].metrics);
    b.v[3].metrics = det_strdup("{\"avg_metrics\":{\"s\":\"\\u0000\"}}");
    b.v[3].object = b.v[3].metrics + strlen(metric_doc_head("training"));
    b.v[3].values_n = 0;
    send_together(&b, 3);
    for (int i = 0; i < 20; i++)
        assert_int_equal(b.rc[i], i == 3 ? DET_EINVAL : 0);
    assert_string_equal(ask("SELECT count(*) FROM metrics WHERE trial_id = 3"), "19");
    clear(&b);
    for (int i = 0; i < 20; i++)
        add(&b, "training", i + 10, i == 5 ? "{\"a\":2}" : "{\"a\":1}");
    send_together(&b, 3); /* half of them are known, and one says something else */
    for (int i = 0; i < 20; i++)
        assert_int_equal(b.rc[i], i == 5 ? DET_EINVAL : 0);
    assert_string_equal(ask("SELECT count(*) || ' ' || max(steps) FROM metrics WHERE trial_id = 3"),
                        "28 29");
    check_chunks();
    clear(&b);
}

static void of_another_run(void **state)
{
    struct batch b = {0};
    for (int i = 0; i < 60; i++)
        add(&b, "training", i + 1, "{\"a\":1}");
    send_together(&b, 4);
    run_sql("UPDATE trials SET run_id = 2 WHERE id = 4");
    clear(&b);
    for (int i = 0; i < 60; i++)
        add(&b, "training", i + 31, "{\"a\":2}");
    send_together(&b, 4);
    for (int i = 0; i < 60; i++)
        assert_int_equal(b.rc[i], DET_ESTALE);
    for (int i = 0; i < 60; i++)
        b.v[i].run_id = 2;
    send_together(&b, 4);
    for (int i = 0; i < 60; i++)
        assert_int_equal(b.rc[i], 0);
    assert_string_equal(ask("SELECT count(*) FILTER (WHERE archived) || ' ' || count(*) FROM "
                            "metrics WHERE trial_id = 4"),
                        "30 120");
    assert_string_equal(ask("SELECT trial_summary(id, summary_metrics)#>>'{avg_metrics,a,sum}' "
                            "FROM trials WHERE id = 4"),
                        "150");
    send_together(&b, 99);
    for (int i = 0; i < 60; i++)
        assert_int_equal(b.rc[i], DET_ENOENT);
    clear(&b);
}

/* No group gets more names than it may have. */
static void of_many_names(void **state)
{
    struct batch b = {0};
    for (int i = 0; i < 36; i++) { /* the last piece of them would fit by itself */
        struct buf t = BUF_INIT;
        for (int k = 0; k < 1000; k++)
            buf_addf(&t, "%c\"m%d-%d\":1", k ? ',' : '{', i, k);
        buf_add_ch(&t, '}');
        add(&b, "training", i + 1, buf_str(&t));
        buf_finish(&t);
    }
    send_together(&b, 5);
    for (int i = 0; i < 36; i++)
        assert_int_equal(b.rc[i], i < 20 ? 0 : DET_EINVAL);
    clear(&b);
}

/* Reports of numbers a and, where name is given, of it: at `first`, `first` + `every`.. */
static void report_steps(struct batch *b, int first, int every, const char *name)
{
    for (int i = 0; i < 32; i++) {
        struct buf t = BUF_INIT;
        buf_addf(&t, name ? "{\"b\":1,\"%s\":2,\"a\":3}" : "{\"b\":1,\"a\":3}", name);
        add(b, "training", first + i * every, buf_str(&t));
        buf_finish(&t);
    }
}

/* The first trial of both, and the second, with what sends them. */
static void send_both(struct batch *b, int64_t together, int64_t each)
{
    send_together(b, together);
    send_each(b, each);
    for (size_t i = 0; i < b->n; i++)
        assert_int_equal(b->rc[i], 0);
    clear(b);
}

#define KEPT_STEPS(exp)                                                                            \
    "(SELECT jsonb_agg(jsonb_build_array(steps, names, trial_id - " exp                            \
    ", doubtful) ORDER BY steps) "                                                                 \
    "FROM metric_steps WHERE experiment_id = " exp ")"

/* Two trials of an experiment report at some steps both, with other names, and again after a roll
 * back: what is known of the steps is what it is when reports come one by one. */
static void steps_of_two(void **state)
{
    struct batch b = {0};
    run_sql("UPDATE trials SET experiment_id = 6 WHERE id = 7");
    run_sql("UPDATE trials SET experiment_id = 8 WHERE id = 9");
    report_steps(&b, 1, 1, NULL);
    send_both(&b, 6, 8);
    report_steps(&b, 1, 1, NULL); /* all known */
    send_both(&b, 7, 9);
    report_steps(&b, 100, 2, NULL);
    send_both(&b, 6, 8);
    report_steps(&b, 110, 3, NULL); /* some known, some between them */
    send_both(&b, 7, 9);
    report_steps(&b, 300, 1, "c\\\"{},"); /* another name */
    send_both(&b, 6, 8);
    report_steps(&b, 290, 1, "A");
    send_both(&b, 7, 9);
    run_sql("UPDATE metric_steps SET doubtful = true WHERE steps IN (296, 305, 400, 402)");
    report_steps(&b, 390, 1, NULL);
    send_both(&b, 6, 8);
    run_sql("UPDATE metric_steps SET doubtful = true WHERE steps IN (391, 402)");
    report_steps(&b, 390, 1, NULL);
    send_both(&b, 7, 9);
    assert_string_equal(ask("SELECT " KEPT_STEPS("6") " = " KEPT_STEPS("8")), "t");
    assert_string_equal(ask("SELECT count(*) || ' ' || count(*) FILTER (WHERE doubtful) FROM "
                            "metric_steps WHERE experiment_id = 6"),
                        "161 2");
}

/* ---- How it is kept -------------------------------------------------------------------------- */

/* Columns of chunks and summaries that are not packed with lz4, those of partitions among them. */
static const char packed_slowly[] =
    "SELECT count(*) FROM pg_attribute a, pg_settings s WHERE s.name = 'default_toast_compression' "
    "AND 'lz4' = ANY (s.enumvals) AND attcompression <> 'l' AND (attrelid = 'trials'::regclass AND "
    "attname = 'summary_metrics' OR attname IN ('doc', 'points', 'report_steps', 'report_times', "
    "'report_values') AND attrelid IN (SELECT 'metric_chunks'::regclass UNION ALL SELECT inhrelid "
    "FROM pg_inherits WHERE inhparent = 'metric_chunks'::regclass))";

static void packed(void **state)
{
    assert_string_not_equal(
        ask("SELECT count(*) FROM pg_inherits WHERE inhparent = 'metric_chunks'::regclass"), "0");
    assert_string_equal(ask(packed_slowly), "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_one_by_one),  cmocka_unit_test(some_refused),
        cmocka_unit_test(of_another_run), cmocka_unit_test(of_many_names),
        cmocka_unit_test(steps_of_two),   cmocka_unit_test(packed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
