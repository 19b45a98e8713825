/*
 * The CPU backend: oneDNN for convolutions and matrix products of f32, own products (cpu_dgemm.h)
 * for those of f64, own loops over NHWC images for the rest, the reference's kernels for what is
 * small. oneDNN is met only in dnnl_*.c.
 *
 * The device is its own stream: every kernel is done when it returns. Loops are cut into the same
 * parts for a given thread count, and sums into the same blocks for any.
 */
#ifndef CPU_H
#define CPU_H

#include <signal.h>

#include "backend.h"

extern const struct det_backend det_backend_cpu;

struct prim_cache; /* dnnl_prim.h */

struct det_device {
    int threads;
    struct prim_cache *prims;
};

static inline struct det_device *cpu_device(struct det_stream *s)
{
    return (struct det_device *)s;
}

/* Compiles a loop for the vector units there are, chosen when the program starts. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&      \
    !defined(__clang__)
#define CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CPU_CLONES
#endif

/* Before a loop whose output may be its own input: element i depends on element i only. */
#if defined(__GNUC__) && !defined(__clang__)
#define CPU_IN_PLACE _Pragma("GCC ivdep")
#else
#define CPU_IN_PLACE
#endif

/* Calls fn(arg, from, to) over parts of [0, n), on all threads where n / grain allows it. */
#define CPU_GRAIN 16384 /* fewer elements than this are not worth a second thread, as a rule */
typedef void cpu_range_fn(const void *arg, int64_t from, int64_t to);
void cpu_parallel(int threads, int64_t n, int64_t grain, cpu_range_fn *fn, const void *arg);

/* Signals wait while this thread is in oneDNN or starts OpenMP's threads; cpu_signals.c says why.
 * They may be held twice: each release brings back what was before its hold. */
void cpu_hold_signals(sigset_t *ret_before);
void cpu_release_signals(const sigset_t *before);

/* The backend's copy(), on all threads: a snapshot of a model is one memcpy long at most. */
DET_MUST int cpu_copy_bytes(struct det_stream *s, void *dst, const void *src, size_t bytes,
                            enum det_copy_kind kind, struct det_err *err);

det_kernel_fn cpu_copy, cpu_add, cpu_sub, cpu_mul, cpu_affine, cpu_clamp, cpu_relu, cpu_relu_bwd,
    cpu_limit;
det_kernel_fn cpu_unary, cpu_unary_bwd, cpu_binary, cpu_binary_bwd, cpu_compare, cpu_where;
det_kernel_fn cpu_sum_to;
det_kernel_fn cpu_dropout, cpu_dropout_bwd;
det_kernel_fn cpu_sgd, cpu_adam, cpu_rmsprop, cpu_adagrad;
det_kernel_fn cpu_batch_norm_train, cpu_batch_norm_eval, cpu_batch_norm_bwd;
det_kernel_fn cpu_max_pool2d, cpu_max_pool2d_bwd, cpu_avg_pool2d, cpu_avg_pool2d_bwd;
det_kernel_fn cpu_conv2d, cpu_conv2d_bwd_data, cpu_conv2d_bwd_weight;
det_kernel_fn cpu_layer_norm, cpu_layer_norm_bwd, cpu_softmax, cpu_softmax_bwd;
det_kernel_fn cpu_cross_entropy, cpu_cross_entropy_bwd, cpu_matmul;
det_kernel_fn cpu_lstm, cpu_lstm_bwd, cpu_gru, cpu_gru_bwd;
det_kernel_fn cpu_attention, cpu_attention_bwd;
det_kernel_fn cpu_reduce, cpu_reduce_bwd, cpu_cumsum, cpu_point_loss, cpu_point_loss_bwd;
det_kernel_fn cpu_linear_bf16; /* the three kernels of a linear layer */
det_kernel_fn cpu_linear, cpu_linear_bwd_data, cpu_linear_bwd_weight;

/* Of double; what is not defined is the reference's. */
#define X(NAME, name) det_kernel_fn cpu_##name##_f64;
DET_KERNELS_REAL(X)
#undef X

#endif
