#include "db_log_read.h"

/* $1 task, $2 is $12 a regular expression, $3 allocations, $4 agents, $5 containers, $6 stdtypes,
 * $7 sources, $8 ranks, $9 levels, $10 before, $11 after, $12 text, $13 beyond, $14 at most */
static struct db_args *log_args(struct db_args *a, const struct db_log_filter *f, int64_t beyond,
                                int64_t n)
{
    db_bool_arg(db_str_arg(a, f->task_id), f->is_regex);
    db_str_arg(db_str_arg(db_str_arg(a, f->allocation_ids), f->agent_ids), f->container_ids);
    db_str_arg(db_str_arg(db_str_arg(a, f->stdtypes), f->sources), f->rank_ids);
    db_time_arg(db_time_arg(db_str_arg(a, f->levels), f->before_us), f->after_us);
    return db_i64_arg(db_i64_arg(db_str_arg(a, f->search), beyond), n);
}

/* clang-format off */
#define IN_JSON(value, param)                                                                      \
    "(" param "::jsonb IS NULL OR to_jsonb(" value ") "                                            \
    "IN (SELECT jsonb_array_elements(" param "::jsonb))) "
#define LOG_WHERE                                                                                  \
    "SELECT l.id, (extract(epoch FROM l.time) * 1000000)::bigint, l.level, l.rank_id, l.task_id, " \
    "l.allocation_id, l.agent_id, l.container_id, l.stdtype, l.source, l.log "                     \
    "FROM task_logs l WHERE l.task_id = $1 "                                                       \
    "AND " IN_JSON("l.allocation_id", "$3") "AND " IN_JSON("l.agent_id", "$4")                     \
    "AND " IN_JSON("l.container_id", "$5") "AND " IN_JSON("l.stdtype", "$6")                       \
    "AND " IN_JSON("l.source", "$7") "AND " IN_JSON("coalesce(l.rank_id, -1)", "$8")               \
    "AND " IN_JSON("coalesce(l.level, 0::smallint)", "$9")                                         \
    "AND ($10::timestamptz IS NULL OR l.time <= $10::timestamptz) "                                \
    "AND ($11::timestamptz IS NULL OR l.time > $11::timestamptz) "                                 \
    "AND ($12::text IS NULL OR CASE WHEN $2::boolean THEN l.log ~ $12 "                            \
    "ELSE position($12 IN l.log) > 0 END) "
/* clang-format on */

/* What the times say of where reading begins: past lines that need no look. */
#define UP(beyond)   "AND l.id > " beyond " ORDER BY l.id LIMIT $14::bigint"
#define DOWN(bounds) "AND " bounds " ORDER BY l.id DESC LIMIT $14::bigint"

static const char *log_sql(const struct db_log_filter *f)
{
    if (f->desc)
        return f->before_us
                   ? LOG_WHERE DOWN("l.id <= (SELECT log_upto($1, $10::timestamptz, $13::bigint))")
                   : LOG_WHERE DOWN("l.id < coalesce(nullif($13::bigint, 0), 9223372036854775807)");
    return f->after_us ? LOG_WHERE UP("(SELECT log_since($1, $11::timestamptz, $13::bigint))")
                       : LOG_WHERE UP("$13::bigint");
}

void db_log_read(struct db *db, const struct db_log_filter *f, int64_t beyond, int64_t n, db_cb *cb,
                 void *arg)
{
    const char *sql = log_sql(f);
    if (f->search)
        db_query_search(db, sql, log_args(DB_ARGS, f, beyond, n), cb, arg);
    else
        db_query(db, sql, log_args(DB_ARGS, f, beyond, n), cb, arg);
}

void db_log_regex_check(struct db *db, const char *regex, db_cb *cb, void *arg)
{
    db_query_search(db, "SELECT '' ~ $1", db_str_arg(DB_ARGS, regex), cb, arg);
}

/* clang-format off */
#define FIELD(name, column)                                                                        \
    "'" name "', coalesce(jsonb_agg(DISTINCT " column ") "                                         \
    "FILTER (WHERE " column " IS NOT NULL), '[]')"
/* clang-format on */

/* Which there are together first: those are few, and only they are sorted. */
/* clang-format off */
static const char fields_sql[] =
    "WITH kinds AS MATERIALIZED (SELECT agent_id, container_id, rank_id, stdtype, source, "
    "CASE WHEN NOT $2::boolean THEN allocation_id END allocation_id "
    "FROM task_logs WHERE task_id = $1 GROUP BY 1, 2, 3, 4, 5, 6) "
    "SELECT jsonb_build_object(" FIELD("agentIds", "agent_id") ", "
    FIELD("containerIds", "container_id") ", " FIELD("rankIds", "rank_id") ", "
    FIELD("stdtypes", "stdtype") ", " FIELD("sources", "source") ") || "
    "CASE WHEN $2::boolean THEN '{}' ELSE jsonb_build_object("
    FIELD("allocationIds", "allocation_id") ") END FROM kinds";
/* clang-format on */

void db_log_fields(struct db *db, const char *task_id, bool without_allocations, db_cb *cb,
                   void *arg)
{
    db_query(db, fields_sql, db_bool_arg(db_str_arg(DB_ARGS, task_id), without_allocations), cb,
             arg);
}
