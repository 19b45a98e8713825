/*
 * The core's rows (proto/rows/rows.h): one function a kind that appends the statement to a
 * transaction, and the blocking reads that rebuild the core at start. All statements are safe to
 * repeat.
 */
#ifndef DB_DB_ROWS_H
#define DB_DB_ROWS_H

#include "db.h"
#include "rowtable.h"

/* What a new experiment's row holds beside the core's columns; borrowed. */
struct db_experiment_extra {
    const char *original_config;
    const void *model_def;
    size_t model_def_len;
    bool parent_model_def; /* copy the parent's */
};
/* extra only when r->is_new. */
void db_save_experiment(struct db_tx *tx, const struct row_experiment *r,
                        const struct db_experiment_extra *extra);
/* undeleted: why it could not be deleted; NULL: that is not so. */
void db_save_exp_state(struct db_tx *tx, int64_t id, enum exp_state state, const char *undeleted);
/* Many rows in few statements; no id may come twice. */
void db_save_search_events(struct db_tx *tx, const struct row_search_event *r, size_t n);
void db_save_search_snapshot(struct db_tx *tx, const struct row_search_snapshot *r);
void db_delete_search_snapshot(struct db_tx *tx, int64_t exp_id);
void db_save_trials(struct db_tx *tx, const struct row_trial *r, size_t n);
void db_save_allocations(struct db_tx *tx, const struct row_allocation *r, size_t n);
void db_save_agent(struct db_tx *tx, const struct row_agent *r);
void db_save_parked(struct db_tx *tx, const struct row_parked *r);
void db_save_store(struct db_tx *tx, const struct row_store *r);
void db_delete_experiment(struct db_tx *tx, int64_t exp_id);
/* Before it, not in the core's batch: so many of its rows at most, again and again until
 * DELETION_LAST, which says that what is left is little. One row. */
enum db_deletion_col { DELETION_LAST, DELETION_TRIALS_LEFT };
void db_delete_portion(struct db *db, int64_t exp_id, int64_t rows, db_cb *cb, void *arg);

/* Blocking, before db_start. A callback's failure ends the read and is returned. */
DET_MUST int db_restore_ids(struct db *db, int64_t *ret_exp, int64_t *ret_trial,
                            struct det_err *err);
typedef int db_row_cb(void *arg, enum row_kind kind, const union row_any *r, struct det_err *err);
/* Everything live, in the order core.h states. ret_exp: whose row the callback did not take; 0: no
 * such, or of no experiment. */
DET_MUST int db_restore(struct db *db, db_row_cb *cb, void *arg, int64_t *ret_exp,
                        struct det_err *err);
/* It and its trials are in ERROR, its allocations over. */
DET_MUST int db_park_now(struct db *db, int64_t exp_id, struct det_err *err);

#endif
