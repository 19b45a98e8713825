#include "db_gc.h"

#include "db_sql.h"

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
    db_write(db, sql_gc_undo, db_str_arg(DB_ARGS, uuids), cb, arg);
}

void db_gc_open(struct db *db, int64_t exp_id, db_cb *cb, void *arg)
{
    db_write(db, sql_gc_open, db_i64_arg(DB_ARGS, exp_id), cb, arg);
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
