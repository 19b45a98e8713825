/* Personal access tokens. What finds a token's user is in db_users.h: db_user_by_session. */
#ifndef DB_DB_TOKENS_H
#define DB_DB_TOKENS_H

#include "db_done.h"
#include "db_list.h"

enum { TOKENS_LIVE_MAX = 200 }; /* of a user */

struct db_token {
    int64_t user_id, lifespan_s;
    const char *sha256, *description;
};
/* {"tokenInfo"}; no row: there is no such user, or he has TOKENS_LIVE_MAX already. */
void db_token_create(struct db *db, const struct db_token *t, db_cb *cb, void *arg);
struct db_token_filter {
    int64_t user_id;      /* whose; 0: everybody's */
    const char *username; /* NULL: any */
    bool also_ended;
};
/* enum db_list_col. */
void db_token_list(struct db *db, const struct db_token_filter *f, const struct db_page *p,
                   db_cb *cb, void *arg);
/* {"tokenInfo"}; description NULL: leave; no row: no such token. */
void db_token_edit(struct db *db, int64_t id, const char *description, bool revoke, db_cb *cb,
                   void *arg);
/* For people to know, so that it may be lost. */
void db_token_used(struct db *db, int64_t id);

#endif
