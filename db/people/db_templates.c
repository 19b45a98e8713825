#include "db_templates.h"

void db_template_list(struct db *db, const char *name, const struct db_page *p, db_cb *cb,
                      void *arg)
{
    db_query(db,
             "WITH f AS (SELECT t.name id, '' AS state, NULL::float8 num, t.name txt "
             "FROM templates t WHERE $2::integer >= 0 AND "
             "($1::text IS NULL OR position(lower($1) IN lower(t.name)) > 0))" DB_LIST_TAIL(
                 DB_LIST_ORDER("id", "$3"), "$4", "$5", "100",
                 "(SELECT template_doc(t) FROM templates t WHERE t.name = page.id)"),
             db_page_arg(db_str_arg(DB_ARGS, name), p), cb, arg);
}

void db_template_read(struct db *db, const char *name, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('template', template_doc(t)), t.config FROM templates t "
             "WHERE t.name = $1",
             db_str_arg(DB_ARGS, name), cb, arg);
}

void db_template_write(struct db *db, enum db_template_how how, const char *name,
                       const char *config, const struct db_template_origin *o, db_cb *cb, void *arg)
{
    static const char *const sql[] = {
        [TEMPLATE_NEW] =
            "INSERT INTO templates AS t (name, config, workspace_id, user_id) VALUES ($1, "
            "$2::jsonb, CASE $3::integer WHEN 0 THEN 1 ELSE $3::integer END, "
            "$4::integer) "
            "ON CONFLICT DO NOTHING "
            "RETURNING jsonb_build_object('template', template_doc(t))",
        [TEMPLATE_PUT] =
            "INSERT INTO templates AS t (name, config, workspace_id, user_id) VALUES ($1, "
            "$2::jsonb, CASE $3::integer WHEN 0 THEN 1 ELSE $3::integer END, "
            "$4::integer) "
            "ON CONFLICT (name) DO UPDATE SET config = excluded.config "
            "RETURNING jsonb_build_object('template', template_doc(t))",
        [TEMPLATE_CHANGE] = "UPDATE templates t SET config = $2::jsonb WHERE name = $1 AND "
                            "$3::integer >= 0 AND $4::integer > 0 "
                            "RETURNING jsonb_build_object('template', template_doc(t))",
    };
    struct db_args *a = DB_ARGS;
    db_i64_arg(db_i64_arg(db_str_arg(db_str_arg(a, name), config), o->workspace_id), o->user_id);
    db_write(db, sql[how], a, cb, arg);
}

void db_template_delete(struct db *db, const char *name, db_cb *cb, void *arg)
{
    db_write(db, "DELETE FROM templates WHERE name = $1 RETURNING name", db_str_arg(DB_ARGS, name),
             cb, arg);
}
