/* Turns a statement's result into a db_done_cb call. Private to db/. */
#ifndef DB_DB_CALL_H
#define DB_DB_CALL_H

#include "db.h"
#include "db_done.h"

/* Looks at a successful result: 0, or a code and text for the caller. NULL: success is enough. */
typedef int db_judge(const struct db_result *r, struct det_err *err);

void db_call_write(struct db *db, const char *sql, const struct db_args *args, db_judge *judge,
                   db_done_cb *cb, void *arg);
void db_call_commit(struct db_tx *tx, db_judge *judge, db_done_cb *cb, void *arg);
/* A judge: no row written means the fence did not hold. */
DET_MUST int db_judge_fence(const struct db_result *r, struct det_err *err);

#endif
