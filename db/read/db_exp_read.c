#include "db_exp_read.h"

#include "db_exp_cols.h"
#include "db_sql.h"

static const char read_one[] =
    "SELECT e.state, " MEMBERS("coalesce((SELECT json_agg(t.id ORDER BY t.id) FROM trials t "
                               "WHERE t.experiment_id = e.id), '[]')",
                               "e.notes") "FROM experiments e " WITH_MEMBERS
                                          "WHERE e.id = $1::bigint";

void db_exp_read(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, read_one, db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_read_kept(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query_kept(db, read_one, id, cb, arg);
}

void db_exp_model_def(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT model_def, name FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

#define PART_COLS                                                                                  \
    "SELECT substring(e.model_def FROM $2::integer + 1 FOR $3::integer), "                         \
    "octet_length(e.model_def), e.id, e.name FROM experiments e WHERE e.id = "

void db_exp_model_def_part(struct db *db, const struct db_part *p, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    if (p->task_id)
        db_str_arg(a, p->task_id);
    else
        db_i64_arg(a, p->exp_id);
    db_i64_arg(db_i64_arg(a, p->from), DB_PART_BYTES);
    db_query(db,
             p->task_id ? PART_COLS "(SELECT experiment_id FROM trials WHERE task_id = $1 UNION "
                                    "SELECT experiment_id FROM allocations WHERE task_id = $1 "
                                    "LIMIT 1)"
                        : PART_COLS "$1::bigint",
             a, cb, arg);
}

/* Each validation that was the best of its experiment when it came: kept by a trigger. */
void db_exp_history(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT json_build_object('validationHistory', (SELECT "
             "coalesce(json_agg(json_build_object('trialId', b.trial_id, 'endTime', "
             "api_time(b.end_time), 'searcherMetric', b.value) ORDER BY b.end_time, b.id), '[]') "
             "FROM experiment_bests b WHERE b.experiment_id = e.id)) "
             "FROM experiments e WHERE e.id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_best_metric(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT best_metric FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_searcher(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT config#>>'{searcher,name}', state FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_end(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT state, core->>'undeleted' FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_labels(struct db *db, int64_t project_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('labels', coalesce(jsonb_agg(label ORDER BY n DESC, "
             "label), '[]')) "
             "FROM (SELECT label, sum(n) n FROM label_counts WHERE n > 0 "
             "AND ($1::bigint = 0 OR project_id = $1::bigint) GROUP BY label) x",
             db_i64_arg(DB_ARGS, project_id), cb, arg);
}

void db_exp_origin(struct db *db, const struct db_exp_origin *o, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_i64_arg(a, o->project_id), o->workspace), o->project);
    db_str_arg(db_i64_arg(db_i64_arg(a, o->parent_id), o->source_trial_id), o->source_uuid);
    db_i64_arg(a, o->user_id);
    db_query(db, sql_exp_origin, a, cb, arg);
}

void db_exp_owners(struct db *db, const char *ids, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT e.id, u.username, p.workspace_id FROM experiments e JOIN users u ON u.id = "
             "e.owner_id "
             "JOIN projects p ON p.id = e.project_id "
             "WHERE e.id IN (SELECT x::bigint FROM jsonb_array_elements_text($1::jsonb) x)",
             db_str_arg(DB_ARGS, ids), cb, arg);
}
