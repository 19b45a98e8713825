/*
 * A walk: one pass over the elements of several tensors of the same dims whatever their strides,
 * as few long rows. Dimensions are ordered by the first tensor's strides (so it is written from
 * front to back) and joined where all tensors allow it: dense tensors of one layout become one row.
 */
#ifndef WALK_H
#define WALK_H

#include "tensor_impl.h"

#define DET__WALK_MAX 4

struct det__walk {
    int tensors;
    int ndim; /* at least 1; the last one is the row */
    int64_t numel;
    int64_t dims[DET_DIMS_MAX];
    int64_t strides[DET__WALK_MAX][DET_DIMS_MAX]; /* in elements */
};

/* All of t have t[0]'s dims. */
void det__walk_init(struct det__walk *w, int tensors, const struct det_tensor *const *t);
/* Elements from .. to-1 of the walk, as pieces of rows: n elements of tensor k begin at at[k] and
 * lie w->strides[k][w->ndim - 1] apart (both in elements). */
typedef void det__walk_fn(void *arg, int64_t n, const int64_t *at);
void det__walk_range(const struct det__walk *w, int64_t from, int64_t to, det__walk_fn *fn,
                     void *arg);

/* The step of tensor k along a row. */
static inline int64_t det__walk_step(const struct det__walk *w, int k)
{
    return w->strides[k][w->ndim - 1];
}

#endif
