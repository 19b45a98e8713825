/* The kernels that are one launch of ours or one cuBLAS call. */
#include "cuda_impl.h"

#include <math.h>

static size_t rows_of(const struct det_tensor *t)
{
    return t->ndim > 0 && t->dims[t->ndim - 1] > 0 ? t->numel / (size_t)t->dims[t->ndim - 1] : 0;
}

static size_t cols_of(const struct det_tensor *t)
{
    return t->ndim > 0 ? (size_t)t->dims[t->ndim - 1] : 1;
}

static int type_of(const struct det_tensor *t)
{
    return t->dtype == DET_F32 ? 0 : t->dtype == DET_I64 ? 1 : 2;
}

static struct cuda_order order_of(const struct det_tensor *t)
{
    if (t->layout == DET_LAYOUT_PLAIN)
        return (struct cuda_order){0};
    return (struct cuda_order){(size_t)t->dims[1], (size_t)t->dims[2], (size_t)t->dims[3]};
}

/* Defines cuda_<name>: one launch, whose failure names the kernel. */
#define CALL(name, launch)                                                                         \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        size_t n = c->out[0] ? c->out[0]->numel : 0;                                               \
        (void)n;                                                                                   \
        return cuda_check(launch, #name, err);                                                     \
    }

CALL(fill, cuda_k_fill(s->native, n, type_of(c->out[0]), c->a.scale, c->out[0]->data))
CALL(copy, cuda_k_copy(s->native, n, type_of(c->in[0]), type_of(c->out[0]), order_of(c->in[0]), order_of(c->out[0]), c->in[0]->data, c->out[0]->data))
CALL(add, cuda_k_binary(s->native, CUDA_ADD, n, cuda_in(c, 0), cuda_in(c, 1), NULL, cuda_out(c, 0)))
CALL(sub, cuda_k_binary(s->native, CUDA_SUB, n, cuda_in(c, 0), cuda_in(c, 1), NULL, cuda_out(c, 0)))
CALL(mul, cuda_k_binary(s->native, CUDA_MUL, n, cuda_in(c, 0), cuda_in(c, 1), NULL, cuda_out(c, 0)))
CALL(affine, cuda_k_affine(s->native, n, (float)c->a.scale, (float)c->a.offset, cuda_in(c, 0), cuda_out(c, 0)))
CALL(clamp, cuda_k_clamp(s->native, n, (float)c->a.lo, (float)c->a.hi, cuda_in(c, 0), cuda_out(c, 0)))
CALL(relu, cuda_k_clamp(s->native, n, 0, INFINITY, cuda_in(c, 0), cuda_out(c, 0)))
CALL(relu_bwd, cuda_k_binary(s->native, CUDA_RELU_BWD, n, cuda_in(c, 0), cuda_in(c, 1), NULL, cuda_out(c, 0)))
CALL(uniform, cuda_k_uniform(s->native, n, c->a.seed, c->a.call, (float)c->a.lo, (float)c->a.hi, order_of(c->out[0]), cuda_out(c, 0)))
CALL(dropout, cuda_k_dropout(s->native, n, c->a.seed, c->a.call, (float)c->a.p, (float)c->a.scale, cuda_in(c, 0), cuda_out(c, 0), (uint8_t *)c->out[1]->data))
CALL(dropout_bwd, cuda_k_dropout_bwd(s->native, n, (float)c->a.scale, cuda_in(c, 0), (const uint8_t *)c->in[1]->data, cuda_out(c, 0)))
CALL(log_softmax, cuda_k_softmax(s->native, rows_of(c->in[0]), cols_of(c->in[0]), 1, cuda_in(c, 0), cuda_out(c, 0)))
CALL(softmax, cuda_k_softmax(s->native, rows_of(c->in[0]), cols_of(c->in[0]), 0, cuda_in(c, 0), cuda_out(c, 0)))
CALL(log_softmax_bwd, cuda_k_softmax_bwd(s->native, rows_of(c->in[0]), cols_of(c->in[0]), 1, cuda_in(c, 0), cuda_in(c, 1), cuda_out(c, 0)))
CALL(softmax_bwd, cuda_k_softmax_bwd(s->native, rows_of(c->in[0]), cols_of(c->in[0]), 0, cuda_in(c, 0), cuda_in(c, 1), cuda_out(c, 0)))
CALL(nll, cuda_k_nll(s->native, rows_of(c->in[0]), cols_of(c->in[0]), cuda_in(c, 0), (const int64_t *)c->in[1]->data, cuda_out(c, 0), s->bad_target))
CALL(nll_bwd, cuda_k_nll_bwd(s->native, rows_of(c->out[0]), cols_of(c->out[0]), cuda_in(c, 0), (const int64_t *)c->in[1]->data, cuda_out(c, 0), s->bad_target))
CALL(mse, cuda_k_sum(s->native, CUDA_MSE, c->in[0]->numel, 1 / (float)c->in[0]->numel, cuda_in(c, 0), cuda_in(c, 1), cuda_out(c, 0)))
CALL(mse_bwd, cuda_k_binary(s->native, CUDA_MSE_BWD, n, cuda_in(c, 1), cuda_in(c, 2), cuda_in(c, 0), cuda_out(c, 0)))
CALL(sum, cuda_k_sum(s->native, CUDA_SUM, c->in[0]->numel, (float)c->a.scale, cuda_in(c, 0), NULL, cuda_out(c, 0)))
CALL(sum_bwd, cuda_k_sum_bwd(s->native, n, (float)c->a.scale, cuda_in(c, 0), cuda_out(c, 0)))
CALL(sqnorm, cuda_k_sum(s->native, CUDA_SQNORM, c->in[0]->numel, 1, cuda_in(c, 0), NULL, cuda_out(c, 0)))
CALL(absmax, cuda_k_absmax(s->native, c->in[0]->numel, cuda_in(c, 0), cuda_out(c, 0)))
CALL(argmax, cuda_k_argmax(s->native, rows_of(c->in[0]), cols_of(c->in[0]), cuda_in(c, 0), (int64_t *)c->out[0]->data))
CALL(eq_count, cuda_k_sum(s->native, CUDA_EQ_F32 + type_of(c->in[0]), c->in[0]->numel, 1, c->in[0]->data, c->in[1]->data, cuda_out(c, 0)))

static struct cuda_pool pool_of(const struct det_call *c, const struct det_tensor *x, const struct det_tensor *y)
{
    return (struct cuda_pool){(size_t)x->dims[0], (size_t)x->dims[1], (size_t)x->dims[2], (size_t)x->dims[3], (size_t)y->dims[2],
                              (size_t)y->dims[3], c->a.kernel_h, c->a.kernel_w, c->a.stride_h, c->a.stride_w, c->a.pad_h, c->a.pad_w};
}

/* Every window divides by kernel_h * kernel_w here, and lies where strides put it. */
static bool pool_known(const struct det_call *c, const struct det_tensor *x, const struct det_tensor *y, bool average)
{
    const struct det_attrs *a = &c->a;
    bool padded = a->pad_h + a->pad_w > 0;
    bool beyond = (y->dims[2] - 1) * a->stride_h + a->kernel_h > x->dims[2] + 2 * a->pad_h ||
                  (y->dims[3] - 1) * a->stride_w + a->kernel_w > x->dims[3] + 2 * a->pad_w;
    return !a->adaptive && !(average && (beyond || (padded && !a->include_pad)));
}

static int pool_unknown(struct det_err *err)
{
    return det_fail(err, DET_EUNIMPL, "this kind of pooling (adaptive to a size that is no divisor, or an average without its padding) is not on cuda: use the device \"cpu\"");
}

#define POOL(name, x, y, average, launch)                                                          \
    int cuda_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)           \
    {                                                                                              \
        struct cuda_pool p = pool_of(c, x, y);                                                     \
        return pool_known(c, x, y, average) ? cuda_check(launch, #name, err) : pool_unknown(err);  \
    }

POOL(max_pool2d, c->in[0], c->out[0], false, cuda_k_max_pool(s->native, p, cuda_in(c, 0), cuda_out(c, 0), (uint8_t *)c->out[1]->data))
POOL(max_pool2d_bwd, c->out[0], c->in[0], false, cuda_k_max_pool_bwd(s->native, p, cuda_in(c, 0), (const uint8_t *)c->in[1]->data, cuda_out(c, 0)))
POOL(avg_pool2d, c->in[0], c->out[0], true, cuda_k_avg_pool(s->native, p, cuda_in(c, 0), cuda_out(c, 0)))
POOL(avg_pool2d_bwd, c->out[0], c->in[0], true, cuda_k_avg_pool_bwd(s->native, p, cuda_in(c, 0), cuda_out(c, 0)))

static float sign_of(const struct det_optim_attrs *o)
{
    return o->maximize ? -1 : 1;
}

static float decay_of(const struct det_optim_attrs *o)
{
    return o->decoupled ? 0 : (float)o->weight_decay;
}

static struct cuda_sgd sgd_of(const struct det_optim_attrs *o)
{
    return (struct cuda_sgd){(float)o->lr, (float)o->momentum, (float)o->dampening, decay_of(o), sign_of(o), o->nesterov, o->first};
}
CALL(sgd, cuda_k_sgd(s->native, n, sgd_of(&c->a.optim), cuda_in(c, 0), cuda_out(c, 0), cuda_out(c, 1)))

static struct cuda_adam adam_of(const struct det_optim_attrs *o)
{
    double c1 = 1 - pow(o->beta1, (double)o->step), c2 = 1 - pow(o->beta2, (double)o->step);
    float shrink = o->decoupled ? (float)(1 - o->lr * o->weight_decay) : 1;
    return (struct cuda_adam){(float)(o->lr / c1), (float)o->beta1, (float)o->beta2, (float)o->eps, decay_of(o), sign_of(o), shrink, (float)sqrt(c2)};
}
CALL(adam, cuda_k_adam(s->native, n, adam_of(&c->a.optim), cuda_in(c, 0), cuda_out(c, 0), cuda_out(c, 1), cuda_out(c, 2), cuda_out(c, 3)))

static struct cuda_rmsprop rmsprop_of(const struct det_optim_attrs *o)
{
    return (struct cuda_rmsprop){(float)o->lr, (float)o->momentum, (float)o->alpha, (float)o->eps, decay_of(o), sign_of(o)};
}
CALL(rmsprop, cuda_k_rmsprop(s->native, n, rmsprop_of(&c->a.optim), cuda_in(c, 0), cuda_out(c, 0), cuda_out(c, 1), cuda_out(c, 2), cuda_out(c, 3)))
CALL(adagrad, cuda_k_adagrad(s->native, n, rmsprop_of(&c->a.optim), cuda_in(c, 0), cuda_out(c, 0), cuda_out(c, 1)))

/* Row-major C [m, n] = op(A) op(B) of inner size k, as the column-major product of the transposes. */
struct gemm {
    bool ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
};

static int gemm(struct det_stream *s, const struct gemm *g, struct det_err *err)
{
    static const float one = 1, zero = 0;
    if (g->m == 0 || g->n == 0)
        return 0;
    cublasSetStream(s->device->blas, s->native);
    return cuda_check_blas(cublasSgemm(s->device->blas, g->tb ? CUBLAS_OP_T : CUBLAS_OP_N, g->ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)g->n,
                                       (int)g->m, (int)g->k, &one, g->b, (int)(g->tb ? g->k : g->n), g->a, (int)(g->ta ? g->m : g->k), &zero,
                                       g->c, (int)g->n),
                           "gemm", err);
}

/* y [M, N] = x [M, K] w [N, K]^T + b */
int cuda_linear(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->in[1]->dims[0], k = c->in[1]->dims[1], m = (int64_t)c->in[0]->numel / (k ? k : 1);
    int rc = gemm(s, &(struct gemm){false, true, m, n, k, cuda_in(c, 0), cuda_in(c, 1), cuda_out(c, 0)}, err);
    if (rc == 0 && c->in[2])
        rc = cuda_check(cuda_k_add_bias(s->native, (size_t)m, (size_t)n, cuda_in(c, 2), cuda_out(c, 0)), "linear", err);
    return rc;
}

/* dx [M, K] = dy [M, N] w [N, K] */
int cuda_linear_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->in[1]->dims[0], k = c->in[1]->dims[1], m = (int64_t)c->in[0]->numel / (n ? n : 1);
    return gemm(s, &(struct gemm){false, false, m, k, n, cuda_in(c, 0), cuda_in(c, 1), cuda_out(c, 0)}, err);
}

/* dw [N, K] = dy [M, N]^T x [M, K] */
int cuda_linear_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t n = c->out[0]->dims[0], k = c->out[0]->dims[1], m = (int64_t)c->in[0]->numel / (k ? k : 1);
    int rc = gemm(s, &(struct gemm){true, false, n, k, m, cuda_in(c, 1), cuda_in(c, 0), cuda_out(c, 0)}, err);
    if (rc == 0 && c->out[1])
        rc = cuda_check(cuda_k_column_sums(s->native, (size_t)m, (size_t)n, cuda_in(c, 1), cuda_out(c, 1)), "linear_bwd_weight", err);
    return rc;
}
