/* The public element-wise functions, and tensors made of numbers. */
#include <inttypes.h>
#include <math.h>

#include "det/functional.h"
#include "dtype.h"
#include "mem.h"
#include "op.h"

#define UNARY(name, OP)                                                                            \
    struct det_tensor *det_##name(struct det_engine *e, struct det_tensor *x)                      \
    {                                                                                              \
        return op_apply(e, &(struct op_call){.op = OP, .in = {x}});                                \
    }
UNARY(neg, OP_NEG)
UNARY(abs, OP_ABS)
UNARY(exp, OP_EXP)
UNARY(log, OP_LOG)
UNARY(sqrt, OP_SQRT)
UNARY(rsqrt, OP_RSQRT)
UNARY(reciprocal, OP_RECIPROCAL)
UNARY(sin, OP_SIN)
UNARY(cos, OP_COS)
UNARY(tanh, OP_TANH)
UNARY(erf, OP_ERF)
UNARY(sigmoid, OP_SIGMOID)
UNARY(log_sigmoid, OP_LOG_SIGMOID)
UNARY(gelu, OP_GELU)
UNARY(gelu_tanh, OP_GELU_TANH)
UNARY(silu, OP_SILU)
UNARY(mish, OP_MISH)
UNARY(hardswish, OP_HARDSWISH)
UNARY(hardsigmoid, OP_HARDSIGMOID)
UNARY(floor, OP_FLOOR)
UNARY(ceil, OP_CEIL)
UNARY(round, OP_ROUND)
UNARY(sign, OP_SIGN)

/* Functions with one or two numbers, which elem.h calls p and q. */
static struct det_tensor *with(struct det_engine *e, enum op_id op, struct det_tensor *x, double p,
                               double q)
{
    return op_apply(e, &(struct op_call){.op = op, .in = {x}, .a = {.lo = p, .hi = q}});
}

struct det_tensor *det_pow(struct det_engine *e, struct det_tensor *x, double exponent)
{
    return with(e, OP_POW, x, exponent, 0);
}

struct det_tensor *det_clamp(struct det_engine *e, struct det_tensor *x, double lo, double hi)
{
    return with(e, OP_CLAMP, x, lo, hi);
}

struct det_tensor *det_hardtanh(struct det_engine *e, struct det_tensor *x, double lo, double hi)
{
    return with(e, OP_HARDTANH, x, lo, hi);
}

struct det_tensor *det_relu6(struct det_engine *e, struct det_tensor *x)
{
    return with(e, OP_HARDTANH, x, 0, 6);
}

struct det_tensor *det_elu(struct det_engine *e, struct det_tensor *x, double alpha)
{
    return with(e, OP_ELU, x, alpha, 0);
}

struct det_tensor *det_leaky_relu(struct det_engine *e, struct det_tensor *x, double slope)
{
    return with(e, OP_LEAKY_RELU, x, slope, 0);
}

struct det_tensor *det_softplus(struct det_engine *e, struct det_tensor *x, double beta,
                                double threshold)
{
    return with(e, OP_SOFTPLUS, x, beta, threshold);
}

#define BINARY(name, OP)                                                                           \
    struct det_tensor *det_##name(struct det_engine *e, struct det_tensor *a,                      \
                                  struct det_tensor *b)                                            \
    {                                                                                              \
        return op_binary(e, OP, a, b);                                                             \
    }
BINARY(pow_tensor, OP_POW2)
BINARY(prelu, OP_PRELU)
BINARY(maximum, OP_MAXIMUM)
BINARY(minimum, OP_MINIMUM)
BINARY(eq, OP_EQ)
BINARY(ne, OP_NE)
BINARY(lt, OP_LT)
BINARY(le, OP_LE)
BINARY(gt, OP_GT)
BINARY(ge, OP_GE)
BINARY(logical_and, OP_AND)
BINARY(logical_or, OP_OR)
BINARY(logical_xor, OP_XOR)

struct det_tensor *det_logical_not(struct det_engine *e, struct det_tensor *x)
{
    return x ? det_eq(e, x, det_scalar(e, x->dtype, 0)) : det_eq(e, x, x);
}

struct det_tensor *det_isnan(struct det_engine *e, struct det_tensor *x)
{
    return det_ne(e, x, x);
}

struct det_tensor *det_where(struct det_engine *e, struct det_tensor *cond, struct det_tensor *a,
                             struct det_tensor *b)
{
    return op_apply(e, &(struct op_call){.op = OP_WHERE, .in = {cond, a, b}});
}

/* ---- New tensors ---- */

struct det_tensor *det_scalar(struct det_engine *e, enum det_dtype dtype, double value)
{
    return det_full(e, dtype, 0, NULL, value);
}

struct det_tensor *det_full_like(struct det_engine *e, struct det_tensor *x, double value)
{
    if (x)
        return det_full(e, x->dtype, x->ndim, x->dims, value);
    det_engine_fail(e, DET_EINVAL, "full_like: the input is NULL");
    return NULL;
}

struct det_tensor *det_zeros_like(struct det_engine *e, struct det_tensor *x)
{
    return det_full_like(e, x, 0);
}

struct det_tensor *det_ones_like(struct det_engine *e, struct det_tensor *x)
{
    return det_full_like(e, x, 1);
}

/* first, first + step, ...: computed in double, made on the host. */
static struct det_tensor *make_ramp(struct det_engine *e, enum det_dtype dtype, int64_t n,
                                    double first, double step)
{
    struct det_err err;
    struct det_tensor *host = det_host_tensor(dtype, 1, &n, &err);
    if (!host) {
        det__keep_error(e, &err);
        return NULL;
    }
    for (int64_t i = 0; i < n; i++)
        det__store_f64(dtype, host->data + i * (int64_t)det_dtype_size(dtype),
                       first + (double)i * step);
    struct det_tensor *y = det_from_host(e, dtype, 1, &n, host->data);
    det_tensor_unref(host);
    return y;
}

struct det_tensor *det_arange(struct det_engine *e, enum det_dtype dtype, double start, double end,
                              double step)
{
    double n = ceil((end - start) / step);
    if (e->err.code < 0)
        return NULL;
    if (!(n <= 0x1p40)) {
        det_engine_fail(e, DET_EINVAL, "arange: from %g to %g in steps of %g", start, end, step);
        return NULL;
    }
    return make_ramp(e, dtype, n > 0 ? (int64_t)n : 0, start, step);
}

struct det_tensor *det_linspace(struct det_engine *e, double first, double last, int64_t n)
{
    if (e->err.code < 0)
        return NULL;
    return make_ramp(e, DET_F32, n, first, n > 1 ? (last - first) / (double)(n - 1) : 0);
}

static struct det_tensor *draw_random(struct det_engine *e, struct det_call *c, int ndim,
                                      const int64_t *dims)
{
    struct det_tensor *y = det_zeros(e, DET_F32, ndim, dims);
    struct det_err err;
    if (!y)
        return NULL;
    c->out[0] = y;
    det__draw(e, &c->a);
    if (det__run(e, c, &err) == 0)
        return y;
    det__keep_error(e, &err);
    return NULL;
}

struct det_tensor *det_rand(struct det_engine *e, int ndim, const int64_t *dims)
{
    struct det_call c = {.kernel = DET_KERNEL_UNIFORM, .a = {.lo = 0, .hi = 1}};
    return draw_random(e, &c, ndim, dims);
}

struct det_tensor *det_randn(struct det_engine *e, int ndim, const int64_t *dims)
{
    struct det_call c = {.kernel = DET_KERNEL_NORMAL, .a = {.scale = 1, .offset = 0}};
    return draw_random(e, &c, ndim, dims);
}
