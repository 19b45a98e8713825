/* Experiments by conditions and keys that people put together (expsearch.h). */
#ifndef DB_DB_EXP_SEARCH_H
#define DB_DB_EXP_SEARCH_H

#include "db_list.h"

/* enum db_list_col and whether the project is there, LIST_DOC being null; then of its best trial
 * the id (null: none), the state and trial.v1.Trial without it as members (db_doc.h) up to
 * EXP_SEARCH_MEMBERS; then experiment.v1.Experiment. */
enum {
    EXP_SEARCH_PROJECT = LIST_COLS,
    EXP_SEARCH_TRIAL,
    EXP_SEARCH_TRIAL_STATE,
    EXP_SEARCH_TRIAL_MEMBERS,
    EXP_SEARCH_MEMBERS = EXP_SEARCH_TRIAL_MEMBERS + 19
};
/* asked: expsearch_read()'s, as text. project_id 0: any. It may end with db_timed_out(). */
void db_exp_search(struct db *db, const char *asked, int64_t project_id, const struct db_page *p,
                   db_cb *cb, void *arg);

#endif
