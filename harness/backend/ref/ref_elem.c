/* Element-wise kernels: fill, copies and conversions, the functions of elem.h in double. */
#include "ref.h"

#include <tgmath.h>

#include "dtype.h"
#include "mem.h"
#include "walk.h"

#define ELEM_T double

/* Every kernel has one signature; this names its usual parameters. */
#define KERNEL(name) int name(struct det_stream *s, const struct det_call *c, struct det_err *err)
#define UNUSED_ARGS  ((void)s, (void)err)

/* The addresses of one element in the output (0) and the inputs (1, 2, 3). */
typedef void element_fn(const struct det_call *c, char *const *p);

struct pass {
    const struct det_call *c;
    struct det__walk w;
    element_fn *fn;
};

static const struct det_tensor *operand_of(const struct det_call *c, int k)
{
    return k == 0 ? c->out[0] : c->in[k - 1];
}

static void run_row(void *arg, int64_t n, const int64_t *at)
{
    const struct pass *pass = arg;
    char *p[DET__WALK_MAX];
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < pass->w.tensors; k++) {
            const struct det_tensor *t = operand_of(pass->c, k);
            p[k] = t->data +
                   (at[k] + i * det__walk_step(&pass->w, k)) * (int64_t)det_dtype_size(t->dtype);
        }
        pass->fn(pass->c, p);
    }
}

static int run_elements(const struct det_call *c, int tensors, element_fn *fn)
{
    const struct det_tensor *t[DET__WALK_MAX];
    struct pass pass = {.c = c, .fn = fn};
    for (int k = 0; k < tensors; k++)
        t[k] = operand_of(c, k);
    det__walk_init(&pass.w, tensors, t);
    det__walk_range(&pass.w, 0, pass.w.numel, run_row, &pass);
    return 0;
}

static double load_operand(const struct det_call *c, int k, char *const *p)
{
    return det__load_f64(operand_of(c, k)->dtype, p[k]);
}

static void store_result(const struct det_call *c, char *const *p, double v)
{
    det__store_f64(c->out[0]->dtype, p[0], v);
}

KERNEL(ref_fill)
{
    UNUSED_ARGS;
    struct det_tensor *y = c->out[0];
    size_t size = det_dtype_size(y->dtype);
    if (c->a.scale == 0)
        memset(y->data, 0, y->numel * size);
    else
        for (size_t i = 0; i < y->numel; i++)
            det__store_f64(y->dtype, y->data + i * size, c->a.scale);
    return 0;
}

static void copy_one(const struct det_call *c, char *const *p)
{
    det__convert(c->in[0]->dtype, p[1], 1, c->out[0]->dtype, p[0], 1, 1);
}

KERNEL(ref_copy)
{
    UNUSED_ARGS;
    return run_elements(c, 2, copy_one);
}

/* Tables of the functions of elem.h, by a.fn. */
typedef double unary_fn(double x, double p, double q);
typedef double unary_slope_fn(double dy, double x, double y, double p, double q);
typedef double binary_fn(double a, double b);
typedef double binary_slope_fn(double dy, double a, double b);
typedef int64_t whole_fn(int64_t a, int64_t b);

#define X(NAME, value, slope)                                                                      \
    static double unary_##NAME(double x, double p, double q)                                       \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    static double slope_##NAME(double dy, double x, double y, double p, double q)                  \
    {                                                                                              \
        return slope;                                                                              \
    }
DET_UNARY(X)
#undef X
#define X(NAME, value, slope_a, slope_b)                                                           \
    static double binary_##NAME(double a, double b)                                                \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    static double slope_a_##NAME(double dy, double a, double b)                                    \
    {                                                                                              \
        return slope_a;                                                                            \
    }                                                                                              \
    static double slope_b_##NAME(double dy, double a, double b)                                    \
    {                                                                                              \
        return slope_b;                                                                            \
    }
DET_BINARY(X)
#undef X
#define X(NAME, value)                                                                             \
    static int64_t whole_##NAME(int64_t a, int64_t b)                                              \
    {                                                                                              \
        return value;                                                                              \
    }
DET_BINARY_WHOLE(X)
#undef X
#define X(NAME, truth)                                                                             \
    static int64_t whole_is_##NAME(int64_t a, int64_t b)                                           \
    {                                                                                              \
        return truth;                                                                              \
    }                                                                                              \
    static double is_##NAME(double a, double b)                                                    \
    {                                                                                              \
        return truth;                                                                              \
    }
DET_COMPARE(X)
#undef X

static unary_fn *const unary[] = {
#define X(NAME, ...) unary_##NAME,
    DET_UNARY(X)
#undef X
};
static unary_slope_fn *const unary_slope[] = {
#define X(NAME, ...) slope_##NAME,
    DET_UNARY(X)
#undef X
};
static binary_fn *const binary[] = {
#define X(NAME, ...) binary_##NAME,
    DET_BINARY(X)
#undef X
};
static binary_slope_fn *const binary_slope[] = {
#define X(NAME, ...) slope_a_##NAME, slope_b_##NAME,
    DET_BINARY(X)
#undef X
};
static whole_fn *const whole[DET_BINARY_COUNT] = {
#define X(NAME, ...) [DET_BINARY_##NAME] = whole_##NAME,
    DET_BINARY_WHOLE(X)
#undef X
};
static whole_fn *const whole_is[] = {
#define X(NAME, ...) whole_is_##NAME,
    DET_COMPARE(X)
#undef X
};
static binary_fn *const is[] = {
#define X(NAME, ...) is_##NAME,
    DET_COMPARE(X)
#undef X
};

static void unary_one(const struct det_call *c, char *const *p)
{
    store_result(c, p, unary[c->a.fn](load_operand(c, 1, p), c->a.lo, c->a.hi));
}

static void unary_bwd_one(const struct det_call *c, char *const *p)
{
    double dy = load_operand(c, 1, p), x = load_operand(c, 2, p), y = load_operand(c, 3, p);
    store_result(c, p, unary_slope[c->a.fn](dy, x, y, c->a.lo, c->a.hi));
}

static void binary_one(const struct det_call *c, char *const *p)
{
    enum det_dtype dtype = c->out[0]->dtype;
    if (det__is_float(dtype))
        store_result(c, p, binary[c->a.fn](load_operand(c, 1, p), load_operand(c, 2, p)));
    else
        det__store_i64(dtype, p[0],
                       whole[c->a.fn](det__load_i64(dtype, p[1]), det__load_i64(dtype, p[2])));
}

static void binary_bwd_one(const struct det_call *c, char *const *p)
{
    binary_slope_fn *slope = binary_slope[2 * c->a.fn + c->a.side];
    store_result(c, p, slope(load_operand(c, 1, p), load_operand(c, 2, p), load_operand(c, 3, p)));
}

static void compare_one(const struct det_call *c, char *const *p)
{
    enum det_dtype dtype = c->in[0]->dtype;
    *p[0] =
        (char)(det__is_float(dtype) ? is[c->a.fn](load_operand(c, 1, p), load_operand(c, 2, p)) != 0
                                    : whole_is[c->a.fn](det__load_i64(dtype, p[1]),
                                                        det__load_i64(dtype, p[2])) != 0);
}

static void where_one(const struct det_call *c, char *const *p)
{
    memcpy(p[0], *p[1] ? p[2] : p[3], det_dtype_size(c->out[0]->dtype));
}

KERNEL(ref_unary)
{
    UNUSED_ARGS;
    return run_elements(c, 2, unary_one);
}

KERNEL(ref_unary_bwd)
{
    UNUSED_ARGS;
    return run_elements(c, 4, unary_bwd_one);
}

KERNEL(ref_binary)
{
    UNUSED_ARGS;
    return run_elements(c, 3, binary_one);
}

KERNEL(ref_binary_bwd)
{
    UNUSED_ARGS;
    return run_elements(c, 4, binary_bwd_one);
}

KERNEL(ref_compare)
{
    UNUSED_ARGS;
    return run_elements(c, 3, compare_one);
}

KERNEL(ref_where)
{
    UNUSED_ARGS;
    return run_elements(c, 4, where_one);
}

/* Kernels of their own that are one of the functions. */
#define AS(kernel, of, FN)                                                                         \
    KERNEL(kernel)                                                                                 \
    {                                                                                              \
        struct det_call as = *c;                                                                   \
        as.a.fn = FN;                                                                              \
        return of(s, &as, err);                                                                    \
    }
AS(ref_add, ref_binary, DET_BINARY_ADD)
AS(ref_sub, ref_binary, DET_BINARY_SUB)
AS(ref_mul, ref_binary, DET_BINARY_MUL)
AS(ref_relu, ref_unary, DET_UNARY_RELU)
AS(ref_relu_bwd, ref_binary, DET_BINARY_RELU_BWD)
AS(ref_clamp, ref_unary, DET_UNARY_CLAMP)

KERNEL(ref_affine)
{
    struct det_call as = *c;
    as.a.fn = DET_UNARY_AFFINE;
    as.a.lo = c->a.scale;
    as.a.hi = c->a.offset;
    return ref_unary(s, &as, err);
}

/* Adds to a row of y, which may be one element again and again. */
struct sums {
    const struct det_tensor *x;
    double *y;
    const struct det__walk *w;
};

static void sum_row(void *arg, int64_t n, const int64_t *at)
{
    const struct sums *r = arg;
    int64_t size = (int64_t)det_dtype_size(r->x->dtype);
    for (int64_t i = 0; i < n; i++)
        r->y[at[1] + i * det__walk_step(r->w, 1)] +=
            det__load_f64(r->x->dtype, r->x->data + (at[0] + i * det__walk_step(r->w, 0)) * size);
}

KERNEL(ref_sum_to)
{
    (void)s;
    struct det_tensor *y = c->out[0], wide;
    const struct det_tensor *x = c->in[0];
    struct det__walk w;
    det_cleanup(freep) double *sum = det_try_alloc((y->numel + 1) * sizeof *sum);
    if (!sum)
        return det_fail(err, DET_ENOMEM, "no memory for %zu sums", y->numel);
    memset(sum, 0, y->numel * sizeof *sum);
    det__broadcast(y, x->ndim, x->dims, &wide);
    det__walk_init(&w, 2, (const struct det_tensor *[]){x, &wide});
    struct sums r = {x, sum, &w};
    det__walk_range(&w, 0, w.numel, sum_row, &r);
    for (size_t i = 0; i < y->numel; i++)
        det__store_f64(y->dtype, y->data + i * det_dtype_size(y->dtype), sum[i]);
    return 0;
}
