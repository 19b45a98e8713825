#include "db_views.h"

#define SEEN "(v.user_id = $1::integer OR v.workspace_id IS NOT NULL) "
#define DOC                                                                                        \
    "jsonb_build_object('id', v.id, 'name', v.name, 'address', v.address, 'userId', v.user_id, "   \
    "'username', (SELECT u.username FROM users u WHERE u.id = v.user_id), "                        \
    "'workspaceId', coalesce(v.workspace_id, 0), 'workspaceName', coalesce("                       \
    "(SELECT w.name FROM workspaces w WHERE w.id = v.workspace_id), ''))"
#define ANSWER "jsonb_build_object('view', " DOC ") "

void db_view_list(struct db *db, int64_t user_id, const char *name, const struct db_page *p,
                  db_cb *cb, void *arg)
{
    db_query(db,
             "WITH f AS (SELECT v.id, '' AS state, (v.user_id <> $1::integer)::int::float8 num, "
             "lower(v.name) txt FROM page_views v WHERE " SEEN "AND $3::integer >= 0 AND "
             "($2::text IS NULL OR position(lower($2) IN lower(v.name)) > 0))" DB_LIST_TAIL(
                 DB_LIST_ORDER("id", "$4"), "$5", "$6", "100",
                 "(SELECT " DOC " FROM page_views v WHERE v.id = page.id)"),
             db_page_arg(db_str_arg(db_i64_arg(DB_ARGS, user_id), name), p), cb, arg);
}

void db_view_read(struct db *db, int64_t user_id, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT " ANSWER "FROM page_views v WHERE v.id = $2::bigint AND " SEEN,
             db_i64_arg(db_i64_arg(DB_ARGS, user_id), id), cb, arg);
}

static struct db_args *words_arg(struct db_args *a, const struct db_view_words *w)
{
    return db_i64_arg(db_str_arg(db_str_arg(a, w->name), w->address), w->workspace_id);
}

void db_view_create(struct db *db, int64_t user_id, const struct db_view_words *w, int most,
                    db_cb *cb, void *arg)
{
    db_write(db,
             "INSERT INTO page_views AS v (user_id, name, address, workspace_id) "
             "SELECT $1::integer, $2, $3, nullif($4::integer, 0) WHERE (SELECT count(*) FROM "
             "page_views v WHERE v.user_id = $1::integer) < $5::integer RETURNING " ANSWER,
             db_i64_arg(words_arg(db_i64_arg(DB_ARGS, user_id), w), most), cb, arg);
}

void db_view_edit(struct db *db, int64_t user_id, int64_t id, const struct db_view_words *w,
                  db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE page_views v SET name = coalesce($3, v.name), "
             "address = coalesce($4, v.address), workspace_id = CASE WHEN $5::integer < 0 "
             "THEN v.workspace_id ELSE nullif($5::integer, 0) END "
             "WHERE v.id = $2::bigint AND " SEEN "RETURNING " ANSWER,
             words_arg(db_i64_arg(db_i64_arg(DB_ARGS, user_id), id), w), cb, arg);
}

void db_view_delete(struct db *db, int64_t user_id, int64_t id, db_cb *cb, void *arg)
{
    db_write(db, "DELETE FROM page_views v WHERE v.id = $2::bigint AND " SEEN "RETURNING v.id",
             db_i64_arg(db_i64_arg(DB_ARGS, user_id), id), cb, arg);
}
