/*
 * The inside of a tensor: for the engine's own folders and for backends, not for trials.
 *
 * A tensor is a typed, shaped window on a storage (reference-counted memory). A 4-D tensor's `dims`
 * are always logical (N, C, H, W). `strides` say where its elements lie; `layout` is the class of
 * these strides, so that kernels for dense tensors need no look at them. Where C = 1 or H = W = 1
 * both dense orders are the same bytes, and the layout says DET_LAYOUT_PLAIN. Views share storage;
 * nothing but a write of the user's changes a tensor once it is made.
 */
#ifndef TENSOR_IMPL_H
#define TENSOR_IMPL_H

#include "det/tensor.h"

enum det_layout {
    DET_LAYOUT_PLAIN,   /* dense, C order over dims */
    DET_LAYOUT_NHWC,    /* dense, 4-D only: (N, H, W, C) in memory */
    DET_LAYOUT_STRIDED, /* any other: a part, another order of dims, one element repeated */
};

struct det_storage;

/* How memory is given back and reached: host memory here, device memory by the engine. */
struct det_storage_ops {
    void (*release)(struct det_storage *s); /* gives s->data back; the struct is freed after it */
    /* All elements of t, C order, waiting for the device; NULL where s->host. */
    int (*read)(const struct det_tensor *t, void *host, struct det_err *err);
    int (*write)(struct det_tensor *t, const void *host, struct det_err *err);
};

struct det_storage {
    const struct det_storage_ops *ops;
    uint32_t refs;
    bool host; /* the bytes can be read by the CPU at any time */
    void *data;
    size_t bytes;
    void *owner; /* for ops */
};

struct det_node; /* autograd/tape.h: the call that made a tensor */

struct det_tensor {
    uint32_t refs; /* 0: dead, see det__tensor_end() */
    enum det_dtype dtype;
    enum det_layout layout;
    int ndim;
    int64_t dims[DET_DIMS_MAX];
    int64_t strides[DET_DIMS_MAX]; /* in elements, never negative; canonical where dense */
    size_t numel;
    struct det_storage *storage; /* one reference */
    char *data;                  /* inside the storage */
    struct det_engine *engine;   /* NULL: a host tensor */
    bool requires_grad;          /* a leaf that wants a gradient */
    bool grad_set;               /* grad holds something; else it counts as absent */
    struct det_tensor *grad;     /* one reference; NULL until the first backward */
    struct det_node *node;       /* on the tape; NULL for leaves and outside */
    uint32_t grad_uses; /* of a leaf and its casts, in a backward pass that a grad_watch is told of:
                         * how many nodes that take it are still to come */
};

/* A step's tensors that died with it stay known, without their bytes, for the step after: who has
 * kept a pointer and no reference is told so. */
#define DET__IS_DEAD "is of an earlier batch: keep a tensor beyond its batch by det_tensor_ref()"
static inline bool det__is_dead(const struct det_tensor *t)
{
    return t->refs == 0;
}
/* Gives back a reference. True: it was the last, t is dead, and the caller frees it. */
bool det__tensor_end(struct det_tensor *t);

/* Owned by the caller (one reference). `storage`'s reference is taken, also on failure. */
struct det_tensor *det__tensor_over(struct det_storage *storage, char *data, enum det_dtype dtype,
                                    int ndim, const int64_t *dims);
/* A tensor on the same storage with another shape of as many elements; layout PLAIN. */
struct det_tensor *det__tensor_view(struct det_tensor *t, int ndim, const int64_t *dims);
/* A tensor on the same storage, `offset` elements further, with any strides that stay inside. */
struct det_tensor *det__tensor_window(struct det_tensor *t, int ndim, const int64_t *dims,
                                      const int64_t *strides, int64_t offset);
/* Sets a dense layout and its strides (PLAIN where NHWC would be the same). */
void det__set_layout(struct det_tensor *t, enum det_layout layout);
/* Sets any strides and finds their layout. */
void det__set_strides(struct det_tensor *t, const int64_t *strides);
/* How many elements apart the rows (the last dimension) of t lie, where they are dense, in C order
 * and all equally far apart; 0: they are not. */
int64_t det__row_step(const struct det_tensor *t);
/* The strides of such rows. */
void det__row_strides(int ndim, const int64_t *dims, int64_t step, int64_t strides[DET_DIMS_MAX]);
/* *view = t as a window of dims (ndim >= t's), repeating where t has 1 or nothing. Borrows t's
 * storage: for the time of a call only. False where the shapes do not fit. */
bool det__broadcast(const struct det_tensor *t, int ndim, const int64_t *dims,
                    struct det_tensor *view);
/* Copies all elements of `from` to `to`, by way of ordinary memory: they may belong to different
 * engines. Same shape and dtype, else DET_EINVAL. */
DET_MUST int det__tensor_assign(struct det_tensor *to, const struct det_tensor *from,
                                struct det_err *err);

/* The number of elements, or -1 where a dimension is negative or the bytes pass DET__BYTES_MAX. */
int64_t det__shape_numel(enum det_dtype dtype, int ndim, const int64_t *dims);
/* The same, or DET_EINVAL with what is wrong with the shape. */
int64_t det__shape_check(enum det_dtype dtype, int ndim, const int64_t *dims, struct det_err *err);
bool det__same_shape(const struct det_tensor *a, const struct det_tensor *b);
/* "float32[64, 1, 28, 28]"; returns buf. */
const char *det__shape_text(enum det_dtype dtype, int ndim, const int64_t *dims, char *buf,
                            size_t n);
/* The same, or "NULL". */
const char *det__tensor_text(const struct det_tensor *t, char *buf, size_t n);
/* True where both layouts of these dims are the same bytes. */
bool det__layout_free(int ndim, const int64_t *dims);

#define DET__BYTES_MAX ((int64_t)1 << 40)

#endif
