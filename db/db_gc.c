#include "db_gc.h"

/* A checkpoint's rank is by the validation of the same trial and step. */
static const char unwanted[] =
    "WITH x AS (SELECT e.*, "
    "coalesce((config#>>'{checkpoint_storage,save_experiment_best}')::integer, 0) AS keep_exp, "
    "coalesce((config#>>'{checkpoint_storage,save_trial_best}')::integer, 1) AS keep_best, "
    "coalesce((config#>>'{checkpoint_storage,save_trial_latest}')::integer, 1) AS keep_latest "
    "FROM experiments e WHERE id = $1::integer), "
    "c AS (SELECT k.uuid, k.trial_id, k.steps, k.report_time, "
    "(SELECT searcher_value(m.metrics, x.searcher_metric) * CASE WHEN x.smaller_is_better THEN 1 "
    "ELSE -1 END "
    " FROM metrics m WHERE m.trial_id = k.trial_id AND m.grp = 'validation' AND m.steps = k.steps "
    " AND NOT m.archived ORDER BY m.id DESC LIMIT 1) AS score "
    "FROM checkpoints k, x WHERE k.experiment_id = x.id AND k.state = 'COMPLETED'), "
    "r AS (SELECT c.*, "
    "row_number() OVER (ORDER BY score NULLS LAST, trial_id, steps) AS exp_rank, "
    "row_number() OVER (PARTITION BY trial_id ORDER BY score NULLS LAST, steps) AS best_rank, "
    "row_number() OVER (PARTITION BY trial_id ORDER BY steps DESC, report_time DESC) AS "
    "latest_rank FROM c) "
    "SELECT x.owner_id, x.job_id, x.config, coalesce((SELECT jsonb_agg(r.uuid ORDER BY r.trial_id, "
    "r.steps) FROM r "
    " WHERE r.latest_rank > x.keep_latest "
    " AND (r.score IS NULL OR (r.best_rank > x.keep_best AND r.exp_rank > x.keep_exp)) "
    " AND NOT EXISTS (SELECT 1 FROM trials t WHERE t.warm_start_checkpoint = r.uuid)), '[]') FROM "
    "x";

void db_gc_unwanted(struct db *db, int64_t exp_id, db_cb *cb, void *arg)
{
    db_query(db, unwanted, db_i64_arg(DB_ARGS, exp_id), cb, arg);
}

void db_gc_candidates(struct db *db, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT e.id FROM experiments e WHERE e.state IN ('COMPLETED', 'CANCELED', 'ERROR') "
             "AND EXISTS (SELECT 1 FROM checkpoints k WHERE k.experiment_id = e.id "
             " AND k.state = 'COMPLETED') "
             "AND NOT EXISTS (SELECT 1 FROM allocations a WHERE a.experiment_id = e.id "
             " AND a.state <> 'TERMINATED') ORDER BY e.id",
             NULL, cb, arg);
}
