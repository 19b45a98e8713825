#include "db_rows.h"

/* PostgreSQL's parameters are $1.. in the order of the db_*_arg calls. */

static void progress_arg(struct db_args *a, double v)
{
    if (v < 0)
        db_null_arg(a);
    else
        db_f64_arg(a, v);
}

static void i64_or_null(struct db_args *a, int64_t v, bool null)
{
    if (null)
        db_null_arg(a);
    else
        db_i64_arg(a, v);
}

/* $1 id, $2 state, $3 end, $4 progress, $5 pool, $6 priority, $7 weight, $8 max slots, $9 position,
 * $10 core */
static void experiment_args(struct db_args *a, const struct row_experiment *r)
{
    db_time_arg(db_str_arg(db_i64_arg(a, r->id), exp_state_text(r->state)), r->end_us);
    progress_arg(a, r->progress);
    db_str_arg(a, r->resource_pool ? r->resource_pool : "default");
    i64_or_null(a, r->priority, r->priority == 0);
    db_f64_arg(a, r->weight);
    i64_or_null(a, r->max_slots, r->max_slots < 0);
    db_str_arg(db_f64_arg(a, r->queue_position), r->core ? r->core : "{}");
}

static void experiment_insert(struct db_tx *tx, const struct row_experiment *r,
                              const struct db_experiment_extra *x)
{
    struct db_args *a = DB_ARGS;
    experiment_args(a, r);
    db_i64_arg(db_str_arg(a, r->job_id), r->owner_id);
    db_i64_arg(a, r->project_id > 0 ? r->project_id : 1);
    i64_or_null(a, r->parent_id, r->parent_id == 0);
    db_str_arg(db_time_arg(a, r->start_us), r->config);
    db_str_arg(a, x && x->original_config ? x->original_config : "");
    db_bytes_arg(a, x ? x->model_def : NULL, x ? x->model_def_len : 0);
    db_bool_arg(a, x && x->parent_model_def);
    db_tx_add(
        tx,
        "INSERT INTO experiments (id, state, end_time, progress, resource_pool, priority, weight, "
        "max_slots, "
        "queue_position, core, job_id, owner_id, project_id, parent_id, start_time, config, "
        "original_config, model_def, name, description, labels, searcher_metric, "
        "smaller_is_better) "
        "SELECT $1::integer, $2, $3::timestamptz, $4::float8, $5, $6::integer, $7::float8, "
        "$8::integer, "
        "$9::float8, $10::jsonb, $11, $12::integer, $13::integer, $14::integer, $15::timestamptz, "
        "$16::jsonb, $17, CASE WHEN $19::boolean THEN coalesce((SELECT model_def FROM experiments "
        "WHERE id = $14::integer), '') ELSE $18::bytea END, coalesce($16::jsonb->>'name', ''), "
        "coalesce($16::jsonb->>'description', ''), "
        "CASE jsonb_typeof($16::jsonb->'labels') WHEN 'array' THEN $16::jsonb->'labels' ELSE '[]' "
        "END, "
        "coalesce($16::jsonb#>>'{searcher,metric}', ''), "
        "coalesce(($16::jsonb#>>'{searcher,smaller_is_better}')::boolean, true) "
        "ON CONFLICT (id) DO NOTHING",
        a);
}

/* Name, description and labels are edited in their columns: only what the change says of them. */
static void experiment_config(struct db_tx *tx, const struct row_experiment *r)
{
#define CHANGED(column, value)                                                                     \
    column " = CASE WHEN $2::jsonb->'" column "' IS DISTINCT FROM config->'" column "' THEN "      \
           value " ELSE " column " END, "
    db_tx_add(tx,
              "UPDATE experiments SET " CHANGED("name", "coalesce($2::jsonb->>'name', '')")
                  CHANGED("description", "coalesce($2::jsonb->>'description', '')")
                      CHANGED("labels", "CASE jsonb_typeof($2::jsonb->'labels') WHEN 'array' THEN "
                                        "$2::jsonb->'labels' ELSE '[]' END")
                          "config = $2::jsonb WHERE id = $1::integer",
              db_str_arg(db_i64_arg(DB_ARGS, r->id), r->config));
#undef CHANGED
}

void db_save_experiment(struct db_tx *tx, const struct row_experiment *r,
                        const struct db_experiment_extra *extra)
{
    if (r->is_new) {
        experiment_insert(tx, r, extra);
        return;
    }
    struct db_args *a = DB_ARGS;
    experiment_args(a, r);
    db_tx_add(
        tx,
        "UPDATE experiments SET state = $2, end_time = $3::timestamptz, progress = $4::float8, "
        "resource_pool = $5, priority = $6::integer, weight = $7::float8, max_slots = $8::integer, "
        "queue_position = $9::float8, core = $10::jsonb WHERE id = $1::integer",
        a);
    if (r->config)
        experiment_config(tx, r);
}

void db_save_exp_state(struct db_tx *tx, int64_t id, enum exp_state state)
{
    db_tx_add(tx, "UPDATE experiments SET state = $2 WHERE id = $1::integer",
              db_str_arg(db_i64_arg(DB_ARGS, id), exp_state_text(state)));
}

void db_save_search_snapshot(struct db_tx *tx, const struct row_search_snapshot *r)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_i64_arg(db_i64_arg(a, r->experiment_id), r->seq), r->snapshot);
    db_tx_add(
        tx,
        "INSERT INTO search_snapshots (experiment_id, seq, snapshot) "
        "VALUES ($1::integer, $2::bigint, $3::json) ON CONFLICT (experiment_id) DO UPDATE SET "
        "seq = excluded.seq, snapshot = excluded.snapshot",
        a);
}

void db_delete_search_snapshot(struct db_tx *tx, int64_t exp_id)
{
    db_tx_add(tx, "DELETE FROM search_snapshots WHERE experiment_id = $1::integer",
              db_i64_arg(DB_ARGS, exp_id));
}

void db_save_agent(struct db_tx *tx, const struct row_agent *r)
{
    struct db_args *a = DB_ARGS;
    db_bool_arg(db_bool_arg(db_str_arg(a, r->agent_id), r->enabled), r->draining);
    db_tx_add(
        tx,
        "INSERT INTO agent_settings (agent_id, enabled, draining, slots_disabled, slots_forced) "
        "VALUES ($1, $2::boolean, $3::boolean, $4::jsonb, $5::jsonb) "
        "ON CONFLICT (agent_id) DO UPDATE SET "
        "enabled = excluded.enabled, draining = excluded.draining, "
        "slots_disabled = excluded.slots_disabled, slots_forced = excluded.slots_forced",
        db_str_arg(db_str_arg(a, r->slots_disabled), r->slots_forced));
}

void db_save_store(struct db_tx *tx, const struct row_store *r)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, r->place), r->id), r->known);
    db_i64_arg(db_str_arg(a, r->made_on), r->owner_id);
    db_tx_add(tx,
              "INSERT INTO stores (place, id, known, made_on, owner_id, first_used) VALUES ($1, "
              "$2::uuid, $3::jsonb, $4, nullif($5::bigint, 0)::integer, "
              "to_timestamp($6::float8 / 1000000)) ON CONFLICT (place) DO UPDATE SET id = "
              "excluded.id, known = excluded.known, made_on = excluded.made_on",
              db_i64_arg(a, r->used_us));
}

void db_save_parked(struct db_tx *tx, const struct row_parked *r)
{
    struct db_args *a = db_i64_arg(db_i64_arg(DB_ARGS, r->experiment_id), r->trial_id);
    db_tx_add(tx, "SELECT park($1::integer, $2::integer, $3::boolean)",
              db_bool_arg(a, r->has_ended));
}

void db_delete_experiment(struct db_tx *tx, int64_t exp_id)
{
    struct db_args *a = db_i64_arg(DB_ARGS, exp_id);
    db_tx_add(tx,
              "DELETE FROM task_logs WHERE task_id IN (SELECT task_id FROM trials WHERE "
              "experiment_id = $1::integer UNION SELECT task_id FROM allocations WHERE "
              "experiment_id = $1::integer)",
              a);
    db_tx_add(tx,
              "DELETE FROM trial_timeline WHERE trial_id IN (SELECT id FROM trials WHERE "
              "experiment_id = $1::integer)",
              a);
    db_tx_add(tx, "DELETE FROM experiments WHERE id = $1::integer", a);
}
