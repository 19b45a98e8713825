/* The rows there are many of: trials, allocations, searcher events; each kind in one statement. */
#include "db_rows.h"
#include "db_rowsql.h"

static struct db_rowsql event_insert = {
    .kind = ROW_SEARCH_EVENT,
    .is_new = true,
    .text = "INSERT INTO search_events (@names) SELECT * FROM unnest(@arrays) "
            "ON CONFLICT DO NOTHING"};
static struct db_rowsql trial_insert = {
    .kind = ROW_TRIAL,
    .is_new = true,
    .text = "INSERT INTO trials (@names) SELECT * FROM unnest(@arrays) "
            "ON CONFLICT (id) DO NOTHING"};
static struct db_rowsql trial_update = {
    .kind = ROW_TRIAL,
    .text = "UPDATE trials t SET @joined, last_activity = now() FROM unnest(@arrays) v(@names) "
            "WHERE t.id = v.id"};
static struct db_rowsql allocation_insert = {
    .kind = ROW_ALLOCATION,
    .is_new = true,
    .text = "INSERT INTO allocations (@names) SELECT * FROM unnest(@arrays) "
            "ON CONFLICT (id) DO NOTHING"};
static struct db_rowsql allocation_update = {
    .kind = ROW_ALLOCATION,
    .text = "UPDATE allocations a SET @joined FROM unnest(@arrays) v(@names) WHERE a.id = v.id"};

void db_save_search_events(struct db_tx *tx, const struct row_search_event *r, size_t n)
{
    struct db_columns c = {0};
    for (size_t i = 0; i < n; i++)
        db_rowsql_add(&c, tx, &event_insert, &r[i]);
    db_rowsql_flush(&c, tx, &event_insert);
}

void db_save_trials(struct db_tx *tx, const struct row_trial *r, size_t n)
{
    struct db_columns insert = {0}, update = {0};
    for (size_t i = 0; i < n; i++)
        db_rowsql_add(r[i].is_new ? &insert : &update, tx,
                      r[i].is_new ? &trial_insert : &trial_update, &r[i]);
    db_rowsql_flush(&insert, tx, &trial_insert);
    db_rowsql_flush(&update, tx, &trial_update);
    for (size_t i = 0; i < n; i++)
        if (!r[i].is_new && r[i].hparams)
            db_tx_add(tx, "UPDATE trials SET hparams = $2::jsonb WHERE id = $1::integer",
                      db_str_arg(db_i64_arg(DB_ARGS, r[i].id), r[i].hparams));
}

void db_save_allocations(struct db_tx *tx, const struct row_allocation *r, size_t n)
{
    struct db_columns insert = {0}, update = {0};
    for (size_t i = 0; i < n; i++)
        db_rowsql_add(r[i].is_new ? &insert : &update, tx,
                      r[i].is_new ? &allocation_insert : &allocation_update, &r[i]);
    db_rowsql_flush(&insert, tx, &allocation_insert);
    db_rowsql_flush(&update, tx, &allocation_update);
}
