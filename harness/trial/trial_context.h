/*
 * The context of a C trial from inside: what det/trial.h's functions work on, and what the loop's
 * hooks (trial_loop.c) keep between calls. One per run; it lives from create to destroy.
 *
 * The files of this folder:
 *   main.c: det-harness
 *   trainer.c: the functions of det/trial.h that make and run
 *   trial_context.c: facts
 *   trial_config.c: hyperparameters
 *   trial_wrap.c: models, optimizers, backward, step
 *   trial_scaler.c: mixed precision
 *   trial_loader.c: loaders
 *   trial_metrics.c and trial_late.c: metrics, those still on the device
 *   trial_callback.c: callbacks
 *   trial_collective.c and trial_broadcast.c: ranks among each other
 *   trial_device.c: gradients by NCCL
 *   trial_overlap.c: the same beside the backward pass
 *   trial_fail.c: how a trial fails
 *   trial_profile.c and trial_tensorboard.c: what it writes about itself
 */
#ifndef TRIAL_CONTEXT_H
#define TRIAL_CONTEXT_H

#include "data_loader.h"
#include "det/trial.h"
#include "loop.h"
#include "trial_late.h"
#include "trial_tensorboard.h"
#include "vec.h"

#include <pthread.h>

/* A loader with the loop's order on top. */
struct trial_loader {
    struct det_data_loader *loader;
    struct sampler_plan plan;
    uint32_t seed;
    int64_t *perm;      /* the order of epoch perm_epoch, when shuffled */
    int64_t perm_epoch; /* -1: none yet */
};

struct trial_lr {
    struct det_lr *lr;
    enum det_step_mode mode;
    int64_t frequency;
};

struct det_custom_reducer {
    struct det_trial_context *ctx;
    char *name; /* NULL: a MetricReducer */
    bool for_training, for_validation;
    det_reduce_fn *fn;
    void *arg;
    VEC(double) values;
    const struct det_reducer_type *type;
    void *self;
};

struct trial_callback {
    struct det_trial_context *ctx;
    struct det_callback cb;
    char *name;
};

/* What a trainer gives a trial beside the configuration. */
struct trial_extra {
    void *arg;          /* det_trial_arg(); borrowed */
    const char *kwargs; /* det_trial_kwargs_json(): JSON text or NULL; borrowed */
};

/* Memory that snapshots are taken into (trial_state_staging.c). */
struct state_staging {
    char *room;         /* PTH_ROOM to write from, then `cap` bytes for copies; NULL: none yet */
    size_t cap, wanted; /* by the last snapshot */
    pthread_t toucher;
    bool touching;
    int batches; /* that have begun, while it matters */
};

struct det_trial_context {
    const struct det_trial_type *type;
    struct trial_extra extra;
    void *trial;       /* the user's struct */
    struct loop *loop; /* NULL outside a run */
    const struct det_loop_config *config;
    struct det_engine *engine;
    struct det_err err;     /* the first failure; code 0: none */
    struct det_err scratch; /* for later ones */
    VEC(struct det_module *) models;
    VEC(struct det_optim *) optims;
    VEC(struct det_wrap_optimizer_options) optim_options; /* of each */
    VEC(struct trial_lr) lrs;
    struct det_grad_scaler *scaler; /* NULL: none was wrapped */
    bool amp;                       /* it is use_amp's */
    VEC(struct det_custom_reducer *) reducers;
    VEC(struct trial_callback *) callbacks;
    /* The same as the loop knows them; built once, after create. */
    VEC(struct loop_lr) loop_lrs;
    VEC(struct loop_reducer) loop_reducers;
    VEC(struct loop_callback) loop_callbacks;
    struct trial_loader train, valid;
    struct state_staging staging;
    struct trial_late late;          /* metrics of training batches */
    struct comm_blobs open_grads;    /* of all ranks, for the checkpoint that rank 0 writes */
    struct comm_blobs rank_calls;    /* likewise: how often each has drawn random numbers */
    struct comm_device *device_comm; /* NULL: not opened, or no_device_comm */
    size_t overlap_bytes;            /* DET_OVERLAP_MIB; the same on all ranks */
    struct grads_overlap *overlap;   /* NULL: gradients are averaged after the backward pass */
    bool no_device_comm;
    bool no_grad;  /* det_no_grad_begin() is in force */
    bool adding;   /* build_callbacks is running */
    bool made;     /* create is over: what the loop knows of models and the like stays */
    bool reducing; /* the loop has the reducers */
    char *hparams_text, *config_text, *data_text; /* JSON, made when asked for */
    char *download_dir;                           /* NULL: not asked for yet */
    json_t *metadata;                             /* NULL: none was set */
    struct comm_blobs gathered;                   /* of the last det_trial_allgather() */
    void *broadcast;                              /* of the last det_trial_broadcast() */
    struct trial_tensorboard tensorboard;
    struct trial_profile *profile; /* NULL: none was set */
};

/* Metrics as a hook sees them. */
struct det_metrics {
    struct loop_metrics *m;
    struct det_trial_context *ctx;
    bool may_wait; /* numbers of the device may be read when the batch is long over */
};

/* Makes the context and calls the trial's create(); *ret also after a failure, to be destroyed.
 * `config` is borrowed until the next attach or the end; loop NULL: there is none (inference). */
DET_MUST int trial_context_create(const struct det_trial_type *type,
                                  const struct det_loop_config *config, struct loop *loop,
                                  const struct trial_extra *extra, struct det_trial_context **ret,
                                  struct det_err *err);
/* Another run with the same models begins; the earlier run's failure is forgotten. */
void trial_context_attach(struct det_trial_context *ctx, const struct det_loop_config *config,
                          struct loop *loop);
/* The run ended: its loaders and callbacks go. */
void trial_context_detach(struct det_trial_context *ctx);
void trial_context_destroy(struct det_trial_context *ctx); /* NULL ok */

/* 0, or the first failure of the context or its engine, its text in *err. */
DET_MUST int trial_check(struct det_trial_context *ctx, struct det_err *err);
/* Records a failure unless there was one. */
void trial_fail(struct det_trial_context *ctx, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The profiler (trial_profile.c): between two batches, where a complete recording is written; after
 * the last, where one that is cut short is. */
void trial_profile_step(struct det_trial_context *ctx);
void trial_profile_stop(struct det_trial_context *ctx);
void trial_profile_finish(struct det_trial_context *ctx);

/* Fails where it is too late for what `call` wraps. */
void trial_check_time(struct det_trial_context *ctx, bool too_late, const char *call);
/* What create() must have wrapped (trial_wrap.c). */
DET_MUST int trial_check_wrapped(const struct det_trial_context *ctx, struct det_err *err);

/* Loop callbacks and reducers for what the trial added. */
void trial_fill_callbacks(struct det_trial_context *ctx);
void trial_fill_reducers(struct det_trial_context *ctx);

/* The loop's view of a loader; takes dl. DET_EINVAL (a hook gave NULL). */
DET_MUST int trial_loader_init(struct trial_loader *l, struct det_data_loader *dl, uint32_t seed,
                               struct loop_loader *ret, struct det_err *err);
void trial_loader_finish(struct trial_loader *l);

/* state_dict.pth and trial_state.pkl (trial_state.c). */
struct trial_snapshot;
DET_MUST int trial_snapshot(struct det_trial_context *ctx, struct trial_snapshot **ret,
                            struct det_err *err);
/* In any thread; the context is not touched. */
DET_MUST int trial_snapshot_write(const struct trial_snapshot *s, const char *dir, json_t *hashes,
                                  struct det_err *err);
void trial_snapshot_destroy(struct trial_snapshot *s); /* NULL is allowed */
/* Between batches: once the optimizers have their state, memory for snapshots of it is got ready
 * by a thread. */
void trial_snapshot_prepare(struct det_trial_context *ctx);
DET_MUST int trial_load(struct det_trial_context *ctx, const char *dir, struct det_err *err);
DET_MUST int trial_load_weights(struct det_trial_context *ctx, const char *dir,
                                struct det_err *err);
/* On all ranks, before rank 0 calls trial_snapshot() (trial_state_grads.c, trial_state_rng.c). */
DET_MUST int trial_gather_grads(struct det_trial_context *ctx, struct comm *comm,
                                struct det_err *err);
DET_MUST int trial_gather_rng(struct det_trial_context *ctx, struct comm *comm,
                              struct det_err *err);
/* use_amp's autocast, where it is wanted: around hooks, not around backward and step, after which
 * weights are cast anew (trial_scaler.c). */
void trial_amp_begin(struct det_trial_context *ctx);
void trial_amp_end(struct det_trial_context *ctx);
/* Its part of state_dict.pth, where there is a scaler. */
struct pth_doc;
struct pth_value;
DET_MUST int trial_save_scaler(struct det_trial_context *ctx, struct pth_doc *doc,
                               struct pth_value *root, struct det_err *err);
DET_MUST int trial_load_scaler(struct det_trial_context *ctx, const struct pth_value *root,
                               struct det_err *err);
DET_MUST int trial_save_counters(const char *dir, const struct loop_state *s, struct det_err *err);
DET_MUST int trial_load_counters(const char *dir, struct loop_state *ret, struct det_err *err);
/* Rank 0's parameters, buffers and optimizer tensors to all ranks. */
DET_MUST int trial_broadcast(struct det_trial_context *ctx, struct comm *comm, struct det_err *err);
/* Only the buffers, before a validation: what ranks counted for themselves (running statistics) is
 * not in the checkpoint, and a validation must not depend on whether the trial was resumed
 * since. */
DET_MUST int trial_broadcast_buffers(struct det_trial_context *ctx, struct comm *comm,
                                     struct det_err *err);

#endif
