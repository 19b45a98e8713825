#include "db_rows.h"
#include "db_rowsql.h"

/* $1 the text as given, $2 model definition, $3: the parent's instead. */
static struct db_rowsql experiment_insert = {
    .kind = ROW_EXPERIMENT,
    .is_new = true,
    .before = 3,
    .text = "INSERT INTO experiments (@names, original_config, model_def, name, description, "
            "labels, searcher_metric, smaller_is_better) "
            "SELECT v.*, $1, CASE WHEN $3::boolean THEN coalesce((SELECT model_def FROM "
            "experiments WHERE id = v.parent_id), '') ELSE $2::bytea END, "
            "coalesce(config->>'name', ''), coalesce(config->>'description', ''), "
            "CASE jsonb_typeof(config->'labels') WHEN 'array' THEN config->'labels' ELSE '[]' END, "
            "coalesce(config#>>'{searcher,metric}', ''), "
            "coalesce((config#>>'{searcher,smaller_is_better}')::boolean, true) "
            "FROM (VALUES (@values)) v(@names) ON CONFLICT (id) DO NOTHING"};
static struct db_rowsql experiment_update = {
    .kind = ROW_EXPERIMENT, .text = "UPDATE experiments SET @sets WHERE id = $1::integer"};
static struct db_rowsql snapshot_upsert = {
    .kind = ROW_SEARCH_SNAPSHOT,
    .text = "INSERT INTO search_snapshots (@names) VALUES (@values) "
            "ON CONFLICT (experiment_id) DO UPDATE SET @excluded"};
static struct db_rowsql agent_upsert = {.kind = ROW_AGENT,
                                        .text =
                                            "INSERT INTO agent_settings (@names) VALUES (@values) "
                                            "ON CONFLICT (agent_id) DO UPDATE SET @excluded"};
static struct db_rowsql store_upsert = {.kind = ROW_STORE,
                                        .is_new = true,
                                        .text = "INSERT INTO stores (@names) VALUES (@values) "
                                                "ON CONFLICT (place) DO UPDATE SET @excluded"};

static void save_one(struct db_tx *tx, struct db_rowsql *s, const void *row)
{
    struct db_args *a = DB_ARGS;
    db_rowsql_args(a, s, row);
    db_tx_add(tx, db_rowsql(s), a);
}

static void insert_experiment(struct db_tx *tx, const struct row_experiment *r,
                              const struct db_experiment_extra *x)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(a, x && x->original_config ? x->original_config : "");
    db_bytes_arg(a, x ? x->model_def : NULL, x ? x->model_def_len : 0);
    db_bool_arg(a, x && x->parent_model_def);
    db_rowsql_args(a, &experiment_insert, r);
    db_tx_add(tx, db_rowsql(&experiment_insert), a);
}

/* Name, description and labels are edited in their columns: only what the change says of them. */
static void experiment_config(struct db_tx *tx, const struct row_experiment *r)
{
#define CHANGED(column, value)                                                                     \
    column " = CASE WHEN $2::jsonb->'" column "' IS DISTINCT FROM config->'" column                \
           "' THEN " value " ELSE " column " END, "
    db_tx_add(
        tx,
        "UPDATE experiments SET " CHANGED("name", "coalesce($2::jsonb->>'name', '')")
            CHANGED("description", "coalesce($2::jsonb->>'description', '')") CHANGED(
                "labels",
                "CASE jsonb_typeof($2::jsonb->'labels') WHEN 'array' THEN "
                "$2::jsonb->'labels' ELSE '[]' END") "config = $2::jsonb WHERE id = $1::integer",
        db_str_arg(db_i64_arg(DB_ARGS, r->id), r->config));
#undef CHANGED
}

void db_save_experiment(struct db_tx *tx, const struct row_experiment *r,
                        const struct db_experiment_extra *extra)
{
    struct row_experiment row = *r;
    row.resource_pool = r->resource_pool ? r->resource_pool : "default";
    row.project_id = r->project_id > 0 ? r->project_id : 1;
    row.core = r->core ? r->core : "{}";
    if (r->is_new) {
        insert_experiment(tx, &row, extra);
        return;
    }
    save_one(tx, &experiment_update, &row);
    if (r->config)
        experiment_config(tx, r);
}

void db_save_exp_state(struct db_tx *tx, int64_t id, enum exp_state state, const char *undeleted)
{
    struct db_args *a = db_str_arg(db_i64_arg(DB_ARGS, id), exp_state_text(state));
    db_tx_add(tx,
              "UPDATE experiments SET state = $2, core = core - 'undeleted' || "
              "jsonb_strip_nulls(jsonb_build_object('undeleted', $3::text)) WHERE id = $1::integer",
              db_str_arg(a, undeleted));
}

void db_save_search_snapshot(struct db_tx *tx, const struct row_search_snapshot *r)
{
    save_one(tx, &snapshot_upsert, r);
}

void db_delete_search_snapshot(struct db_tx *tx, int64_t exp_id)
{
    db_tx_add(tx, "DELETE FROM search_snapshots WHERE experiment_id = $1::integer",
              db_i64_arg(DB_ARGS, exp_id));
}

void db_save_agent(struct db_tx *tx, const struct row_agent *r)
{
    save_one(tx, &agent_upsert, r);
}

void db_save_store(struct db_tx *tx, const struct row_store *r)
{
    save_one(tx, &store_upsert, r);
}

void db_save_parked(struct db_tx *tx, const struct row_parked *r)
{
    struct db_args *a = db_i64_arg(db_i64_arg(DB_ARGS, r->experiment_id), r->trial_id);
    db_tx_add(tx, "SELECT park($1::integer, $2::integer, $3::boolean)",
              db_bool_arg(a, r->has_ended));
}

#define TASKS                                                                                      \
    "(SELECT task_id FROM trials WHERE experiment_id = $1::integer UNION "                         \
    "SELECT task_id FROM allocations WHERE experiment_id = $1::integer)"

void db_delete_experiment(struct db_tx *tx, int64_t exp_id)
{
    struct db_args *a = db_i64_arg(DB_ARGS, exp_id);
    db_tx_add(tx, "DELETE FROM task_logs WHERE task_id IN " TASKS, a);
    db_tx_add(tx, "DELETE FROM log_marks WHERE task_id IN " TASKS, a);
    db_tx_add(tx,
              "DELETE FROM trial_timeline WHERE trial_id IN (SELECT id FROM trials WHERE "
              "experiment_id = $1::integer)",
              a);
    db_tx_add(tx, "DELETE FROM experiments WHERE id = $1::integer", a);
}

void db_delete_portion(struct db *db, int64_t exp_id, int64_t rows, db_cb *cb, void *arg)
{
    db_write(db, "SELECT * FROM delete_portion($1::integer, $2::integer)",
             db_i64_arg(db_i64_arg(DB_ARGS, exp_id), rows), cb, arg);
}
