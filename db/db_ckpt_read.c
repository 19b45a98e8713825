#include "db_ckpt_read.h"

void db_ckpt_read(struct db *db, const char *uuid, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT checkpoint_doc(c.uuid), c.experiment_id, c.trial_id, "
        "e.config->'checkpoint_storage' "
        "FROM checkpoints c LEFT JOIN experiments e ON e.id = c.experiment_id WHERE c.uuid = $1",
        db_str_arg(DB_ARGS, uuid), cb, arg);
}

/* Numbers of SORT_BY_* of checkpoint.v1; state by its number. */
#define STATES "ARRAY['ACTIVE', 'COMPLETED', 'ERROR', 'DELETED', 'PARTIALLY_DELETED']"
#define METRIC_AT                                                                                  \
    "(SELECT CASE WHEN jsonb_typeof(m.metrics->'validation_metrics'->$4::text) = 'number' "        \
    "THEN (m.metrics->'validation_metrics'->>$4::text)::float8 END FROM metrics m "                \
    "WHERE m.trial_id = c.trial_id AND m.steps = c.steps AND m.grp = 'validation' "                \
    "AND NOT m.archived ORDER BY m.id DESC LIMIT 1)"
#define SORT                                                                                       \
    "CASE WHEN $4::text IS NOT NULL THEN " METRIC_AT " ELSE CASE $5::integer "                     \
    "WHEN 2 THEN c.trial_id WHEN 3 THEN c.steps WHEN 4 THEN extract(epoch FROM c.report_time) "    \
    "WHEN 5 THEN array_position(" STATES ", c.state) WHEN 6 THEN value_at(c.trial_id, c.steps) "   \
    "WHEN 1 THEN NULL ELSE extract(epoch FROM c.report_time) END END::float8 num, "                \
    "CASE $5::integer WHEN 1 THEN c.uuid END txt "

/* clang-format off */
#define LIST(owner, table, id)                                                                     \
    "WITH f AS (SELECT c.uuid AS id, '' AS state, " SORT "FROM checkpoints c WHERE " owner " "     \
    "AND ($3::jsonb IS NULL OR to_jsonb(c.state) IN (SELECT jsonb_array_elements($3::jsonb))))"    \
    DB_LIST_TAIL(DB_LIST_ORDER("id", "$6"), "$7", "$8", "NULL",                                    \
                 "checkpoint_doc(page.id), EXISTS (SELECT 1 FROM " table " WHERE id = " id ")")
/* clang-format on */

void db_ckpt_list(struct db *db, const struct db_ckpt_filter *f, const struct db_page *p, db_cb *cb,
                  void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_i64_arg(db_i64_arg(a, f->exp_id), f->trial_id), f->states);
    db_page_arg(db_str_arg(a, f->metric), p);
    db_query(db,
             f->exp_id ? LIST("c.experiment_id = $1::bigint AND $2::bigint = 0", "experiments",
                              "$1::bigint")
                       : LIST("c.trial_id = $2::bigint AND $1::bigint = 0", "trials", "$2::bigint"),
             a, cb, arg);
}

void db_ckpt_set_metadata(struct db *db, const char *uuid, const char *metadata, db_cb *cb,
                          void *arg)
{
    db_write(db,
             "WITH up AS (UPDATE checkpoints SET metadata = $2::jsonb WHERE uuid = $1 RETURNING "
             "uuid, metadata) "
             "SELECT jsonb_build_object('checkpoint', checkpoint_doc(uuid) || "
             "jsonb_build_object('metadata', metadata)) FROM up",
             db_str_arg(db_str_arg(DB_ARGS, uuid), metadata), cb, arg);
}

void db_ckpt_patch(struct db *db, const char *patches, int64_t exp_id, db_cb *cb, void *arg)
{
    db_write(db,
             "SELECT count(*) FROM (SELECT gc_report(c.uuid, x->'resources') "
             "FROM jsonb_array_elements($1::jsonb) x JOIN checkpoints c ON c.uuid = x->>'uuid' "
             "WHERE $2::bigint = 0 OR c.experiment_id = $2::bigint) done",
             db_i64_arg(db_str_arg(DB_ARGS, patches), exp_id), cb, arg);
}

void db_ckpt_missing(struct db *db, const char *uuids, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT x.uuid FROM jsonb_array_elements_text($1::jsonb) x(uuid) "
             "WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.uuid = x.uuid)",
             db_str_arg(DB_ARGS, uuids), cb, arg);
}

void db_ckpt_of_experiment(struct db *db, int64_t exp_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT e.id, e.owner_id, e.config, (SELECT coalesce(jsonb_agg(c.uuid ORDER BY "
             "c.uuid), '[]') FROM checkpoints c WHERE c.experiment_id = e.id "
             "AND (c.state <> 'DELETED' OR c.gc_step IS NOT NULL)), "
             "(SELECT min(c.uuid) FROM checkpoints c WHERE c.experiment_id = e.id "
             "AND checkpoint_held(c) & 80 > 0), "
             "EXISTS (SELECT 1 FROM metric_heads h JOIN trials t ON t.id = h.trial_id "
             "WHERE t.experiment_id = e.id) FROM experiments e WHERE e.id = $1::bigint",
             db_i64_arg(DB_ARGS, exp_id), cb, arg);
}
