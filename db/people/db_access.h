/* What rules about people ask: of each subject who owns it and where it is. */
#ifndef DB_DB_ACCESS_H
#define DB_DB_ACCESS_H

#include "db.h"

enum db_access_kind {
    ACCESS_EXP,
    ACCESS_TRIAL,
    ACCESS_CKPT,
    ACCESS_JOB,
    ACCESS_TASK,
    ACCESS_ALLOC,
    ACCESS_WORKSPACE,
    ACCESS_PROJECT,
    ACCESS_TEMPLATE,
    ACCESS_MODEL,
    ACCESS_USER,
    ACCESS_VIEW, /* those that the user who asks may see */
    ACCESS_TOKEN,
    ACCESS_KINDS
};
/* One row for each of ids (a JSON array of strings) that is there, as often as it is named. Null is
 * no owner, no workspace. */
enum db_access_col {
    ACCESS_ID,
    ACCESS_OWNER,
    ACCESS_OWNER_NAME,
    ACCESS_HOST,
    ACCESS_PLACE,
    ACCESS_ROLES /* of the user who asks, there and in the whole cluster: bits 1 << id */
};
void db_access(struct db *db, enum db_access_kind kind, int64_t user_id, const char *ids, db_cb *cb,
               void *arg);

#endif
