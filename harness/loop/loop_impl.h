/*
 * The run in progress, shared by the files of the loop and by nobody else.
 *
 * Ranks stay in step by one rule: whatever only the chief (rank 0) can know, or only it does, is
 * followed by loop_agree(), which carries its outcome to all; so all ranks take the same branch,
 * always.
 *
 * The files of this folder:
 *   loop.c: the life of a run
 *   loop_train.c: operations, batches, boundaries
 *   loop_step.c: where gradients meet ranks
 *   loop_validate.c: validation
 *   loop_reduce.c: metric reducers
 *   loop_agree.c: what ranks agree on
 *   loop_invalid.c: hyperparameters that cannot work
 *   loop_math.c: arithmetic
 *   sampler.c: which batch comes next
 *   loop_env.c: the configuration of a task
 *   loop_local.c: that of a run without a cluster
 */
#ifndef LOOP_IMPL_H
#define LOOP_IMPL_H

#include "loop.h"
#include "loop_math.h"
#include "uuid.h"

struct reporter;
struct loop_save;
struct preempt;
struct loop_profile;
struct storage;

/* A control-plane wait may last as long as one rank works alone, or as the master is away; a dead
 * rank breaks its connection, and a hung one is the watchdog's matter. */
#define LOOP_PATIENCE_MS (24 * 60 * 60 * 1000)

struct loop_rows { /* metrics of the batches of one workload, memory reused */
    struct loop_metrics *v;
    size_t n, cap;
};

struct loop_op {
    int64_t length; /* absolute, in length_unit */
    bool active;    /* there is one: not so during step-zero validation */
    bool completed;
    struct loop_unit unit; /* the same as a unit of the loop */
};

struct loop_agreed { /* what loop_agree() carries; fixed size, plain bytes */
    int32_t rc;
    int32_t flag;
    int32_t sys, unused; /* of the chief's err */
    int64_t n[3];
    char uuid[64];
    char text[512];
};

struct loop {
    const struct det_loop_config *c;
    const struct det_loop_trial_type *t;
    void *self;
    struct comm *comm;
    int rank, size;
    bool chief;

    const struct loop_callback *callbacks;
    size_t n_callbacks;
    const struct loop_reducer *reducers;
    size_t n_reducers;
    const struct loop_lr *lrs;
    size_t n_lrs;
    struct loop_loader train, valid;

    struct loop_state state;
    int64_t epoch_len;
    int64_t batch_idx;        /* of the batch being trained; -1 before */
    char latest[64];          /* checkpoint to start from; "" none */
    bool stop_requested;      /* this rank's own flag */
    bool leaving;             /* stop, preemption: agreed by all ranks */
    bool said_nan;            /* that a metric is no finite number */
    bool code_is_too_big;     /* for checkpoints of a local run; known to the one that writes */
    bool in_checkpoint;       /* InvalidHP from here makes no other checkpoint */
    bool started;             /* on_trial_startup ran: shutdown hooks are owed */
    _Atomic bool works_alone; /* in what waits for no other rank; looked at by another thread */
    bool chief_reports;       /* another rank, and rank 0 knows that hyperparameters cannot work */

    struct loop_rows rows;         /* training */
    size_t n_settled;              /* rows whose numbers have all come */
    struct loop_infinite infinite; /* of these rows, or of a validation while it lasts */
    struct loop_rows outs;         /* validation */
    struct loop_op op;

    bool checkpoints_wait;        /* written before training goes on; the same on all ranks */
    struct loop_save *saving;     /* chief: the checkpoint that is being written; NULL: none */
    struct storage *storage;      /* the chief's from the start; others open it when they restore */
    struct loop_profile *profile; /* NULL: not wanted */
    bool store_was_away;          /* and training did not go on since */
    _Atomic bool store_was_full;  /* for a write of this run; the saving thread's word too */
    bool tensorboard_failed;      /* and was logged */
    struct reporter *reporter;    /* chief of a managed trial */
    struct preempt *preempt;      /* likewise */
    int64_t known_validation;     /* steps of the last validation the master knows; -1: none */
    bool have_best;
    double best;
};

/* loop.c: the chief's *a to all. Returns a->rc with its text in *err: every rank fails alike. */
DET_MUST int loop_agree(struct loop *l, struct loop_agreed *a, struct det_err *err);
/* Fills a->rc and a->text from the chief's own failure before loop_agree(). */
void loop_agreed_fail(struct loop_agreed *a, int rc, const struct det_err *err);
/* What was agreed on as this rank's own outcome; `whose` begins a failure's text. */
DET_MUST int loop_agreed_end(const struct loop_agreed *a, const char *whose, struct det_err *err);
static inline bool loop_val_current(const struct loop *l)
{
    return l->state.last_val == l->state.batches_trained;
}
static inline bool loop_ckpt_current(const struct loop *l)
{
    return l->state.last_ckpt == l->state.batches_trained;
}
struct loop_metrics *loop_rows_next(struct loop_rows *r); /* a cleared row at the end */
void loop_rows_finish(struct loop_rows *r);

/* Calls hook of every callback, in order, with the trailing arguments; the first failure ends
 * it. */
#define LOOP_CALLBACKS(l, hook, ...)                                                               \
    __extension__({                                                                                \
        int rc_ = 0;                                                                               \
        for (size_t i_ = 0; rc_ == 0 && i_ < (l)->n_callbacks; i_++) {                             \
            const struct loop_callback *cb_ = &(l)->callbacks[i_];                                 \
            if (cb_->hook)                                                                         \
                rc_ = cb_->hook(cb_->self, __VA_ARGS__);                                           \
        }                                                                                          \
        rc_;                                                                                       \
    })

/* loop_train.c */
DET_MUST int loop_run_ops(struct loop *l, struct det_err *err);
/* loop_validate.c */
DET_MUST int loop_validate(struct loop *l, struct det_err *err);
/* loop_reduce.c: resets; then values of all ranks reduced and merged into m. */
DET_MUST int loop_reducers_reset(struct loop *l, bool training, struct det_err *err);
DET_MUST int loop_reducers_run(struct loop *l, bool training, struct loop_metrics *m,
                               struct det_err *err);
/* loop_checkpoint.c. alone: only this rank takes part (it ends with InvalidHP). */
DET_MUST int loop_checkpoint(struct loop *l, bool alone, struct det_err *err);
/* Before the first one, on all ranks: do checkpoints make training wait? */
DET_MUST int loop_checkpoint_init(struct loop *l, struct det_err *err);
/* The chief's: reports the one that was being written, if it is by now, or says why it is not. */
DET_MUST int loop_checkpoint_poll(struct loop *l, struct det_err *err);
/* On all ranks: waits for it. */
DET_MUST int loop_checkpoint_finish(struct loop *l, struct det_err *err);
/* The run failed with `why`: what is being written is finished and reported, unless DET_ESTALE. */
void loop_checkpoint_abandon(struct loop *l, int why);
/* loop_restore.c: chooses what to start from (l->latest, l->state.batches_trained as the
 * expected step), then, after startup and loaders, loads it. */
DET_MUST int loop_restore_choose(struct loop *l, struct det_err *err);
DET_MUST int loop_restore_load(struct loop *l, struct det_err *err);
/* loop_invalid.c. After the trial ended with rc: DET_EINVALIDHP where this rank or another one
 * found that the hyperparameters cannot work, with the state saved; else rc. */
DET_MUST int loop_invalid_hp(struct loop *l, int rc, struct det_err *err);
/* The metric l->infinite of batch `batch`, if there is one. Said at once, and once a run: nothing
 * is learned from there on. DET_EINVALIDHP where it ends the trial. */
DET_MUST int loop_invalid_metric(struct loop *l, const char *group, int64_t batch,
                                 struct det_err *err);
/* Tells the master, where that is this rank's part. */
DET_MUST int loop_invalid_hp_report(struct loop *l, struct det_err *err);
/* For comm_options; of any thread. */
int loop_invalid_hp_unheard(void *loop, const char *why, int unheard_ms);
/* loop_storage.c */
DET_MUST int loop_open_storage(struct loop *l, struct det_err *err);
/* After a failure to write: what to do about it, where the system's words tell; returns rc. */
int loop_storage_failed(struct loop *l, int rc, struct det_err *err);
/* Notes whether err says that the store has no room; for whoever writes there. */
void loop_storage_saw(struct loop *l, const struct det_err *err);
/* True where only writing can have failed so: no room, a quota, a limit, the disk. */
bool loop_storage_is_short(const struct det_err *err);
/* On all ranks, at the start: can rank 0 write checkpoints? */
DET_MUST int loop_check_storage(struct loop *l, struct det_err *err);
/* Chief, before a checkpoint: waits a while for a store that is away; DET_EUNAVAIL: it stays so. */
DET_MUST int loop_storage_await(struct loop *l, struct det_err *err);
/* The end of a run that failed so: where it is for want of its store, or of room there, det-task is
 * told. */
void loop_storage_note(struct loop *l, int rc, const struct det_err *why);
/* loop_tensorboard.c: what a boundary left to keep. */
void loop_tensorboard_keep(struct loop *l);
/* loop_code.c: copies a directory tree; what lies in skip_dir is left out. */
DET_MUST int loop_copy_code(const char *from, const char *to, const char *skip_dir,
                            struct det_err *err);

#endif
