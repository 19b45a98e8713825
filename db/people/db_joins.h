/* Agents with certificates of their own: join tokens, identities, certificates. Tokens, keys and
 * certificates come as digests (hexadecimal). */
#ifndef DB_DB_JOINS_H
#define DB_DB_JOINS_H

#include "db.h"

/* One row, a time: until when the token is good. agent_id NULL: of any that has not joined. */
void db_join_token_create(struct db *db, const char *sha256, const char *agent_id, int64_t life_s,
                          db_cb *cb, void *arg);
struct db_join {
    const char *token_sha256, *agent_id, *key;
    const char *fingerprint; /* of the certificate, as the rest: not for db_join_look() */
    int64_t from_us, until_us;
};
/* Whether an agent may join, and why not. */
enum db_join_verdict {
    JOIN_OK,
    JOIN_UNKNOWN,
    JOIN_USED,
    JOIN_EXPIRED,
    JOIN_OTHER,
    JOIN_JOINED,
    JOIN_VERDICT_COUNT
};
/* One number, a verdict. */
void db_join_look(struct db *db, const struct db_join *j, db_cb *cb, void *arg);
/* The same, and joins: the token is used, and this certificate the only one that counts. */
void db_join(struct db *db, const struct db_join *j, db_cb *cb, void *arg);
/* One more certificate of an agent that has joined; those that have ended are forgotten. Affects no
 * row: it is revoked. */
void db_join_renew(struct db *db, const struct db_join *j, db_cb *cb, void *arg);
void db_join_revoke(struct db *db, const char *agent_id, db_cb *cb, void *arg);

enum db_join_col { JOIN_AGENT, JOIN_REVOKED, JOIN_PRINT, JOIN_FROM_S, JOIN_UNTIL_S };
/* Blocking, at the start: a row a certificate, at least one an agent; its fingerprint may be null.
 */
DET_MUST int db_joins_read(struct db *db, db_cb *cb, void *arg, struct det_err *err);

#endif
