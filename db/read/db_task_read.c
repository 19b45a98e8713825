#include "db_task_read.h"

void db_task_read(struct db *db, const char *task_id, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT CASE WHEN d IS NOT NULL THEN jsonb_build_object('task', d) END, d ? 'endTime', "
        "(SELECT id FROM trials WHERE task_id = $1) FROM task_doc($1) d",
        db_str_arg(DB_ARGS, task_id), cb, arg);
}

void db_allocation_read(struct db *db, const char *alloc_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('allocation', allocation_doc(a)) FROM allocations a WHERE "
             "id = $1",
             db_str_arg(DB_ARGS, alloc_id), cb, arg);
}

void db_accelerators_read(struct db *db, const char *task_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('acceleratorData', coalesce(jsonb_agg(jsonb_build_object("
             "'containerId', container_id, 'allocationId', allocation_id, 'nodeName', node_name, "
             "'taskId', task_id, 'acceleratorType', accelerator_type, 'acceleratorUuids', "
             "accelerator_uuids) ORDER BY allocation_id, container_id), '[]')) "
             "FROM accelerators WHERE task_id = $1",
             db_str_arg(DB_ARGS, task_id), cb, arg);
}

static void flag_arg(struct db_args *a, int flag)
{
    if (flag < 0)
        db_null_arg(a);
    else
        db_bool_arg(a, flag);
}

/* Numbers of SORT_BY_* of GetUsers. */
#define SORT                                                                                       \
    "CASE $4::integer WHEN 3 THEN u.admin::integer WHEN 4 THEN u.active::integer "                 \
    "WHEN 5 THEN extract(epoch FROM u.modified_at) WHEN 7 THEN extract(epoch FROM "                \
    "u.last_auth_at) "                                                                             \
    "WHEN 8 THEN u.remote::integer WHEN 0 THEN u.id END::float8 num, "                             \
    "CASE $4::integer WHEN 1 THEN u.display_name WHEN 2 THEN u.username "                          \
    "WHEN 6 THEN coalesce(nullif(u.display_name, ''), u.username) END txt "

void db_user_list(struct db *db, const struct db_user_filter *f, const struct db_page *p, db_cb *cb,
                  void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(a, f->name);
    flag_arg(a, f->active);
    flag_arg(a, f->admin);
    db_page_arg(a, p);
    db_query(db,
             "WITH f AS (SELECT u.id, '' AS state, " SORT "FROM users u "
             "WHERE ($1::text IS NULL OR position(lower($1) IN lower(u.username)) > 0 "
             "OR position(lower($1) IN lower(u.display_name)) > 0) "
             "AND ($2::boolean IS NULL OR u.active = $2::boolean) "
             "AND ($3::boolean IS NULL OR u.admin = $3::boolean))" DB_LIST_TAIL(
                 DB_LIST_ORDER("id", "$5"), "$6", "$7", "NULL",
                 "(SELECT user_doc(u) FROM users u WHERE u.id = page.id)"),
             a, cb, arg);
}
