#include "walk.h"

#include <string.h>

/* Puts dimension d in its place among the `n` sorted ones: the first tensor's strides fall. */
static void insert_dim(struct det__walk *w, int n, const struct det_tensor *const *t, int d)
{
    int at = n;
    while (at > 0 && w->strides[0][at - 1] < t[0]->strides[d])
        at--;
    size_t moved = (size_t)(n - at) * sizeof(int64_t);
    memmove(&w->dims[at + 1], &w->dims[at], moved);
    w->dims[at] = t[0]->dims[d];
    for (int k = 0; k < w->tensors; k++) {
        memmove(&w->strides[k][at + 1], &w->strides[k][at], moved);
        w->strides[k][at] = t[k]->strides[d];
    }
}

static bool can_join(const struct det__walk *w, int outer, int inner)
{
    for (int k = 0; k < w->tensors; k++)
        if (w->strides[k][outer] != w->strides[k][inner] * w->dims[inner])
            return false;
    return true;
}

static void join_all(struct det__walk *w)
{
    int last = 0;
    for (int d = 1; d < w->ndim; d++) {
        int64_t size = can_join(w, last, d) ? w->dims[last] : 0;
        if (size == 0)
            last++;
        w->dims[last] = size ? size * w->dims[d] : w->dims[d];
        for (int k = 0; k < w->tensors; k++)
            w->strides[k][last] = w->strides[k][d];
    }
    w->ndim = w->ndim ? last + 1 : 0;
}

void det__walk_init(struct det__walk *w, int tensors, const struct det_tensor *const *t)
{
    *w = (struct det__walk){.tensors = tensors, .numel = (int64_t)t[0]->numel};
    for (int d = 0; d < t[0]->ndim; d++)
        if (t[0]->dims[d] != 1)
            insert_dim(w, w->ndim++, t, d);
    join_all(w);
    if (w->ndim == 0) { /* one element */
        w->ndim = 1;
        w->dims[0] = 1;
        for (int k = 0; k < tensors; k++)
            w->strides[k][0] = 1;
    }
}

/* Where element i of the walk lies in each tensor; returns how many of its row are left. */
static int64_t locate_element(const struct det__walk *w, int64_t i, int64_t *at)
{
    int64_t left = 0;
    memset(at, 0, DET__WALK_MAX * sizeof *at);
    for (int d = w->ndim - 1; d >= 0; d--) {
        int64_t index = i % w->dims[d];
        i /= w->dims[d];
        if (d == w->ndim - 1)
            left = w->dims[d] - index;
        for (int k = 0; k < w->tensors; k++)
            at[k] += index * w->strides[k][d];
    }
    return left;
}

void det__walk_range(const struct det__walk *w, int64_t from, int64_t to, det__walk_fn *fn,
                     void *arg)
{
    int64_t at[DET__WALK_MAX];
    while (from < to) {
        int64_t n = locate_element(w, from, at);
        n = n < to - from ? n : to - from;
        fn(arg, n, at);
        from += n;
    }
}
