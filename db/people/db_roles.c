#include "db_roles.h"

#include "db_sql.h"

void db_group_edit(struct db *db, const struct db_group_edit *g, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    if (g->id)
        db_i64_arg(a, g->id);
    else
        db_null_arg(a);
    db_str_arg(db_str_arg(db_str_arg(a, g->name), g->add), g->remove);
    db_write(db, "SELECT group_edit($1::integer, $2, $3::jsonb, $4::jsonb)", a, cb, arg);
}

void db_group_read(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT jsonb_build_object('group', group_doc(g)) FROM groups g WHERE g.id = $1::bigint",
        db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_group_delete(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_write(db, "DELETE FROM groups WHERE id = $1::bigint RETURNING id", db_i64_arg(DB_ARGS, id),
             cb, arg);
}

void db_group_list(struct db *db, const char *name, int64_t user_id, const struct db_page *p,
                   db_cb *cb, void *arg)
{
    db_query(db,
             "WITH f AS (SELECT g.id, '' AS state, g.id::float8 num, NULL::text txt FROM groups g "
             "WHERE ($1::text IS NULL OR lower(g.name) = lower($1)) AND $3::integer >= 0 "
             "AND ($2::bigint = 0 OR EXISTS (SELECT FROM group_members m WHERE m.group_id = g.id "
             "AND m.user_id = $2::bigint)))" DB_LIST_TAIL(
                 DB_LIST_ORDER("id", "$4"), "$5", "$6", "NULL",
                 "(SELECT jsonb_build_object('group', jsonb_build_object('groupId', g.id, 'name', "
                 "g.name), 'numMembers', (SELECT count(*) FROM group_members m WHERE m.group_id = "
                 "g.id)) FROM groups g WHERE g.id = page.id)"),
             db_page_arg(db_i64_arg(db_str_arg(DB_ARGS, name), user_id), p), cb, arg);
}

void db_groups_assign(struct db *db, const char *users, const char *add, const char *remove,
                      db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_str_arg(db_str_arg(DB_ARGS, users), add), remove);
    db_write(
        db,
        "WITH u AS (SELECT v::integer id FROM jsonb_array_elements_text($1::jsonb) v), "
        "gone AS (DELETE FROM group_members m USING u WHERE m.user_id = u.id AND m.group_id IN "
        "(SELECT v::integer FROM jsonb_array_elements_text($3::jsonb) v)) "
        "INSERT INTO group_members SELECT g::integer, u.id FROM u, "
        "jsonb_array_elements_text($2::jsonb) g ON CONFLICT DO NOTHING",
        a, cb, arg);
}

void db_roles_add(struct db *db, const char *list, db_cb *cb, void *arg)
{
    db_write(db,
             "INSERT INTO role_assignments (role_id, user_id, group_id, workspace_id) "
             "SELECT x.\"role\", x.\"user\", x.\"group\", x.workspace FROM "
             "jsonb_to_recordset($1::jsonb) x(\"role\" integer, \"user\" integer, \"group\" "
             "integer, workspace integer) ON CONFLICT DO NOTHING",
             db_str_arg(DB_ARGS, list), cb, arg);
}

void db_roles_remove(struct db *db, const char *list, db_cb *cb, void *arg)
{
    db_write(db, "SELECT roles_remove($1::jsonb)", db_str_arg(DB_ARGS, list), cb, arg);
}

void db_roles_list(struct db *db, const struct db_role_filter *f, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_i64_arg(db_i64_arg(db_i64_arg(a, f->role_id), f->user_id), f->group_id);
    db_query(db, sql_roles_list, a, cb, arg);
}

void db_roles_of_place(struct db *db, int64_t workspace_id, const char *name, db_cb *cb, void *arg)
{
    db_query(db, sql_roles_of_place, db_str_arg(db_i64_arg(DB_ARGS, workspace_id), name), cb, arg);
}
