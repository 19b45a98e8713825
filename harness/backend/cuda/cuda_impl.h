/*
 * The CUDA backend's own types: one device = one cuBLAS and one cuDNN handle and a workspace, bound to
 * the stream of each call. It is a module loaded at run time; nothing else links CUDA.
 */
#ifndef CUDA_IMPL_H
#define CUDA_IMPL_H

#include "backend.h"
#include "cuda_kernels.h"

#include <cublas_v2.h>
#include <cudnn.h>

struct det_device {
    int index;
    cublasHandle_t blas;
    cudnnHandle_t dnn;
    void *work; /* for cuDNN; grows */
    size_t work_bytes;
};

struct det_stream {
    struct det_device *device;
    cudaStream_t native;
    int *bad_target;      /* device memory: a class out of range was seen */
    int *bad_target_host; /* pinned */
};

/* The vendor's text in err; 0 on success. `what` names the call. */
int cuda_check(cudaError_t rc, const char *what, struct det_err *err);
int cuda_check_dnn(cudnnStatus_t rc, const char *what, struct det_err *err);
int cuda_check_blas(cublasStatus_t rc, const char *what, struct det_err *err);
/* At least `bytes` of scratch memory, valid until the next call on the device. */
int cuda_workspace(struct det_device *d, size_t bytes, void **ret, struct det_err *err);

static inline const float *cuda_in(const struct det_call *c, int i)
{
    return c->in[i] ? (const float *)c->in[i]->data : NULL;
}
static inline float *cuda_out(const struct det_call *c, int i)
{
    return c->out[i] ? (float *)c->out[i]->data : NULL;
}

#define X(NAME, name) det_kernel_fn cuda_##name;
DET_KERNELS(X)
#undef X

#endif
