/*
 * Convolution by cuDNN's v7 API, NHWC activations of f32, bf16 or f16, sums in f32. Only algorithms
 * that cuDNN calls deterministic are used: the same seed gives the same bytes. What it has none
 * for, and all of f64, is cuda_conv_rows.cu's. Weights are plain (O, I, kH, kW) outside; cuDNN
 * wants them in the order of the activations, so each call reorders them. cuDNN pads both sides
 * alike: what one side has more is padded (or cut off) apart.
 */
#include "cuda_impl.h"

#include "cuda_status.h"
#include "mem.h"

/* As many algorithms as a list may have. */
#define FWD_MAX    CUDNN_CONVOLUTION_FWD_ALGO_COUNT
#define DATA_MAX   CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT
#define FILTER_MAX CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT

struct conv {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t op;
    /* x with its uneven padding; `uneven` says whether that is another tensor than the caller's. */
    struct det_tensor wide;
    bool uneven;
    struct det_call pad; /* from x to wide */
    /* The workspace: cuDNN's part, the weights in NHWC order, wide. */
    void *work, *weights;
};

static void conv_finish(struct conv *k)
{
    if (k->x)
        cudnnDestroyTensorDescriptor(k->x);
    if (k->y)
        cudnnDestroyTensorDescriptor(k->y);
    if (k->w)
        cudnnDestroyFilterDescriptor(k->w);
    if (k->op)
        cudnnDestroyConvolutionDescriptor(k->op);
}

static cudnnDataType_t type_of(const struct det_tensor *t)
{
    return t->dtype == DET_BF16  ? CUDNN_DATA_BFLOAT16
           : t->dtype == DET_F16 ? CUDNN_DATA_HALF
                                 : CUDNN_DATA_FLOAT;
}

static cudnnStatus_t describe(cudnnTensorDescriptor_t *ret, const struct det_tensor *t)
{
    const int64_t *d = t->dims;
    cudnnStatus_t rc = cudnnCreateTensorDescriptor(ret);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    return cudnnSetTensor4dDescriptor(*ret, CUDNN_TENSOR_NHWC, type_of(t), (int)d[0], (int)d[1],
                                      (int)d[2], (int)d[3]);
}

static cudnnStatus_t describe_weights(cudnnFilterDescriptor_t *ret, const struct det_tensor *w)
{
    const int64_t *d = w->dims;
    cudnnStatus_t rc = cudnnCreateFilterDescriptor(ret);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    return cudnnSetFilter4dDescriptor(*ret, type_of(w), CUDNN_TENSOR_NHWC, (int)d[0], (int)d[1],
                                      (int)d[2], (int)d[3]);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static cudnnStatus_t describe_window(struct conv *k, const struct det_attrs *a, bool narrow)
{
    cudnnStatus_t rc = cudnnCreateConvolutionDescriptor(&k->op);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    rc = cudnnSetConvolution2dDescriptor(
        k->op, least(a->pad_h, a->end_h), least(a->pad_w, a->end_w), a->stride_h, a->stride_w,
        a->dilation_h, a->dilation_w, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    rc = cudnnSetConvolutionGroupCount(k->op, a->groups);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    /* f32 means f32: TF32 would make losses differ from the other backends' in the third digit. */
    return cudnnSetConvolutionMathType(k->op, narrow ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH);
}

static void widen(struct conv *k, const struct det_tensor *x, const struct det_attrs *a)
{
    int h = least(a->pad_h, a->end_h), w = least(a->pad_w, a->end_w);
    k->wide = *x;
    k->uneven = a->pad_h != a->end_h || a->pad_w != a->end_w;
    k->wide.dims[2] += a->pad_h + a->end_h - 2 * h;
    k->wide.dims[3] += a->pad_w + a->end_w - 2 * w;
    det__set_layout(&k->wide, DET_LAYOUT_NHWC);
    const int64_t *d = k->wide.dims;
    k->wide.numel = (size_t)(d[0] * d[1] * d[2] * d[3]);
    k->pad = (struct det_call){.kernel = DET_KERNEL_PAD};
    k->pad.a.before[2] = a->pad_h - h;
    k->pad.a.before[3] = a->pad_w - w;
}

static int conv_init(struct conv *k, struct det_stream *s, const struct det_call *c,
                     const struct det_tensor *x, const struct det_tensor *w,
                     const struct det_tensor *y, struct det_err *err)
{
    widen(k, x, &c->a);
    cudnnStatus_t rc = cudnnSetStream(s->device->dnn, s->native);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = describe(&k->x, &k->wide);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = describe(&k->y, y);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = describe_weights(&k->w, w);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = describe_window(k, &c->a, x->dtype != DET_F32);
    return cuda_check_dnn(rc, "describe a convolution", err);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) & ~(size_t)255;
}

static size_t bytes_of(const struct det_tensor *t)
{
    return t->numel * det_dtype_size(t->dtype);
}

static int scratch_get(struct conv *k, struct det_device *d, size_t work_bytes,
                       const struct det_tensor *w, struct det_err *err)
{
    size_t head = aligned(work_bytes), weights = aligned(bytes_of(w));
    size_t wide = k->uneven ? bytes_of(&k->wide) : 0;
    int rc = cuda_workspace(d, head + weights + wide, &k->work, err);
    if (rc < 0)
        return rc;
    k->weights = (char *)k->work + head;
    if (k->uneven)
        k->wide.data = (char *)k->weights + weights;
    return 0;
}

/* The three lists of algorithms, ranked by speed, have equal members. *ret: the first deterministic
 * one, or NULL. Its memory is what it needs with the arithmetic that stands in its line. */
#define PICK(list, n, ret)                                                                         \
    for (int i_ = 0; i_ < (n) && !(ret); i_++)                                                     \
        if ((list)[i_].status == CUDNN_STATUS_SUCCESS &&                                           \
            (list)[i_].determinism == CUDNN_DETERMINISTIC)                                         \
    (ret) = &(list)[i_]

/* f32 keeps its own arithmetic: "default" would allow TF32. */
static int use_math(struct conv *k, const struct det_tensor *w, cudnnMathType_t type,
                    struct det_err *err)
{
    if (w->dtype == DET_F32)
        return 0;
    return cuda_check_dnn(cudnnSetConvolutionMathType(k->op, type),
                          "set a convolution's arithmetic", err);
}

static bool refused(cudnnStatus_t rc)
{
    return cuda_status_refused((int)rc, CUDNN_STATUS_NOT_SUPPORTED);
}

static const float one = 1, zero = 0;

/* Weights and, where it is uneven, x into the workspace. */
static int load(struct conv *k, struct det_stream *s, const struct det_call *c,
                const struct det_tensor *w, const struct det_tensor *x, struct det_err *err)
{
    int rc = w ? cuda_reorder(s, c, w, k->weights, false, err) : 0;
    if (rc < 0 || !x || !k->uneven)
        return rc;
    k->pad.in[0] = x;
    k->pad.out[0] = &k->wide;
    return cuda_pad(s, &k->pad, err);
}

static int dnn_forward(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv k = {0};
    cudnnHandle_t dnn = s->device->dnn;
    cudnnConvolutionFwdAlgoPerf_t list[FWD_MAX], *algo = NULL;
    int n = 0, rc = conv_init(&k, s, c, c->in[0], c->in[1], c->out[0], err);
    if (rc < 0)
        return rc;
    if (cudnnGetConvolutionForwardAlgorithm_v7(dnn, k.x, k.w, k.op, k.y, FWD_MAX, &n, list) !=
        CUDNN_STATUS_SUCCESS)
        n = 0;
    PICK(list, n, algo);
    if (!algo)
        return cuda_rows_conv2d(s, c, err);
    if ((rc = use_math(&k, c->in[1], algo->mathType, err)) < 0 ||
        (rc = scratch_get(&k, s->device, algo->memory, c->in[1], err)) < 0 ||
        (rc = load(&k, s, c, c->in[1], c->in[0], err)) < 0)
        return rc;
    cudnnStatus_t done =
        cudnnConvolutionForward(dnn, &one, k.x, k.wide.data, k.w, k.weights, k.op, algo->algo,
                                k.work, algo->memory, &zero, k.y, c->out[0]->data);
    return refused(done) ? cuda_rows_conv2d(s, c, err) : cuda_check_dnn(done, "conv2d", err);
}

/* x's gradient of what was padded unevenly. */
static int unpad(struct conv *k, struct det_stream *s, const struct det_call *c,
                 struct det_err *err)
{
    k->pad.in[0] = &k->wide;
    k->pad.out[0] = c->out[0];
    return cuda_pad_bwd(s, &k->pad, err);
}

static int dnn_backward_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv k = {0};
    cudnnHandle_t dnn = s->device->dnn;
    cudnnConvolutionBwdDataAlgoPerf_t list[DATA_MAX], *algo = NULL;
    int n = 0, rc = conv_init(&k, s, c, c->out[0], c->in[1], c->in[0], err);
    if (rc < 0)
        return rc;
    if (cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, k.w, k.y, k.op, k.x, DATA_MAX, &n, list) !=
        CUDNN_STATUS_SUCCESS)
        n = 0;
    PICK(list, n, algo);
    if (!algo)
        return cuda_rows_conv2d_bwd_data(s, c, err);
    if ((rc = use_math(&k, c->in[1], algo->mathType, err)) < 0 ||
        (rc = scratch_get(&k, s->device, algo->memory, c->in[1], err)) < 0 ||
        (rc = load(&k, s, c, c->in[1], NULL, err)) < 0)
        return rc;
    cudnnStatus_t done =
        cudnnConvolutionBackwardData(dnn, &one, k.w, k.weights, k.y, c->in[0]->data, k.op,
                                     algo->algo, k.work, algo->memory, &zero, k.x, k.wide.data);
    if (refused(done))
        return cuda_rows_conv2d_bwd_data(s, c, err);
    rc = cuda_check_dnn(done, "conv2d_bwd_data", err);
    return rc < 0 || !k.uneven ? rc : unpad(&k, s, c, err);
}

static int dnn_backward_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv k = {0};
    cudnnHandle_t dnn = s->device->dnn;
    cudnnConvolutionBwdFilterAlgoPerf_t list[FILTER_MAX], *algo = NULL;
    int n = 0, rc = conv_init(&k, s, c, c->in[0], c->out[0], c->in[1], err);
    if (rc < 0)
        return rc;
    if (cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, k.x, k.y, k.op, k.w, FILTER_MAX, &n,
                                                      list) != CUDNN_STATUS_SUCCESS)
        n = 0;
    PICK(list, n, algo);
    if (!algo)
        return cuda_rows_conv2d_bwd_weight(s, c, err);
    if ((rc = use_math(&k, c->out[0], algo->mathType, err)) < 0 ||
        (rc = scratch_get(&k, s->device, algo->memory, c->out[0], err)) < 0 ||
        (rc = load(&k, s, c, NULL, c->in[0], err)) < 0)
        return rc;
    cudnnStatus_t done =
        cudnnConvolutionBackwardFilter(dnn, &one, k.x, k.wide.data, k.y, c->in[1]->data, k.op,
                                       algo->algo, k.work, algo->memory, &zero, k.w, k.weights);
    if (refused(done))
        return cuda_rows_conv2d_bwd_weight(s, c, err);
    rc = cuda_check_dnn(done, "conv2d_bwd_weight", err);
    return rc < 0 ? rc : cuda_reorder(s, c, c->out[0], k.weights, true, err);
}

/* ---- what both ways have alike: nothing to do, biases ---- */

static int conv2d(struct det_stream *s, const struct det_call *c, det_kernel_fn *products,
                  struct det_err *err)
{
    int rc = c->out[0]->numel > 0 ? products(s, c, err) : 0;
    return rc < 0 ? rc : cuda_finish_rows(s, c, c->in[2], c->out[0], c->out[0]->dims[1], err);
}

/* The gradient of something from dy; zeros where dy is empty. */
static int gradient(struct det_stream *s, const struct det_call *c, const struct det_tensor *dy,
                    det_kernel_fn *products, struct det_err *err)
{
    struct det_tensor *to = c->out[0];
    if (to->numel == 0)
        return 0;
    if (dy->numel > 0)
        return products(s, c, err);
    return cuda_check(cudaMemsetAsync(to->data, 0, bytes_of(to), s->native), "cudaMemsetAsync",
                      err);
}

static int weight_gradient(struct det_stream *s, const struct det_call *c, det_kernel_fn *products,
                           struct det_err *err)
{
    const struct det_tensor *dy = c->in[1];
    int rc = gradient(s, c, dy, products, err);
    return rc < 0 || !c->out[1] ? rc : cuda_sum_rows(s, c, dy, c->out[1], dy->dims[1], err);
}

int cuda_conv2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return conv2d(s, c, dnn_forward, err);
}

int cuda_conv2d_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return conv2d(s, c, cuda_rows_conv2d, err);
}

int cuda_conv2d_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return gradient(s, c, c->in[0], dnn_backward_data, err);
}

int cuda_conv2d_bwd_data_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return gradient(s, c, c->in[0], cuda_rows_conv2d_bwd_data, err);
}

int cuda_conv2d_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return weight_gradient(s, c, dnn_backward_weight, err);
}

int cuda_conv2d_bwd_weight_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    return weight_gradient(s, c, cuda_rows_conv2d_bwd_weight, err);
}
