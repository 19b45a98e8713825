/* What starting a task reads. */
#ifndef DB_DB_TASKS_H
#define DB_DB_TASKS_H

#include "db.h"

enum db_task_col { TASK_UID, TASK_GID, TASK_USER, TASK_CONTEXT };
/* One row: the owner's account on the hosts (nulls: none), and the experiment's model definition as
 * base64 when it is at most 64 KiB (else null). */
void db_task_start_row(struct db *db, int64_t exp_id, int64_t owner_id, db_cb *cb, void *arg);

#endif
