/* Functions, views and triggers of the database: laid from db/functions where they differ from what
 * the table functions_laid says is there. Blocking. Private to db/. */
#ifndef DB_DB_OBJECTS_H
#define DB_DB_OBJECTS_H

#include "det/err.h"
#include <stdbool.h>

#include <libpq-fe.h>

/* DET_ESTATE where a newer program has laid its own. ret: there is something to lay. Makes the
 * table where there is none. */
DET_MUST int db_objects_look(PGconn *pg, bool *ret, struct det_err *err);
/* In the caller's transaction: makes what is new or has changed, drops what is gone. DET_ESTATE
 * where a stored value was computed by a function that has changed. */
DET_MUST int db_objects_lay(PGconn *pg, struct det_err *err);
/* Why a statement failed: DET_ETIMEOUT where others held a lock for longer than lock_timeout, or
 * waited for one of this transaction's at once, else DET_EIO. */
int db_objects_code(const PGresult *failed);

#endif
