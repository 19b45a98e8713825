/* Experiments by conditions and keys that people put together (expsearch.h). */
#ifndef DB_DB_EXP_SEARCH_H
#define DB_DB_EXP_SEARCH_H

#include "db_list.h"
#include "json.h"

/* enum db_list_col and whether the project is there, LIST_DOC being null; then of its best trial
 * the id (null: none), the state and trial.v1.Trial without it as members (db_doc.h) up to
 * EXP_SEARCH_MEMBERS; then experiment.v1.Experiment. */
enum {
    EXP_SEARCH_PROJECT = LIST_COLS,
    EXP_SEARCH_TRIAL,
    EXP_SEARCH_TRIAL_STATE,
    EXP_SEARCH_TRIAL_MEMBERS,
    EXP_SEARCH_MEMBERS = EXP_SEARCH_TRIAL_MEMBERS + 21
};
/* asked: expsearch_read()'s. project_id 0: any. It may end with db_timed_out(). Of the page an
 * experiment may be missing that was deleted while it was looked up; the total counts it yet. */
void db_exp_search(struct db *db, const json_t *asked, int64_t project_id, const struct db_page *p,
                   db_cb *cb, void *arg);

/* As expsearch_read() and expsearch_column() have them; project_id 0: any. Borrowed. */
struct db_exp_grouping {
    const json_t *asked, *keys, *metrics;
    int64_t project_id;
    int trials_max;
};
/* Trials of what is asked for by the values of keys: a row a group, the largest first, 1000 at
 * most: TrialGroup as a document, the number of groups, that of trials, which is larger than
 * trials_max where there are more. It may end with db_timed_out(). */
enum { EXP_GROUP_DOC, EXP_GROUP_ALL, EXP_GROUP_TRIALS };
void db_exp_groups(struct db *db, const struct db_exp_grouping *g, db_cb *cb, void *arg);

#endif
