/* Lists of experiments: what is counted already, what is found by an index, and the rest. */
#include "db_exp_cols.h"
#include "db_exp_read.h"
#include "mem.h"

#include <string.h>

/* $1 name, $2 description, $3 labels, $4 archived, $5 states, $6 users, $7 user ids, $8 project,
 * $9 id filter, $10 ids, $11 ids left out */
static struct db_args *filter_args(struct db_args *a, const struct db_exp_filter *f)
{
    db_str_arg(db_str_arg(db_str_arg(a, f->name), f->description), f->labels);
    if (f->archived < 0)
        db_null_arg(a);
    else
        db_bool_arg(a, f->archived);
    db_str_arg(db_str_arg(db_str_arg(a, f->states), f->users), f->user_ids);
    if (f->project_id)
        db_i64_arg(a, f->project_id);
    else
        db_null_arg(a);
    return db_str_arg(db_str_arg(db_str_arg(a, f->id_filter), f->ids), f->not_ids);
}

/* clang-format off */
#define IN_JSON(value, param)                                                                      \
    "to_jsonb(" value ") IN (SELECT jsonb_array_elements(" param "::jsonb))"
#define IN_ARCHIVED                                                                                \
    "e.project_id IN (SELECT p.id FROM projects p JOIN workspaces w ON w.id = p.workspace_id "     \
    "WHERE p.archived OR w.archived)"
#define WHERE_FILTER                                                                               \
    "WHERE ($1::text IS NULL OR lower(e.name) LIKE text_pattern($1)) "                             \
    "AND ($2::text IS NULL OR lower(e.description) LIKE text_pattern($2)) "                        \
    "AND ($3::jsonb IS NULL OR e.labels @> $3::jsonb) "                                            \
    "AND ($4::boolean IS NULL OR e.archived = $4::boolean AND "                                    \
    "($4::boolean OR $8::bigint IS NOT NULL OR NOT " IN_ARCHIVED ")) "                             \
    "AND ($5::jsonb IS NULL OR " IN_JSON("e.state", "$5") ") "                                     \
    "AND ($6::jsonb IS NULL OR e.owner_id IN (SELECT u.id FROM users u WHERE "                     \
    IN_JSON("u.username", "$6") ")) "                                                              \
    "AND ($7::jsonb IS NULL OR " IN_JSON("e.owner_id", "$7") ") "                                  \
    "AND ($8::bigint IS NULL OR e.project_id = $8::bigint) "                                       \
    "AND ($9::jsonb IS NULL OR (e.id < coalesce(($9::jsonb->>'lt')::bigint, 1::bigint << 40) "     \
    "AND e.id <= coalesce(($9::jsonb->>'lte')::bigint, 1::bigint << 40) "                          \
    "AND e.id > coalesce(($9::jsonb->>'gt')::bigint, -1) "                                         \
    "AND e.id >= coalesce(($9::jsonb->>'gte')::bigint, -1) "                                       \
    "AND (NOT $9::jsonb ? 'incl' OR " IN_JSON("e.id", "($9::jsonb->'incl')") ") "                  \
    "AND (NOT $9::jsonb ? 'notIn' OR NOT " IN_JSON("e.id", "($9::jsonb->'notIn')") "))) "          \
    "AND ($10::jsonb IS NULL OR " IN_JSON("e.id", "$10") ") "                                      \
    "AND ($11::jsonb IS NULL OR NOT " IN_JSON("e.id", "$11") ") "

/* Numbers of SORT_BY_* of GetExperiments. */
#define SORT_NUM                                                                                   \
    "CASE $12::integer WHEN 4 THEN extract(epoch FROM e.start_time) "                              \
    "WHEN 5 THEN extract(epoch FROM e.end_time) WHEN 8 THEN " SUM_OF("trials") " "                 \
    "WHEN 9 THEN e.progress WHEN 12 THEN e.parent_id WHEN 14 THEN e.project_id "                   \
    "WHEN 15 THEN " SUM_OF("bytes") " WHEN 16 THEN " SUM_OF("checkpoints") " "                     \
    "WHEN 17 THEN e.best_metric END::float8 num, "
#define SORT_TXT                                                                                   \
    "CASE $12::integer WHEN 2 THEN e.description WHEN 6 THEN e.state WHEN 10 THEN "             \
    "(SELECT u.username FROM users u WHERE u.id = e.owner_id) WHEN 11 THEN e.name WHEN 13 THEN e.resource_pool END txt "
/* clang-format on */

/* Lists filtered by what experiment_counts and the index experiments_listed hold need not count,
 * and read that index alone until they know their page where it has what they are sorted by. A
 * project that is there has its archived ones looked up, not joined. */
#define LISTED(from, of_state)                                                                     \
    "FROM " from " WHERE ($1::boolean IS NULL OR e.archived = $1::boolean AND "                    \
    "($1::boolean OR $4::bigint IS NOT NULL OR NOT " IN_ARCHIVED ")) "                             \
    "AND " of_state " AND ($3::jsonb IS NULL OR e.owner_id = ANY (ARRAY("                          \
    "SELECT x::integer FROM jsonb_array_elements_text($3::jsonb) x))) "                            \
    "AND ($7::jsonb IS NULL OR e.owner_id = ANY (ARRAY(SELECT id FROM users WHERE username IN "    \
    "(SELECT jsonb_array_elements_text($7::jsonb))))) "                                            \
    "AND ($4::bigint IS NULL OR e.project_id = $4::bigint) "
/* One state has an index of its own (experiments_state), in order of id. */
#define ONE_STATE "e.state = $2::jsonb->>0"
#define ANY_STATES                                                                                 \
    "($2::jsonb IS NULL OR e.state = ANY (ARRAY(SELECT jsonb_array_elements_text($2::jsonb))))"
/* The page's experiments: an array is expected to be short, whatever the planner thinks of where
 * its ids come from. */
#define ON_PAGE(ids)                                                                               \
    "unnest(ARRAY(" ids ")) WITH ORDINALITY x(id, rn) "                                            \
    "JOIN experiments e ON e.id = x.id " WITH_MEMBERS
/* clang-format off */
#define LISTED_BY(order, from, of_state)                                                           \
    "WITH n AS (SELECT coalesce(sum(e.n), 0)::bigint total "                                       \
    LISTED("experiment_counts e", of_state) ") " LISTED_PAGE(order, from, of_state, "")
#define LISTED_PAGE(order, from, of_state, where)                                                  \
    "SELECT n.total, page_start(n.total, $5::bigint), e.id, e.state, NULL::text, "                 \
    "$4::bigint IS NULL OR EXISTS (SELECT 1 FROM projects WHERE id = $4::bigint), "                \
    MEMBERS_IN_LIST "FROM n LEFT JOIN ("                                                           \
    ON_PAGE("SELECT e.id " LISTED(from, of_state) where "ORDER BY " order " "                      \
            "OFFSET (SELECT page_start(total, $5::bigint) FROM n) "                                \
            "LIMIT page_size($6::bigint, 100)") ") ON true ORDER BY x.rn"
/* Within bounds, and but for some: $8 the id filter. Of the ids within and those outside the fewer
 * are counted. */
#define WITHIN "AND e.id > (SELECT lo FROM b) AND e.id < (SELECT hi FROM b) "
#define IN_LEFT_OUT "e.id = ANY (ARRAY(SELECT jsonb_array_elements_text($8::jsonb->'notIn')::bigint)) "
#define COUNT_OF(which, of_state) "(SELECT count(*) " LISTED("experiments e", of_state) which ")"
#define BOUNDED_BY(order, of_state)                                                                \
    "WITH b AS (SELECT least(greatest(coalesce(greatest(($8::jsonb->>'gt')::numeric, "             \
    "($8::jsonb->>'gte')::numeric - 1), 0), 0), 1::bigint << 31)::bigint lo, "                     \
    "least(greatest(coalesce(least(($8::jsonb->>'lt')::numeric, ($8::jsonb->>'lte')::numeric + 1), " \
    "1::bigint << 31), 0), 1::bigint << 31)::bigint hi), "                                         \
    "n AS (SELECT (CASE WHEN 2 * (least(hi, (SELECT max(id) FROM experiments)) - lo) < "   \
    "(SELECT max(id) FROM experiments) THEN " COUNT_OF(WITHIN, of_state) " "                       \
    "ELSE (SELECT coalesce(sum(e.n), 0)::bigint " LISTED("experiment_counts e", of_state) ") - "   \
    COUNT_OF("AND e.id <= (SELECT lo FROM b)", of_state) " - "                                     \
    COUNT_OF("AND e.id >= (SELECT hi FROM b)", of_state) " END) - "                                \
    COUNT_OF(WITHIN "AND " IN_LEFT_OUT, of_state) " total FROM b) " LISTED_PAGE(                   \
        order, "experiments e", of_state, WITHIN "AND NOT " IN_LEFT_OUT)
/* Both directions: what has no value comes last, and ids break ties upwards. */
#define BY_JOINED(key, join)                                                                       \
    {LISTED_BY(key ", e.id", "experiments e " join, ANY_STATES),                                   \
     LISTED_BY(key " DESC NULLS LAST, e.id", "experiments e " join, ANY_STATES)}
/* clang-format on */
#define BY(key)     BY_JOINED(key, "")
#define BY_SUM(sum) BY_JOINED(SUM_OF(sum), WITH_SUMS)

/* By SORT_BY_*, upwards and downwards. */
static const char *const sorted_sql[][2] = {
    [2] = BY("e.description"),
    [4] = BY("e.start_time"),
    [5] = BY("e.end_time"),
    [6] = BY("e.state"),
    [8] = BY_SUM("trials"),
    [9] = BY("e.progress"),
    [10] = BY_JOINED("u.username", "JOIN users u ON u.id = e.owner_id "),
    [11] = BY("e.name"),
    [12] = BY("e.parent_id"),
    [13] = BY("e.resource_pool"),
    [14] = BY("e.project_id"),
    [15] = BY_SUM("bytes"),
    [16] = BY_SUM("checkpoints"),
    [17] = BY("e.best_metric"),
};
static const char *const by_id_sql[][2] = {
    {LISTED_BY("e.id", "experiments e", ANY_STATES),
     LISTED_BY("e.id DESC", "experiments e", ANY_STATES)},
    {LISTED_BY("e.id", "experiments e", ONE_STATE),
     LISTED_BY("e.id DESC", "experiments e", ONE_STATE)},
};

static const char *const bounded_sql[] = {BOUNDED_BY("e.id", ANY_STATES),
                                          BOUNDED_BY("e.id DESC", ANY_STATES)};

/* Whether what is looked for are states, owners and places. */
static bool is_counted(const struct db_exp_filter *f)
{
    return !f->name && !f->description && !f->labels && !f->ids && !f->not_ids;
}

static bool is_included(const struct db_exp_filter *f)
{
    return f->id_filter && strstr(f->id_filter, "\"incl\"");
}

static const char *counted_sql(const struct db_exp_filter *f, const struct db_page *p)
{
    bool is_one = f->states && !strchr(f->states, ',');
    size_t sort = (size_t)p->sort;
    const char *sorted = sort < DET_ARRAY_LEN(sorted_sql) ? sorted_sql[sort][p->desc] : NULL;
    return sorted ? sorted : by_id_sql[is_one][p->desc];
}

/* Of an experiment's trials a list shows no more than which is the best. */
#define LIST_RESTS DB_RESTS_VALIDATIONS

static void list_counted(struct db *db, const struct db_exp_filter *f, const struct db_page *p,
                         db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    if (f->archived < 0)
        db_null_arg(a);
    else
        db_bool_arg(a, f->archived);
    db_str_arg(db_str_arg(a, f->states), f->user_ids);
    if (f->project_id)
        db_i64_arg(a, f->project_id);
    else
        db_null_arg(a);
    db_str_arg(db_i64_arg(db_i64_arg(a, p->offset), p->limit), f->users);
    if (f->id_filter)
        db_query_lasting(db, LIST_RESTS, bounded_sql[p->desc], db_str_arg(a, f->id_filter), cb,
                         arg);
    else
        db_query_lasting(db, LIST_RESTS, counted_sql(f, p), a, cb, arg);
}

/* clang-format off */
/* The others look for what matches in the way that finds fewest, and count that. By id nothing else
 * is needed of it; $12 is the sort, which tells that this is so. */
#define FOUND_BY(sort, from, where)                                                                \
    "WITH f AS MATERIALIZED (SELECT e.id, " sort "FROM experiments e " from WHERE_FILTER where "), " \
    "n AS (SELECT count(*) total FROM f) SELECT n.total, page_start(n.total, $14::bigint), e.id, " \
    "e.state, NULL::text, $8::bigint IS NULL OR EXISTS (SELECT 1 FROM projects WHERE id = $8::bigint), " \
    MEMBERS_IN_LIST "FROM n LEFT JOIN ("                                                           \
    ON_PAGE("SELECT f.id FROM f ORDER BY " DB_LIST_ORDER("f.id", "$13") " "                        \
            "OFFSET (SELECT page_start(total, $14::bigint) FROM n) "                               \
            "LIMIT page_size($15::bigint, 100)") ") ON true ORDER BY x.rn"
#define BY_ID "CASE WHEN $12::integer < 2 THEN e.id END num, NULL::text txt "
#define FOUND(where) {FOUND_BY(BY_ID, "", where), FOUND_BY(SORT_NUM SORT_TXT, WITH_SUMS, where)}
#define HAS_TEXT(column, param) "AND lower(e." column ") LIKE text_pattern(" param ") "
enum { FIND_ALL, FIND_NAMED, FIND_DESCRIBED, FIND_LABELED, FIND_IDS, FIND_INCLUDED };
static const char *const found_sql[][2] = { /* by id, by something else */
    [FIND_ALL] = FOUND(""),
    [FIND_NAMED] = FOUND(HAS_TEXT("name", "$1")),
    [FIND_DESCRIBED] = FOUND(HAS_TEXT("description", "$2")),
    [FIND_LABELED] = FOUND("AND e.labels @> $3::jsonb "),
    [FIND_IDS] = FOUND("AND e.id = ANY (ARRAY(SELECT jsonb_array_elements_text($10::jsonb)::bigint)) "),
    [FIND_INCLUDED] = FOUND("AND e.id = ANY (ARRAY(SELECT "
                            "jsonb_array_elements_text($9::jsonb->'incl')::bigint)) "),
};
/* clang-format on */

static const char *find_sql(const struct db_exp_filter *f, const struct db_page *p)
{
    return found_sql[f->ids           ? FIND_IDS
                     : is_included(f) ? FIND_INCLUDED
                     : f->name        ? FIND_NAMED
                     : f->labels      ? FIND_LABELED
                     : f->description ? FIND_DESCRIBED
                                      : FIND_ALL][p->sort > 1];
}

void db_exp_list(struct db *db, const struct db_exp_filter *f, const struct db_page *p, db_cb *cb,
                 void *arg)
{
    if (is_counted(f) && (!f->id_filter || (p->sort <= 1 && !is_included(f))))
        list_counted(db, f, p, cb, arg);
    else
        db_query_lasting(db, LIST_RESTS, find_sql(f, p), db_page_arg(filter_args(DB_ARGS, f), p),
                         cb, arg);
}

void db_exp_find(struct db *db, const struct db_exp_filter *f, db_cb *cb, void *arg)
{
    db_query(db, "SELECT e.id, e.state FROM experiments e " WHERE_FILTER "ORDER BY e.id",
             filter_args(DB_ARGS, f), cb, arg);
}
