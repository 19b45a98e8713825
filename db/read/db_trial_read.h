/* Trials, their metrics and workloads as the API shows them. */
#ifndef DB_DB_TRIAL_READ_H
#define DB_DB_TRIAL_READ_H

#include "db_list.h"

/* Columns: state, then trial.v1.Trial without state as members (db_doc.h), experiment and task
 * first. */
enum db_trial_col {
    TRIAL_COL_STATE,
    TRIAL_COL_EXP,
    TRIAL_COL_TASK,
    TRIAL_COL_MEMBERS = TRIAL_COL_EXP
};
void db_trial_read(struct db *db, int64_t id, db_cb *cb, void *arg);

/* What of a trial that is over still tells why. Columns: state, experiment, the end of its last run
 * (null: it had none), whether it said that its hyperparameters are invalid. */
enum {
    TRIAL_END_STATE,
    TRIAL_END_EXP,
    TRIAL_END_TEXT,
    TRIAL_END_INVALID,
    TRIAL_END_INVALID_FOR,
    TRIAL_END_PLACE
};
void db_trial_end(struct db *db, int64_t id, db_cb *cb, void *arg);

/* enum db_list_col, and one more: whether the experiment is there; then trial.v1.Trial
 * as above, LIST_DOC being null. states: JSON array or NULL. */
enum { TRIAL_LIST_EXP = LIST_COLS, TRIAL_LIST_MEMBERS };
void db_trial_list(struct db *db, int64_t exp_id, const char *states, const struct db_page *p,
                   db_cb *cb, void *arg);

struct db_workloads {
    int64_t trial_id;
    int filter;              /* FilterOption's number */
    const char *group;       /* only this group's metrics; NULL: all */
    const char *sort_metric; /* sort by this metric; NULL: by total batches */
    bool batch_metrics, no_deleted_checkpoints;
};
/* enum db_list_col (state empty; doc a WorkloadContainer), and whether the trial is there. */
enum { WORKLOAD_LIST_TRIAL = LIST_COLS };
void db_workload_list(struct db *db, const struct db_workloads *w, const struct db_page *p,
                      db_cb *cb, void *arg);

/* MetricsReport rows after (steps, id), at most 1000, ordered by them: their members (db_doc.h).
 * trial_ids: JSON array; group NULL: all. */
enum { REPORT_STEPS = 3, REPORT_ID = 5 };
void db_metrics_read(struct db *db, const char *trial_ids, const char *group, int64_t after_steps,
                     int64_t after_id, db_cb *cb, void *arg);

/* Profiler batches after an id, at most 1000. Columns: id, labels, batch. labels: JSON object that
 * the row's labels contain. */
void db_profile_read(struct db *db, int64_t trial_id, const char *labels, int64_t after_id,
                     db_cb *cb, void *arg);
/* {"labels"}: all series of a trial. */
void db_profile_series(struct db *db, int64_t trial_id, db_cb *cb, void *arg);

#endif
