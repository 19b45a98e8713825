#include "db_exp_search.h"

#include "db_exp_cols.h"
#include "db_trial_cols.h"
#include "mem.h"

#include <string.h>

/* clang-format off */
/* The ids of the page, as an array, which is expected to be short. */
#define ON_PAGE "unnest($4::integer[]) WITH ORDINALITY x(id, rn) JOIN experiments e ON e.id = x.id "
#define BEST_TRIAL                                                                                 \
    "LEFT JOIN LATERAL (SELECT t.id best_id, t.state best_state, " TRIAL_MEMBERS "FROM trials t "  \
    WITH_TRIAL_MEMBERS "WHERE t.id = e.best_trial_id AND e.best_metric IS NOT NULL) b ON true "
/* clang-format on */

static bool is_one_of(const char *s, const char *const *of, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(s, of[i]))
            return true;
    return false;
}

/* clang-format off */
/* Columns that no report changes. Not here, nor below, is what goes by the clock, too. */
static const char *const of_state[] = {
    "id", "forkedFrom", "numTrials", "progress", "checkpointCount", "checkpointSize", "projectId",
    "name", "description", "searcherType", "searcherMetric", "resourcePool", "user", "archived",
    "externalExperimentId", "state", "tags", "startTime", "endTime"};
/* clang-format on */
static const char *const of_best_trial[] = {"searcherMetricsVal", "externalTrialId"};
static const char *const kinds_of_state[] = {"shown", "tags", "project"};
#define IS_ONE_OF(s, of) is_one_of(s, of, DET_ARRAY_LEN(of))

/* of_best: a hyperparameter is that of the best trial, as in an order. */
static enum db_rests column_rests(const json_t *column, bool of_best)
{
    const char *kind = json_str(column, "kind", ""), *name = json_str(column, "name", "");
    bool is_hp = !strcmp(kind, "hp"), is_metric = !strcmp(kind, "metric");
    bool is_validation = is_metric && !strcmp(json_str(column, "group", ""), "validation");
    if (is_validation || (is_hp && of_best) ||
        (!is_hp && !is_metric && IS_ONE_OF(name, of_best_trial)))
        return DB_RESTS_VALIDATIONS;
    if (is_hp || (!is_metric && (IS_ONE_OF(kind, kinds_of_state) || IS_ONE_OF(name, of_state))))
        return DB_RESTS_STATE;
    return DB_RESTS_REPORTS;
}

static enum db_rests columns_rest(const json_t *columns, bool of_best)
{
    enum db_rests least = DB_RESTS_STATE;
    size_t i;
    json_t *column;
    json_array_foreach(columns, i, column)
    {
        enum db_rests on = column_rests(column, of_best);
        least = on < least ? on : least;
    }
    return least;
}

static enum db_rests search_rests(const json_t *asked)
{
    enum db_rests leaves = columns_rest(json_object_get(asked, "leaves"), false);
    enum db_rests order = columns_rest(json_object_get(asked, "order"), true);
    return leaves < order ? leaves : order;
}

/* A search in two questions: which experiments, and what a page shows of them, in which reports are
 * and so changes all the time. Both wait among searches: behind charts of thousands of trials a
 * quick one would wait for others' slow ones. */
struct search {
    struct db *db;
    int64_t project_id;
    struct db_page page;
    db_cb *cb;
    void *arg;
};

static void on_ids(void *arg, const struct db_result *r)
{
    det_cleanup(freep) struct search *s = arg;
    if (db_rc(r) < 0) {
        s->cb(s->arg, r);
        return;
    }
    struct db_args *a = db_i64_arg(db_i64_arg(DB_ARGS, db_i64(r, 0, 0)), s->project_id);
    db_query_list(s->db,
                  "SELECT n.total, page_start(n.total, $3::bigint), e.id, e.state, NULL::text, "
                  "$2::bigint = 0 OR EXISTS (SELECT 1 FROM projects WHERE id = $2::bigint), "
                  "b.*, " MEMBERS_IN_LIST
                  "FROM (SELECT $1::bigint total) n LEFT JOIN (" ON_PAGE WITH_MEMBERS BEST_TRIAL
                  ") ON true ORDER BY x.rn",
                  db_str_arg(db_i64_arg(a, s->page.offset), db_text(r, 0, 1)), s->cb, s->arg);
}

void db_exp_search(struct db *db, const json_t *asked, int64_t project_id, const struct db_page *p,
                   db_cb *cb, void *arg)
{
    det_cleanup(freep) char *text = json_text(asked);
    struct search *s = det_alloc(sizeof *s);
    *s = (struct search){db, project_id, *p, cb, arg};
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, text), project_id);
    db_query_list_lasting(db, search_rests(asked),
                          "SELECT total, ids FROM find_experiments_page($1::jsonb, $2::bigint, "
                          "$3::bigint, $4::bigint)",
                          db_i64_arg(db_i64_arg(a, p->offset), p->limit), on_ids, s);
}

static enum db_rests groups_rest(const struct db_exp_grouping *g)
{
    enum db_rests found = search_rests(g->asked);
    enum db_rests columns = columns_rest(g->keys, false), metrics = columns_rest(g->metrics, false);
    columns = columns < metrics ? columns : metrics;
    return found < columns ? found : columns;
}

void db_exp_groups(struct db *db, const struct db_exp_grouping *g, db_cb *cb, void *arg)
{
    det_cleanup(freep) char *asked = json_text(g->asked), *keys = json_text(g->keys),
                            *metrics = json_text(g->metrics);
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, asked), g->project_id);
    db_query_list_lasting(
        db, groups_rest(g),
        "SELECT doc, all_groups, all_trials FROM group_trials($1::jsonb, $2::bigint, "
        "$3::jsonb, $4::jsonb, $5::integer)",
        db_i64_arg(db_str_arg(db_str_arg(a, keys), metrics), g->trials_max), cb, arg);
}
