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

#define WORKSPACE "coalesce(w.name, 'workspace ' || x.workspace_id || ', deleted')"
#define USE_NAMES                                                                                  \
    "LEFT JOIN users u ON u.id = x.user_id LEFT JOIN workspaces w ON w.id = x.workspace_id "

/* clang-format off */
#define SUMS_BY(kind, key) "SELECT day, '" kind "', " key ", sum(seconds) FROM d GROUP BY 1, 3 UNION ALL "
/* What is alike is summed first: rows are many, and the rest is done with few. Sets of labels are
 * fewer still. */
static const char sums[] =
    "WITH d AS MATERIALIZED (SELECT day, username, resource_pool, " WORKSPACE " AS workspace, "
    "labels, seconds FROM (SELECT day, user_id, workspace_id, labels, resource_pool, "
    "sum(seconds) AS seconds FROM ("
    "SELECT day, user_id, workspace_id, labels, resource_pool, slot_seconds AS seconds "
    "FROM slot_use_days WHERE day >= $1::date AND day < $2::date "
    "UNION ALL SELECT d.day, user_id, workspace_id, labels, resource_pool, d.seconds * slots "
    "FROM slots_in_use, use_by_day(start_time, end_time, $1::date, $2::date) d) a "
    "GROUP BY 1, 2, 3, 4, 5) x " USE_NAMES "), "
    "l AS (SELECT s.labels, e.label FROM (SELECT DISTINCT labels FROM d) s, "
    "LATERAL (SELECT DISTINCT jsonb_array_elements_text(s.labels) AS label) e), "
    "k (day, kind, key, seconds) AS (" SUMS_BY("total", "''") SUMS_BY("username", "username")
    SUMS_BY("resource_pool", "resource_pool") SUMS_BY("workspace", "workspace")
    "SELECT d.day, 'experiment_label', l.label, sum(d.seconds) "
    "FROM d JOIN l ON l.labels = d.labels GROUP BY 1, 3) "
    "SELECT to_char(day, $3) AS period, kind, key, sum(seconds) FROM k "
    "GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT $4::bigint";
/* clang-format on */

void db_use_sums(struct db *db, const char *from, const char *until, bool by_month, int64_t max,
                 db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_str_arg(DB_ARGS, from), until);
    db_str_arg(a, by_month ? "YYYY-MM" : "YYYY-MM-DD");
    db_query_chart(db, sums, db_i64_arg(a, max), cb, arg);
}

/* As the index slot_uses_span has it: a clock that was set back may have ended a run too early.
 * That of the ends is of no use beside it (+ '0'): of most runs the end is later than what is asked
 * for. */
#define SPAN "tstzrange(least(start_time, end_time), greatest(start_time, end_time), '[]')"

void db_use_runs(struct db *db, int64_t after_us, int64_t before_us, int64_t max, db_cb *cb,
                 void *arg)
{
    static const char sql[] =
        "SELECT x.kind, api_time(start_time) AS \"startTime\", "
        "CASE WHEN NOT runs THEN api_time(end_time) END AS \"endTime?\", "
        "experiment_id AS \"experimentId\", u.username, x.user_id AS \"userId\", labels, "
        "greatest(0, extract(epoch FROM end_time - start_time)::float8) AS seconds, slots, "
        "allocation_id AS \"allocationId\", resource_pool AS \"resourcePool\", " WORKSPACE
        " AS \"workspaceName\" FROM (SELECT *, false AS runs FROM slot_uses WHERE " SPAN
        " && tstzrange($1::timestamptz, $2::timestamptz, '[]') "
        "UNION ALL SELECT * FROM slots_in_use) x " USE_NAMES
        "WHERE end_time + interval '0' > $1::timestamptz AND start_time < $2::timestamptz "
        "ORDER BY start_time, allocation_id LIMIT $3::bigint";
    db_query_chart(db, sql, db_i64_arg(db_time_arg(db_time_arg(DB_ARGS, after_us), before_us), max),
                   cb, arg);
}

void db_use_forget(struct db *db, int64_t days, db_cb *cb, void *arg)
{
    db_write(db,
             "DELETE FROM slot_uses WHERE allocation_id IN (SELECT allocation_id FROM slot_uses "
             "WHERE end_time < now() - make_interval(days => $1::integer) LIMIT 5000)",
             db_i64_arg(DB_ARGS, days), cb, arg);
}
