#include "db_ckpt_read.h"

#include "db_sql.h"

void db_ckpt_read(struct db *db, const char *uuid, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT checkpoint_doc(c.uuid), c.experiment_id, c.trial_id, "
        "e.config->'checkpoint_storage', (SELECT coalesce(json_agg(json_build_object('modelId', "
        "m.id, 'modelName', m.name, 'version', v.version) ORDER BY v.id), '[]') "
        "FROM model_versions v JOIN models m ON m.id = v.model_id WHERE v.checkpoint_uuid = c.uuid) "
        "FROM checkpoints c LEFT JOIN experiments e ON e.id = c.experiment_id WHERE c.uuid = $1",
        db_str_arg(DB_ARGS, uuid), cb, arg);
}

/* clang-format off */
#define LIST(key, owner, table)                                                                    \
    "WITH f AS MATERIALIZED (SELECT c.uuid, " key " AS k FROM checkpoints c "                      \
    "LEFT JOIN experiments e ON e.id = c.experiment_id WHERE c." owner                             \
    " = $1::bigint AND ($2::jsonb IS NULL OR to_jsonb(c.state) IN "                                \
    "(SELECT jsonb_array_elements($2::jsonb)))), n AS (SELECT count(*) total FROM f) "             \
    "SELECT n.total, page_start(n.total, $3::bigint), c.uuid, c.state, $5::text, "                 \
    "EXISTS (SELECT 1 FROM " table " WHERE id = $1::bigint), " MEMBERS "FROM n LEFT JOIN ("        \
    "unnest(ARRAY(SELECT f.uuid FROM f ORDER BY "
#define PAGE                                                                                       \
    ", f.uuid OFFSET (SELECT page_start(total, $3::bigint) FROM n) "                               \
    "LIMIT page_size($4::bigint, NULL))) WITH ORDINALITY x(uuid, rn) "                             \
    "JOIN checkpoints c ON c.uuid = x.uuid LEFT JOIN trials t ON t.id = c.trial_id "               \
    "LEFT JOIN experiments e ON e.id = c.experiment_id "                                           \
    "CROSS JOIN LATERAL (SELECT training_at(c.trial_id, c.steps) v OFFSET 0) m) ON true ORDER BY x.rn"
/* checkpoint.v1.Checkpoint without its state, as columns (db_doc.h). */
#define MEMBERS                                                                                    \
    "c.task_id \"taskId\", c.uuid, c.report_time \"reportTime\", c.sizes resources, c.metadata, "  \
    "c.allocation_id \"allocationId?\", json_build_object('trialId', c.trial_id, "                 \
    "'experimentId', c.experiment_id, 'experimentConfig', e.config_json, 'hparams', t.hparams, "        \
    "'trainingMetrics', " AVERAGES("m.v") ", 'validationMetrics', " AVERAGES("c.validation") ", "  \
    "'searcherMetric', number_of(c.validation->e.searcher_metric)) training "
#define AVERAGES(v)                                                                                \
    "CASE WHEN " v " IS NOT NULL THEN json_build_object('avgMetrics', " v ", "                     \
    "'batchMetrics', '[]'::json) END"
#define BOTH(key, owner, table)                                                                    \
    {LIST(key, owner, table) "f.k" PAGE, LIST(key, owner, table) "f.k DESC NULLS LAST" PAGE}
#define BY(key)                                                                                    \
    {BOTH(key, "trial_id", "trials"), BOTH(key, "experiment_id", "experiments")}

/* By SORT_BY_* of checkpoint.v1, of a trial or an experiment, upwards and downwards; last: by the
 * metric $5. What has no value comes last, and uuids break ties upwards. */
enum { BY_REPORT_TIME = 4, BY_METRIC = 7 };
static const char *const sorted_sql[][2][2] = {
    [1] = BY("c.uuid"),
    [2] = BY("c.trial_id"),
    [3] = BY("c.steps"),
    [BY_REPORT_TIME] = BY("c.report_time"),
    [5] = BY("array_position(ARRAY['ACTIVE', 'COMPLETED', 'ERROR', 'DELETED', 'PARTIALLY_DELETED'], c.state)"),
    [6] = BY("number_of(c.validation->e.searcher_metric)"),
    [BY_METRIC] = BY("number_of(c.validation->$5::text)"),
};
/* clang-format on */

void db_ckpt_list(struct db *db, const struct db_ckpt_filter *f, const struct db_page *p, db_cb *cb,
                  void *arg)
{
    bool is_known = p->sort > 0 && p->sort < BY_METRIC;
    int sort = f->metric ? BY_METRIC : is_known ? p->sort : BY_REPORT_TIME;
    struct db_args *a = db_i64_arg(DB_ARGS, f->exp_id ? f->exp_id : f->trial_id);
    db_i64_arg(db_i64_arg(db_str_arg(a, f->states), p->offset), p->limit);
    db_query(db, sorted_sql[sort][f->exp_id != 0][p->desc], db_str_arg(a, f->metric), cb, arg);
}

void db_ckpt_set_metadata(struct db *db, const char *uuid, const char *metadata, db_cb *cb,
                          void *arg)
{
    db_write(db,
             "WITH up AS (UPDATE checkpoints SET metadata = $2::jsonb WHERE uuid = $1 RETURNING "
             "uuid, metadata) "
             "SELECT jsonb_build_object('checkpoint', checkpoint_doc(uuid)::jsonb || "
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
    db_query(db, sql_ckpt_of_experiment, db_i64_arg(DB_ARGS, exp_id), cb, arg);
}
