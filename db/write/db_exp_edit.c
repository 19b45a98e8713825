#include "db_exp_edit.h"

#include "db_sql.h"

void db_exp_edit(struct db *db, int64_t id, const struct db_exp_edit *e, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_i64_arg(a, id), e->name), e->description);
    db_str_arg(db_str_arg(db_str_arg(db_str_arg(a, e->notes), e->labels), e->storage),
               e->resources);
    db_write(db, sql_exp_edit, a, cb, arg);
}

void db_exp_archive(struct db *db, int64_t id, bool archive, db_cb *cb, void *arg)
{
    db_write(db,
             "WITH old AS (SELECT id, state, archived FROM experiments WHERE id = $1::bigint FOR "
             "UPDATE), "
             "up AS (UPDATE experiments e SET archived = $2::boolean FROM old WHERE e.id = old.id "
             "AND has_ended(old.state)) SELECT state, archived FROM old",
             db_bool_arg(db_i64_arg(DB_ARGS, id), archive), cb, arg);
}

void db_exp_label(struct db *db, int64_t id, const char *label, bool add, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_bool_arg(db_str_arg(db_i64_arg(a, id), label), add);
    db_write(db,
             "UPDATE experiments SET labels = CASE WHEN $3::boolean THEN "
             "(labels - $2::text) || to_jsonb($2::text) ELSE labels - $2::text END, "
             "config = jsonb_set(config, '{labels}', CASE WHEN $3::boolean THEN "
             "(labels - $2::text) || to_jsonb($2::text) ELSE labels - $2::text END) "
             "WHERE id = $1::bigint RETURNING jsonb_build_object('labels', labels)",
             a, cb, arg);
}
