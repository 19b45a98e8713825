/*
 * What harnesses report: metrics, checkpoints, runner state, progress. Each goes into the group
 * commit and is fenced: DET_ESTALE when run_id is not the trial's current run, DET_ENOENT for no
 * such trial. A repeat of what is already there succeeds and changes nothing. Arguments are
 * borrowed until return.
 */
#ifndef DB_DB_REPORTS_H
#define DB_DB_REPORTS_H

#include "db_done.h"
#include "metric_values.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;

struct db_metrics_report {
    int64_t trial_id, run_id, steps;
    const char *group;   /* "training", "validation" or the user's own */
    const char *metrics; /* JSON: {"avg_metrics": {..}}, or "validation_metrics" for group
                            validation. NUL-terminated */
    const char *batches; /* JSON: [{..}], checked by the caller; NULL: none */
    size_t batches_len;
    int64_t time_us; /* wall */
    /* Of a batch's reports: the object in metrics, and the numbers in it where they are known. */
    const char *object;
    const struct metric_value *values;
    size_t values_n;
};
/* DET_EINVAL when a metric of this step was already reported with another value. Also keeps
 * summary, best and latest validation, total batches, and archives what a restart rolled back. */
void db_report_metrics(struct db *db, const struct db_metrics_report *r, db_done_cb *cb, void *arg);
/* Nothing is wrong with the report: the database was away, or too slow. */
bool db_report_is_passing(int rc);
/* Of the i-th report of a batch. */
typedef void db_reported_cb(void *arg, size_t i, int rc, const struct det_err *err);
/* The same of 1 to METRIC_BATCH_MAX reports of one trial, in order: each is kept or refused
 * by itself, as few statements as possible are made of them, and those that simply follow cost less
 * the more there are. The outcome is that of one by one, whatever is refused; once one is passing,
 * all behind it are. v, and what it points to, stays until cb ran for the last of them: it runs
 * once for each, in any order. */
void db_report_metrics_batch(struct db *db, const struct db_metrics_report *v, size_t n,
                             db_reported_cb *cb, void *arg);

struct db_checkpoint_report {
    const char *uuid, *task_id, *allocation_id; /* allocation_id NULL: none */
    /* trial_id 0: of the task's trial, which runs elsewhere; run_id 0: of whichever run, if it
     * runs */
    int64_t trial_id, run_id, steps;
    const char *metadata;  /* JSON object */
    const char *resources; /* JSON object: path -> bytes as number */
    const char *hashes;    /* JSON object: path -> "xxh128:..."; NULL: as known of the same
                            * files, if it is */
    int64_t time_us;
};
/* State COMPLETED. DET_EEXIST when the uuid belongs to another trial. */
void db_report_checkpoint(struct db *db, const struct db_checkpoint_report *r, db_done_cb *cb,
                          void *arg);

/* epoch_batches 0: leaves what is known. */
void db_report_runner_state(struct db *db, int64_t trial_id, int64_t run_id, const char *state,
                            int64_t epoch_batches, db_done_cb *cb, void *arg);
/* trial_progress 0..1, or the searcher's units; experiment_progress 0..1 or < 0 to leave it. */
void db_report_progress(struct db *db, int64_t trial_id, int64_t run_id, double trial_progress,
                        double experiment_progress, db_done_cb *cb, void *arg);
/* labels and batch are JSON objects. */
void db_report_profile(struct db *db, int64_t trial_id, int64_t run_id, const char *labels,
                       const char *batch, db_done_cb *cb, void *arg);

struct db_accelerators {
    const char *allocation_id, *container_id, *task_id, *node_name, *type;
    const char *uuids; /* JSON array of strings */
};
void db_report_accelerators(struct db *db, const struct db_accelerators *a, db_done_cb *cb,
                            void *arg);

#endif
