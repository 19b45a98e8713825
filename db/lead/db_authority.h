/* The certificate authority of the cluster's own, kept where all its masters find it. */
#ifndef DB_DB_AUTHORITY_H
#define DB_DB_AUTHORITY_H

#include "buf.h"
#include "det/err.h"

/* Blocking, on a connection of its own, after db_migrate(). Appends the PEM texts of the
 * certificate and its key; both empty: there is none yet. */
DET_MUST int db_authority_read(const char *conninfo, struct buf *cert, struct buf *key,
                               struct det_err *err);
/* Keeps this one unless there is one by now: read it again. */
DET_MUST int db_authority_keep(const char *conninfo, const char *cert, const char *key,
                               struct det_err *err);

#endif
