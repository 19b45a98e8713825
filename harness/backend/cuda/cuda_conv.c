/*
 * Convolution and batch norm by cuDNN's v7 API, NHWC activations. Only algorithms that cuDNN calls
 * deterministic are used: the same seed gives the same bytes. Weights are plain (O, I, kH, kW) outside;
 * cuDNN wants them in the order of the activations, so each call reorders them into the workspace.
 */
#include "cuda_impl.h"

#include "mem.h"

struct conv {
    cudnnTensorDescriptor_t x, y, b;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t op;
};

static void conv_finish(struct conv *k)
{
    if (k->x)
        cudnnDestroyTensorDescriptor(k->x);
    if (k->y)
        cudnnDestroyTensorDescriptor(k->y);
    if (k->b)
        cudnnDestroyTensorDescriptor(k->b);
    if (k->w)
        cudnnDestroyFilterDescriptor(k->w);
    if (k->op)
        cudnnDestroyConvolutionDescriptor(k->op);
}

static cudnnStatus_t describe(cudnnTensorDescriptor_t *ret, const int64_t *dims)
{
    cudnnStatus_t rc = cudnnCreateTensorDescriptor(ret);
    return rc != CUDNN_STATUS_SUCCESS ? rc
                                      : cudnnSetTensor4dDescriptor(*ret, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, (int)dims[0], (int)dims[1],
                                                                   (int)dims[2], (int)dims[3]);
}

/* x, y (N, C, H, W); w (O, I, kH, kW) */
static int conv_init(struct conv *k, struct det_stream *s, const struct det_call *c, const int64_t *x, const int64_t *w, const int64_t *y,
                     struct det_err *err)
{
    int64_t bias[4] = {1, w[0], 1, 1};
    cudnnStatus_t rc;
    if (c->a.end_h != c->a.pad_h || c->a.end_w != c->a.pad_w)
        return det_fail(err, DET_EUNIMPL, "cuDNN pads both sides alike: call det_pad() before the convolution");
    (void)((rc = cudnnSetStream(s->device->dnn, s->native)) || (rc = describe(&k->x, x)) || (rc = describe(&k->y, y)) ||
           (rc = describe(&k->b, bias)) || (rc = cudnnCreateFilterDescriptor(&k->w)) ||
           (rc = cudnnSetFilter4dDescriptor(k->w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, (int)w[0], (int)w[1], (int)w[2], (int)w[3])) ||
           (rc = cudnnCreateConvolutionDescriptor(&k->op)) ||
           (rc = cudnnSetConvolution2dDescriptor(k->op, c->a.pad_h, c->a.pad_w, c->a.stride_h, c->a.stride_w, c->a.dilation_h,
                                                 c->a.dilation_w, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)) ||
           (rc = cudnnSetConvolutionGroupCount(k->op, c->a.groups)) ||
           (rc = cudnnSetConvolutionMathType(k->op, CUDNN_FMA_MATH)));
    return cuda_check_dnn(rc, det_kernel_name(c->kernel), err);
}

/* Workspace: cuDNN's part first, then the weights in NHWC order. */
struct scratch {
    void *work;
    float *w;
};

static int scratch_get(struct det_device *d, size_t work_bytes, const int64_t *w, struct scratch *ret, struct det_err *err)
{
    size_t head = (work_bytes + 255) & ~(size_t)255;
    size_t weights = (size_t)(w[0] * w[1] * w[2] * w[3]) * sizeof(float);
    int rc = cuda_workspace(d, head + weights, &ret->work, err);
    if (rc == 0)
        ret->w = (float *)((char *)ret->work + head);
    return rc;
}

static struct cuda_order nhwc(const int64_t *dims)
{
    return (struct cuda_order){(size_t)dims[1], (size_t)dims[2], (size_t)dims[3]};
}

static int reorder(struct det_stream *s, const int64_t *dims, bool to_nhwc, const float *x, float *y, struct det_err *err)
{
    struct cuda_order plain = {0}, other = nhwc(dims);
    size_t n = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    return cuda_check(cuda_k_copy(s->native, n, 0, 0, to_nhwc ? plain : other, to_nhwc ? other : plain, x, y), "reorder weights", err);
}

/* The first deterministic algorithm of a list ranked by speed. */
#define PICK(list, n, ret)                                                                         \
    do {                                                                                           \
        for (int i_ = 0; i_ < (n); i_++)                                                           \
            if ((list)[i_].status == CUDNN_STATUS_SUCCESS && (list)[i_].determinism == CUDNN_DETERMINISTIC) { \
                (ret) = &(list)[i_];                                                               \
                break;                                                                             \
            }                                                                                      \
    } while (0)

static int no_algorithm(const struct det_call *c, struct det_err *err)
{
    return det_fail(err, DET_EDEVICE, "cuDNN has no deterministic algorithm for this %s", det_kernel_name(c->kernel));
}

static const float one = 1, zero = 0;

static int conv_forward(struct det_stream *s, const struct det_call *c, struct conv *k, struct det_err *err)
{
    cudnnHandle_t dnn = s->device->dnn;
    cudnnConvolutionFwdAlgoPerf_t list[CUDNN_CONVOLUTION_FWD_ALGO_COUNT], *algo = NULL;
    struct scratch t;
    int n = 0, rc;
    if ((rc = cuda_check_dnn(cudnnGetConvolutionForwardAlgorithm_v7(dnn, k->x, k->w, k->op, k->y, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &n, list),
                             "choose a convolution", err)) < 0)
        return rc;
    PICK(list, n, algo);
    if (!algo)
        return no_algorithm(c, err);
    if ((rc = scratch_get(s->device, algo->memory, c->in[1]->dims, &t, err)) < 0 ||
        (rc = reorder(s, c->in[1]->dims, true, cuda_in(c, 1), t.w, err)) < 0)
        return rc;
    return cuda_check_dnn(cudnnConvolutionForward(dnn, &one, k->x, cuda_in(c, 0), k->w, t.w, k->op, algo->algo, t.work, algo->memory, &zero,
                                                  k->y, cuda_out(c, 0)),
                          "conv2d", err);
}

int cuda_conv2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv k = {0};
    int rc = conv_init(&k, s, c, c->in[0]->dims, c->in[1]->dims, c->out[0]->dims, err);
    if (rc == 0)
        rc = conv_forward(s, c, &k, err);
    if (rc == 0 && c->in[2])
        rc = cuda_check_dnn(cudnnAddTensor(s->device->dnn, &one, k.b, cuda_in(c, 2), &one, k.y, cuda_out(c, 0)), "add a bias", err);
    if (rc == 0 && c->a.relu)
        rc = cuda_check(cuda_k_clamp(s->native, c->out[0]->numel, 0, __builtin_inff(), cuda_out(c, 0), cuda_out(c, 0)), "relu", err);
    return rc;
}

int cuda_conv2d_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv k = {0};
    cudnnConvolutionBwdDataAlgoPerf_t list[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT], *algo = NULL;
    cudnnHandle_t dnn = s->device->dnn;
    struct scratch t;
    int n = 0, rc;
    if ((rc = conv_init(&k, s, c, c->out[0]->dims, c->in[1]->dims, c->in[0]->dims, err)) < 0 ||
        (rc = cuda_check_dnn(cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, k.w, k.y, k.op, k.x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &n, list),
                             "choose a convolution", err)) < 0)
        return rc;
    PICK(list, n, algo);
    if (!algo)
        return no_algorithm(c, err);
    if ((rc = scratch_get(s->device, algo->memory, c->in[1]->dims, &t, err)) < 0 ||
        (rc = reorder(s, c->in[1]->dims, true, cuda_in(c, 1), t.w, err)) < 0)
        return rc;
    return cuda_check_dnn(cudnnConvolutionBackwardData(dnn, &one, k.w, t.w, k.y, cuda_in(c, 0), k.op, algo->algo, t.work, algo->memory, &zero,
                                                       k.x, cuda_out(c, 0)),
                          "conv2d_bwd_data", err);
}

int cuda_conv2d_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv k = {0};
    cudnnConvolutionBwdFilterAlgoPerf_t list[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT], *algo = NULL;
    cudnnHandle_t dnn = s->device->dnn;
    struct scratch t;
    int n = 0, rc;
    if ((rc = conv_init(&k, s, c, c->in[0]->dims, c->out[0]->dims, c->in[1]->dims, err)) < 0 ||
        (rc = cuda_check_dnn(
             cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, k.x, k.y, k.op, k.w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &n, list),
             "choose a convolution", err)) < 0)
        return rc;
    PICK(list, n, algo);
    if (!algo)
        return no_algorithm(c, err);
    if ((rc = scratch_get(s->device, algo->memory, c->out[0]->dims, &t, err)) < 0 ||
        (rc = cuda_check_dnn(cudnnConvolutionBackwardFilter(dnn, &one, k.x, cuda_in(c, 0), k.y, cuda_in(c, 1), k.op, algo->algo, t.work,
                                                            algo->memory, &zero, k.w, t.w),
                             "conv2d_bwd_weight", err)) < 0 ||
        (rc = reorder(s, c->out[0]->dims, false, t.w, cuda_out(c, 0), err)) < 0 || !c->out[1])
        return rc;
    const int64_t *dy = c->in[1]->dims;
    return cuda_check(cuda_k_column_sums(s->native, (size_t)(dy[0] * dy[2] * dy[3]), (size_t)dy[1], cuda_in(c, 1), cuda_out(c, 1)),
                      "conv2d_bwd_weight", err);
}

struct norm {
    cudnnTensorDescriptor_t x, stat;
};

static void norm_finish(struct norm *k)
{
    if (k->x)
        cudnnDestroyTensorDescriptor(k->x);
    if (k->stat)
        cudnnDestroyTensorDescriptor(k->stat);
}

static int norm_init(struct norm *k, struct det_stream *s, const int64_t *dims, struct det_err *err)
{
    int64_t stat[4] = {1, dims[1], 1, 1};
    cudnnStatus_t rc;
    (void)((rc = cudnnSetStream(s->device->dnn, s->native)) || (rc = describe(&k->x, dims)) || (rc = describe(&k->stat, stat)));
    return cuda_check_dnn(rc, "batch_norm", err);
}

static int finish_norm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    float *y = cuda_out(c, 0);
    int rc = 0;
    if (c->in[5])
        rc = cuda_check(cuda_k_binary(s->native, CUDA_ADD, c->out[0]->numel, y, cuda_in(c, 5), NULL, y), "add", err);
    if (rc < 0 || !c->a.relu)
        return rc;
    return cuda_check(cuda_k_clamp(s->native, c->out[0]->numel, 0, __builtin_inff(), cuda_out(c, 0), cuda_out(c, 0)), "relu", err);
}

int cuda_batch_norm_train(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm k = {0};
    int rc = norm_init(&k, s, c->in[0]->dims, err);
    if (rc == 0)
        rc = cuda_check_dnn(cudnnBatchNormalizationForwardTraining(s->device->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, k.x, cuda_in(c, 0), k.x,
                                                                   cuda_out(c, 0), k.stat, cuda_in(c, 1), cuda_in(c, 2), c->a.momentum,
                                                                   cuda_out(c, 3), cuda_out(c, 4), c->a.eps, cuda_out(c, 1), cuda_out(c, 2)),
                            "batch_norm", err);
    return rc < 0 ? rc : finish_norm(s, c, err);
}

int cuda_batch_norm_eval(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm k = {0};
    size_t channels = c->in[3]->numel;
    int rc = norm_init(&k, s, c->in[0]->dims, err);
    if (rc == 0)
        rc = cuda_check_dnn(cudnnBatchNormalizationForwardInference(s->device->dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, k.x, cuda_in(c, 0),
                                                                    k.x, cuda_out(c, 0), k.stat, cuda_in(c, 1), cuda_in(c, 2), cuda_in(c, 3),
                                                                    cuda_in(c, 4), c->a.eps),
                            "batch_norm", err);
    if (rc == 0)
        rc = cuda_check(cuda_k_affine(s->native, channels, 1, 0, cuda_in(c, 3), cuda_out(c, 1)), "batch_norm", err);
    if (rc == 0)
        rc = cuda_check(cuda_k_invstd(s->native, channels, (float)c->a.eps, cuda_in(c, 4), cuda_out(c, 2)), "batch_norm", err);
    return rc < 0 ? rc : finish_norm(s, c, err);
}

/* The gradient of what was added: dy where it passed the ReLU. */
static int residual_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    size_t n = c->out[3]->numel;
    if (c->a.relu)
        return cuda_check(cuda_k_binary(s->native, CUDA_RELU_BWD, n, cuda_in(c, 0), cuda_in(c, 2), NULL, cuda_out(c, 3)), "relu_bwd", err);
    return cuda_check(cuda_k_affine(s->native, n, 1, 0, cuda_in(c, 0), cuda_out(c, 3)), "copy", err);
}

/* Eval statistics are constants, which cuDNN's backward does not offer: two small kernels of ours serve
 * both cases, so that one formula is tested. */
int cuda_batch_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_norm n = {
        .rows = c->in[1]->numel / c->in[3]->numel,
        .channels = c->in[3]->numel,
        .dy = cuda_in(c, 0),
        .x = cuda_in(c, 1),
        .y = c->a.relu ? cuda_in(c, 2) : NULL,
        .w = cuda_in(c, 3),
        .mean = cuda_in(c, 4),
        .invstd = cuda_in(c, 5),
        .train = c->a.train,
    };
    if (c->out[3]) {
        int rc = residual_bwd(s, c, err);
        if (rc < 0)
            return rc;
        n.dy = cuda_out(c, 3);
        n.y = NULL;
    }
    return cuda_check(cuda_k_norm_bwd(s->native, n, cuda_out(c, 0), cuda_out(c, 1), cuda_out(c, 2)), "batch_norm_bwd", err);
}
