#include "db_left.h"

void db_left_look(struct db *db, const char *place, db_cb *cb, void *arg)
{
    db_write(db, "SELECT * FROM look_through($1)", db_str_arg(DB_ARGS, place), cb, arg);
}

void db_left_note(struct db *db, int64_t exp_id, const char *place, const char *found, bool done,
                  db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_i64_arg(DB_ARGS, exp_id), place);
    db_write(db, "SELECT note_left_behind($1::integer, $2, $3::jsonb, $4::boolean)",
             db_bool_arg(db_str_arg(a, found), done), cb, arg);
}

void db_left_list(struct db *db, const char *place, db_cb *cb, void *arg)
{
    db_query(db, "SELECT left_behind_doc($1)", db_str_arg(DB_ARGS, place), cb, arg);
}

void db_left_adopt(struct db *db, const struct db_adoption *in, db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, in->uuid), in->trial_id);
    db_write(db, "SELECT * FROM adopt_left_behind($1, $2::integer, $3::boolean, $4::bigint)",
             db_i64_arg(db_bool_arg(a, in->remove), in->rest_s), cb, arg);
}
