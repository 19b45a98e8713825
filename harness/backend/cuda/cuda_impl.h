/*
 * The CUDA backend's own types: one device = one cuBLAS and one cuDNN handle and a workspace, bound
 * to the stream of each call. It is a module loaded at run time; nothing else links CUDA.
 */
#ifndef CUDA_IMPL_H
#define CUDA_IMPL_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backend.h"

/* Device memory that grows. */
struct cuda_scratch {
    void *p;
    size_t bytes;
};

struct cuda_upload;

struct det_device {
    int index;
    struct cuda_upload *uploads; /* of its streams */
    cublasHandle_t blas;
    cudnnHandle_t dnn;
    struct cuda_scratch work, partials;
    struct imap *plans; /* of convolutions, by the hash of their keys; NULL: none yet */
    struct cuda_lt *lt; /* cuda_lt.h; NULL: not asked yet */
};

struct det_stream {
    struct det_device *device;
    struct cuda_upload *upload; /* NULL: nothing was copied to the device yet */
    cudaStream_t native;
    int *bad;      /* device memory: 1 where a kernel met an index out of range */
    int *bad_host; /* pinned */
};

/* Whether products and convolutions of f32 may round their inputs to TF32's 10 bits:
 * DET_ALLOW_TF32=1 where the process began. */
bool cuda_allows_tf32(void);
/* Makes d the device of this thread: what works on memory, streams and kernels of another fails. */
DET_MUST int cuda_use(struct det_device *d, struct det_err *err);
/* The vendor's text in err; 0 on success. `what` names the call. */
DET_MUST int cuda_check(cudaError_t rc, const char *what, struct det_err *err);
DET_MUST int cuda_check_dnn(cudnnStatus_t rc, const char *what, struct det_err *err);
DET_MUST int cuda_check_blas(cublasStatus_t rc, const char *what, struct det_err *err);
const char *cuda_kernel_name(enum det_kernel k);
/* What went wrong with the launch just made for this call. */
DET_MUST int cuda_launched(struct det_stream *s, const struct det_call *c, struct det_err *err);
/* At least `bytes` of scratch memory, valid until the next call on the device. */
DET_MUST int cuda_workspace(struct det_device *d, size_t bytes, void **ret, struct det_err *err);
/* The same, apart from it: what is in the workspace may be summed. */
DET_MUST int cuda_partials(struct det_device *d, size_t bytes, void **ret, struct det_err *err);

/* Row-major C [m, n] = op(A) op(B) + beta C of inner size k; lda and so on are the distances
 * between rows as they lie in memory. count > 1: as many products, *_step elements apart. */
struct cuda_gemm {
    enum det_dtype dtype; /* of A and B; a floating one */
    bool wide;            /* C is f32, where they are bf16 or f16; else it is of their dtype */
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    const void *a, *b;
    void *c;
    double beta;
    int64_t count, a_step, b_step, c_step;
};
DET_MUST int cuda_gemm(struct det_stream *s, const struct cuda_gemm *g, struct det_err *err);
/* The same, by way of copies in the workspace where its rows would make cuBLAS slow. */
DET_MUST int cuda_gemm_even(struct det_stream *s, const struct det_call *c,
                            const struct cuda_gemm *g, struct det_err *err);

/* How many elements apart the rows of a matrix lie. */
static inline int64_t cuda_ld(const struct det_tensor *t)
{
    return t->layout == DET_LAYOUT_STRIDED ? t->strides[0] : t->dims[1];
}
/* backend.h's row_step(): rows of a multiple of 16 bytes where that spares large copies. */
int64_t cuda_row_step(const struct det_call *c);

/* y [rows, n] += b [n] where given; then y = max(0, y) where asked. All of y's dtype. */
DET_MUST int cuda_finish_rows(struct det_stream *s, const struct det_call *c,
                              const struct det_tensor *b, struct det_tensor *y, int64_t n,
                              struct det_err *err);
/* y [n] = scale times the sums of the columns of x [rows, n], both of any floating dtypes. */
DET_MUST int cuda_sum_columns(struct det_stream *s, const struct det_call *c,
                              const struct det_tensor *x, struct det_tensor *y, double scale,
                              struct det_err *err);
/* Weights (O, I, kH, kW), of f32 or less, into the order (O, kH, kW, I), or back. */
DET_MUST int cuda_reorder(struct det_stream *s, const struct det_call *c,
                          const struct det_tensor *w, void *nhwc, bool back, struct det_err *err);

/* backend.h's steps(). */
DET_MUST int cuda_steps(struct det_stream *s, const struct det_call *c, size_t n,
                        struct det_err *err);
/* Those of them that are COPY. */
DET_MUST int cuda_casts(struct det_stream *s, const struct det_call *c, size_t n,
                        struct det_err *err);

/* Convolution as products, without the bias: for any floating dtype, none of the tensors empty. */
det_kernel_fn cuda_rows_conv2d, cuda_rows_conv2d_bwd_data, cuda_rows_conv2d_bwd_weight;
/* Convolution of f32 by a kernel of our own, with the bias; *ret_done: false where another way is
 * better. */
DET_MUST int cuda_tiles_conv2d(struct det_stream *s, const struct det_call *c, bool *ret_done,
                               struct det_err *err);
DET_MUST int cuda_tiles_conv2d_bwd_data(struct det_stream *s, const struct det_call *c,
                                        bool *ret_done, struct det_err *err);

#define X(NAME, name) det_kernel_fn cuda_##name;
DET_KERNELS(X)
#undef X
#define X(NAME, name) det_kernel_fn cuda_##name##_f64;
DET_KERNELS_REAL(X)
#undef X

#ifdef __cplusplus
}
#endif
#endif
