#include "db_unmanaged.h"

#include "db_call.h"

void db_unmanaged_find(struct db *db, int64_t owner_id, const char *external_id, db_cb *cb,
                       void *arg)
{
    db_query(db, "SELECT id FROM experiments WHERE owner_id = $1::integer AND external_id = $2",
             db_str_arg(db_i64_arg(DB_ARGS, owner_id), external_id), cb, arg);
}

void db_unmanaged_find_trial(struct db *db, int64_t exp_id, const char *external_id, db_cb *cb,
                             void *arg)
{
    db_query(db, "SELECT id FROM trials WHERE experiment_id = $1::integer AND external_id = $2",
             db_str_arg(db_i64_arg(DB_ARGS, exp_id), external_id), cb, arg);
}

void db_unmanaged_create(struct db *db, const struct row_experiment *r,
                         const struct db_experiment_extra *x, const char *external_id,
                         db_done_cb *cb, void *arg)
{
    struct db_tx *tx = db_tx_begin(db);
    db_save_experiment(tx, r, x);
    db_tx_add(tx,
              "UPDATE experiments SET unmanaged = true, external_id = $2 WHERE id = $1::integer",
              db_str_arg(db_i64_arg(DB_ARGS, r->id), external_id));
    db_call_commit(tx, NULL, cb, arg);
}

void db_unmanaged_trial(struct db *db, const struct db_unmanaged_trial *t, db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(db_i64_arg(DB_ARGS, t->id), t->experiment_id);
    db_str_arg(db_str_arg(db_str_arg(a, t->external_id), t->request_id), t->task_id);
    db_write(db, "SELECT unmanaged_trial($1::integer, $2::integer, $3, $4, $5, $6::jsonb)",
             db_str_arg(a, t->hparams), cb, arg);
}

void db_unmanaged_start(struct db *db, int64_t trial_id, bool resume, db_cb *cb, void *arg)
{
    db_write(db, "SELECT run, checkpoint, steps FROM unmanaged_start($1::integer, $2::boolean)",
             db_bool_arg(db_i64_arg(DB_ARGS, trial_id), resume), cb, arg);
}

void db_unmanaged_said(struct db *db, int64_t trial_id, int64_t run_id, const char *state,
                       db_done_cb *cb, void *arg)
{
    db_call_write(db, "SELECT unmanaged_said($1::integer, nullif($2::integer, 0), $3)",
                  db_str_arg(db_i64_arg(db_i64_arg(DB_ARGS, trial_id), run_id), state), NULL, cb,
                  arg);
}

void db_unmanaged_silent(struct db *db, int64_t silent_s, db_cb *cb, void *arg)
{
    db_write(db, "SELECT unmanaged_silent($1::integer)", db_i64_arg(DB_ARGS, silent_s), cb, arg);
}
