#include "db_users.h"

#include "db_call.h"

#define USER_COLUMNS "u.id, u.username, u.admin, u.active, u.password, user_doc(u)"

void db_user_by_name(struct db *db, const char *username, db_cb *cb, void *arg)
{
    db_query(db, "SELECT " USER_COLUMNS " FROM users u WHERE u.username = $1",
             db_str_arg(DB_ARGS, username), cb, arg);
}

void db_user_by_id(struct db *db, int64_t user_id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT " USER_COLUMNS " FROM users u WHERE u.id = $1::bigint",
             db_i64_arg(DB_ARGS, user_id), cb, arg);
}

void db_user_by_session(struct db *db, const char *token_sha256, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT " USER_COLUMNS ", s.token_id, "
        "ceil(extract(epoch FROM s.expires_at - now()) * 1000)::bigint, roles_of(u.id, NULL) FROM ("
        "SELECT user_id, 0 token_id, expires_at FROM user_sessions WHERE token_sha256 = $1 "
        "UNION ALL SELECT user_id, id, expires_at FROM access_tokens "
        "WHERE token_sha256 = $1 AND revoked_at IS NULL) s JOIN users u ON u.id = s.user_id "
        "WHERE s.expires_at > now()",
        db_str_arg(DB_ARGS, token_sha256), cb, arg);
}

void db_session_create(struct db *db, const char *token_sha256, int64_t user_id, int64_t days,
                       db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_i64_arg(db_i64_arg(db_str_arg(a, token_sha256), user_id), days);
    db_call_write(db,
                  "WITH old AS (DELETE FROM user_sessions WHERE user_id = $2::integer "
                  "AND expires_at < now()), "
                  "seen AS (UPDATE users SET last_auth_at = now() WHERE id = $2::integer) "
                  "INSERT INTO user_sessions (token_sha256, user_id, expires_at) "
                  "VALUES ($1, $2::integer, now() + make_interval(days => $3::integer))",
                  a, NULL, cb, arg);
}

void db_session_delete(struct db *db, const char *token_sha256, db_done_cb *cb, void *arg)
{
    db_call_write(db, "DELETE FROM user_sessions WHERE token_sha256 = $1",
                  db_str_arg(DB_ARGS, token_sha256), NULL, cb, arg);
}

void db_login_link_create(struct db *db, const char *link_sha256, const char *session_sha256,
                          int64_t seconds, db_cb *cb, void *arg)
{
    db_write(db,
             "WITH old AS (DELETE FROM login_links WHERE expires_at < now()) "
             "INSERT INTO login_links (link_sha256, session_sha256, expires_at) "
             "SELECT $1, s.token_sha256, now() + make_interval(secs => $3::integer) "
             "FROM user_sessions s WHERE s.token_sha256 = $2 RETURNING api_time(expires_at)",
             db_i64_arg(db_str_arg(db_str_arg(DB_ARGS, link_sha256), session_sha256), seconds), cb,
             arg);
}

void db_login_link_use(struct db *db, const char *link_sha256, const char *session_sha256,
                       int64_t days, db_cb *cb, void *arg)
{
    db_write(db,
             "WITH used AS (DELETE FROM login_links WHERE link_sha256 = $1 RETURNING *), "
             "who AS (SELECT u.* FROM used l JOIN user_sessions s ON s.token_sha256 = "
             "l.session_sha256 JOIN users u ON u.id = s.user_id "
             "WHERE l.expires_at > now() AND s.expires_at > now() AND u.active), "
             "seen AS (UPDATE users SET last_auth_at = now() WHERE id IN (SELECT id FROM who)), "
             "made AS (INSERT INTO user_sessions (token_sha256, user_id, expires_at) "
             "SELECT $2, id, now() + make_interval(days => $3::integer) FROM who) "
             "SELECT " USER_COLUMNS " FROM users u WHERE u.id IN (SELECT id FROM who)",
             db_i64_arg(db_str_arg(db_str_arg(DB_ARGS, link_sha256), session_sha256), days), cb,
             arg);
}

static void flag_arg(struct db_args *a, int flag)
{
    if (flag < 0)
        db_null_arg(a);
    else
        db_bool_arg(a, flag);
}

/* $1 username, $2 display name, $3 password, $4 admin, $5 active, $6 remote, $7 set agent user,
 * $8 uid, $9 gid, $10 user, $11 group, $12 session to keep; $13, of an edit, the id. */
static struct db_args *edit_args(struct db_args *a, const struct db_user_edit *u, const char *keep)
{
    db_str_arg(db_str_arg(db_str_arg(a, u->username), u->display_name), u->password);
    flag_arg(a, u->admin);
    flag_arg(a, u->active);
    flag_arg(a, u->remote);
    db_bool_arg(a, u->set_agent_user);
    db_i64_arg(db_i64_arg(a, u->uid), u->gid);
    db_str_arg(db_str_arg(a, u->user_name), u->group_name);
    return db_str_arg(a, keep);
}

void db_user_create(struct db *db, const struct db_user_edit *u, db_cb *cb, void *arg)
{
    db_write(db,
             "SELECT id, doc FROM user_edit(NULL, $1, $2, $3, $4, $5, $6, $7, $8::integer, "
             "$9::integer, $10, $11, $12)",
             edit_args(DB_ARGS, u, NULL), cb, arg);
}

void db_user_edit(struct db *db, int64_t user_id, const struct db_user_edit *u,
                  const char *keep_session, db_cb *cb, void *arg)
{
    struct db_args *a = edit_args(DB_ARGS, u, keep_session);
    db_write(db,
             "SELECT id, doc FROM user_edit($13::integer, $1, $2, $3, $4, $5, $6, $7, $8::integer, "
             "$9::integer, $10, $11, $12)",
             db_i64_arg(a, user_id), cb, arg);
}
