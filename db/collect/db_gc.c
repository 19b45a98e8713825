#include "db_gc.h"

#include "db_sql.h"

#define SAVED(key, fallback)                                                                       \
    "coalesce((config#>>'{checkpoint_storage," key "}')::bigint, " fallback ")"

/* clang-format off */
/* What is the experiment's is read once. A checkpoint has the validation of its steps. */
#define LIST(which, checkpoints)                                                                   \
    "SELECT e.id, c.uuid, c.trial_id, c.steps, "                                                   \
    "(date_part('epoch', c.report_time) * 1000000)::bigint, "                                      \
    "number_of(c.validation->e.searcher_metric), h.held, c.bytes, "                                \
    "e.keep_exp, e.keep_trial, e.keep_new, e.smaller_is_better, e.is_live, e.searcher_metric "     \
    "FROM (SELECT id, searcher_metric, smaller_is_better, NOT has_ended(state) is_live, "          \
    SAVED("save_experiment_best", "0") " keep_exp, " SAVED("save_trial_best", "1") " keep_trial, " \
    SAVED("save_trial_latest", "1") " keep_new FROM experiments WHERE " which " "                  \
    "AND (NOT $2::boolean OR (NOT unmanaged " /* their files are their client's */                 \
    "AND (collected_at IS NULL OR collected_at < end_time))) OFFSET 0) e "                         \
    "LEFT JOIN (" checkpoints ") "                                                                 \
    "ON c.experiment_id = e.id AND c.state = 'COMPLETED' AND c.gc_step IS NULL "                   \
    "ORDER BY e.id, c.trial_id, c.steps, c.uuid"
/* Of one experiment, which may have thousands: its live trials are found once, by the index
 * trials_tails, and hold what no later one stands behind, as checkpoint_holds() has it. */
#define IS_NEXT                                                                                    \
    "c.trial_id IN (SELECT t.id FROM trials t WHERE t.experiment_id = $1::bigint AND "             \
    "trial_is_live(t.state) AND (t.has_tail OR trial_is_live(t.state))) AND NOT EXISTS ("          \
    "SELECT 1 FROM checkpoints k WHERE k.trial_id = c.trial_id AND k.state = 'COMPLETED' "         \
    "AND k.gc_step IS NULL AND k.steps > c.steps)"
#define OF_ONE                                                                                     \
    "(SELECT c.*, " IS_NEXT " is_next FROM checkpoints c WHERE c.experiment_id = $1::bigint "      \
    "AND c.state = 'COMPLETED' AND c.gc_step IS NULL OFFSET 0) c CROSS JOIN LATERAL "              \
    "holds_besides(c.is_next, c.uuid, c.pinned_until, c.kept) h"
#define OF_ALL "checkpoints c CROSS JOIN LATERAL checkpoint_holds(c) h"
/* clang-format on */

void db_gc_list(struct db *db, const struct db_gc_scope *s, db_cb *cb, void *arg)
{
    const char *sql = s->exp_id > 0 ? LIST("id = $1::bigint", OF_ONE)
                                    : LIST("has_ended(state) AND $1::bigint <= 0", OF_ALL);
    struct db_args *a = db_bool_arg(db_i64_arg(DB_ARGS, s->exp_id), s->due);
    if (s->is_shown) /* what is pinned until a moment ago may be shown as such, no more */
        db_query_chart_lasting(db, DB_RESTS_VALIDATIONS, sql, a, cb, arg);
    else
        db_query(db, sql, a, cb, arg);
}

void db_gc_docs(struct db *db, const char *uuids, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT coalesce(json_agg(json_build_object('UUID', c.uuid, 'TrialID', c.trial_id, "
             "'StepsCompleted', c.steps, 'State', c.state, 'Resources', c.resources, 'ReportTime', "
             "api_time(c.report_time), 'ExperimentID', c.experiment_id, 'TaskID', c.task_id, "
             "'AllocationID', c.allocation_id, 'Metadata', c.metadata, 'Size', c.bytes, "
             "'ValidationMetrics', coalesce(c.validation, '{}')) "
             "ORDER BY c.trial_id, c.steps, c.uuid), '[]') "
             "FROM checkpoints c WHERE c.uuid IN (SELECT jsonb_array_elements_text($1::jsonb))",
             db_str_arg(DB_ARGS, uuids), cb, arg);
}

void db_gc_intend(struct db *db, const struct db_gc_intent *in, db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, in->uuids), in->mask);
    db_bool_arg(db_i64_arg(db_str_arg(a, in->globs), in->rest_s), in->all);
    db_write(db,
             "SELECT g.*, CASE WHEN g.r_held > 0 THEN checkpoint_models(g.r_uuid) END, "
             "CASE WHEN g.r_held & 64 > 0 THEN (SELECT to_char(c.pinned_until AT TIME ZONE 'UTC', "
             "'YYYY-MM-DD HH24:MI:SS') FROM checkpoints c WHERE c.uuid = g.r_uuid) END FROM "
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
