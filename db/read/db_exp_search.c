#include "db_exp_search.h"

#include "db_exp_cols.h"
#include "db_trial_cols.h"
#include "mem.h"

/* clang-format off */
/* The ids of the page, as an array, which is expected to be short. */
#define ON_PAGE "unnest((SELECT ids FROM n)) WITH ORDINALITY x(id, rn) JOIN experiments e ON e.id = x.id "
#define BEST_TRIAL                                                                                 \
    "LEFT JOIN LATERAL (SELECT t.id best_id, t.state best_state, " TRIAL_MEMBERS "FROM trials t "  \
    WITH_TRIAL_MEMBERS "WHERE t.id = e.best_trial_id AND e.best_metric IS NOT NULL) b ON true "
/* clang-format on */

void db_exp_search(struct db *db, const char *asked, int64_t project_id, const struct db_page *p,
                   db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, asked), project_id);
    db_query_list(db,
                  "WITH n AS MATERIALIZED (SELECT total, ids FROM find_experiments_page($1::jsonb, "
                  "$2::bigint, $3::bigint, $4::bigint)) "
                  "SELECT n.total, page_start(n.total, $3::bigint), e.id, e.state, NULL::text, "
                  "$2::bigint = 0 OR EXISTS (SELECT 1 FROM projects WHERE id = $2::bigint), "
                  "b.*, " MEMBERS_IN_LIST "FROM n LEFT JOIN (" ON_PAGE WITH_MEMBERS BEST_TRIAL
                  ") ON true ORDER BY x.rn",
                  db_i64_arg(db_i64_arg(a, p->offset), p->limit), cb, arg);
}

void db_exp_groups(struct db *db, const struct db_exp_grouping *g, db_cb *cb, void *arg)
{
    det_cleanup(freep) char *asked = json_text(g->asked), *keys = json_text(g->keys),
                            *metrics = json_text(g->metrics);
    struct db_args *a = db_i64_arg(db_str_arg(DB_ARGS, asked), g->project_id);
    db_query_list(db,
                  "SELECT doc, all_groups, all_trials FROM group_trials($1::jsonb, $2::bigint, "
                  "$3::jsonb, $4::jsonb, $5::integer)",
                  db_i64_arg(db_str_arg(db_str_arg(a, keys), metrics), g->trials_max), cb, arg);
}
