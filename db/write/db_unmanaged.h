/*
 * Trainings that run elsewhere and report here (unmanaged experiments): rows that the core does not
 * hold; it only gives their numbers (CORE_EV_EXP_ID, CORE_EV_TRIAL_ID). The rules are functions of
 * the database (unmanaged_*). Arguments are borrowed until return.
 *
 * Errors: DET_ENOENT: there is no such trial or experiment; DET_ESTATE: it runs on this cluster, is
 * archived or being deleted.
 */
#ifndef DB_DB_UNMANAGED_H
#define DB_DB_UNMANAGED_H

#include "db_done.h"
#include "db_rows.h"

enum { EXTERNAL_ID_MAX = 1000 }; /* bytes of a client's name; an index takes 2,700 */

/* One row: the id; none: its owner has no experiment of that name. */
void db_unmanaged_find(struct db *db, int64_t owner_id, const char *external_id, db_cb *cb,
                       void *arg);
/* The same of a trial of the experiment. */
void db_unmanaged_find_trial(struct db *db, int64_t exp_id, const char *external_id, db_cb *cb,
                             void *arg);
/* external_id NULL: none. DET_EEXIST: its owner has one of that name by now. */
void db_unmanaged_create(struct db *db, const struct row_experiment *r,
                         const struct db_experiment_extra *x, const char *external_id,
                         db_done_cb *cb, void *arg);

struct db_unmanaged_trial {
    int64_t id, experiment_id;
    const char *external_id;                    /* NULL: none */
    const char *request_id, *task_id, *hparams; /* hparams: a JSON object */
};
/* One row: the id, another one's than was given where there was a trial of that name already. */
void db_unmanaged_trial(struct db *db, const struct db_unmanaged_trial *t, db_cb *cb, void *arg);

/* A new run of it, which fences off those before. Columns: run, checkpoint (null: none, or not to
 * be resumed), its steps. */
enum { UNMANAGED_RUN, UNMANAGED_CHECKPOINT, UNMANAGED_STEPS };
void db_unmanaged_start(struct db *db, int64_t trial_id, bool resume, db_cb *cb, void *arg);
/* It is ACTIVE, COMPLETED, CANCELED or ERROR; NULL: just alive. run_id 0: of whichever run;
 * DET_ESTALE: of one that was replaced. */
void db_unmanaged_said(struct db *db, int64_t trial_id, int64_t run_id, const char *state,
                       db_done_cb *cb, void *arg);
/* Ends trials that nothing was heard of for so long. One row: how many, a hundred at most. */
void db_unmanaged_silent(struct db *db, int64_t silent_s, db_cb *cb, void *arg);

#endif
