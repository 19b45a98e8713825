/*
 * What the device code offers to the host code: plain pointers, one launch each, C linkage. Compiled by
 * nvcc on one side and by the C compiler on the other, so nothing but built-in types appears here.
 * Sums have a fixed partition (one block, a strided loop, a tree), so equal inputs give equal bits.
 */
#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum cuda_elem { CUDA_ADD, CUDA_SUB, CUDA_MUL, CUDA_RELU_BWD, CUDA_MSE_BWD };

/* Where plain index i of an (N, C, H, W) tensor lies in NHWC memory; c = 0: both orders are one. */
struct cuda_order {
    size_t c, h, w;
};

/* z = x op y; for MSE_BWD z = 2 (x - y) * *scalar / n */
cudaError_t cuda_k_binary(cudaStream_t s, enum cuda_elem op, size_t n, const float *x, const float *y, const float *scalar, float *z);
cudaError_t cuda_k_affine(cudaStream_t s, size_t n, float scale, float offset, const float *x, float *y);
cudaError_t cuda_k_clamp(cudaStream_t s, size_t n, float lo, float hi, const float *x, float *y);
/* Element types: 0 f32, 1 i64, 2 u8; orders as above, y[i] = (type) x[i]. */
cudaError_t cuda_k_copy(cudaStream_t s, size_t n, int from, int to, struct cuda_order xo, struct cuda_order yo, const void *x, void *y);
cudaError_t cuda_k_fill(cudaStream_t s, size_t n, int type, double v, void *y);
cudaError_t cuda_k_uniform(cudaStream_t s, size_t n, uint64_t seed, uint64_t call, float lo, float hi, struct cuda_order yo, float *y);
cudaError_t cuda_k_dropout(cudaStream_t s, size_t n, uint64_t seed, uint64_t call, float p, float scale, const float *x, float *y, uint8_t *mask);
cudaError_t cuda_k_dropout_bwd(cudaStream_t s, size_t n, float scale, const float *dy, const uint8_t *mask, float *dx);

struct cuda_pool {
    size_t n, c, h, w, oh, ow;
    int kh, kw, stride_h, stride_w, pad_h, pad_w;
};
cudaError_t cuda_k_max_pool(cudaStream_t s, struct cuda_pool p, const float *x, float *y, uint8_t *index);
cudaError_t cuda_k_max_pool_bwd(cudaStream_t s, struct cuda_pool p, const float *dy, const uint8_t *index, float *dx);
cudaError_t cuda_k_avg_pool(cudaStream_t s, struct cuda_pool p, const float *x, float *y);
cudaError_t cuda_k_avg_pool_bwd(cudaStream_t s, struct cuda_pool p, const float *dy, float *dx);

/* Rows of length n: one block a row. log: log-softmax, else softmax. */
cudaError_t cuda_k_softmax(cudaStream_t s, size_t rows, size_t n, int log, const float *x, float *y);
cudaError_t cuda_k_softmax_bwd(cudaStream_t s, size_t rows, size_t n, int log, const float *dy, const float *y, float *dx);
/* A target outside 0..n-1 sets *bad. */
cudaError_t cuda_k_nll(cudaStream_t s, size_t rows, size_t n, const float *x, const int64_t *target, float *y, int *bad);
cudaError_t cuda_k_nll_bwd(cudaStream_t s, size_t rows, size_t n, const float *dy, const int64_t *target, float *dx, int *bad);
cudaError_t cuda_k_argmax(cudaStream_t s, size_t rows, size_t n, const float *x, int64_t *y);

enum cuda_sum { CUDA_SUM, CUDA_SQNORM, CUDA_MSE, CUDA_EQ_F32, CUDA_EQ_I64, CUDA_EQ_U8 };
/* *z = scale * sum over i of f(x[i], y[i]) */
cudaError_t cuda_k_sum(cudaStream_t s, enum cuda_sum kind, size_t n, float scale, const void *x, const void *y, float *z);
/* *y = the greatest |x[i]|, or NaN */
cudaError_t cuda_k_absmax(cudaStream_t s, size_t n, const float *x, float *y);
cudaError_t cuda_k_sum_bwd(cudaStream_t s, size_t n, float scale, const float *dy, float *dx);
/* y [rows, n] += b [n] */
cudaError_t cuda_k_add_bias(cudaStream_t s, size_t rows, size_t n, const float *b, float *y);
/* db[n] = sum over rows of dy */
cudaError_t cuda_k_column_sums(cudaStream_t s, size_t rows, size_t n, const float *dy, float *db);

cudaError_t cuda_k_invstd(cudaStream_t s, size_t n, float eps, const float *var, float *invstd);
/* Batch norm backward over rows x channels; y: NULL, or what a fused ReLU left. dx may be NULL. */
struct cuda_norm {
    size_t rows, channels;
    const float *dy, *x, *y, *w, *mean, *invstd;
    int train;
};
cudaError_t cuda_k_norm_bwd(cudaStream_t s, struct cuda_norm n, float *dx, float *dw, float *db);

/* The gradient that an optimizer sees: sign * grad + decay * p. */
struct cuda_sgd {
    float lr, momentum, dampening, decay, sign;
    int nesterov, first;
};
cudaError_t cuda_k_sgd(cudaStream_t s, size_t n, struct cuda_sgd o, const float *grad, float *p, float *buf);
struct cuda_adam {
    float step_size, beta1, beta2, eps, decay, sign, shrink, root_correction2;
};
cudaError_t cuda_k_adam(cudaStream_t s, size_t n, struct cuda_adam o, const float *grad, float *p, float *m, float *v, float *top);
struct cuda_rmsprop {
    float lr, momentum, alpha, eps, decay, sign;
};
cudaError_t cuda_k_rmsprop(cudaStream_t s, size_t n, struct cuda_rmsprop o, const float *grad, float *p, float *avg, float *buf, float *mean);
cudaError_t cuda_k_adagrad(cudaStream_t s, size_t n, struct cuda_rmsprop o, const float *grad, float *p, float *sum);

#ifdef __cplusplus
}
#endif
#endif
