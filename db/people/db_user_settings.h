/* What the web page keeps for a user: values by storage path and key. */
#ifndef DB_DB_USER_SETTINGS_H
#define DB_DB_USER_SETTINGS_H

#include "db.h"
#include "db_done.h"

/* {"settings": [user.v1.UserWebSetting]}. */
void db_user_settings_read(struct db *db, int64_t user_id, db_cb *cb, void *arg);
/* list: a JSON array of {"key", "storagePath", "value"}, each pair of the first two once. */
void db_user_settings_write(struct db *db, int64_t user_id, const char *list, db_done_cb *cb,
                            void *arg);
void db_user_settings_reset(struct db *db, int64_t user_id, db_done_cb *cb, void *arg);

#endif
