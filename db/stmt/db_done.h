/* The callback of the write functions: rc is 0 or DET_E*, err is never NULL. Runs once, from the
 * loop. */
#ifndef DB_DB_DONE_H
#define DB_DB_DONE_H

#include "det/err.h"

typedef void db_done_cb(void *arg, int rc, const struct det_err *err);

#endif
