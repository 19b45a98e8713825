/* Joining, cutting, ordering, marking and counting: what moves elements and computes nothing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "mem.h"
#include "ref.h"

/* The part of y's rows that tensor t stands for; `at` moves past it. */
static void copy_part(const struct det_tensor *whole, const struct det_tensor *t, int64_t *at,
                      bool join)
{
    size_t elem = det_dtype_size(whole->dtype);
    size_t row = (size_t)(whole->dims[1] * whole->dims[2]) * elem;
    size_t part = (size_t)(t->dims[1] * t->dims[2]) * elem;
    char *w = whole->data + (size_t)(*at * whole->dims[2]) * elem;
    for (int64_t a = 0; part > 0 && a < whole->dims[0]; a++) {
        char *in_whole = w + (size_t)a * row, *own = t->data + (size_t)a * part;
        memcpy(join ? in_whole : own, join ? own : in_whole, part);
    }
    *at += t->dims[1];
}

int ref_cat(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t at = 0;
    for (int i = 0; i < DET_CALL_IN_MAX && c->in[i]; i++)
        copy_part(c->out[0], c->in[i], &at, true);
    return 0;
}

int ref_cut(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    int64_t at = c->a.skip;
    copy_part(c->in[0], c->out[0], &at, false);
    return 0;
}

/* A floating number, or a whole one. */
struct keyed {
    double value;
    int64_t whole, index;
};

/* NaN is the greatest; equals stay in their order. */
static int by_value(const void *va, const void *vb)
{
    const struct keyed *a = va, *b = vb;
    bool nan_a = a->value != a->value, nan_b = b->value != b->value;
    if (nan_a != nan_b)
        return nan_a ? 1 : -1;
    if (!nan_a && a->value != b->value)
        return a->value < b->value ? -1 : 1;
    if (a->whole != b->whole)
        return a->whole < b->whole ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static int compare_descending(const void *va, const void *vb)
{
    const struct keyed *a = va, *b = vb;
    int order = by_value(va, vb);
    bool equal = a->value == b->value || (a->value != a->value && b->value != b->value);
    return equal && a->whole == b->whole ? order : -order;
}

int ref_sort(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    det_cleanup(freep) struct keyed *row = det_try_alloc((size_t)n * sizeof *row + 1);
    if (!row)
        return det_fail(err, DET_ENOMEM, "no memory to sort %" PRId64 " elements", n);
    enum det_dtype dtype = c->in[0]->dtype;
    bool whole = !det__is_float(dtype);
    size_t elem = det_dtype_size(dtype);
    for (int64_t i = 0; i < m; i++) {
        const char *x = c->in[0]->data + (size_t)(i * n) * elem;
        for (int64_t j = 0; j < n; j++)
            row[j] = (struct keyed){whole ? 0 : det__load_f64(dtype, x + (size_t)j * elem),
                                    whole ? det__load_i64(dtype, x + (size_t)j * elem) : 0, j};
        qsort(row, (size_t)n, sizeof *row, c->a.descending ? compare_descending : by_value);
        for (int64_t j = 0; j < n; j++) {
            memcpy(c->out[0]->data + (size_t)(i * n + j) * elem, x + (size_t)row[j].index * elem,
                   elem);
            ((int64_t *)(void *)c->out[1]->data)[i * n + j] = row[j].index;
        }
    }
    return 0;
}

int ref_triangle(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const int64_t *d = c->in[0]->dims;
    size_t elem = det_dtype_size(c->in[0]->dtype);
    for (int64_t i = 0; i < d[0] * d[1] * d[2]; i++) {
        int64_t above = i % d[2] - i / d[2] % d[1] - c->a.skip;
        bool kept = c->a.upper ? above >= 0 : above <= 0;
        if (kept)
            memcpy(c->out[0]->data + (size_t)i * elem, c->in[0]->data + (size_t)i * elem, elem);
        else
            memset(c->out[0]->data + (size_t)i * elem, 0, elem);
    }
    return 0;
}

int ref_one_hot(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    int64_t n = c->out[0]->dims[1], *y = (int64_t *)(void *)c->out[0]->data;
    const int64_t *x = (const int64_t *)(const void *)c->in[0]->data;
    memset(y, 0, c->out[0]->numel * sizeof *y);
    for (size_t i = 0; i < c->in[0]->numel; i++) {
        if (x[i] < 0 || x[i] >= n)
            return det_fail(err, DET_EINVAL, "element %zu is class %" PRId64 " of %" PRId64, i,
                            x[i], n);
        y[(int64_t)i * n + x[i]] = 1;
    }
    return 0;
}

int ref_eq_count(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    size_t size = det_dtype_size(c->in[0]->dtype), equal = 0;
    for (size_t i = 0; i < c->in[0]->numel; i++)
        equal += memcmp(c->in[0]->data + i * size, c->in[1]->data + i * size, size) == 0;
    out_f32(c, 0)[0] = (float)equal;
    return 0;
}
