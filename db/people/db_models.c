#include "db_models.h"

#include "db_sql.h"

#define ONE_OF(value, list)                                                                        \
    "(" list "::jsonb IS NULL OR to_jsonb(" value ") IN (SELECT jsonb_array_elements(" list        \
    "::jsonb))) "
#define PART_OF(column, text)                                                                      \
    "(" text "::text IS NULL OR position(lower(" text ") IN lower(" column ")) > 0) "

/* Numbers of SORT_BY_* of GetModels. */
#define MODEL_SORT                                                                                 \
    "CASE $10::integer WHEN 4 THEN extract(epoch FROM m.created_at) "                              \
    "WHEN 5 THEN extract(epoch FROM m.updated_at) "                                                \
    "WHEN 6 THEN (SELECT count(*) FROM model_versions v WHERE v.model_id = m.id) "                 \
    "WHEN 1 THEN NULL WHEN 2 THEN NULL WHEN 7 THEN NULL ELSE m.id END::float8 num, "               \
    "CASE $10::integer WHEN 1 THEN lower(m.name) WHEN 2 THEN m.description "                       \
    "WHEN 7 THEN lower(w.name) END txt "

void db_model_list(struct db *db, const struct db_model_filter *f, const struct db_page *p,
                   db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, f->name), f->description), f->labels);
    db_str_arg(db_str_arg(a, f->users), f->user_ids);
    db_str_arg(db_str_arg(a, f->workspaces), f->workspace_ids);
    if (f->archived < 0)
        db_null_arg(a);
    else
        db_bool_arg(a, f->archived);
    db_page_arg(db_i64_arg(a, f->id), p);
    db_query(
        db,
        "WITH f AS (SELECT m.id, '' AS state, " MODEL_SORT
        "FROM models m JOIN users u ON u.id = m.user_id JOIN workspaces w ON w.id = "
        "m.workspace_id WHERE " PART_OF("m.name", "$1") "AND " PART_OF(
            "m.description",
            "$2") "AND ($3::jsonb IS NULL OR m.labels @> $3::jsonb) "
                  "AND " ONE_OF("u.username", "$4") "AND " ONE_OF(
                      "u.id",
                      "$5") "AND ($6::jsonb IS NULL OR lower(w.name) IN (SELECT lower(x) FROM "
                            "jsonb_array_elements_text($6::jsonb) x)) "
                            "AND " ONE_OF(
                                "w.id",
                                "$7") "AND ($8::boolean IS NULL OR m.archived = $8::boolean) "
                                      "AND ($9::bigint = 0 OR m.id = $9::bigint))" DB_LIST_TAIL(
                                          DB_LIST_ORDER("id", "$11"), "$12", "$13", "NULL",
                                          "(SELECT model_doc(m) FROM models m WHERE m.id = page.id)"),
        a, cb, arg);
}

/* Numbers of SORT_BY_* of GetModelVersions: 4 is the time, which goes with the number. */
void db_model_version_list(struct db *db, const char *key, const struct db_page *p, db_cb *cb,
                           void *arg)
{
    db_query(
        db,
        "WITH f AS (SELECT v.id, '' AS state, CASE $2::integer WHEN 4 THEN v.id "
        "ELSE v.version END::float8 num, NULL::text txt "
        "FROM model_versions v WHERE v.model_id = (SELECT model_at($1)))" DB_LIST_TAIL(
            DB_LIST_ORDER("id", "$3"), "$4", "$5", "NULL",
            "(SELECT model_version_doc(v, (SELECT model_brief(m) FROM models m "
            "WHERE m.id = (SELECT model_at($1)))) FROM model_versions v WHERE v.id = page.id)"),
        db_page_arg(db_str_arg(DB_ARGS, key), p), cb, arg);
}

void db_model_labels(struct db *db, int64_t workspace_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT json_build_object('labels', coalesce(json_agg(x.label ORDER BY x.n DESC, "
             "x.label), '[]')) FROM (SELECT l.label, count(*) n FROM models m, "
             "jsonb_array_elements_text(m.labels) l(label) "
             "WHERE $1::bigint = 0 OR m.workspace_id = $1::bigint GROUP BY l.label) x",
             db_i64_arg(DB_ARGS, workspace_id), cb, arg);
}

void db_model_read(struct db *db, const char *key, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT json_build_object('model', model_doc(m)) FROM models m "
             "WHERE m.id = model_at($1)",
             db_str_arg(DB_ARGS, key), cb, arg);
}

void db_model_version_read(struct db *db, const char *key, int64_t version, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT json_build_object('modelVersion', model_version_doc(v, model_doc(m))) "
             "FROM models m JOIN model_versions v ON v.model_id = m.id "
             "WHERE m.id = model_at($1) AND v.version = $2::bigint",
             db_i64_arg(db_str_arg(DB_ARGS, key), version), cb, arg);
}

void db_model_create(struct db *db, const struct db_model_words *w, int64_t user_id, db_cb *cb,
                     void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, w->name), w->description), w->notes);
    db_str_arg(db_str_arg(a, w->labels), w->metadata);
    db_write(db,
             "INSERT INTO models AS m (name, description, notes, labels, metadata, workspace_id, "
             "user_id) VALUES ($1, $2, $3, $4::jsonb, $5::json, $6::integer, $7::integer) "
             "RETURNING json_build_object('model', model_doc(m))",
             db_i64_arg(db_i64_arg(a, w->workspace_id), user_id), cb, arg);
}

void db_model_edit(struct db *db, const char *key, const struct db_model_words *w, db_cb *cb,
                   void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, key), w->name), w->description);
    db_str_arg(db_str_arg(db_str_arg(a, w->notes), w->labels), w->metadata);
    db_write(db, sql_model_edit, db_i64_arg(a, w->workspace_id), cb, arg);
}

void db_model_version_edit(struct db *db, const char *key, int64_t version,
                           const struct db_model_words *w, db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, key), version);
    db_str_arg(db_str_arg(db_str_arg(a, w->name), w->comment), w->notes);
    db_str_arg(db_str_arg(a, w->labels), w->metadata);
    db_write(db, sql_model_version_edit, a, cb, arg);
}

void db_model_archive(struct db *db, const char *key, bool archived, db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE models SET archived = $2::boolean, updated_at = now() WHERE id = model_at($1) "
             "RETURNING id",
             db_bool_arg(db_str_arg(DB_ARGS, key), archived), cb, arg);
}

void db_model_delete(struct db *db, const char *key, db_cb *cb, void *arg)
{
    db_write(db, "DELETE FROM models WHERE id = model_at($1) RETURNING id",
             db_str_arg(DB_ARGS, key), cb, arg);
}

void db_model_version_ckpt(struct db *db, const char *key, int64_t version, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT checkpoint_uuid FROM model_versions WHERE model_id = model_at($1) "
             "AND version = $2::bigint",
             db_i64_arg(db_str_arg(DB_ARGS, key), version), cb, arg);
}

void db_model_version_delete(struct db *db, const char *key, int64_t version, const char *uuid,
                             db_cb *cb, void *arg)
{
    db_write(db,
             "DELETE FROM model_versions WHERE model_id = model_at($1) AND version = $2::bigint "
             "AND ($3::text IS NULL OR checkpoint_uuid = $3) RETURNING id",
             db_str_arg(db_i64_arg(db_str_arg(DB_ARGS, key), version), uuid), cb, arg);
}

void db_model_register(struct db *db, const char *key, const char *uuid,
                       const struct db_model_words *w, int64_t user_id, db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(db_str_arg(db_str_arg(DB_ARGS, key), uuid), user_id);
    db_str_arg(db_str_arg(db_str_arg(a, w->name), w->comment), w->notes);
    db_write(db,
             "SELECT * FROM model_register($1, $2, $3::integer, $4, $5, $6, $7::jsonb, $8::json)",
             db_str_arg(db_str_arg(a, w->labels), w->metadata), cb, arg);
}
