/* cuDNN's convolutions on the host: every pair of pixels that a window joins, in one loop. */
#include "cudnn.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"

struct emulated_tensor {
    enum det_dtype dtype;
    int d[4]; /* N C H W, or O I kH kW */
};

struct emulated_conv {
    int pad[2], stride[2], dilation[2], groups;
    cudnnMathType_t math;
};

/* The workspace of each arithmetic. */
#define PLAIN_BYTES  256
#define TENSOR_BYTES 512

size_t cudnnGetVersion(void)
{
    return 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t rc)
{
    return rc == CUDNN_STATUS_SUCCESS            ? "success"
           : rc == CUDNN_STATUS_ALLOC_FAILED     ? "allocation failed"
           : rc == CUDNN_STATUS_BAD_PARAM        ? "bad parameter"
           : rc == CUDNN_STATUS_EXECUTION_FAILED ? "execution failed"
                                                 : "not supported";
}

struct emulated_dnn {
    cudaStream_t stream;
};

cudaStream_t emulated_dnn_stream(cudnnHandle_t h)
{
    return h->stream;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *ret)
{
    *ret = calloc(1, sizeof **ret);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
    free(h);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *ret)
{
    *ret = calloc(1, sizeof **ret);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t t)
{
    free(t);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set(struct emulated_tensor *t, cudnnTensorFormat_t format,
                         cudnnDataType_t type, const int d[4])
{
    size_t most = emulated_setting("EMULATED_ELEMENTS", INT_MAX);
    if ((size_t)d[0] * (size_t)d[1] * (size_t)d[2] * (size_t)d[3] > most)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (format != CUDNN_TENSOR_NHWC || d[0] <= 0 || d[1] <= 0 || d[2] <= 0 || d[3] <= 0)
        return CUDNN_STATUS_NOT_SUPPORTED;
    t->dtype = type == CUDNN_DATA_HALF ? DET_F16 : type == CUDNN_DATA_BFLOAT16 ? DET_BF16 : DET_F32;
    memcpy(t->d, d, sizeof t->d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t t, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    return set(t, format, type, (int[]){n, c, h, w});
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *ret)
{
    return cudnnCreateTensorDescriptor(ret);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t t)
{
    return cudnnDestroyTensorDescriptor(t);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t t, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    return set(t, format, type, (int[]){k, c, h, w});
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *ret)
{
    *ret = calloc(1, sizeof **ret);
    (*ret)->groups = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t v)
{
    free(v);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t v, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
    *v = (struct emulated_conv){
        {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, v->groups, v->math};
    return mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t v, int groups)
{
    v->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t v, cudnnMathType_t type)
{
    v->math = type;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t algorithms(const struct emulated_conv *v, int most, int *ret_n,
                                cudnnConvolutionFwdAlgoPerf_t *ret)
{
    bool dilated = v->dilation[0] > 1 || v->dilation[1] > 1;
    emulated_count(EMULATED_QUERY, 0);
    *ret_n = most < 2 || dilated ? 1 : 2;
    ret[0] = (cudnnConvolutionFwdAlgoPerf_t){0, CUDNN_STATUS_SUCCESS, TENSOR_BYTES,
                                             CUDNN_NON_DETERMINISTIC, v->math};
    cudnnMathType_t plain = v->math == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
    if (*ret_n == 2)
        ret[1] = (cudnnConvolutionFwdAlgoPerf_t){
            1, CUDNN_STATUS_SUCCESS, emulated_setting("EMULATED_ALGO_BYTES", PLAIN_BYTES),
            CUDNN_DETERMINISTIC, plain};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t h, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w,
                                                     cudnnConvolutionDescriptor_t v,
                                                     cudnnTensorDescriptor_t y, int most,
                                                     int *ret_n, cudnnConvolutionFwdAlgoPerf_t *ret)
{
    (void)h, (void)x, (void)w, (void)y;
    return algorithms(v, most, ret_n, ret);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t h, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t v, cudnnTensorDescriptor_t dx, int most, int *ret_n,
    cudnnConvolutionBwdDataAlgoPerf_t *ret)
{
    (void)h, (void)w, (void)dy, (void)dx;
    return algorithms(v, most, ret_n, ret);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t h, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t v, cudnnFilterDescriptor_t dw, int most, int *ret_n,
    cudnnConvolutionBwdFilterAlgoPerf_t *ret)
{
    (void)h, (void)x, (void)dy, (void)dw;
    return algorithms(v, most, ret_n, ret);
}

/* x and y are NHWC, w is (O, kH, kW, I / groups); `to` is the one that is computed. */
struct work {
    const struct emulated_conv *v;
    const struct emulated_tensor *xd, *wd, *yd;
    const void *x, *w, *y;
    const void *space;
    size_t space_bytes;
    void *to;
    double *sum;
};

static long elements(const struct emulated_tensor *t)
{
    return (long)t->d[0] * t->d[1] * t->d[2] * t->d[3];
}

static double load(const struct emulated_tensor *t, const void *p, long i)
{
    return det__load_f64(t->dtype, (const char *)p + (size_t)i * det_dtype_size(t->dtype));
}

/* One element of each: w[o, kh, kw, i] joins x[ix] and y[iy]. */
static void join(const struct work *k, long ix, long iw, long iy)
{
    if (k->to == k->y)
        k->sum[iy] += load(k->xd, k->x, ix) * load(k->wd, k->w, iw);
    else if (k->to == k->x)
        k->sum[ix] += load(k->yd, k->y, iy) * load(k->wd, k->w, iw);
    else
        k->sum[iw] += load(k->yd, k->y, iy) * load(k->xd, k->x, ix);
}

/* The pixels under one tap of one window: `x`, or -1 in the padding, and `y`. */
static void join_pixels(const struct work *k, long x, long y, int tap)
{
    int channels = k->wd->d[1], outs = k->wd->d[0], group = outs / k->v->groups;
    int taps = k->wd->d[2] * k->wd->d[3];
    for (int o = 0; x >= 0 && o < outs; o++)
        for (int i = 0; i < channels; i++)
            join(k, x * k->xd->d[1] + o / group * channels + i,
                 ((long)o * taps + tap) * channels + i, y * outs + o);
}

static long pixel(const struct work *k, long window, int kh, int kw)
{
    const int *y = k->yd->d, *x = k->xd->d;
    long oh = window / y[3] % y[2], ow = window % y[3], n = window / (y[2] * y[3]);
    long h = oh * k->v->stride[0] - k->v->pad[0] + kh * k->v->dilation[0];
    long w = ow * k->v->stride[1] - k->v->pad[1] + kw * k->v->dilation[1];
    return h < 0 || w < 0 || h >= x[2] || w >= x[3] ? -1 : (n * x[2] + h) * x[3] + w;
}

static long long bytes_of(const struct emulated_tensor *const d[3])
{
    long long n = 0;
    for (int i = 0; i < 3; i++)
        n += elements(d[i]) * (long long)det_dtype_size(d[i]->dtype);
    return n;
}

/* Whether it can be run so. */
static cudnnStatus_t look(const struct work *k)
{
    const struct emulated_tensor *d[] = {k->xd, k->wd, k->yd};
    const void *p[] = {k->x, k->w, k->y};
    size_t wanted = k->v->math == CUDNN_TENSOR_OP_MATH ? TENSOR_BYTES : PLAIN_BYTES;
    emulated_count(EMULATED_CONV, bytes_of(d));
    if (k->xd->dtype == DET_F32 && k->v->math != CUDNN_FMA_MATH)
        emulated_count(EMULATED_TF32, 0);
    if (emulated_setting("EMULATED_DNN_MEMORY", 1) == 0)
        return CUDNN_STATUS_ALLOC_FAILED;
    for (int i = 0; i < 3; i++) /* algorithms are chosen for tensors that begin at 16 bytes */
        if ((uintptr_t)p[i] % 16 != 0 ||
            !emulated_is_array(p[i], det_dtype_size(d[i]->dtype), elements(d[i])))
            return CUDNN_STATUS_BAD_PARAM;
    if (k->space_bytes < wanted || !emulated_is_array(k->space, 256, (long)wanted / 256))
        return CUDNN_STATUS_BAD_PARAM;
    return k->v->stride[0] == 3 ? CUDNN_STATUS_NOT_SUPPORTED + 4 : CUDNN_STATUS_SUCCESS;
}

/* What outlives a caller's descriptors. */
struct convolution {
    struct work k;
    struct emulated_conv v;
    struct emulated_tensor xd, wd, yd;
};

static void run_convolution(const void *arg)
{
    const struct convolution *c = arg;
    struct work k = c->k;
    k.v = &c->v, k.xd = &c->xd, k.wd = &c->wd, k.yd = &c->yd;
    const struct emulated_tensor *td = k.to == k.x ? k.xd : k.to == k.w ? k.wd : k.yd;
    long n = elements(td), windows = (long)k.yd->d[0] * k.yd->d[2] * k.yd->d[3];
    int ww = k.wd->d[3], taps = k.wd->d[2] * ww;
    k.sum = calloc((size_t)n, sizeof *k.sum);
    assert(k.sum);
    emulated_open();
    for (long i = 0; i < windows; i++)
        for (int tap = 0; tap < taps; tap++)
            join_pixels(&k, pixel(&k, i, tap / ww, tap % ww), i, tap);
    for (long i = 0; i < n; i++)
        det__store_f64(td->dtype, (char *)k.to + (size_t)i * det_dtype_size(td->dtype), k.sum[i]);
    emulated_close();
    free(k.sum);
}

static cudnnStatus_t convolve(cudnnHandle_t h, const struct work *k)
{
    cudnnStatus_t rc = look(k);
    if (rc == CUDNN_STATUS_SUCCESS && !emulated_takes(h->stream))
        rc = CUDNN_STATUS_EXECUTION_FAILED;
    if (rc != CUDNN_STATUS_SUCCESS || emulated_is_empty())
        return rc;
    const struct convolution c = {*k, *k->v, *k->xd, *k->wd, *k->yd};
    emulated_later(h->stream, run_convolution, &c, sizeof c);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha,
                                      cudnnTensorDescriptor_t xd, const void *x,
                                      cudnnFilterDescriptor_t wd, const void *w,
                                      cudnnConvolutionDescriptor_t v, int algo, void *work,
                                      size_t work_bytes, const void *beta,
                                      cudnnTensorDescriptor_t yd, void *y)
{
    (void)alpha, (void)algo, (void)beta;
    return convolve(h, &(struct work){v, xd, wd, yd, x, w, y, work, work_bytes, y, NULL});
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha,
                                           cudnnFilterDescriptor_t wd, const void *w,
                                           cudnnTensorDescriptor_t dyd, const void *dy,
                                           cudnnConvolutionDescriptor_t v, int algo, void *work,
                                           size_t work_bytes, const void *beta,
                                           cudnnTensorDescriptor_t dxd, void *dx)
{
    (void)alpha, (void)algo, (void)beta;
    return convolve(h, &(struct work){v, dxd, wd, dyd, dx, w, dy, work, work_bytes, dx, NULL});
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha,
                                             cudnnTensorDescriptor_t xd, const void *x,
                                             cudnnTensorDescriptor_t dyd, const void *dy,
                                             cudnnConvolutionDescriptor_t v, int algo, void *work,
                                             size_t work_bytes, const void *beta,
                                             cudnnFilterDescriptor_t dwd, void *dw)
{
    (void)alpha, (void)algo, (void)beta;
    return convolve(h, &(struct work){v, xd, dwd, dyd, x, dw, dy, work, work_bytes, dw, NULL});
}
