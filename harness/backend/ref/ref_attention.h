/*
 * How the tensors of ATTENTION lie: either q, k and v apart, [B, H, T, D], or one tensor
 * [B, T, 3, H, D] of all three, as one linear layer makes it; the output lies as q does, or
 * [B, T, H, D]. Shared by the host backends.
 */
#ifndef REF_ATTENTION_H
#define REF_ATTENTION_H

#include "ref_real.h"

struct attention {
    const struct det_call *c;
    int64_t batch, heads, time, keys, width; /* B H T S D */
    bool packed;
};

/* The matrix of one head: rows of `width` elements, `step` apart. */
struct head {
    real *p;
    int64_t step;
};

/* first: the index of q in c->in (1 in the backward kernel). */
static inline struct attention attention_of(const struct det_call *c, int first)
{
    const int64_t *d = c->in[first]->dims;
    if (!c->in[first + 1])
        return (struct attention){c, d[0], d[3], d[1], d[1], d[4], true};
    return (struct attention){c, d[0], d[1], d[2], c->in[first + 1]->dims[2], d[3], false};
}

/* Head (b, h) of q, k or v (which 0, 1, 2) in t: the packed tensor, or the one that is meant. */
static inline struct head head_in(const struct attention *a, const struct det_tensor *t, int which,
                                  int64_t b, int64_t h)
{
    real *p = (real *)(void *)t->data;
    int64_t rows = which == 0 ? a->time : a->keys, line = a->heads * a->width;
    if (!a->packed)
        return (struct head){p + (b * a->heads + h) * rows * a->width, a->width};
    return (struct head){p + b * rows * 3 * line + which * line + h * a->width, 3 * line};
}

/* Head (b, h) of the output or its gradient. */
static inline struct head head_out(const struct attention *a, const struct det_tensor *t, int64_t b,
                                   int64_t h)
{
    real *p = (real *)(void *)t->data;
    if (!a->packed)
        return head_in(a, t, 0, b, h);
    int64_t line = a->heads * a->width;
    return (struct head){p + b * a->time * line + h * a->width, line};
}

/* Row t of the mask of head (b, h), or NULL. mask: [B or 1, H or 1, T, S]. */
static inline const real *mask_row(const struct attention *a, const struct det_tensor *mask,
                                   int64_t b, int64_t h, int64_t t)
{
    if (!mask)
        return NULL;
    int64_t head = (mask->dims[0] > 1 ? b : 0) * mask->dims[1] + (mask->dims[1] > 1 ? h : 0);
    return (const real *)(const void *)mask->data + (head * a->time + t) * a->keys;
}

/* keep[s] = 0, or 1 / (1 - p): dropout of the weights of row (b, h, t). */
void REF(attention_keep)(const struct attention *a, int64_t row, real *keep);

#endif
