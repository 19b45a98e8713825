/*
 * The inside of an engine, for the folders above this one (nn, optim) and for this one.
 *
 * Two kinds of ownership meet here: what a public function returns belongs to the step (det__keep),
 * what the engine makes for itself has one reference that its maker drops.
 */
#ifndef ENGINE_H
#define ENGINE_H

#include "backend.h"
#include "mem_pool.h"
#include "vec.h"

struct tape;
struct device_reads;

/* A weight as autocast gave it to operations. */
struct autocast_entry {
    struct det_tensor *from, *to; /* references */
    bool grad;                    /* made while gradients were recorded */
    bool used;
};

/* Told of each leaf of a backward pass when nothing of the pass is added to its gradient any more,
 * in the middle of the pass, when grad_uses of the leaves that are still to come, and of this one,
 * is above 0. It must not change the tape. */
struct grad_watch {
    int (*complete)(void *arg, struct det_tensor *leaf, struct det_err *err);
    void *arg;
};

struct det_engine {
    const struct det_backend *backend;
    struct mem_pool *pool;
    struct det_device *device; /* owned by pool */
    struct det_stream *stream;
    char *name; /* "cuda:1" */
    int threads;
    struct det_err err;                  /* code 0: none */
    VEC(struct det_tensor *) step, dead; /* of the last step */
    struct tape *tape;
    int no_grad; /* depth */
    struct det_rng_state rng;
    VEC(enum det_dtype) autocast; /* the dtypes of the det_autocast_begin() that are open */
    VEC(struct autocast_entry) casts;
    struct device_reads *reads;          /* under way (device_reads.h); borrowed */
    const struct grad_watch *grad_watch; /* of the next backward pass; borrowed; NULL: none */
    /* Its gradients are being averaged on another stream: nobody may look at them or go back a
     * second time. Only compared; NULL: none. */
    const struct det_storage *grads_leave;
    VEC(struct det_tensor *) cast_before; /* the weights of the last casts, in order; references */
};

/* A new tensor on the device, not cleared; the caller owns it. */
DET_MUST int det__tensor_new(struct det_engine *e, enum det_dtype dtype, enum det_layout layout,
                             int ndim, const int64_t *dims, struct det_tensor **ret,
                             struct det_err *err);
/* The same, with rows (the last dimension) `step` elements apart. */
DET_MUST int det__tensor_rows(struct det_engine *e, enum det_dtype dtype, int ndim,
                              const int64_t *dims, int64_t step, struct det_tensor **ret,
                              struct det_err *err);
/* Whether t has rows apart, but little (a gradient that lies so takes as much), and the device
 * knows such. */
bool det__has_rows(const struct det_engine *e, const struct det_tensor *t);
/* The same shape, dtype and layout as t; dense. */
DET_MUST int det__tensor_like(struct det_engine *e, const struct det_tensor *t,
                              struct det_tensor **ret, struct det_err *err);
/* Gives t to the step; returns it. */
struct det_tensor *det__keep(struct det_engine *e, struct det_tensor *t);
/* Ends the tensors that the step was given since det__step_mark(), but `t`: what a module made for
 * itself on the way to its result, which nobody else has seen. The tape keeps what it needs. */
size_t det__step_mark(const struct det_engine *e);
void det__step_drop(struct det_engine *e, size_t mark, const struct det_tensor *t);
/* t's elements in C order, where the CPU can read them at any time; NULL: they lie otherwise. */
const void *det__host_bytes(const struct det_tensor *t);
/* t on the device: a new reference to t itself or a copy. */
DET_MUST int det__on_device(struct det_engine *e, struct det_tensor *t, struct det_tensor **ret,
                            struct det_err *err);
/* Overwrites dst with src: same dims, any dtypes, layouts and places. */
DET_MUST int det__copy(struct det_engine *e, struct det_tensor *src, struct det_tensor *dst,
                       struct det_err *err);

/* Runs one kernel of the backend; DET_EUNIMPL where it has none. */
DET_MUST int det__run(struct det_engine *e, const struct det_call *c, struct det_err *err);
/* The same with a profiler listening (span.h). */
DET_MUST int det__run_told(struct det_engine *e, det_kernel_fn *fn, const struct det_call *c,
                           struct det_err *err);
/* The same for a kernel marked *: repeats inputs to the dims of out[0] where they have 1 or none.
 */
DET_MUST int det__run_wide(struct det_engine *e, const struct det_call *c, struct det_err *err);
/* The steps of an optimizer: calls of one kernel, each for one parameter. */
DET_MUST int det__run_steps(struct det_engine *e, const struct det_call *c, size_t n,
                            struct det_err *err);
/* The next random call's numbers: sets a->seed and a->call. */
void det__draw(struct det_engine *e, struct det_attrs *a);

/* Keeps *err as the engine's error where it is the first; returns its code. */
int det__keep_error(struct det_engine *e, const struct det_err *err);

/* ---- Gradients of leaves ---- */

/* Where a gradient of t is to be written: t's own one where t is a leaf that has none yet, else a
 * new tensor. The caller owns a reference and hands it to det__grad_add(). */
DET_MUST int det__grad_dest(struct det_engine *e, struct det_tensor *t, struct det_tensor **ret,
                            struct det_err *err);
/* Adds g to the gradient of t (leaf or not). Takes g. */
DET_MUST int det__grad_add(struct det_engine *e, struct det_tensor *t, struct det_tensor *g,
                           struct det_err *err);
/* While gradients are averaged on another stream (grads_leave): DET_ESTATE, "WHAT: ...". */
DET_MUST int det__grads_refuse(const char *what, struct det_err *err);
/* 0 where leaf's gradient is none of these, else the engine's error. */
DET_MUST int det__grad_check(const struct det_tensor *leaf, const char *what);

static inline void tensor_unrefp(struct det_tensor **t)
{
    det_tensor_unref(*t);
}
#define TENSOR_OWN det_cleanup(tensor_unrefp) struct det_tensor *

#endif
