/* The rows there are many of: trials, allocations, searcher events; each kind in one statement. */
#include "db_array.h"
#include "db_rows.h"

/* A statement's arguments; more rows than fit are several statements. */
enum { BYTES_MAX = 512 << 10 };

static void add_if_full(struct db_columns *c, struct db_tx *tx, const char *sql)
{
    db_col_row_end(c);
    if (db_columns_bytes(c) > BYTES_MAX)
        db_columns_add(c, tx, sql);
}

/* ---- searcher events ---- */

void db_save_search_events(struct db_tx *tx, const struct row_search_event *r, size_t n)
{
    static const char insert[] =
        "INSERT INTO search_events (experiment_id, seq, event) "
        "SELECT * FROM unnest($1::integer[], $2::bigint[], $3::json[]) ON CONFLICT DO NOTHING";
    struct db_columns c = {0};
    for (size_t i = 0; i < n; i++) {
        db_col_i64(&c, r[i].experiment_id);
        db_col_i64(&c, r[i].seq);
        db_col_str(&c, r[i].event);
        add_if_full(&c, tx, insert);
    }
    db_columns_add(&c, tx, insert);
}

/* ---- trials ---- */

static const char trials_insert[] =
    "INSERT INTO trials (id, state, run_id, restarts, end_time, core, experiment_id, request_id, "
    "task_id, hparams, seed, start_time, warm_start_checkpoint) "
    "SELECT * FROM unnest($1::integer[], $2::text[], $3::integer[], $4::integer[], "
    "$5::timestamptz[], $6::jsonb[], $7::integer[], $8::text[], $9::text[], $10::jsonb[], "
    "$11::bigint[], $12::timestamptz[], $13::text[]) ON CONFLICT (id) DO NOTHING";
static const char trials_update[] =
    "UPDATE trials t SET state = v.state, run_id = v.run_id, restarts = v.restarts, "
    "end_time = v.end_time, core = v.core, last_activity = now() FROM unnest($1::integer[], "
    "$2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::jsonb[]) "
    "v(id, state, run_id, restarts, end_time, core) WHERE t.id = v.id";

static void trial_columns(struct db_columns *c, const struct row_trial *r)
{
    db_col_i64(c, r->id);
    db_col_str(c, trial_state_text(r->state));
    db_col_i64(c, r->run_id);
    db_col_i64(c, r->restarts);
    db_col_time(c, r->end_us);
    db_col_str(c, r->core ? r->core : "{}");
    if (!r->is_new)
        return;
    db_col_i64(c, r->experiment_id);
    db_col_str(c, r->request_id);
    db_col_str(c, r->task_id);
    db_col_str(c, r->hparams);
    db_col_i64(c, r->seed);
    db_col_time(c, r->start_us);
    db_col_str(c, r->warm_start_checkpoint);
}

void db_save_trials(struct db_tx *tx, const struct row_trial *r, size_t n)
{
    struct db_columns insert = {0}, update = {0};
    for (size_t i = 0; i < n; i++) {
        struct db_columns *c = r[i].is_new ? &insert : &update;
        trial_columns(c, &r[i]);
        add_if_full(c, tx, r[i].is_new ? trials_insert : trials_update);
    }
    db_columns_add(&insert, tx, trials_insert);
    db_columns_add(&update, tx, trials_update);
    for (size_t i = 0; i < n; i++)
        if (!r[i].is_new && r[i].hparams)
            db_tx_add(tx, "UPDATE trials SET hparams = $2::jsonb WHERE id = $1::integer",
                      db_str_arg(db_i64_arg(DB_ARGS, r[i].id), r[i].hparams));
}

/* ---- allocations ---- */

static const char allocations_insert[] =
    "INSERT INTO allocations (id, state, is_ready, end_time, exit_reason, status_code, core, "
    "task_id, experiment_id, trial_id, run_id, kind, slots, resource_pool, start_time) "
    "SELECT * FROM unnest($1::text[], $2::text[], $3::boolean[], $4::timestamptz[], $5::text[], "
    "$6::integer[], $7::jsonb[], $8::text[], $9::integer[], $10::integer[], $11::integer[], "
    "$12::text[], $13::integer[], $14::text[], $15::timestamptz[]) ON CONFLICT (id) DO NOTHING";
static const char allocations_update[] =
    "UPDATE allocations a SET state = v.state, is_ready = v.is_ready, end_time = v.end_time, "
    "exit_reason = v.exit_reason, status_code = v.status_code, core = v.core "
    "FROM unnest($1::text[], $2::text[], $3::boolean[], $4::timestamptz[], $5::text[], "
    "$6::integer[], $7::jsonb[]) v(id, state, is_ready, end_time, exit_reason, status_code, core) "
    "WHERE a.id = v.id";

static void allocation_columns(struct db_columns *c, const struct row_allocation *r)
{
    db_col_str(c, r->id);
    db_col_str(c, alloc_state_text(r->state));
    db_col_bool(c, r->is_ready);
    db_col_time(c, r->end_us);
    db_col_str(c, r->exit_reason);
    db_col_i64_or_null(c, r->status_code, r->status_code < 0);
    db_col_str(c, r->core ? r->core : "{}");
    if (!r->is_new)
        return;
    db_col_str(c, r->task_id);
    db_col_i64(c, r->experiment_id);
    db_col_i64_or_null(c, r->trial_id, r->trial_id == 0);
    db_col_i64(c, r->run_id);
    db_col_str(c, r->kind);
    db_col_i64(c, r->slots);
    db_col_str(c, r->resource_pool);
    db_col_time(c, r->start_us);
}

void db_save_allocations(struct db_tx *tx, const struct row_allocation *r, size_t n)
{
    struct db_columns insert = {0}, update = {0};
    for (size_t i = 0; i < n; i++) {
        struct db_columns *c = r[i].is_new ? &insert : &update;
        allocation_columns(c, &r[i]);
        add_if_full(c, tx, r[i].is_new ? allocations_insert : allocations_update);
    }
    db_columns_add(&insert, tx, allocations_insert);
    db_columns_add(&update, tx, allocations_update);
}
