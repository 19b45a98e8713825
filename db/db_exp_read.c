#include "db_exp_read.h"

#include <string.h>

/* clang-format off */
/* experiment.v1.Experiment without its state, as columns (db_doc.h), in the order of enum
 * db_exp_col; e is the experiment, joined WITH_MEMBERS. */
#define MEMBERS(trial_ids, notes)                                                                  \
    "e.config, e.job_id \"jobId\", e.archived, u.id \"userId\", e.id, e.description, e.labels, "   \
    "e.start_time \"startTime\", e.end_time \"endTime\", l.trials \"numTrials\", "                 \
    trial_ids " \"trialIds\", u.display_name \"displayName\", u.username, "                        \
    "e.resource_pool \"resourcePool\", coalesce(e.config#>>'{searcher,name}', '') "                \
    "\"searcherType\", e.searcher_metric \"searcherMetric\", e.name, " notes " notes, "            \
    "e.parent_id \"forkedFrom\", e.progress, p.id \"projectId\", p.name \"projectName\", "         \
    "w.id \"workspaceId\", w.name \"workspaceName\", p.archived OR w.archived \"parentArchived\", " \
    "e.original_config \"originalConfig\", p.user_id \"projectOwnerId\", "                         \
    "k.bytes::text \"checkpointSize\", k.n \"checkpointCount\", e.unmanaged, "                     \
    "octet_length(e.model_def) \"modelDefinitionSize\", e.best_metric "                            \
    "\"bestTrialSearcherMetric?\", CASE WHEN e.best_metric IS NOT NULL THEN e.best_trial_id END "  \
    "\"bestTrialId?\", seconds_between(e.start_time, e.end_time)::integer \"duration?\" "
#define MEMBERS_IN_LIST                                                                            \
    MEMBERS("'[]'::json", "CASE WHEN e.notes <> '' THEN 'omitted' ELSE e.notes END")
#define WITH_MEMBERS                                                                               \
    "JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id "                    \
    "JOIN workspaces w ON w.id = p.workspace_id "                                                  \
    "CROSS JOIN LATERAL (SELECT count(*) trials FROM trials WHERE experiment_id = e.id) l "        \
    "CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(c.bytes), 0) bytes " CHECKPOINTS_OF ") k "
#define CHECKPOINTS_OF                                                                             \
    "FROM checkpoints c WHERE c.experiment_id = e.id "                                             \
    "AND c.state IN ('COMPLETED', 'PARTIALLY_DELETED')"
/* clang-format on */

static const char read_one[] =
    "SELECT e.state, " MEMBERS("coalesce((SELECT json_agg(t.id ORDER BY t.id) FROM trials t "
                               "WHERE t.experiment_id = e.id), '[]')",
                               "e.notes") "FROM experiments e " WITH_MEMBERS
    "WHERE e.id = $1::bigint";

void db_exp_read(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, read_one, db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_read_kept(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query_kept(db, read_one, id, cb, arg);
}

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
#define FROM_JOINED                                                                                \
    "FROM experiments e JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id " \
    "JOIN workspaces w ON w.id = p.workspace_id "
#define IN_JSON(value, param)                                                                      \
    "to_jsonb(" value ") IN (SELECT jsonb_array_elements(" param "::jsonb))"
#define WHERE_FILTER                                                                               \
    "WHERE ($1::text IS NULL OR position(lower($1) IN lower(e.name)) > 0) "                        \
    "AND ($2::text IS NULL OR position(lower($2) IN lower(e.description)) > 0) "                   \
    "AND ($3::jsonb IS NULL OR e.labels @> $3::jsonb) "                                            \
    "AND ($4::boolean IS NULL OR e.archived = $4::boolean AND "                                    \
    "($4::boolean OR $8::bigint IS NOT NULL OR NOT (p.archived OR w.archived))) "                  \
    "AND ($5::jsonb IS NULL OR " IN_JSON("e.state", "$5") ") "                                     \
    "AND ($6::jsonb IS NULL OR " IN_JSON("u.username", "$6") ") "                                  \
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
    "WHEN 5 THEN extract(epoch FROM e.end_time) "                                                  \
    "WHEN 8 THEN (SELECT count(*) FROM trials t WHERE t.experiment_id = e.id) "                    \
    "WHEN 9 THEN e.progress WHEN 12 THEN e.parent_id WHEN 14 THEN e.project_id "                   \
    "WHEN 15 THEN (SELECT sum(c.bytes) " CHECKPOINTS_OF ") "                                       \
    "WHEN 16 THEN (SELECT count(*) " CHECKPOINTS_OF ") WHEN 17 THEN e.best_metric "                \
    "ELSE e.id END::float8 num, "
#define SORT_TXT                                                                                   \
    "CASE $12::integer WHEN 2 THEN e.description WHEN 6 THEN e.state WHEN 10 THEN u.username "     \
    "WHEN 11 THEN e.name WHEN 13 THEN e.resource_pool END txt "
/* By text, id is only the tie-break. */
#define BY_NUM "$12::integer NOT IN (2, 6, 10, 11, 13) AND"
#define ORDER                                                                                      \
    "CASE WHEN " BY_NUM " NOT $13::boolean THEN num END, "                                         \
    "CASE WHEN " BY_NUM " $13::boolean THEN num END DESC NULLS LAST, "                             \
    "CASE WHEN NOT $13::boolean THEN txt END, "                                                    \
    "CASE WHEN $13::boolean THEN txt END DESC NULLS LAST, id"
/* clang-format on */

/* The usual list, by id and filtered by what experiments_list holds, reads that index alone until
 * it knows its page. A project that is there has its archived ones looked up, not joined. */
#define LISTED(from, of_state)                                                                     \
    "FROM " from " e WHERE ($1::boolean IS NULL OR e.archived = $1::boolean AND "               \
    "($1::boolean OR $4::bigint IS NOT NULL OR e.project_id NOT IN (SELECT p.id FROM projects p "  \
    "JOIN workspaces w ON w.id = p.workspace_id WHERE p.archived OR w.archived))) "                \
    "AND " of_state " AND ($3::jsonb IS NULL OR e.owner_id = ANY (ARRAY("                          \
    "SELECT x::integer FROM jsonb_array_elements_text($3::jsonb) x))) "                            \
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
#define LISTED_BY_ID(order, of_state)                                                              \
    "WITH n AS (SELECT coalesce(sum(e.n), 0)::bigint total "                                       \
    LISTED("experiment_counts", of_state) ") "                                                     \
    "SELECT n.total, page_start(n.total, $5::bigint), e.id, e.state, NULL::text, "                 \
    "$4::bigint IS NULL OR EXISTS (SELECT 1 FROM projects WHERE id = $4::bigint), "                \
    MEMBERS_IN_LIST "FROM n LEFT JOIN ("                                                           \
    ON_PAGE("SELECT e.id " LISTED("experiments", of_state) "ORDER BY e.id " order " "              \
            "OFFSET (SELECT page_start(total, $5::bigint) FROM n) "                                \
            "LIMIT page_size($6::bigint, 100)") ") ON true ORDER BY x.rn"

static bool is_usual(const struct db_exp_filter *f, const struct db_page *p)
{
    return (p->sort == 0 || p->sort == 1) && !f->name && !f->description && !f->labels &&
           !f->users && !f->id_filter && !f->ids && !f->not_ids;
}

static void list_by_id(struct db *db, const struct db_exp_filter *f, const struct db_page *p,
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
    db_i64_arg(db_i64_arg(a, p->offset), p->limit);
    bool is_one = f->states && !strchr(f->states, ',');
    const char *up = is_one ? LISTED_BY_ID("ASC", ONE_STATE) : LISTED_BY_ID("ASC", ANY_STATES);
    const char *down = is_one ? LISTED_BY_ID("DESC", ONE_STATE) : LISTED_BY_ID("DESC", ANY_STATES);
    db_query(db, p->desc ? down : up, a, cb, arg);
}

void db_exp_list(struct db *db, const struct db_exp_filter *f, const struct db_page *p, db_cb *cb,
                 void *arg)
{
    if (is_usual(f, p)) {
        list_by_id(db, f, p, cb, arg);
        return;
    }
    db_query(db,
             "WITH f AS (SELECT e.id, e.state, " SORT_NUM SORT_TXT FROM_JOINED WHERE_FILTER
             ")" DB_LIST_TAIL_FROM(ORDER, "$14", "$15", "100",
                                   "NULL::text, $8::bigint IS NULL OR EXISTS "
                                   "(SELECT 1 FROM projects WHERE id = $8::bigint), " MEMBERS_IN_LIST,
                                   "LEFT JOIN (" ON_PAGE("SELECT id FROM page ORDER BY rn")
                                   ") ON x.id = page.id"),
             db_page_arg(filter_args(DB_ARGS, f), p), cb, arg);
}

void db_exp_find(struct db *db, const struct db_exp_filter *f, db_cb *cb, void *arg)
{
    db_query(db, "SELECT e.id, e.state " FROM_JOINED WHERE_FILTER "ORDER BY e.id",
             filter_args(DB_ARGS, f), cb, arg);
}

void db_exp_model_def(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT model_def, name FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_model_def_b64(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT '{\"b64Tgz\":\"' || translate(encode(model_def, 'base64'), E'\\n', '') || '\"}' "
        "FROM experiments WHERE id = $1::bigint",
        db_i64_arg(DB_ARGS, id), cb, arg);
}

/* Each validation that was the best of its experiment when it came. */
void db_exp_history(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "WITH v AS (SELECT m.id, m.trial_id, m.end_time, searcher_value(m.metrics, "
             "e.searcher_metric) x, "
             "CASE WHEN e.smaller_is_better THEN 1 ELSE -1 END AS sign "
             "FROM metrics m JOIN trials t ON t.id = m.trial_id JOIN experiments e ON e.id = "
             "t.experiment_id "
             "WHERE e.id = $1::bigint AND m.grp = 'validation' AND NOT m.archived), "
             "r AS (SELECT *, min(sign * x) OVER (ORDER BY end_time, id ROWS BETWEEN UNBOUNDED "
             "PRECEDING "
             "AND 1 PRECEDING) before FROM v WHERE x IS NOT NULL) "
             "SELECT jsonb_build_object('validationHistory', (SELECT "
             "coalesce(jsonb_agg(jsonb_build_object("
             "'trialId', trial_id, 'endTime', api_time(end_time), 'searcherMetric', x) "
             "ORDER BY end_time, id), '[]') FROM r WHERE before IS NULL OR sign * x < before)) "
             "FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_best_metric(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT best_metric FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_searcher(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db, "SELECT config#>>'{searcher,name}' FROM experiments WHERE id = $1::bigint",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_exp_labels(struct db *db, int64_t project_id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('labels', coalesce(jsonb_agg(label ORDER BY n DESC, "
             "label), '[]')) "
             "FROM (SELECT l.label, count(*) n FROM experiments e, "
             "jsonb_array_elements_text(e.labels) l(label) "
             "WHERE $1::bigint = 0 OR e.project_id = $1::bigint GROUP BY l.label) x",
             db_i64_arg(DB_ARGS, project_id), cb, arg);
}

void db_exp_origin(struct db *db, const struct db_exp_origin *o, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_i64_arg(a, o->project_id), o->workspace), o->project);
    db_str_arg(db_i64_arg(db_i64_arg(a, o->parent_id), o->source_trial_id), o->source_uuid);
    db_i64_arg(a, o->user_id);
    db_query(db,
             "WITH p AS (SELECT p.id, p.archived OR w.archived archived, p.name, p.user_id, "
             "w.id workspace_id, w.name workspace FROM projects p "
             "JOIN workspaces w ON w.id = p.workspace_id "
             "WHERE CASE WHEN $1::bigint > 0 THEN p.id = $1::bigint "
             "WHEN $2::text IS NOT NULL THEN w.name = $2 AND p.name = $3 ELSE p.id = 1 END) "
             "SELECT (SELECT id FROM p), (SELECT archived FROM p), "
             "(SELECT archived FROM experiments WHERE id = $4::bigint), "
             "(SELECT uuid FROM checkpoints WHERE state = 'COMPLETED' AND "
             "(trial_id = nullif($5::bigint, 0) OR ($5::bigint = 0 AND uuid = $6)) "
             "ORDER BY steps DESC, report_time DESC LIMIT 1), "
             "(SELECT jsonb_build_object('displayName', u.display_name, 'userId', u.id, "
             "'username', u.username, 'projectId', p.id, 'projectName', p.name, "
             "'workspaceId', p.workspace_id, 'workspaceName', p.workspace, "
             "'parentArchived', p.archived, 'projectOwnerId', p.user_id) "
             "FROM p, users u WHERE u.id = $7::bigint)",
             a, cb, arg);
}

void db_exp_owners(struct db *db, const char *ids, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT e.id, u.username, p.workspace_id FROM experiments e JOIN users u ON u.id = "
             "e.owner_id "
             "JOIN projects p ON p.id = e.project_id "
             "WHERE e.id IN (SELECT x::bigint FROM jsonb_array_elements_text($1::jsonb) x)",
             db_str_arg(DB_ARGS, ids), cb, arg);
}
