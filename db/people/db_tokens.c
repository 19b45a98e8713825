#include "db_tokens.h"

void db_token_create(struct db *db, const struct db_token *t, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_i64_arg(a, t->user_id), t->sha256), t->description);
    db_i64_arg(db_i64_arg(a, t->lifespan_s), TOKENS_LIVE_MAX);
    db_write(db,
             "INSERT INTO access_tokens AS t (user_id, token_sha256, description, expires_at) "
             "SELECT u.id, $2, $3, now() + make_interval(secs => $4::bigint) FROM users u "
             "WHERE u.id = $1::integer AND (SELECT count(*) FROM access_tokens x WHERE x.user_id "
             "= u.id AND x.revoked_at IS NULL AND x.expires_at > now()) < $5::integer "
             "RETURNING jsonb_build_object('tokenInfo', access_token_doc(t))",
             a, cb, arg);
}

void db_token_list(struct db *db, const struct db_token_filter *f, const struct db_page *p,
                   db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_bool_arg(db_str_arg(db_i64_arg(a, f->user_id), f->username), f->also_ended);
    db_query(db,
             "WITH f AS (SELECT t.id, '' AS state, t.id::float8 num, NULL::text txt "
             "FROM access_tokens t JOIN users u ON u.id = t.user_id "
             "WHERE ($1::bigint = 0 OR t.user_id = $1::bigint) "
             "AND ($2::text IS NULL OR u.username = $2) AND $4::integer >= 0 "
             "AND ($3::boolean OR t.revoked_at IS NULL AND t.expires_at > now()))" DB_LIST_TAIL(
                 DB_LIST_ORDER("id", "$5"), "$6", "$7", "NULL",
                 "(SELECT access_token_doc(t) FROM access_tokens t WHERE t.id = page.id)"),
             db_page_arg(a, p), cb, arg);
}

void db_token_edit(struct db *db, int64_t id, const char *description, bool revoke, db_cb *cb,
                   void *arg)
{
    db_write(
        db,
        "UPDATE access_tokens t SET description = coalesce($2, description), revoked_at = CASE "
        "WHEN $3::boolean THEN coalesce(revoked_at, now()) ELSE revoked_at END "
        "WHERE id = $1::bigint RETURNING jsonb_build_object('tokenInfo', access_token_doc(t))",
        db_bool_arg(db_str_arg(db_i64_arg(DB_ARGS, id), description), revoke), cb, arg);
}

void db_token_used(struct db *db, int64_t id)
{
    db_write(db, "UPDATE access_tokens SET last_used_at = now() WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), NULL, NULL);
}
