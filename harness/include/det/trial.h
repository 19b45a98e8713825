/*
 * The trial API in C: determined.pytorch's PyTorchTrial and PyTorchTrialContext, name by name.
 *
 * A trial is one constant table, exported under the class name that the experiment's entrypoint
 * gives ("entrypoint: model_def:DigitsTrial" looks for model_def.c or model_def.so in the submitted
 * directory, and in it for this symbol):
 *
 *     const struct det_trial_type DigitsTrial = {
 *         .det_api_version = DET_API_VERSION,
 *         .self_bytes = sizeof(struct digits),
 *         .create = digits_create,
 *         .train_batch = digits_train_batch,
 *         ...
 *     };
 *
 * The loop makes one object of it, calls its hooks, and owns everything else: epochs, periods,
 * averaging, reports, checkpoints, pausing, resuming, stopping.
 *
 * Errors are STICKY, so model code reads without checks: the first failure of the context (a
 * missing hyperparameter) or of its engine (a shape that does not fit) is kept, and the loop asks
 * after every hook. A hook that finds something wrong itself calls det_trial_fail() and returns.
 *
 * Ownership. The trial's own struct (`self`, cleared to zero) is the loop's memory. What is wrapped
 * is TAKEN and destroyed after destroy(). Strings from the context are borrowed until the trial
 * ends, batches until the hook returns; metrics are copied; a step's tensors die at the end of the
 * hook.
 *
 * Threads: all hooks run in one thread.
 */
#ifndef DET_TRIAL_H
#define DET_TRIAL_H

#include "det/conv.h"
#include "det/data.h"
#include "det/data_files.h"
#include "det/err.h"
#include "det/grad_scaler.h"
#include "det/image.h"
#include "det/init.h"
#include "det/lr.h"
#include "det/nn.h"
#include "det/nn_seq.h"
#include "det/optim.h"
#include "det/tensor.h"
#include "det/tensorboard.h"
#include "det/vision.h"
#include "det/weights.h"
#include <stdbool.h>
#include <stdint.h>

/* Raised whenever a struct or a function here changes in a way that old .so files cannot bear. */
#define DET_API_VERSION 2

struct det_trial_context;
struct det_metrics;

/* How a validation metric is reduced over batches and ranks (pytorch.Reducer). */
enum det_reducer {
    DET_REDUCER_AVG = 1,
    DET_REDUCER_SUM = 2,
    DET_REDUCER_MAX = 3,
    DET_REDUCER_MIN = 4
};

struct det_trial_type {
    int det_api_version; /* DET_API_VERSION; must stay the first member */
    size_t self_bytes;   /* size of the trial's own struct; not 0 */
    /* __init__: build and wrap models, optimizers, schedulers. Required. */
    void (*create)(void *self, struct det_trial_context *ctx);
    /* Frees what the trial itself allocated (not what was wrapped). Also after a failed create. */
    void (*destroy)(void *self, struct det_trial_context *ctx);
    /* Required, both; called anew for every run. The loop takes the loader. */
    struct det_data_loader *(*build_training_data_loader)(void *self,
                                                          struct det_trial_context *ctx);
    struct det_data_loader *(*build_validation_data_loader)(void *self,
                                                            struct det_trial_context *ctx);
    /* Required. Names must be the same for every batch. */
    void (*train_batch)(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics);
    /* Exactly one of the two; gradients are off and models in eval mode. The second is called on
     * rank 0 only, with the whole loader. */
    void (*evaluate_batch)(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics);
    void (*evaluate_full_dataset)(void *self, struct det_trial_context *ctx,
                                  struct det_data_loader *loader, struct det_metrics *metrics);
    /* Optional: the reducer of a validation metric; without it, DET_REDUCER_AVG for all. */
    enum det_reducer (*evaluation_reducer)(void *self, struct det_trial_context *ctx,
                                           const char *metric);
    /* Optional: calls det_trial_add_callback() for each. */
    void (*build_callbacks)(void *self, struct det_trial_context *ctx);
    /* Optional: records in a batch; without it, det_batch_length(). */
    int64_t (*get_batch_length)(void *self, struct det_trial_context *ctx,
                                const struct det_batch *batch);
    void (*reserved[8])(void); /* zero */
};

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The engine of the trial: its device, its tape, its generator (seeded from the trial seed). */
struct det_engine *det_trial_engine(struct det_trial_context *ctx);
/* Fails the hook (kept if it is the first failure): the trial ends as an error and is restarted up
 * to max_restarts times. */
void det_trial_fail(struct det_trial_context *ctx, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* InvalidHP: these hyperparameters cannot work. The trial ends with a checkpoint, is not restarted,
 * and the searcher is told. One rank's word is enough: the others end too. */
void det_trial_invalid_hp(struct det_trial_context *ctx, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* True once something failed: for loops in a hook that should not go on. */
bool det_trial_failed(const struct det_trial_context *ctx);
/* The context's error, for functions that want one (det/data.h). What they write there fails the
 * hook. While the context has failed already this is a scratch error, so that the first text
 * stays. */
struct det_err *det_trial_err(struct det_trial_context *ctx);

/* ---- Configuration --------------------------------------------------------------------------- */
/* Dotted names reach into nested objects: "optimizer.lr". The strings are borrowed. */

/* Hyperparameters. A missing name or a wrong type is a failure that lists the names there are; the
 * value is then 0, NULL or false. */
double det_hparam_f64(struct det_trial_context *ctx, const char *name);
int64_t det_hparam_i64(struct det_trial_context *ctx, const char *name); /* 3.0 is taken as 3 */
const char *det_hparam_str(struct det_trial_context *ctx, const char *name);
bool det_hparam_bool(struct det_trial_context *ctx, const char *name);
bool det_hparam_has(struct det_trial_context *ctx, const char *name);
/* All of them, as JSON. */
const char *det_hparams_json(struct det_trial_context *ctx);

/* The `data` section of the configuration: the fallback where absent; a wrong type is a failure. */
const char *det_data_str(struct det_trial_context *ctx, const char *name, const char *fallback);
int64_t det_data_i64(struct det_trial_context *ctx, const char *name, int64_t fallback);
double det_data_f64(struct det_trial_context *ctx, const char *name, double fallback);
bool det_data_bool(struct det_trial_context *ctx, const char *name, bool fallback);

/* get_experiment_config(), get_data_config(): the whole as JSON; "null" where there is none. */
const char *det_trial_experiment_config_json(struct det_trial_context *ctx);
const char *det_trial_data_config_json(struct det_trial_context *ctx);

/* ---- Facts ----------------------------------------------------------------------------------- */

/* From the hyperparameter global_batch_size, rounded down to a multiple of the slots. */
int64_t det_trial_global_batch_size(struct det_trial_context *ctx);
int64_t det_trial_per_slot_batch_size(struct det_trial_context *ctx);
int64_t det_trial_experiment_id(const struct det_trial_context *ctx); /* 0 in local mode */
int64_t det_trial_id(const struct det_trial_context *ctx);            /* 0 in local mode */
uint32_t det_trial_seed(const struct det_trial_context *ctx);
int64_t det_trial_initial_batch(const struct det_trial_context *ctx); /* steps done at the start */
/* context.distributed: rank 0 is the chief. */
int det_trial_rank(const struct det_trial_context *ctx);
int det_trial_size(const struct det_trial_context *ctx);
int det_trial_local_rank(const struct det_trial_context *ctx);
int det_trial_local_size(const struct det_trial_context *ctx);
int det_trial_cross_rank(const struct det_trial_context *ctx); /* of this host */
int det_trial_cross_size(const struct det_trial_context *ctx);
/* The place in the training data; a failure before training has started. */
bool det_trial_is_epoch_start(struct det_trial_context *ctx);
bool det_trial_is_epoch_end(struct det_trial_context *ctx);
int64_t det_trial_current_train_epoch(struct det_trial_context *ctx);
int64_t det_trial_current_train_batch(struct det_trial_context *ctx);
/* A directory of this rank's own for downloads, made on first use, gone when the task ends. */
const char *det_trial_download_dir(struct det_trial_context *ctx);
/* Ends the trial at the next boundary, with a checkpoint. */
void det_trial_set_stop_requested(struct det_trial_context *ctx, bool stop);
bool det_trial_get_stop_requested(const struct det_trial_context *ctx);

/* What a trainer was given for the trial (det/trainer.h): NULL, and "{}", elsewhere. Borrowed. */
void *det_trial_arg(const struct det_trial_context *ctx);
const char *det_trial_kwargs_json(const struct det_trial_context *ctx);

/* ---- Wrapping, in create: takes the object, returns it; the order of calls is its identity in
 * checkpoints -- */

struct det_module *det_trial_wrap_model(struct det_trial_context *ctx, struct det_module *model);
/* Its gradients are averaged over ranks, and over passes (optimizations.aggregation_frequency). */
struct det_wrap_optimizer_options {
    bool sum_aggregated; /* average_aggregated_gradients=False, for this optimizer */
};
#define det_trial_wrap_optimizer(ctx, optim, ...)                                                  \
    det_trial_wrap_optimizer_opt(ctx, optim,                                                       \
                                 &(const struct det_wrap_optimizer_options){__VA_ARGS__})
struct det_optim *det_trial_wrap_optimizer_opt(struct det_trial_context *ctx,
                                               struct det_optim *optim,
                                               const struct det_wrap_optimizer_options *options);

enum det_step_mode { /* LRScheduler.StepMode */
                     DET_STEP_EVERY_EPOCH = 1,
                     DET_STEP_EVERY_BATCH = 2,
                     DET_MANUAL_STEP = 3,
                     DET_STEP_EVERY_OPTIMIZER_STEP = 4
};
/* frequency >= 1. The optimizer of `lr` must have been wrapped. */
struct det_lr *det_trial_wrap_lr_scheduler(struct det_trial_context *ctx, struct det_lr *lr,
                                           enum det_step_mode mode, int64_t frequency);
/* Before the first wrap_model, once. The trial makes the scaler's calls itself: the loss of
 * det_trial_backward() through det_grad_scaler_scale(), .scaler of det_trial_step_optimizer(), and
 * det_grad_scaler_update(). Its state is saved and restored. */
struct det_grad_scaler *det_trial_wrap_scaler(struct det_trial_context *ctx,
                                              struct det_grad_scaler *scaler);
/* experimental.use_amp(): before the first wrap_model. train_batch and the evaluation run under
 * autocast to bf16 (det_autocast_begin()), on a CPU too; det_trial_backward() and
 * det_trial_step_optimizer() do the scaler's part, which for bf16 is nothing. */
void det_trial_use_amp(struct det_trial_context *ctx);
/* context.models, .optimizers, .lr_schedulers: the i-th wrapped; NULL past the last. */
struct det_module *det_trial_model(const struct det_trial_context *ctx, size_t i);
struct det_optim *det_trial_optimizer(const struct det_trial_context *ctx, size_t i);
struct det_lr *det_trial_lr_scheduler(const struct det_trial_context *ctx, size_t i);

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Gradients of loss into the parameters; with several ranks they are averaged over the ranks at the
 * step. The loss has one element, unless .gradient (of its shape) is given; .retain_graph allows a
 * second call for the same graph: det_trial_backward(ctx, loss, .retain_graph = true). */
#define det_trial_backward(ctx, loss, ...)                                                         \
    det_trial_backward_opt(ctx, loss, &(const struct det_backward_options){__VA_ARGS__})
void det_trial_backward_opt(struct det_trial_context *ctx, struct det_tensor *loss,
                            const struct det_backward_options *options);

struct det_step_options {
    double clip_norm;  /* > 0: scale all gradients so that their norm is at most this */
    double clip_value; /* > 0: clamp every element */
    void (*clip_grads)(void *arg, struct det_module *model); /* own way; the optimizer's module */
    void *clip_arg;
    bool keep_grads; /* auto_zero_grads=False */
    /* Steps in the optimizer's place (scaler.step). What is clipped is unscaled before, unless the
     * trial did that. */
    struct det_grad_scaler *scaler;
};
/* Does nothing but accumulate unless this is an update batch ((batch_idx + 1) % aggregation == 0);
 * otherwise: mean over ranks, division by the aggregation, clipping, step, zero. The part after `o`
 * is any of the options' fields, by name: det_trial_step_optimizer(ctx, o, .clip_norm = 1.0). */
#define det_trial_step_optimizer(ctx, o, ...)                                                      \
    det_trial_step_optimizer_opt(ctx, o, &(const struct det_step_options){__VA_ARGS__})
void det_trial_step_optimizer_opt(struct det_trial_context *ctx, struct det_optim *o,
                                  const struct det_step_options *options);

/* ---- Metrics: the last value of a name counts ------------------------------------------------ */

void det_metrics_f64(struct det_metrics *m, const char *name, double value);
/* The tensor's elements, read from the device: a scalar, or an array. */
void det_metrics_tensor(struct det_metrics *m, const char *name, const struct det_tensor *t);
void det_metrics_array(struct det_metrics *m, const char *name, const double *values, size_t n);
/* None: left out of the averages of training. A validation metric must be a number. */
void det_metrics_none(struct det_metrics *m, const char *name);

/* ---- Reducers (context.wrap_reducer) --------------------------------------------------------- */

struct det_custom_reducer;
/* A function over all updates of all ranks (interleaved: first of rank 0, first of rank 1, ...). */
typedef double det_reduce_fn(void *arg, const double *v, size_t n);
struct det_custom_reducer *det_trial_wrap_reducer(struct det_trial_context *ctx, const char *name,
                                                  det_reduce_fn *fn, void *arg, bool for_training,
                                                  bool for_validation);
void det_reducer_update(struct det_custom_reducer *r, double value);

/* A MetricReducer with its own state. All three hooks are required. */
struct det_reducer_type {
    void (*reset)(void *self);
    /* This rank's value, written to a malloc'ed block that the loop frees. */
    void *(*per_slot_reduce)(void *self, size_t *ret_bytes);
    /* The values of all ranks, in rank order; fills the result. Runs on every rank. */
    void (*cross_slot_reduce)(void *self, const void *const *values, const size_t *bytes, size_t n,
                              struct det_metrics *out);
};
/* `type` and `self` are borrowed until the trial ends. */
void det_trial_wrap_metric_reducer(struct det_trial_context *ctx,
                                   const struct det_reducer_type *type, void *self,
                                   bool for_training, bool for_validation);

/* ---- Checkpoints ----------------------------------------------------------------------------- */

/* Adds a key to metadata.json and to what the master shows of every later checkpoint; `json` is the
 * text of any JSON value, NULL takes the key away. The loop's own keys win. */
void det_trial_set_metadata(struct det_trial_context *ctx, const char *key, const char *json);

/* The dictionary of state_dict.pth while a callback's on_checkpoint_save_start or
 * on_checkpoint_load_start runs: models_state_dict, optimizers_state_dict,
 * lr_schedulers_state_dict, callbacks, rng_state, and what the trial put there. Changes count: they
 * are what is written, or what is restored. Failures are the context's. */
struct det_checkpoint;
bool det_checkpoint_has(const struct det_checkpoint *c, const char *key);
void det_checkpoint_remove(struct det_checkpoint *c, const char *key);
/* Plain values, as the text of any JSON value; torch.load gives them as Python's. */
void det_checkpoint_put_json(struct det_checkpoint *c, const char *key, const char *json);
/* Borrowed until the hook returns; tensors in it are null. NULL where there is no such key. */
const char *det_checkpoint_get_json(struct det_checkpoint *c, const char *key);
/* A tensor (copied). */
void det_checkpoint_put_tensor(struct det_checkpoint *c, const char *key,
                               const struct det_tensor *t);
/* On the host; borrowed until the hook returns (det_tensor_ref() keeps it). NULL where there is no
 * such tensor. */
struct det_tensor *det_checkpoint_get_tensor(struct det_checkpoint *c, const char *key);
/* Weights of model i by name ("conv1.weight"): renamed, as for a checkpoint of an older
 * architecture; false where there is none. And read: borrowed until the hook returns, or NULL. */
bool det_checkpoint_rename_weight(struct det_checkpoint *c, size_t model, const char *name,
                                  const char *to);
struct det_tensor *det_checkpoint_weight(struct det_checkpoint *c, size_t model, const char *name);

/* ---- TensorBoard ----------------------------------------------------------------------------- */

/* The trial's writer (context.get_tensorboard_writer()), made on first use; the context's, do not
 * destroy it. NULL on every rank but 0, which all functions of det/tensorboard.h take quietly. Its
 * failures are logged once and do not end the trial. */
struct det_tensorboard *det_trial_tensorboard(struct det_trial_context *ctx);
/* This rank's directory, whose files the loop keeps beside the checkpoints after every boundary
 * (files may only grow; other ranks' event files are not kept). NULL in a local run without
 * --tensorboard-dir, where the writer makes runs/<date>_<host>. */
const char *det_trial_tensorboard_path(struct det_trial_context *ctx);
/* Whether the loop writes the metrics it reports as "Determined/<name>" and
 * "Determined/val_<name>"; it does unless this turns it off. */
void det_trial_set_tensorboard_logging(struct det_trial_context *ctx, bool on);
bool det_trial_get_tensorboard_logging(const struct det_trial_context *ctx);

/* ---- Profiler (context.set_profiler) --------------------------------------------------------- */

/* torch.profiler.schedule: after skip_first batches, rounds of `wait` batches (nothing), `warmup`
 * (forgotten) and `active` (recorded), `repeat` times. */
struct det_profiler_options {
    int skip_first, wait, warmup;
    int active;                /* 0: 1 */
    int repeat;                /* 0: until training ends */
    bool no_shapes, no_memory; /* leave these out */
    bool no_sync; /* on a GPU: do not wait for each kernel, whose time is then only its launch */
    int rows;     /* of the summary; 0: 20 */
};
/* Records the loop's and the trial's hooks, kernels with their shapes, data loading, collectives
 * and checkpoints of whole batches. After every round, and one that the end of training cuts short,
 * this rank writes <host>#<rank>.<milliseconds>.pt.trace.json (Chrome's trace format) into its
 * TensorBoard directory, and rank 0 a summary as the text "profiler". The part after `ctx` is any
 * of the options' fields. Once, and before training starts. A negative number is a failure. */
#define det_trial_set_profiler(ctx, ...)                                                           \
    det_trial_set_profiler_opt(ctx, &(const struct det_profiler_options){__VA_ARGS__})
void det_trial_set_profiler_opt(struct det_trial_context *ctx,
                                const struct det_profiler_options *options);
/* The table of the last recording: name, own and whole time, calls; Markdown, borrowed until the
 * next one. NULL before the first. */
const char *det_trial_profiler_summary(const struct det_trial_context *ctx);

/* ---- Callbacks (PyTorchCallback): every hook may be NULL --- */

struct det_callback {
    const char *name; /* key of the saved state; unique; copied */
    void *self;       /* first argument of every hook; borrowed */
    void (*on_trial_startup)(void *self, int64_t first_batch_idx, const char *checkpoint_uuid);
    void (*on_checkpoint_load_start)(void *self, struct det_checkpoint *checkpoint);
    void (*on_training_start)(void *self);
    void (*on_training_epoch_start)(void *self, int64_t epoch_idx);
    void (*on_training_epoch_end)(void *self, int64_t epoch_idx);
    /* batch_metrics[i]: of the workload's i-th batch, averaged over the ranks. */
    void (*on_training_workload_end)(void *self, const struct det_metrics *avg_metrics,
                                     const struct det_metrics *const *batch_metrics, size_t n);
    void (*on_validation_start)(void *self);
    void (*on_validation_epoch_start)(void *self);
    /* outputs[i]: what evaluate_batch gave for this rank's i-th batch. */
    void (*on_validation_epoch_end)(void *self, const struct det_metrics *const *outputs, size_t n);
    void (*on_validation_end)(void *self, const struct det_metrics *metrics);
    /* Rank 0 only: before the state is written, and when all files but metadata.json are in dir. */
    void (*on_checkpoint_save_start)(void *self, struct det_checkpoint *checkpoint);
    void (*on_checkpoint_write_end)(void *self, const char *dir);
    void (*on_checkpoint_upload_end)(void *self, const char *uuid);
    void (*on_trial_shutdown)(void *self);
    /* State of at most 1 MiB, kept in the checkpoint: a malloc'ed NUL-terminated JSON text, which
     * the loop frees; and the same text again after a restore (borrowed). */
    char *(*state_dict)(void *self);
    void (*load_state_dict)(void *self, const char *json);
};
/* Copies *cb. Only in build_callbacks; hooks run in this order, shutdown in reverse. */
void det_trial_add_callback(struct det_trial_context *ctx, const struct det_callback *cb);
/* A metric's value in a callback; NaN if absent, None or an array. */
double det_metrics_get(const struct det_metrics *m, const char *name);
/* The i-th name, borrowed; NULL past the last. */
const char *det_metrics_name(const struct det_metrics *m, size_t i);
/* An array's elements, borrowed; NULL unless it is one. */
const double *det_metrics_get_array(const struct det_metrics *m, const char *name, size_t *ret_n);

/* ---- Collectives (context.distributed): every rank must call, in the same order -------------- */

/* Each rank's bytes to all: ret[rank] of (*ret_bytes)[rank] bytes, borrowed until the next call.
 * NULL on failure (kept by the context). */
const void *const *det_trial_allgather(struct det_trial_context *ctx, const void *p, size_t bytes,
                                       const size_t **ret_bytes);
/* Rank 0's bytes to all; borrowed until the next call. NULL on failure. */
const void *det_trial_broadcast(struct det_trial_context *ctx, const void *p, size_t bytes,
                                size_t *ret_bytes);
void det_trial_barrier(struct det_trial_context *ctx);

#endif
