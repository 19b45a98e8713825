#include "db_gc.h"

#define SAVED(key, fallback)                                                                       \
    "coalesce((e.config#>>'{checkpoint_storage," key "}')::bigint, " fallback ")"

/* The entry of preview_gc; its keys are the contract's. */
#define DOC                                                                                        \
    "CASE WHEN $3::boolean THEN jsonb_build_object('UUID', c.uuid, 'TrialID', c.trial_id, "        \
    "'StepsCompleted', c.steps, 'State', c.state, 'Resources', c.resources, 'ReportTime', "        \
    "api_time(c.report_time), 'ExperimentID', c.experiment_id, 'TaskID', c.task_id, "              \
    "'AllocationID', c.allocation_id, 'Metadata', c.metadata, 'Size', c.bytes, "                   \
    "'ValidationMetrics', coalesce((SELECT m.metrics->'validation_metrics' FROM metrics m "        \
    "WHERE m.trial_id = c.trial_id AND m.steps = c.steps AND m.grp = 'validation' "                \
    "AND NOT m.archived ORDER BY m.id DESC LIMIT 1), '{}')) END"

/* clang-format off */
#define LIST(which)                                                                                \
    "SELECT e.id, c.uuid, c.trial_id, c.steps, "                                                   \
    "(extract(epoch FROM c.report_time) * 1000000)::bigint, "                                      \
    "value_at(c.trial_id, c.steps), checkpoint_held(c), c.bytes, "                                 \
    SAVED("save_experiment_best", "0") ", " SAVED("save_trial_best", "1") ", "                     \
    SAVED("save_trial_latest", "1") ", e.smaller_is_better, "                                      \
    "NOT has_ended(e.state), e.searcher_metric, " DOC " "                                          \
    "FROM experiments e LEFT JOIN checkpoints c ON c.experiment_id = e.id "                        \
    "AND c.state = 'COMPLETED' AND c.gc_step IS NULL WHERE " which " "                             \
    "AND (NOT $2::boolean OR (NOT e.unmanaged " /* their files are their client's */               \
    "AND (e.collected_at IS NULL OR e.collected_at < e.end_time))) "                               \
    "ORDER BY e.id, c.trial_id, c.steps, c.uuid"
/* clang-format on */

void db_gc_list(struct db *db, const struct db_gc_scope *s, db_cb *cb, void *arg)
{
    struct db_args *a = db_bool_arg(db_i64_arg(DB_ARGS, s->exp_id), s->due);
    db_query(db,
             s->exp_id > 0 ? LIST("e.id = $1::bigint")
                           : LIST("has_ended(e.state) AND $1::bigint <= 0"),
             db_bool_arg(a, s->docs), cb, arg);
}

void db_gc_intend(struct db *db, const struct db_gc_intent *in, db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, in->uuids), in->mask);
    db_bool_arg(db_i64_arg(db_str_arg(a, in->globs), in->rest_s), in->all);
    db_write(db,
             "SELECT g.*, CASE WHEN g.r_held > 0 THEN checkpoint_models(g.r_uuid) END FROM "
             "gc_intend($1::jsonb, $2::integer, $3::jsonb, $4::bigint, $5::boolean) g",
             a, cb, arg);
}

void db_gc_undo(struct db *db, const char *uuids, db_cb *cb, void *arg)
{
    db_write(db,
             "WITH k AS (SELECT c.* FROM checkpoints c WHERE c.uuid IN "
             "(SELECT jsonb_array_elements_text($1::jsonb)) ORDER BY c.uuid FOR UPDATE), "
             "w AS (SELECT x.uuid, k.uuid IS NULL AS is_absent, CASE WHEN k.uuid IS NULL THEN 'not found' "
             "WHEN k.gc_step = 'restore' THEN NULL "
             "WHEN k.gc_step = 'remove' THEN 'it is being deleted just now; try again in a moment' "
             "WHEN k.gc_step = 'rest' AND k.gc_until > now() THEN NULL "
             "WHEN k.state <> 'DELETED' THEN 'it is not deleted' "
             "ELSE 'its files are gone: its time in the quarantine is over' END AS why "
             "FROM jsonb_array_elements_text($1::jsonb) x(uuid) LEFT JOIN k ON k.uuid = x.uuid), "
             "up AS (UPDATE checkpoints c SET gc_step = 'restore', gc_next = now(), gc_tries = 0 "
             "FROM w WHERE w.uuid = c.uuid AND c.gc_step = 'rest' "
             "AND NOT EXISTS (SELECT 1 FROM w WHERE why IS NOT NULL)) "
             "SELECT uuid, why, is_absent FROM w ORDER BY uuid",
             db_str_arg(DB_ARGS, uuids), cb, arg);
}

/* A step that an agent did not report is asked again after 5 minutes, then ever less often. */
void db_gc_open(struct db *db, int64_t exp_id, db_cb *cb, void *arg)
{
    db_write(db,
             "WITH up AS (UPDATE checkpoints c SET gc_tries = gc_tries + 1, "
             "gc_next = now() + least(3600, 300 * 2 ^ least(gc_tries, 4)) * interval '1 second' "
             "WHERE gc_step IN ('remove', 'restore', 'purge') AND ($1::bigint < 0 OR gc_next <= now()) "
             "AND CASE WHEN $1::bigint > 0 THEN c.experiment_id = $1::bigint "
             "ELSE NOT EXISTS (SELECT 1 FROM allocations a WHERE a.experiment_id = c.experiment_id "
             "AND a.kind = 'CHECKPOINT_GC' AND a.state <> 'TERMINATED') END "
             "RETURNING c.uuid, c.experiment_id, c.gc_globs, "
             "CASE WHEN gc_step <> 'remove' THEN gc_step WHEN gc_globs IS NOT NULL THEN 'cut' "
             "WHEN gc_rest_s > 0 THEN 'quarantine' ELSE 'purge' END AS action) "
             "SELECT e.id, e.owner_id, e.job_id, e.config, up.action, up.gc_globs, "
             "jsonb_agg(up.uuid ORDER BY up.uuid) FROM up JOIN experiments e "
             "ON e.id = up.experiment_id GROUP BY e.id, up.action, up.gc_globs "
             "ORDER BY e.id, up.action, up.gc_globs",
             db_i64_arg(DB_ARGS, exp_id), cb, arg);
}

void db_gc_expire(struct db *db, db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE checkpoints SET gc_step = 'purge', gc_next = now(), gc_tries = 0 "
             "WHERE gc_step = 'rest' AND gc_until <= now()",
             NULL, cb, arg);
}

void db_gc_collected(struct db *db, int64_t exp_id, db_cb *cb, void *arg)
{
    db_write(db, "UPDATE experiments SET collected_at = now() WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, exp_id), cb, arg);
}

void db_ckpt_pin(struct db *db, const char *uuid, int64_t seconds, db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE checkpoints c SET pinned_until = "
             "greatest(pinned_until, now() + $2::bigint * interval '1 second') "
             "WHERE uuid = $1 AND state IN ('COMPLETED', 'PARTIALLY_DELETED') AND gc_step IS NULL "
             "RETURNING pinned_until::text, (SELECT e.config->'checkpoint_storage' "
             "FROM experiments e WHERE e.id = c.experiment_id)",
             db_i64_arg(db_str_arg(DB_ARGS, uuid), seconds), cb, arg);
}

void db_ckpt_unpin(struct db *db, const char *uuid, const char *until, db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE checkpoints SET pinned_until = NULL WHERE uuid = $1 "
             "AND pinned_until = $2::timestamptz",
             db_str_arg(db_str_arg(DB_ARGS, uuid), until), cb, arg);
}

void db_store_known(struct db *db, const char *place, db_cb *cb, void *arg)
{
    db_query(db, "SELECT store_known($1)", db_str_arg(DB_ARGS, place), cb, arg);
}
