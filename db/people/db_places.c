#include "db_places.h"

#include "db_sql.h"

/* $1 name, $2 exact name, $3 archived, $4 users, $5 user ids, $6 workspace, $7.. page */
static struct db_args *filter_args(struct db_args *a, const struct db_place_filter *f,
                                   const struct db_page *p)
{
    db_str_arg(db_str_arg(a, f->name), f->exact_name);
    if (f->archived < 0)
        db_null_arg(a);
    else
        db_bool_arg(a, f->archived);
    db_i64_arg(db_str_arg(db_str_arg(a, f->users), f->user_ids), f->workspace_id);
    return db_page_arg(a, p);
}

#define WHERE_NAMED(x)                                                                             \
    "WHERE ($1::text IS NULL OR lower(" x ".name) = lower($1)) "                                   \
    "AND ($2::text IS NULL OR " x ".name = $2) "                                                   \
    "AND ($4::jsonb IS NULL OR to_jsonb(u.username) IN (SELECT jsonb_array_elements($4::jsonb))) " \
    "AND ($5::jsonb IS NULL OR to_jsonb(u.id) IN (SELECT jsonb_array_elements($5::jsonb))) "

void db_workspace_list(struct db *db, const struct db_place_filter *f, const struct db_page *p,
                       db_cb *cb, void *arg)
{
    db_query(db,
             "WITH f AS (SELECT w.id, '' AS state, w.id::float8 * ($7::integer <> 2)::integer num, "
             "CASE $7::integer WHEN 2 THEN w.name END txt "
             "FROM workspaces w JOIN users u ON u.id = w.user_id " WHERE_NAMED(
                 "w") "AND ($3::boolean IS NULL OR w.archived = $3::boolean) AND $6::bigint = "
                      "0)" DB_LIST_TAIL(DB_LIST_ORDER("id", "$8"), "$9", "$10", "NULL",
                                        "(SELECT workspace_doc(w) FROM workspaces w WHERE w.id = "
                                        "page.id)"),
             filter_args(DB_ARGS, f, p), cb, arg);
}

/* Numbers of SORT_BY_* of GetWorkspaceProjects. */
#define PROJECT_SORT                                                                               \
    "CASE $7::integer WHEN 1 THEN extract(epoch FROM p.created_at) "                               \
    "WHEN 2 THEN (SELECT extract(epoch FROM max(e.start_time)) FROM experiments e "                \
    "WHERE e.project_id = p.id) WHEN 3 THEN NULL WHEN 4 THEN NULL ELSE p.id END::float8 num, "     \
    "CASE $7::integer WHEN 3 THEN p.name WHEN 4 THEN p.description END txt "

void db_project_list(struct db *db, const struct db_place_filter *f, const struct db_page *p,
                     db_cb *cb, void *arg)
{
    db_query(db,
             "WITH f AS (SELECT p.id, '' AS state, " PROJECT_SORT
             "FROM projects p JOIN workspaces w ON w.id = p.workspace_id "
             "JOIN users u ON u.id = p.user_id " WHERE_NAMED(
                 "p") "AND ($3::boolean IS NULL OR (p.archived OR w.archived) = $3::boolean) "
                      "AND ($6::bigint = 0 OR p.workspace_id = $6::bigint))" DB_LIST_TAIL(
                          DB_LIST_ORDER("id", "$8"), "$9", "$10", "NULL",
                          "(SELECT project_doc(p) FROM projects p WHERE p.id = page.id)"),
             filter_args(DB_ARGS, f, p), cb, arg);
}

void db_workspace_find(struct db *db, const char *name, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT w.id, w.archived, w.name FROM workspaces w WHERE ($1::text IS NULL OR "
             "lower(w.name) = lower($1)) AND ($2::bigint = 0 OR w.id = $2::bigint)",
             db_i64_arg(db_str_arg(DB_ARGS, name), id), cb, arg);
}

void db_workspace_read(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('workspace', workspace_doc(w)) FROM workspaces w "
             "WHERE w.id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_project_read(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('project', project_doc(p)) FROM projects p "
             "WHERE p.id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_workspace_create(struct db *db, const char *name, int64_t user_id, db_cb *cb, void *arg)
{
    db_write(db,
             "INSERT INTO workspaces AS w (name, user_id) VALUES ($1, $2::integer) "
             "RETURNING jsonb_build_object('workspace', workspace_doc(w))",
             db_i64_arg(db_str_arg(DB_ARGS, name), user_id), cb, arg);
}

void db_project_create(struct db *db, int64_t workspace_id, const char *name,
                       const char *description, int64_t user_id, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_i64_arg(a, workspace_id), name), description);
    db_write(db,
             "INSERT INTO projects AS p (workspace_id, name, description, user_id) "
             "SELECT w.id, $2, $3, $4::integer FROM workspaces w "
             "WHERE w.id = $1::bigint AND w.id <> 1 AND NOT w.archived "
             "RETURNING jsonb_build_object('project', project_doc(p))",
             db_i64_arg(a, user_id), cb, arg);
}

void db_workspace_edit(struct db *db, int64_t id, const char *name, db_cb *cb, void *arg)
{
    db_write(db, sql_workspace_edit, db_str_arg(db_i64_arg(DB_ARGS, id), name), cb, arg);
}

void db_project_edit(struct db *db, int64_t id, const char *name, const char *description,
                     db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_i64_arg(DB_ARGS, id), name);
    db_write(db, sql_project_edit, db_str_arg(a, description), cb, arg);
}

void db_workspace_delete(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_write(db, sql_workspace_delete, db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_project_delete(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_write(db, sql_project_delete, db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_workspace_archive(struct db *db, int64_t id, bool archived, db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE workspaces SET archived = $2::boolean WHERE id = $1::bigint AND id <> 1 "
             "RETURNING id",
             db_bool_arg(db_i64_arg(DB_ARGS, id), archived), cb, arg);
}

void db_project_archive(struct db *db, int64_t id, bool archived, db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE projects SET archived = $2::boolean WHERE id = $1::bigint AND id <> 1 "
             "RETURNING id",
             db_bool_arg(db_i64_arg(DB_ARGS, id), archived), cb, arg);
}

void db_exp_move(struct db *db, int64_t exp_id, int64_t project_id, db_cb *cb, void *arg)
{
    db_write(db, sql_exp_move, db_i64_arg(db_i64_arg(DB_ARGS, exp_id), project_id), cb, arg);
}
