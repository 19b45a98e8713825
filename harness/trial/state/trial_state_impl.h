/*
 * The state of one model, optimizer or scheduler as PyTorch's state_dict, and back.
 *
 * The files of this folder:
 *   trial_state.c: the files of a checkpoint
 *   trial_state_model.c, trial_state_optim.c, trial_state_grads.c, trial_state_rng.c: what
 *     is in them
 *   trial_state_value.c: single values
 *   trial_state_copy.c and trial_state_staging.c: a snapshot's copies and their memory
 *   trial_checkpoint.c: its dictionary and metadata for callbacks
 *   trainer_load.c: a trial from one, for inference
 *   weights.c: a module's state alone
 */
#ifndef TRIAL_STATE_IMPL_H
#define TRIAL_STATE_IMPL_H

#include "det/lr.h"
#include "det/optim.h"
#include "det/weights.h"
#include "pth.h"
#include "trial_context.h"
#include "vec.h"

/* Copies of host memory that are to be made (trial_state_copy.c). */
struct state_copy {
    void *to;
    const void *from;
    size_t bytes;
};
struct state_copies {
    VEC(struct state_copy) v;
    size_t bytes; /* of all */
};

struct state_writer {
    struct pth_doc *doc;
    struct state_copies *copies;   /* where those of host memory are noted; NULL: made at once */
    struct device_reads *reads;    /* where those of a device's are; NULL: read at once */
    struct state_staging *staging; /* where tensors are copied to while there is room; NULL */
    bool measures;                 /* nothing is copied: only what `staging` is asked for counts */
    struct det_err *err;
};

/* Tensors are copied to ordinary memory of the document. NULL with *w->err: no memory, or the
 * device failed. */
struct pth_value *state_of_model(struct state_writer *w, struct det_module *m);
struct pth_value *state_of_optim(struct state_writer *w, struct det_optim *o);
struct pth_value *state_of_lr(struct state_writer *w, struct det_lr *lr);

/* Notes a copy; both places stay as they are until it is made. */
void state_copies_add(struct state_copies *s, void *to, const void *from, size_t bytes);
/* Makes and forgets all, by at most so many threads (at least 1). */
void state_copies_run(struct state_copies *s, int threads);
void state_copies_finish(struct state_copies *s);

/* trial_state_staging.c: forgets the last snapshot, and from now on has the room that it wanted;
 * room for `bytes`, 64-aligned, or NULL (also where s is). */
void state_staging_reset(struct state_staging *s);
void *state_staging_take(struct state_staging *s, size_t bytes);
/* By a thread, until the next reset: every page of it. */
void state_staging_touch(struct state_staging *s);
void state_staging_finish(struct state_staging *s);

/* Named values into a dict; false with *w->err. */
bool state_put_values(struct state_writer *w, struct pth_value *dict, const struct det_value *v,
                      size_t n);
/* A value (v), or a dict of them (dict), read from a file, with what they point to. To be finished
 * also after a failure. */
struct loaded {
    struct det_value v;
    struct det_values dict;
    double *floats;
    struct loaded *parts;
    size_t parts_n;
    struct det_value *values;
    struct det_values *dicts;
};
DET_MUST int state_load_value(struct loaded *l, const char *name, const struct pth_value *x,
                              struct det_err *err);
DET_MUST int state_load_dict(struct loaded *l, const struct pth_value *dict, struct det_err *err);
void state_loaded_finish(struct loaded *l);

/* DET_EINVAL names what does not fit; the object may then hold a part of the state. */
DET_MUST int state_to_model(const struct pth_value *state, struct det_module *m,
                            const struct det_weights_options *o, struct det_err *err);
DET_MUST int state_to_optim(const struct pth_value *state, struct det_optim *o,
                            struct det_err *err);
DET_MUST int state_to_lr(const struct pth_value *state, struct det_lr *lr, struct det_err *err);

/* ctx->open_grads into the file; this rank's out of it. */
struct det_trial_context;
void state_put_grads(struct det_trial_context *ctx, struct pth_doc *doc, struct pth_value *root);
DET_MUST int state_take_grads(struct det_trial_context *ctx, const struct pth_value *root,
                              struct det_err *err);
/* The random state: the engine's and ctx->rank_calls; this rank's. */
void state_put_rng(struct det_trial_context *ctx, struct pth_doc *doc, struct pth_value *root);
void state_take_rng(struct det_trial_context *ctx, const struct pth_value *root);

/* A tensor of a file as a host tensor of `dtype`; the caller unrefs it. NULL with *err. */
struct det_tensor *state_tensor(const struct pth_value *v, enum det_dtype dtype,
                                struct det_err *err);
struct pth_value *state_of_tensor(struct state_writer *w, const struct det_tensor *t);

#endif
