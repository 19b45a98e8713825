#include "db_retention.h"

/* clang-format off */
#define ENDED "has_ended(t.state)"
/* end_time is told by the master's clock, last_activity by this one: neither alone makes it old. */
#define OVER(days)                                                                                 \
    ENDED " AND " days " >= 0 AND t.end_time <= now() - " days " * interval '1 day' "              \
    "AND coalesce(t.last_activity, t.end_time) <= now() - " days " * interval '1 day'"
#define LOG_DAYS(ours)                                                                             \
    "coalesce((e.config#>>'{retention_policy,log_retention_days}')::bigint, " ours ")"
/* What its experiment's page shows at a glance stays: only reports of batches go. Two ranges of the
 * key each, since it is not that they differ from one value which an index finds. */
#define BATCHES(row) row ".trial_id = t.id AND (" row ".grp < 'validation' OR " row ".grp > 'validation')"
/* LATERAL with a limit: a probe of the index per trial, whatever the planner thinks of the
 * tables. */
#define DUE                                                                                        \
    "SELECT t.id, t.task_id, l.one IS NOT NULL logs, "                                             \
    "coalesce(m.one, c.one, p.one) IS NOT NULL metrics FROM w t "                                  \
    "JOIN experiments e ON e.id = t.experiment_id "                                                \
    "LEFT JOIN LATERAL (SELECT 1 one FROM task_logs x WHERE " OVER(LOG_DAYS("$1::bigint")) " "     \
    "AND x.task_id = t.task_id LIMIT 1) l ON true "                                                \
    "LEFT JOIN LATERAL (SELECT 1 one FROM metrics x WHERE " OVER("$2::bigint") " "                 \
    "AND " BATCHES("x") " LIMIT 1) m ON true "                                                     \
    "LEFT JOIN LATERAL (SELECT 1 one FROM metric_chunks x WHERE " OVER("$2::bigint") " "           \
    "AND " BATCHES("x") " LIMIT 1) c ON true "                                                     \
    "LEFT JOIN LATERAL (SELECT 1 one FROM profiler_metrics x WHERE " OVER("$2::bigint") " "        \
    "AND x.trial_id = t.id LIMIT 1) p ON true"

#define JUDGED "t.id, t.task_id, t.experiment_id, t.state, t.end_time, t.last_activity"

static const char due_sql[] =
    "WITH w AS (SELECT " JUDGED " FROM trials t "
    "WHERE t.id > $3::bigint ORDER BY t.id LIMIT 500), due AS (" DUE ") "
    "SELECT n.next, d.id, d.logs, d.metrics FROM (SELECT max(id) next FROM w) n "
    "LEFT JOIN (SELECT * FROM due WHERE logs OR metrics) d ON true ORDER BY d.id";

static const char count_sql[] =
    "WITH w AS (SELECT " JUDGED " FROM trials t), "
    "due AS (" DUE ") SELECT count(*) FILTER (WHERE logs), "
    "coalesce(sum((SELECT count(*) FROM task_logs x WHERE x.task_id = t.task_id)) FILTER (WHERE logs), 0), "
    "count(*) FILTER (WHERE metrics), "
    "coalesce(sum((SELECT count(*) FROM metrics x WHERE " BATCHES("x") ")) FILTER (WHERE metrics), 0) "
    "FROM due t WHERE logs OR metrics";

/* Asked again: since the trial was found to be due it may have gone on, and have ended anew. */
#define OF_TRIAL "t.id = $1::bigint AND " OVER("$3::bigint")
#define PORTION  "LIMIT $2::bigint"
/* What the summary holds of them, for the day on which the trial is continued. */
#define KEEP                                                                                       \
    "keep AS (UPDATE metric_heads h SET kept = t.summary_metrics->summary_key(h.grp), "            \
    "kept_steps = h.closed_steps FROM trials t WHERE " OF_TRIAL " "                                \
    "AND " BATCHES("h") " AND h.kept_steps IS DISTINCT FROM h.closed_steps)"
/* Who else has reported at these steps is looked up. */
#define DOUBT                                                                                      \
    "doubt AS (UPDATE metric_steps k SET doubtful = true FROM trials t WHERE " OF_TRIAL " "        \
    "AND k.experiment_id = t.experiment_id AND k.grp <> 'validation' AND NOT k.doubtful "          \
    "AND (k.trial_id = t.id OR k.trial_id IS NULL))"
/* A portion of a partitioned table is picked by key: ctid names a row of one partition only. */
static const char *const delete_sql[RETENTION_KINDS] = {
    [RETENTION_LOGS] =
        "WITH task AS (SELECT t.task_id FROM trials t JOIN experiments e ON e.id = t.experiment_id "
        "WHERE t.id = $1::bigint AND " OVER(LOG_DAYS("$3::bigint")) "), "
        "marks AS (DELETE FROM log_marks WHERE task_id = (SELECT task_id FROM task)) "
        "DELETE FROM task_logs WHERE id IN (SELECT x.id FROM task_logs x WHERE x.task_id = "
        "(SELECT task_id FROM task) ORDER BY x.id " PORTION ")",
    [RETENTION_METRICS] =
        "WITH " KEEP ", " DOUBT ", k AS (SELECT x.grp, x.steps, x.run_id FROM trials t, metrics x "
        "WHERE " OF_TRIAL " AND " BATCHES("x") " " PORTION ") "
        "DELETE FROM metrics d USING k WHERE d.trial_id = $1::bigint AND d.grp = k.grp "
        "AND d.steps = k.steps AND d.run_id = k.run_id",
    [RETENTION_CHUNKS] =
        "WITH " KEEP ", k AS (SELECT x.grp, x.level, x.seq FROM trials t, metric_chunks x "
        "WHERE " OF_TRIAL " AND " BATCHES("x") " " PORTION ") "
        "DELETE FROM metric_chunks d USING k WHERE d.trial_id = $1::bigint AND d.grp = k.grp "
        "AND d.level = k.level AND d.seq = k.seq",
    [RETENTION_PROFILE] =
        "DELETE FROM profiler_metrics WHERE id IN (SELECT x.id FROM profiler_metrics x "
        "WHERE x.trial_id = (SELECT t.id FROM trials t WHERE " OF_TRIAL ") "
        "ORDER BY x.id " PORTION ")",
};
/* clang-format on */

static struct db_args *add_days(struct db_args *a, const struct db_retention *keep)
{
    return db_i64_arg(db_i64_arg(a, keep->log_days), keep->metric_days);
}

void db_retention_due(struct db *db, const struct db_retention *keep, int64_t beyond, db_cb *cb,
                      void *arg)
{
    db_query(db, due_sql, db_i64_arg(add_days(DB_ARGS, keep), beyond), cb, arg);
}

void db_retention_delete(struct db *db, const struct db_retention_portion *p, db_cb *cb, void *arg)
{
    db_write(db, delete_sql[p->kind],
             db_i64_arg(db_i64_arg(db_i64_arg(DB_ARGS, p->trial_id), p->rows), p->days), cb, arg);
}

void db_retention_count(struct db *db, const struct db_retention *keep, db_cb *cb, void *arg)
{
    db_query(db, count_sql, add_days(DB_ARGS, keep), cb, arg);
}
