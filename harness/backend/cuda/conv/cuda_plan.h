/*
 * How a convolution of some shape is done: an engine of cuDNN's graph API, else descriptors and an
 * algorithm of its v7 API, or that cuDNN has neither. Choosing costs about a millisecond of the
 * host's time, so a plan is made once a shape and kept with the device. The choice depends on the
 * shape alone, never on what memory is free: a resumed run computes the same bits.
 */
#ifndef CUDA_PLAN_H
#define CUDA_PLAN_H

#include "cuda_impl.h"
#include "cuda_status.h"

enum cuda_plan_way { CUDA_PLAN_FORWARD, CUDA_PLAN_BACKWARD_DATA, CUDA_PLAN_BACKWARD_WEIGHT };

/* All that decides; compared and hashed as bytes. */
struct cuda_plan_key {
    int64_t x[4], w[4], y[4];
    int32_t way, dtype, groups;
    int32_t is_exact; /* f32, without TF32 */
    int32_t pad[4];   /* top, bottom, left, right */
    int32_t stride[2], dilation[2];
};

struct cuda_graph;

struct cuda_plan {
    struct cuda_plan_key key;
    struct cuda_graph *graph; /* cuda_graph.h; NULL: what follows is used */
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t op;
    bool rows;         /* cuDNN has nothing for this: cuda_rows_*() */
    int algo;          /* of the way's enum */
    size_t work_bytes; /* that it needs */
};

/* x with padding alike on both sides, which is all that cuDNN knows: what one side has more is part
 * of it. Its data is the caller's business. */
void cuda_plan_widen(const struct det_tensor *x, const struct det_attrs *a, struct det_tensor *ret);
/* x: widened. *ret belongs to the device, until its next call. */
DET_MUST int cuda_plan_get(struct det_stream *s, enum cuda_plan_way way, const struct det_attrs *a,
                           const struct det_tensor *x, const struct det_tensor *w,
                           const struct det_tensor *y, struct cuda_plan **ret, struct det_err *err);
/* One tensor is computed from the two others, by the plan's way. Refused: cuda_plan_next(), then
 * the plan is the next best way, cuda_rows_*() in the end, and is not tried so again. */
cudnnStatus_t cuda_plan_run(struct det_device *d, const struct cuda_plan *p, void *x, void *w,
                            void *y, void *work);
DET_MUST int cuda_plan_next(struct det_device *d, struct cuda_plan *p, struct det_err *err);
/* All of a device's; it is about to close. */
void cuda_plan_finish(struct det_device *d);

static inline cudnnDataType_t cuda_plan_type(const struct cuda_plan_key *k)
{
    return k->dtype == DET_BF16  ? CUDNN_DATA_BFLOAT16
           : k->dtype == DET_F16 ? CUDNN_DATA_HALF
                                 : CUDNN_DATA_FLOAT;
}

static inline bool cuda_plan_refused(cudnnStatus_t rc)
{
    return cuda_status_refused((int)rc, CUDNN_STATUS_NOT_SUPPORTED);
}

#endif
