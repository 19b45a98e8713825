/*
 * libdet-loop: THE training loop. It owns everything about training that is not mathematics: order
 * of batches, epochs, boundaries, averages, validation, checkpoints, restore, searcher operations,
 * preemption, stopping, reports. It knows a trial only as `struct det_loop_trial`, a const table of
 * hooks and a pointer; batches, models and states are opaque to it. C trials (harness/trial) and
 * Python trials are two clients of the same loop; it links no engine, no CUDA, no Python.
 *
 * Life: the client fills a det_loop_config (loop_env.h does so from a task's environment) and calls
 * loop_run(), which calls the hooks, all in the calling thread, in the order of
 * docs/contract/loop.md 4 and 5:
 *     create, callbacks, on_trial_startup, build loaders, load, broadcast, on_training_start, ... ,
 *     on_trial_shutdown, destroy.
 *
 * Errors: a hook returns 0 or a negative code with *err. DET_EINVALIDHP is the outcome "invalid
 * hyperparameters"; every other code is a crash of the trial: no checkpoint, and loop_run() returns
 * it.
 *
 * Ownership: what hooks get is borrowed until they return, unless said otherwise. What they give
 * (callbacks, reducers, LR schedulers, loaders) stays theirs and must live until destroy().
 */
#ifndef LOOP_H
#define LOOP_H

#include "comm.h"
#include "det/err.h"
#include "json.h"
#include "loop_metrics.h"
#include "sampler.h"
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct loop; /* a run in progress; given to create() */

/* ---- Configuration --------------------------------------------------------------------------- */

enum loop_unit_kind { LOOP_BATCHES, LOOP_EPOCHS };
/* A period or a length. n < 1 as a period: never. As a period it may instead be a list of steps. */
struct loop_unit {
    enum loop_unit_kind kind;
    int64_t n;
    const int64_t *at; /* NULL, or n_at counts of batches or epochs: due at those alone; borrowed */
    size_t n_at;
};
enum loop_policy { LOOP_POLICY_BEST, LOOP_POLICY_ALL, LOOP_POLICY_NONE };
enum loop_length_unit { LOOP_LEN_BATCHES, LOOP_LEN_RECORDS, LOOP_LEN_EPOCHS };

/* HTTP to the master, so that tests can stand in for it. `path` starts with "/api/v1/"; a body
 * is JSON text or NULL; `seq` (or NULL) goes out as the header Det-Seq. Blocking; called from
 * several threads. 0 with a status for every answer that arrived, negative when none did. */
struct loop_http_request {
    const char *method, *path, *body, *seq;
    int timeout_ms;
};
struct loop_http_response {
    int status;
    struct buf body;
};
struct loop_http {
    void *self;
    int (*call)(void *self, const struct loop_http_request *q, struct loop_http_response *ret,
                struct det_err *err);
    /* Ends the calls in flight, and later ones, with a negative code; NULL: they cannot be
     * ended. */
    void (*cancel)(void *self);
};

/* What a person in front of a local run wants to see; every hook may be NULL. Rank 0 only. */
struct loop_observer {
    void *self;
    void (*training)(void *self, int64_t steps, const struct loop_metrics *avg);
    void (*validation)(void *self, int64_t steps, const struct loop_metrics *metrics);
    void (*checkpoint)(void *self, int64_t steps, const char *uuid);
    void (*progress)(void *self, double done, double length); /* in units of the operation */
    /* Whether batch() is called for the one that has just ended, for which a device may have to be
     * waited for; NULL: for each. */
    bool (*wants_batch)(void *self, const struct loop *l);
    void (*batch)(void *self, const struct loop *l, const struct loop_metrics *m);
};

/* Strings and JSON are owned by the config (loop_config_finish frees them) but for http,
 * observer. */
struct det_loop_config {
    bool managed; /* a trial of the cluster; else local: one operation of max_length */
    int64_t trial_id, experiment_id, run_id; /* 0 in local mode */
    char *task_id, *allocation_id, *cluster_id;
    uint32_t seed;
    int64_t steps_completed; /* of latest_checkpoint; 0 for none and for a warm start */
    char *latest_checkpoint; /* uuid or NULL */

    struct loop_unit validation_period, checkpoint_period; /* n < 1: never */
    struct loop_unit reporting_period; /* default: 100 batches (the key scheduling_unit) */
    enum loop_policy policy;
    bool smaller_is_better;
    char *searcher_metric;             /* NULL in local mode */
    enum loop_length_unit length_unit; /* of the searcher's operations */
    int64_t max_length;                /* local mode: length of the one operation, in length_unit */
    int64_t global_batch_size;         /* 0: unknown; needed by records */
    int64_t aggregation_frequency;     /* >= 1 */
    bool average_aggregated_gradients;
    bool step_zero_validation; /* perform_initial_validation */
    bool stop_on_nan;          /* a metric that is no finite number ends the trial */
    bool test_mode;            /* local: one batch, one validation batch, one checkpoint */

    json_t *experiment_config, *hparams, *checkpoint_storage; /* NULL: none */
    char *code_dir;        /* copied to <checkpoint>/code; NULL: no copy */
    char *store_id;        /* managed: of the checkpoint store (STORAGE_ID_ENV); NULL: unknown */
    int64_t store_hold_ms; /* how long training waits for a store that is away; 0: 10 minutes */
    char *spool_path;      /* of the reports (DET_REPORT_SPOOL); NULL: kept in memory */
    char *trial_cls_spec;  /* "model_def:DigitsTrial" */
    char *trial_type;      /* load_data.json: "CTrial", "PyTorchTrial" */
    bool is_trainer;       /* load_data.json: started by a script of the user's */
    char *framework;       /* metadata.json: "det-0.27.0", "torch-1.13.1" */
    char *checkpoint_dir;  /* local: where checkpoints go; NULL: XDG data home / determined */
    char *tensorboard_dir; /* local: where metrics are written for TensorBoard; NULL: nowhere */

    /* Local mode: set by a signal handler; the run then stops as set_stop_requested() does, but
     * with one rank after the batch at hand. NULL: none. Borrowed. */
    const volatile sig_atomic_t *interrupt;

    struct comm_options ranks; /* its strings are borrowed */
    struct loop_http http;     /* managed: required (loop_env.h gives one) */
    struct loop_observer observer;
};
#define LOOP_CONFIG_INIT                                                                           \
    {                                                                                              \
        .reporting_period = {.n = 100}, .aggregation_frequency = 1,                                \
        .average_aggregated_gradients = true, .smaller_is_better = true, .ranks = {                \
            .size = 1,                                                                             \
            .local_size = 1                                                                        \
        }                                                                                          \
    }
void loop_config_finish(struct det_loop_config *c);

/* ---- What a trial is made of ----------------------------------------------------------------- */

/* Training or validation data of this rank. The loop decides what comes next; next() fetches it. */
struct loop_loader_type {
    /* Called once before the first next(), after a restore. The k-th next() will ask for
     * sampler_at(plan, k): a loader may prefetch. For validation called anew for every
     * validation. May be NULL. */
    int (*start)(void *self, const struct sampler_plan *plan, struct det_err *err);
    /* *ret_batch: opaque, borrowed until the next next(). DET_ENOENT: the data ended early. */
    int (*next)(void *self, struct sampler_pos pos, const void **ret_batch, struct det_err *err);
};
struct loop_loader {
    const struct loop_loader_type *type;
    void *self;
    int64_t batches; /* of one pass, all ranks together; INT64_MAX: unknown (training only) */
};

/* LRScheduler.StepMode: the values are the contract's. */
enum loop_step_mode {
    LOOP_STEP_EVERY_EPOCH = 1,
    LOOP_STEP_EVERY_BATCH = 2,
    LOOP_STEP_MANUAL = 3,
    LOOP_STEP_EVERY_OPTIMIZER_STEP = 4
};
struct loop_lr {
    void *self;
    enum loop_step_mode mode;
    int64_t frequency; /* >= 1 */
    int (*step)(void *self, struct det_err *err);
};

/* A MetricReducer. cross_slot_reduce runs on every rank with every rank's value, in rank order. */
struct loop_reducer {
    void *self;
    const char *name; /* NULL: any number of metrics; else exactly one, of this name */
    bool for_training, for_validation;
    int (*reset)(void *self, struct det_err *err);
    /* A malloc'ed block that the loop frees (NULL with 0 bytes is fine). */
    int (*per_slot_reduce)(void *self, void **ret, size_t *ret_bytes, struct det_err *err);
    int (*cross_slot_reduce)(void *self, const void *const *values, const size_t *bytes, size_t n,
                             struct loop_metrics *out, struct det_err *err);
};

/* A PyTorchCallback; any hook may be NULL. (state_dict, load_state_dict, on_checkpoint_save_start
 * and on_checkpoint_load_start are the client's own business inside save() and load().) */
struct loop_callback {
    void *self;
    int (*on_trial_startup)(void *self, int64_t first_batch_idx, const char *checkpoint_uuid,
                            struct det_err *err);
    int (*on_training_start)(void *self, struct det_err *err);
    int (*on_training_epoch_start)(void *self, int64_t epoch_idx, struct det_err *err);
    int (*on_training_epoch_end)(void *self, int64_t epoch_idx, struct det_err *err);
    /* batches[i] are the metrics of the workload's i-th batch (of rank 0, averaged over ranks). */
    int (*on_training_workload_end)(void *self, const struct loop_metrics *avg,
                                    const struct loop_metrics *batches, size_t n,
                                    struct det_err *err);
    int (*on_validation_start)(void *self, struct det_err *err);
    int (*on_validation_epoch_start)(void *self, struct det_err *err);
    /* outputs[i]: this rank's metrics of its i-th validation batch. */
    int (*on_validation_epoch_end)(void *self, const struct loop_metrics *outputs, size_t n,
                                   struct det_err *err);
    int (*on_validation_end)(void *self, const struct loop_metrics *metrics, struct det_err *err);
    int (*on_checkpoint_write_end)(void *self, const char *dir, struct det_err *err); /* chief */
    int (*on_checkpoint_upload_end)(void *self, const char *uuid, struct det_err *err);
    int (*on_trial_shutdown)(void *self, struct det_err *err);
};

/* Reducers of validation metrics: the values are the contract's. */
enum loop_reduction { LOOP_AVG = 1, LOOP_SUM = 2, LOOP_MAX = 3, LOOP_MIN = 4 };

/* The trial state of a checkpoint (trial_state.pkl): exactly these six numbers. */
struct loop_state {
    int64_t trial_id, last_ckpt, step_id, last_val, batches_trained, epochs_trained;
};

struct det_loop_trial_type {
    /* ---- life ---- */
    /* __init__: builds the trial; `loop` lives until destroy() returns. Required. */
    int (*create)(void *self, struct loop *loop, struct det_err *err);
    /* Also after a failed create. May be NULL. */
    void (*destroy)(void *self);
    /* *ret: an array of *ret_n; borrowed until destroy. Each may be NULL (none). callbacks is
     * called once, after create; the others after create too, since a trial wraps them there. */
    int (*callbacks)(void *self, const struct loop_callback **ret, size_t *ret_n,
                     struct det_err *err);
    int (*reducers)(void *self, const struct loop_reducer **ret, size_t *ret_n,
                    struct det_err *err);
    int (*lr_schedulers)(void *self, const struct loop_lr **ret, size_t *ret_n,
                         struct det_err *err);
    /* ---- data: required ---- */
    int (*build_training_loader)(void *self, struct loop_loader *ret, struct det_err *err);
    int (*build_validation_loader)(void *self, struct loop_loader *ret, struct det_err *err);
    /* Records of a batch, asked for every batch of training and validation; NULL: not counted. */
    int64_t (*batch_records)(void *self, const void *batch);
    /* ---- steps ---- */
    /* Forward, backward, optimizer step. `metrics` comes cleared. Required. */
    int (*train_batch)(void *self, const void *batch, int64_t epoch_idx, int64_t batch_idx,
                       struct loop_metrics *metrics, struct det_err *err);
    /* The numbers that train_batch said come later, by ticket, borrowed until the next batch;
     * tickets begin anew. NULL: none does. */
    int (*late_metrics)(void *self, const double **ret, size_t *ret_n, struct det_err *err);
    /* Exactly one of the two. evaluate_all is called on rank 0 only. */
    int (*evaluate_batch)(void *self, const void *batch, int64_t batch_idx,
                          struct loop_metrics *metrics, struct det_err *err);
    int (*evaluate_all)(void *self, struct loop_metrics *metrics, struct det_err *err);
    /* How a validation metric is reduced; NULL: LOOP_AVG. A negative code fails the validation. */
    int (*reduction)(void *self, const char *metric, struct det_err *err);
    /* All models: train mode with gradients, or eval mode without. Required. */
    int (*set_training)(void *self, bool training, struct det_err *err);
    /* Loss scaler of automatic mixed precision, after each update batch; NULL: none. */
    int (*scaler_update)(void *self, struct det_err *err);
    /* Parameters and optimizer states of rank 0 to all; called when there are several ranks. */
    int (*broadcast)(void *self, struct comm *comm, struct det_err *err);
    /* ---- state ---- */
    /* A hook has failed, and the state is to be saved all the same (invalid hyperparameters): what
     * failed must not fail that too. For trials whose failures stay; NULL: they do not. */
    void (*forget_failure)(void *self);
    /* On every rank before rank 0's save(), to hand it what other ranks know; not before a
     * checkpoint that rank 0 makes alone (invalid hyperparameters). May be NULL. */
    int (*before_save)(void *self, struct comm *comm, struct det_err *err);
    /* Writes state_dict.pth (models, optimizers, LR schedulers, callbacks, random state, scaler)
     * into dir; what is left to do with the files goes on behind training. Rank 0 only. Required
     * where there is no snapshot(). */
    int (*save)(void *self, const char *dir, struct det_err *err);
    /* The same in two: a copy of all that is to be saved, then its writing, in another thread,
     * while training goes on; then its end. At most one is there at a time. All three, or none.
     * write_snapshot may put {file: XXH3-128 in hex} of what it wrote into `hashes`: what is not
     * there is read again for its hash. */
    int (*snapshot)(void *self, void **ret, struct det_err *err);
    int (*write_snapshot)(void *snapshot, const char *dir, json_t *hashes, struct det_err *err);
    void (*free_snapshot)(void *snapshot);
    /* Adds what the trial wants to tell in metadata.json, and to the master; the loop's own keys
     * win. Before save(), on rank 0. May be NULL. */
    int (*metadata)(void *self, json_t *object, struct det_err *err);
    /* Restores all of it on every rank, in the order of docs/contract/loop.md 10. DET_ENOENT: no
     * state file. A damaged file does not get here: its hash was checked before. Required. */
    int (*load)(void *self, const char *dir, struct det_err *err);
    /* trial_state.pkl; both or neither. NULL: the loop keeps trial_state.json instead. load gives
     * DET_ENOENT where there is no such file. */
    /* May be called in the thread of write_snapshot(): writes *s and nothing else. */
    int (*save_state)(void *self, const char *dir, const struct loop_state *s, struct det_err *err);
    int (*load_state)(void *self, const char *dir, struct loop_state *ret, struct det_err *err);
    /* Before every training batch, even its fetching, and after the last (`ended`): the place of a
     * profiler's step. May be NULL. */
    void (*between_batches)(void *self, bool ended);
    /* ---- TensorBoard (docs/contract/loop.md 11); each may be NULL ---- */
    /* Rank 0: what is being reported after `steps` batches, to be written as scalars. rows: the
     * metrics of each of a workload's n batches; NULL for a validation. */
    void (*write_metrics)(void *self, int64_t steps, const struct loop_metrics *metrics,
                          const struct loop_metrics *rows, size_t n);
    /* After every boundary, on every rank: flushes. Returns the directory whose files the loop
     * keeps in the checkpoint store (they may only grow), borrowed; NULL: nothing to keep. */
    const char *(*tensorboard_dir)(void *self);
};

struct det_loop_trial {
    const struct det_loop_trial_type *type;
    void *self;
};

/* ---- Running --------------------------------------------------------------------------------- */

/* Runs the trial to its end: out of operations, preempted, stopped, or invalid hyperparameters
 * are all 0 (all was reported). Negative: the process must exit non-zero (loop_exit_code). `c`
 * and `t` are borrowed. DET_ESTALE: this run is no longer the trial's current one; nothing more
 * was written. */
DET_MUST int loop_run(const struct det_loop_config *c, const struct det_loop_trial *t,
                      struct det_err *err);
/* 0 -> 0; DET_ESTALE -> 75; anything else -> 1. */
int loop_exit_code(int rc);
/* Local mode: the directory that holds the checkpoints, absolute (a relative one is made, beneath
 * the current directory); caller frees. */
char *loop_local_root(const struct det_loop_config *c);

/* ---- For the client's hooks, while the run lasts (l NULL: there is none) --------------------- */

const struct det_loop_config *loop_config(const struct loop *l);
struct comm *loop_comm(struct loop *l); /* the control plane; also carries gradients on the CPU */
/* Index of the batch being trained; -1 before training. */
int64_t loop_batch_idx(const struct loop *l);
int64_t loop_epoch_idx(const struct loop *l);
int64_t loop_epoch_len(const struct loop *l); /* of this rank's share; 0 before the loaders exist */
int64_t loop_batches_trained(const struct loop *l);
/* (batch_idx + 1) % aggregation_frequency == 0. */
bool loop_is_update_batch(const struct loop *l);
void loop_set_stop_requested(struct loop *l, bool stop); /* at the next boundary, checkpointed */
bool loop_get_stop_requested(const struct loop *l);
/* Where the store has the TensorBoard files of this trial, those of earlier runs too; the caller
 * frees. NULL in local mode, or without a store (which is logged). */
char *loop_tensorboard_kept(struct loop *l);

/* step_optimizer (docs/contract/loop.md 1): the one place where gradients meet ranks and
 * aggregation. */
struct loop_step_hooks {
    void *self;
    int (*reduce)(void *self, struct comm *comm, struct det_err *err); /* mean over ranks */
    int (*scale)(void *self, double factor, struct det_err *err);      /* all gradients */
    int (*clip)(void *self, struct det_err *err);                      /* NULL: none */
    int (*step)(void *self, struct det_err *err);                      /* or the scaler's step */
    int (*zero)(void *self, struct det_err *err);
    bool sum_aggregated; /* this optimizer's gradients are not divided */
    bool keep_grads;
};
/* Nothing unless this is an update batch; then reduce, divide by the aggregation frequency,
 * clip, step, zero (unless keep_grads). keep_grads with aggregation > 1 is DET_EINVAL. */
DET_MUST int loop_step_optimizer(struct loop *l, const struct loop_step_hooks *h,
                                 struct det_err *err);

#endif
