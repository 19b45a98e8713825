/* Tasks, allocations and users as the API shows them. */
#ifndef DB_DB_TASK_READ_H
#define DB_DB_TASK_READ_H

#include "db_list.h"

/* {"task"}, null when there is no such task; whether all of it has ended; its trial (null: none).
 */
enum db_task_read_col { TASK_READ_DOC, TASK_READ_ENDED, TASK_READ_TRIAL };
void db_task_read(struct db *db, const char *task_id, db_cb *cb, void *arg);
/* {"allocation"}. */
void db_allocation_read(struct db *db, const char *alloc_id, db_cb *cb, void *arg);
/* {"acceleratorData"}. */
void db_accelerators_read(struct db *db, const char *task_id, db_cb *cb, void *arg);

struct db_user_filter {
    const char *name;  /* substring of the user's or display name, or NULL */
    int active, admin; /* 0, 1, -1: both */
};
/* enum db_list_col (state empty; doc user.v1.User). */
void db_user_list(struct db *db, const struct db_user_filter *f, const struct db_page *p, db_cb *cb,
                  void *arg);

#endif
