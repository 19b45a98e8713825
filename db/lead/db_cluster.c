#include "db_cluster.h"

#include <stdio.h>

static void on_cluster(void *arg, const struct db_result *r)
{
    struct db_cluster *c = arg;
    if (db_rows(r) != 1)
        return;
    snprintf(c->cluster_id, sizeof c->cluster_id, "%s", db_text(r, 0, 0));
    snprintf(c->token_key, sizeof c->token_key, "%s", db_text(r, 0, 1));
    snprintf(c->agent_token, sizeof c->agent_token, "%s", db_text(r, 0, 2));
}

int db_cluster_read(struct db *db, struct db_cluster *ret, struct det_err *err)
{
    *ret = (struct db_cluster){0};
    int rc = db_query_now(db, "SELECT cluster_id, token_key, agent_token FROM cluster", NULL,
                          on_cluster, ret, err);
    if (rc == 0 && !ret->token_key[0])
        rc = det_fail(err, DET_ECORRUPT, "the database has no cluster row");
    return rc;
}

static void on_flag(void *arg, const struct db_result *r)
{
    *(bool *)arg = db_rows(r) == 1 && db_bool(r, 0, 0);
}

int db_admin_has_password(struct db *db, bool *ret, struct det_err *err)
{
    *ret = false;
    return db_query_now(db, "SELECT password IS NOT NULL FROM users WHERE username = 'admin'", NULL,
                        on_flag, ret, err);
}

int db_admin_password_init(struct db *db, const char *argon2, bool *ret_set, struct det_err *err)
{
    *ret_set = false;
    return db_query_now(db,
                        "UPDATE users SET password = $1 WHERE username = 'admin' AND "
                        "password IS NULL RETURNING true",
                        db_str_arg(DB_ARGS, argon2), on_flag, ret_set, err);
}

void db_begin_batch(struct db_tx *tx, int64_t epoch, int64_t number)
{
    db_tx_add(tx, "SELECT begin_batch($1::bigint, $2::bigint)",
              db_i64_arg(db_i64_arg(DB_ARGS, epoch), number));
}

void db_limit_statements(struct db_tx *tx, int64_t ms)
{
    db_tx_apart(tx);
    db_tx_add(tx, "SELECT set_config('statement_timeout', $1, true)", db_i64_arg(DB_ARGS, ms));
}

bool db_batch_is_done(const struct db_result *r)
{
    return db_state(r) == DB_STATE_DONE;
}
