#include "db_user_settings.h"

#include "db_call.h"

void db_user_settings_read(struct db *db, int64_t user_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('settings', coalesce(jsonb_agg(jsonb_build_object("
             "'key', key, 'storagePath', storage_path, 'value', value) ORDER BY storage_path, "
             "key), '[]')) FROM user_settings WHERE user_id = $1::bigint",
             db_i64_arg(DB_ARGS, user_id), cb, arg);
}

void db_user_settings_write(struct db *db, int64_t user_id, const char *list, db_done_cb *cb,
                            void *arg)
{
    db_call_write(db,
                  "INSERT INTO user_settings (user_id, storage_path, key, value) "
                  "SELECT $1::integer, x->>'storagePath', x->>'key', x->>'value' "
                  "FROM jsonb_array_elements($2::jsonb) x "
                  "ON CONFLICT (user_id, storage_path, key) DO UPDATE SET value = excluded.value",
                  db_str_arg(db_i64_arg(DB_ARGS, user_id), list), NULL, cb, arg);
}

void db_user_settings_reset(struct db *db, int64_t user_id, db_done_cb *cb, void *arg)
{
    db_call_write(db, "DELETE FROM user_settings WHERE user_id = $1::bigint",
                  db_i64_arg(DB_ARGS, user_id), NULL, cb, arg);
}
