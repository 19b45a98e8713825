/* The certificate authority of the cluster's own, kept where all its masters find it. */
#ifndef DB_DB_AUTHORITY_H
#define DB_DB_AUTHORITY_H

#include "buf.h"
#include "db.h"

struct db_authority { /* PEM texts; all empty: there is none yet */
    struct buf cert, key;
    struct buf vouches; /* certificates of each one's key by the one before it; newest first */
    struct buf formers; /* the certificates of those before, oldest first */
};
/* Blocking, on a connection of its own, after db_migrate(). Appends. */
DET_MUST int db_authority_read(const char *conninfo, struct db_authority *ret, struct det_err *err);
/* Keeps this one unless there is one by now: read it again. */
DET_MUST int db_authority_keep(const char *conninfo, const char *cert, const char *key,
                               struct det_err *err);

struct db_succession {
    const char *old;                /* the certificate that is replaced */
    const char *cert, *key, *vouch; /* the successor's; vouch: signed with old's key */
};
enum db_authority_col { AUTHORITY_CERT, AUTHORITY_KEY, AUTHORITY_VOUCHES, AUTHORITY_FORMERS };
/* One row, those columns: what is true then, which is something else where another rotation came
 * between. Old's key is forgotten. */
void db_authority_replace(struct db *db, const struct db_succession *s, db_cb *cb, void *arg);

#endif
