/* Users, their passwords and sessions: all writes, and the reads that authentication needs. */
#ifndef DB_DB_USERS_H
#define DB_DB_USERS_H

#include "db.h"
#include "db_done.h"
#include <stdbool.h>
#include <stdint.h>

/* Columns of the three reads below. */
enum db_user_col {
    USER_ID,
    USER_NAME,
    USER_ADMIN,
    USER_ACTIVE,
    USER_PASSWORD,
    USER_JSON,
    USER_COLS
};
/* USER_JSON is user.v1.User of the contract; USER_PASSWORD the argon2id string, null if none. */
void db_user_by_name(struct db *db, const char *username, db_cb *cb, void *arg);
void db_user_by_id(struct db *db, int64_t user_id, db_cb *cb, void *arg);
/* The user of a live session, or of an access token: more columns, the token's id (0: a session),
 * how long it is good yet, and the user's roles in the whole cluster (a set of bits 1 << id). */
enum { SESSION_TOKEN = USER_COLS, SESSION_LEFT_MS, SESSION_ROLES };
void db_user_by_session(struct db *db, const char *token_sha256, db_cb *cb, void *arg);

/* Also stamps the user's last_auth_at. */
void db_session_create(struct db *db, const char *token_sha256, int64_t user_id, int64_t days,
                       db_done_cb *cb, void *arg);
void db_session_delete(struct db *db, const char *token_sha256, db_done_cb *cb, void *arg);

/* A link that signs in, of a session that lives: its row's one column is when it ends, no row:
 * there is no such session. Those that have ended are forgotten. */
void db_login_link_create(struct db *db, const char *link_sha256, const char *session_sha256,
                          int64_t seconds, db_cb *cb, void *arg);
/* Forgets the link and makes a session for its user: enum db_user_col. No row: it was used, has
 * ended, or its user or session has. */
void db_login_link_use(struct db *db, const char *link_sha256, const char *session_sha256,
                       int64_t days, db_cb *cb, void *arg);

/* A partial user: what is NULL or < 0 stays (or takes its default when created). */
struct db_user_edit {
    const char *username, *display_name;
    const char *password; /* argon2id string; "" takes it away */
    int admin, active;    /* 0, 1, -1: leave */
    int remote;
    bool set_agent_user; /* the four below apply */
    int64_t uid, gid;
    const char *user_name, *group_name;
};
/* cb's first row: column 0 the id, column 1 user.v1.User. 23505: the name is taken. */
void db_user_create(struct db *db, const struct db_user_edit *u, db_cb *cb, void *arg);
/* The same row, none when there is no such user. A new password, or inactive, ends the user's
 * sessions but keep_session (token_sha256 or NULL). The caller must then auth_forget_user(). */
void db_user_edit(struct db *db, int64_t user_id, const struct db_user_edit *u,
                  const char *keep_session, db_cb *cb, void *arg);

#endif
