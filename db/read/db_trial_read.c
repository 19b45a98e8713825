#include "db_trial_read.h"

#include "db_sql.h"
#include "db_trial_cols.h"
#include "mem.h"

void db_trial_read(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT t.state, " TRIAL_MEMBERS "FROM trials t " WITH_TRIAL_MEMBERS
             "WHERE t.id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_trial_end(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT t.state, t.experiment_id, (SELECT a.exit_reason FROM allocations a "
             "WHERE a.trial_id = t.id ORDER BY a.run_id DESC LIMIT 1), "
             "coalesce(t.core->>'exit_reason' IN ('2', '3'), false), " /* enum search_exit */
             "t.core->>'invalid_for', "
             "(SELECT l.detail FROM trial_timeline l WHERE l.trial_id = t.id AND "
             "l.kind = 'placed' ORDER BY l.run_id DESC LIMIT 1) "
             "FROM trials t WHERE t.id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

/* clang-format off */
#define OF_EXPERIMENT                                                                              \
    "t.experiment_id = $1::bigint AND ($2::jsonb IS NULL "                                         \
    "OR t.state = ANY (ARRAY(SELECT jsonb_array_elements_text($2::jsonb)))) "
/* How many there are of all states is kept; a page is looked for beside it, which an index that has
 * the order ends early. */
#define LISTED(key, from, order)                                                                   \
    "WITH n AS MATERIALIZED (SELECT CASE WHEN $2::jsonb IS NULL THEN coalesce((SELECT trials "     \
    "FROM experiment_sums WHERE experiment_id = $1::bigint), 0) "                                  \
    "ELSE (SELECT count(*) FROM trials t WHERE " OF_EXPERIMENT ") END total) "                     \
    "SELECT n.total, page_start(n.total, $3::bigint), t.id, t.state, NULL::text, "                 \
    "EXISTS (SELECT 1 FROM experiments WHERE id = $1::bigint), " TRIAL_MEMBERS "FROM n LEFT JOIN (" \
    TRIALS_OF_IDS("ARRAY(SELECT t.id FROM trials t " from "WHERE (SELECT total FROM n) > 0 AND " OF_EXPERIMENT "ORDER BY " key " " order ", t.id " \
                  "OFFSET (SELECT page_start(total, $3::bigint) FROM n) "                          \
                  "LIMIT page_size($4::bigint, 100))") ") ON true ORDER BY x.ord"
/* Both directions: a trial without a value comes last, and ids break ties upwards. */
#define BY_JOINED(key, from) {LISTED(key, from, "ASC"), LISTED(key, from, "DESC NULLS LAST")}
#define BY(key) BY_JOINED(key, "")
/* Kept with the trial, but for a tail, of which few trials have one (index trials_tails). */
#define BATCHES                                                                                    \
    "CASE WHEN t.has_tail OR trial_is_live(t.state) "                                              \
    "THEN (SELECT greatest(max(steps), 0) FROM metric_heads WHERE trial_id = t.id) "               \
    "ELSE t.closed_batches END"

/* Of those that are alive the ones that have slots are a group, as their states are shown. */
#define STATE_AND_SLOTS                                                                            \
    "t.state || (t.id IN (SELECT a.trial_id FROM allocations a WHERE a.state <> 'TERMINATED' "     \
    "AND a.placed_time IS NOT NULL AND a.experiment_id = $1::bigint "                              \
    "AND a.trial_id IS NOT NULL))::text"

/* By SORT_BY_* of GetExperimentTrials, upwards and downwards. The states and most of what is sorted
 * by stand in the index trials_experiment: thousands of rows are not read for a page. */
static const char *const sorted_trials_sql[][2] = {
    [0] = {LISTED("t.id", "", "ASC"), LISTED("t.id", "", "DESC")},
    [4] = BY("t.start_time"),
    [5] = BY("t.end_time"),
    [6] = BY(STATE_AND_SLOTS),
    [7] = BY("t.searcher_metric_value"),
    [8] = BY("t.latest_value"),
    [9] = BY(BATCHES),
    [10] = BY("seconds_between(t.start_time, coalesce(t.end_time, now()))"),
    [11] = BY("t.restarts"),
    [12] = BY_JOINED("k.bytes", "LEFT JOIN (SELECT c.trial_id, sum(c.bytes) bytes FROM checkpoints c "
                     "WHERE c.experiment_id = $1::bigint AND c.state IN ('COMPLETED', "
                     "'PARTIALLY_DELETED') GROUP BY c.trial_id) k ON k.trial_id = t.id "),
};
/* clang-format on */

void db_trial_list(struct db *db, int64_t exp_id, const char *states, const struct db_page *p,
                   db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_i64_arg(DB_ARGS, exp_id), states);
    size_t sort = (size_t)p->sort < DET_ARRAY_LEN(sorted_trials_sql) ? (size_t)p->sort : 0;
    const char *sql = sorted_trials_sql[sort][p->desc];
    db_query(db, sql ? sql : sorted_trials_sql[0][p->desc],
             db_i64_arg(db_i64_arg(a, p->offset), p->limit), cb, arg);
}

/* Rows of all three kinds by their steps; kind orders those of equal steps. */
#define WORKLOADS                                                                                  \
    "SELECT m.steps, 0 AS kind, m.id::text key, m.grp, m.run_id, NULL::text uuid, "                \
    "(m.metrics->metrics_key(m.grp)->$5::text) AS value FROM metrics m "                           \
    "WHERE m.trial_id = $1::bigint AND NOT m.archived AND m.grp <> 'validation' "                  \
    "AND $2::integer = 0 AND ($3::text IS NULL OR m.grp = $3) "                                    \
    "UNION ALL SELECT m.steps, 1, m.id::text, m.grp, m.run_id, NULL, "                             \
    "m.metrics->'validation_metrics'->$5::text "                                                   \
    "FROM metrics m WHERE m.trial_id = $1::bigint AND NOT m.archived AND m.grp = 'validation' "    \
    "AND $2::integer IN (0, 2, 3) AND ($3::text IS NULL OR m.grp = $3) "                           \
    "UNION ALL SELECT c.steps, 2, c.uuid, NULL, NULL, c.uuid, NULL FROM checkpoints c "            \
    "WHERE c.trial_id = $1::bigint AND $2::integer IN (0, 1, 3) "                                  \
    "AND NOT ($4::boolean AND c.state = 'DELETED')"
/* Sorted by a metric: only what reads as a number is sorted by it. */
#define NUMBER(x)                                                                                  \
    "CASE jsonb_typeof(" x ") WHEN 'number' THEN " x "::float8 WHEN 'string' THEN CASE WHEN " x    \
    "#>>'{}' ~ '^-?[0-9.]+([eE][-+]?[0-9]+)?$' THEN (" x "#>>'{}')::float8 END END"
#define WORKLOAD_DOC                                                                               \
    "CASE WHEN page.uuid IS NOT NULL THEN (SELECT jsonb_build_object('checkpoint', "               \
    "checkpoint_workload(c)) FROM checkpoints c WHERE c.uuid = page.uuid) "                        \
    "WHEN page.grp IS NOT NULL THEN (SELECT jsonb_build_object(CASE m.grp WHEN 'validation' THEN " \
    "'validation' ELSE 'training' END, metrics_workload(m, $6::boolean) || "                       \
    "jsonb_build_object('group', m.grp)) FROM metrics m "                                          \
    "WHERE m.trial_id = $1::bigint AND m.grp = page.grp AND m.steps = page.steps "                 \
    "AND m.run_id = page.run_id) END, EXISTS (SELECT 1 FROM trials WHERE id = $1::bigint)"

/* clang-format off */
static const char sorted_sql[] =
    "WITH w AS (" WORKLOADS "), f AS (SELECT steps AS id, '' AS state, w.*, "
    NUMBER("value") " num, "
    "NULL::text txt, $7::integer sort FROM w)"
    DB_LIST_TAIL(DB_LIST_ORDER("steps, kind, key", "$8"), "$9", "$10", "NULL", WORKLOAD_DOC);
/*
 * By steps, a page reads of each group no more rows than it may show: the key's index has them in
 * this order. $1 trial, $2 filter, $3 group, $4 no deleted checkpoints, $5 with batches, $6 offset,
 * $7 limit.
 */
#define BY_STEPS(order)                                                                            \
    "WITH g AS (SELECT h.grp FROM metric_heads h WHERE h.trial_id = $1::bigint "                   \
    "AND ($3::text IS NULL OR h.grp = $3) AND ($2::integer = 0 "                                   \
    "OR h.grp = 'validation' AND $2::integer IN (2, 3))), "                                        \
    "c AS (SELECT c.uuid, c.steps FROM checkpoints c WHERE c.trial_id = $1::bigint "               \
    "AND $2::integer IN (0, 1, 3) AND NOT ($4::boolean AND c.state = 'DELETED')), "                \
    "n AS (SELECT (SELECT count(*) FROM c) + (SELECT coalesce(sum(live_reports(h)), 0)::bigint "   \
    "FROM metric_heads h JOIN g ON g.grp = h.grp WHERE h.trial_id = $1::bigint) total), "          \
    "page AS (SELECT w.*, row_number() OVER () rn FROM (SELECT * FROM ("                           \
    "SELECT m.*, (m.grp = 'validation')::integer kind, NULL::text uuid FROM g, LATERAL ("          \
    "SELECT id::text AS key, steps, grp, end_time, metrics, batch_metrics FROM metrics "           \
    "WHERE trial_id = $1::bigint AND grp = g.grp AND NOT archived "                                \
    "ORDER BY steps " order ", id::text LIMIT (SELECT page_start(total, $6::bigint) "              \
    "+ page_size($7::bigint, NULL) FROM n)) m "                                                    \
    "UNION ALL SELECT uuid, steps, NULL, NULL, NULL, NULL, 2, uuid FROM c) u "                     \
    "ORDER BY steps " order ", kind, key OFFSET (SELECT page_start(total, $6::bigint) FROM n) "    \
    "LIMIT page_size($7::bigint, NULL)) w) "                                                       \
    "SELECT n.total, page_start(n.total, $6::bigint), page.steps, '', "                            \
    "CASE WHEN page.uuid IS NOT NULL THEN (SELECT json_build_object('checkpoint', "                \
    "checkpoint_workload(c)) FROM checkpoints c WHERE c.uuid = page.uuid) "                        \
    "WHEN page.grp IS NOT NULL THEN json_build_object("                                            \
    "CASE page.grp WHEN 'validation' THEN 'validation' ELSE 'training' END, json_build_object("    \
    "'endTime', api_time(page.end_time), 'metrics', json_build_object("                            \
    "'avgMetrics', coalesce(page.metrics->metrics_key(page.grp), '{}'), 'batchMetrics', "          \
    "CASE WHEN $5::boolean AND page.batch_metrics IS NOT NULL THEN page.batch_metrics::json "      \
    "ELSE '[]' END), 'numInputs', 0, 'totalBatches', page.steps, 'group', page.grp)) END, "         \
    "EXISTS (SELECT 1 FROM trials WHERE id = $1::bigint) FROM n LEFT JOIN page ON true "           \
    "ORDER BY page.rn"
/* clang-format on */

void db_workload_list(struct db *db, const struct db_workloads *w, const struct db_page *p,
                      db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_i64_arg(db_i64_arg(a, w->trial_id), w->filter), w->group);
    db_bool_arg(a, w->no_deleted_checkpoints);
    if (w->sort_metric) {
        db_page_arg(db_bool_arg(db_str_arg(a, w->sort_metric), w->batch_metrics), p);
        db_query(db, sorted_sql, a, cb, arg);
        return;
    }
    db_i64_arg(db_i64_arg(db_bool_arg(a, w->batch_metrics), p->offset), p->limit);
    db_query(db, p->desc ? BY_STEPS("DESC") : BY_STEPS("ASC"), a, cb, arg);
}

void db_metrics_read(struct db *db, const char *trial_ids, const char *group, int64_t after_steps,
                     int64_t after_id, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_i64_arg(db_i64_arg(db_str_arg(db_str_arg(a, trial_ids), group), after_steps), after_id);
    db_query(db, sql_metrics_read, a, cb, arg);
}

void db_profile_read(struct db *db, int64_t trial_id, const char *labels, int64_t after_id,
                     db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT id, labels, batch FROM profiler_metrics WHERE trial_id = $1::bigint "
             "AND labels @> $2::jsonb AND id > $3::bigint ORDER BY id LIMIT 1000",
             db_i64_arg(db_str_arg(db_i64_arg(DB_ARGS, trial_id), labels), after_id), cb, arg);
}

void db_profile_series(struct db *db, int64_t trial_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('labels', coalesce(jsonb_agg(l ORDER BY l::text), '[]')) "
             "FROM (SELECT DISTINCT labels l FROM profiler_metrics WHERE trial_id = $1::bigint) x",
             db_i64_arg(DB_ARGS, trial_id), cb, arg);
}
