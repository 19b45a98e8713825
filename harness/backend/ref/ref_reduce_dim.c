/* Reductions and running sums over the middle dimension of [A, N, B]: floating numbers are summed
 * in double, whole ones modulo 2^64. */
#include "ref_reduce.h"

#include <math.h>

/* One column: its first element, the distance between elements, how many there are. */
struct column {
    int64_t first, step, n;
};

static struct column column_of(const struct det_tensor *x, int64_t i)
{
    int64_t n = x->dims[1], b = x->dims[2];
    return (struct column){i / b * n * b + i % b, b, n};
}

#define ROW_T            float
#define ROW_SUM          double
#define ROW(name)        name##_f32
#define ROW_HAS_GRADIENT 1
#include "ref_reduce_rows.h"

#define ROW_T            double
#define ROW_SUM          double
#define ROW(name)        name##_f64
#define ROW_HAS_GRADIENT 1
#include "ref_reduce_rows.h"

#define ROW_T     int64_t
#define ROW_SUM   uint64_t
#define ROW(name) name##_i64
#include "ref_reduce_rows.h"

void ref_reduce_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    enum det_dtype dtype = c->in[0]->dtype;
    (dtype == DET_F32 ? reduce_f32 : dtype == DET_F64 ? reduce_f64 : reduce_i64)(c, from, to);
}

int ref_reduce(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_reduce_range(c, 0, (int64_t)c->out[0]->numel);
    return 0;
}

void ref_reduce_bwd_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    (c->in[0]->dtype == DET_F64 ? reduce_bwd_f64 : reduce_bwd_f32)(c, from, to);
}

int ref_reduce_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_reduce_bwd_range(c, 0, (int64_t)c->in[0]->numel);
    return 0;
}

void ref_cumsum_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    enum det_dtype dtype = c->in[0]->dtype;
    (dtype == DET_F32 ? cumsum_f32 : dtype == DET_F64 ? cumsum_f64 : cumsum_i64)(c, from, to);
}

int ref_cumsum(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_cumsum_range(c, 0, c->in[0]->dims[0] * c->in[0]->dims[2]);
    return 0;
}
