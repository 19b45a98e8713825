/*
 * Reading and adding at indices. Tensors are [A, N, B], or [N, B] where A = 1: N is the dimension
 * that the index runs over. Additions are made in the order of the index, on one thread.
 */
#include "ref.h"

#include <inttypes.h>
#include <string.h>

static const int64_t *indices_of(const struct det_call *c, int i)
{
    return (const int64_t *)(const void *)c->in[i]->data;
}

struct rows {
    int64_t a, n, b;
};

static struct rows rows_of(const struct det_tensor *t)
{
    const int64_t *d = t->dims + t->ndim - 2;
    return (struct rows){t->ndim > 2 ? t->dims[0] : 1, d[0], d[1]};
}

static int check_indices(const struct det_call *c, int64_t n, int64_t skip, struct det_err *err)
{
    const int64_t *index = indices_of(c, 1);
    for (size_t i = 0; i < c->in[1]->numel; i++)
        if ((index[i] < 0 || index[i] >= n) && index[i] != skip)
            return det_fail(err, DET_EINVAL,
                            "index %zu is %" PRId64 ", but there are the rows 0 to %" PRId64, i,
                            index[i], n - 1);
    return 0;
}

int ref_index_select(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    struct rows x = rows_of(c->in[0]);
    const int64_t *index = indices_of(c, 1), k = (int64_t)c->in[1]->numel;
    size_t row = (size_t)x.b * det_dtype_size(c->in[0]->dtype);
    int rc = check_indices(c, x.n, 0, err);
    for (int64_t a = 0; rc == 0 && row > 0 && a < x.a; a++)
        for (int64_t i = 0; i < k; i++)
            memcpy(c->out[0]->data + (size_t)(a * k + i) * row,
                   c->in[0]->data + (size_t)(a * x.n + index[i]) * row, row);
    return rc;
}

/* y[i] += x[i]: floating, or whole modulo 2^64. */
#define ADDER(name, type)                                                                          \
    static void name(char *y, const char *x, int64_t n)                                            \
    {                                                                                              \
        type *to = (type *)(void *)y;                                                              \
        const type *from = (const type *)(const void *)x;                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] += from[i];                                                                      \
    }
ADDER(add_f32, float)
ADDER(add_f64, double)
ADDER(add_i64, uint64_t)

typedef void adder(char *y, const char *x, int64_t n);

static adder *adder_of(enum det_dtype dtype)
{
    return dtype == DET_F32 ? add_f32 : dtype == DET_F64 ? add_f64 : add_i64;
}

/* What both additions start from: x, or zeros. */
static void start_sum(const struct det_call *c)
{
    size_t bytes = c->out[0]->numel * det_dtype_size(c->out[0]->dtype);
    if (!c->in[0])
        memset(c->out[0]->data, 0, bytes);
    else if (c->in[0]->data != c->out[0]->data && bytes > 0)
        memcpy(c->out[0]->data, c->in[0]->data, bytes);
}

int ref_index_add(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    struct rows y = rows_of(c->out[0]);
    const int64_t *index = indices_of(c, 1), k = (int64_t)c->in[1]->numel;
    int64_t elem = (int64_t)det_dtype_size(c->out[0]->dtype);
    adder *add = adder_of(c->out[0]->dtype);
    int rc = check_indices(c, y.n, c->a.skip, err);
    if (rc < 0)
        return rc;
    start_sum(c);
    for (int64_t row = 0; row < y.a * k; row++) {
        int64_t to = index[row % k];
        if (to != c->a.skip)
            add(c->out[0]->data + (row / k * y.n + to) * y.b * elem,
                c->in[2]->data + row * y.b * elem, y.b);
    }
    return 0;
}

int ref_gather(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    const int64_t *d = c->in[0]->dims, *index = indices_of(c, 1);
    int64_t k = c->in[1]->dims[1], b = d[2], elem = (int64_t)det_dtype_size(c->in[0]->dtype);
    int rc = check_indices(c, d[1], 0, err);
    for (int64_t i = 0; rc == 0 && i < d[0] * k * b; i++)
        memcpy(c->out[0]->data + i * elem,
               c->in[0]->data + ((i / (k * b) * d[1] + index[i]) * b + i % b) * elem, (size_t)elem);
    return rc;
}

int ref_scatter_add(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s;
    const int64_t *d = c->out[0]->dims, *index = indices_of(c, 1);
    int64_t k = c->in[1]->dims[1], b = d[2], elem = (int64_t)det_dtype_size(c->out[0]->dtype);
    adder *add = adder_of(c->out[0]->dtype);
    int rc = check_indices(c, d[1], 0, err);
    if (rc < 0)
        return rc;
    start_sum(c);
    for (int64_t i = 0; i < d[0] * k * b; i++)
        add(c->out[0]->data + ((i / (k * b) * d[1] + index[i]) * b + i % b) * elem,
            c->in[2]->data + i * elem, 1);
    return 0;
}

int ref_no_class(size_t i, int64_t t, int64_t classes, struct det_err *err)
{
    return det_fail(err, DET_EINVAL,
                    "target %zu is class %" PRId64 ", but there are the classes 0 to %" PRId64
                    ": check the labels or the size of the last layer",
                    i, t, classes - 1);
}

int ref_check_targets(const struct det_call *c, int64_t classes, struct det_err *err)
{
    const int64_t *t = in_i64(c, 1);
    for (size_t i = 0; i < c->in[1]->numel; i++)
        if (t[i] != c->a.skip && (t[i] < 0 || t[i] >= classes))
            return ref_no_class(i, t[i], classes, err);
    return 0;
}
