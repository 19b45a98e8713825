#include "cuda_plan.h"

#include <limits.h>
#include <string.h>

#include "cuda_graph.h"
#include "map.h"
#include "mem.h"

/* As many algorithms as a list may have. */
#define FWD_MAX    CUDNN_CONVOLUTION_FWD_ALGO_COUNT
#define DATA_MAX   CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT
#define FILTER_MAX CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT

#define WORK_MAX  ((size_t)1 << 30) /* an algorithm that wants more memory is passed over */
#define PLANS_MAX 1024              /* images of every size: the plans begin anew */

static void plan_destroy(struct cuda_plan *p)
{
    cuda_graph_destroy(p->graph);
    if (p->x)
        cudnnDestroyTensorDescriptor(p->x);
    if (p->y)
        cudnnDestroyTensorDescriptor(p->y);
    if (p->w)
        cudnnDestroyFilterDescriptor(p->w);
    if (p->op)
        cudnnDestroyConvolutionDescriptor(p->op);
    free(p);
}

void cuda_plan_finish(struct det_device *d)
{
    uint64_t key;
    void *value;
    if (!d->plans)
        return;
    for (size_t it = 0; imap_next(d->plans, &it, &key, &value);)
        plan_destroy(value);
    imap_destroy(d->plans);
    d->plans = NULL;
}

/* FNV-1a (Fowler, Noll and Vo). */
static uint64_t hash_key(const struct cuda_plan_key *k)
{
    const unsigned char *p = (const unsigned char *)k;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof *k; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

void cuda_plan_widen(const struct det_tensor *x, const struct det_attrs *a, struct det_tensor *ret)
{
    *ret = *x;
    ret->dims[2] += a->pad_h + a->end_h - 2 * least_of(a->pad_h, a->end_h);
    ret->dims[3] += a->pad_w + a->end_w - 2 * least_of(a->pad_w, a->end_w);
    det__set_layout(ret, DET_LAYOUT_NHWC);
    const int64_t *d = ret->dims;
    ret->numel = (size_t)(d[0] * d[1] * d[2] * d[3]);
}

/* cuDNN counts in int. */
static bool fits_int(const int64_t d[4])
{
    return d[0] <= INT_MAX && d[1] <= INT_MAX && d[2] <= INT_MAX && d[3] <= INT_MAX;
}

static cudnnStatus_t describe_tensor(cudnnTensorDescriptor_t *ret, const int64_t d[4],
                                     const struct cuda_plan_key *k)
{
    cudnnStatus_t rc = fits_int(d) ? cudnnCreateTensorDescriptor(ret) : CUDNN_STATUS_NOT_SUPPORTED;
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    return cudnnSetTensor4dDescriptor(*ret, CUDNN_TENSOR_NHWC, cuda_plan_type(k), (int)d[0],
                                      (int)d[1], (int)d[2], (int)d[3]);
}

static cudnnStatus_t describe_weights(struct cuda_plan *p)
{
    const int64_t *d = p->key.w;
    cudnnStatus_t rc =
        fits_int(d) ? cudnnCreateFilterDescriptor(&p->w) : CUDNN_STATUS_NOT_SUPPORTED;
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    return cudnnSetFilter4dDescriptor(p->w, cuda_plan_type(&p->key), CUDNN_TENSOR_NHWC, (int)d[0],
                                      (int)d[1], (int)d[2], (int)d[3]);
}

static cudnnStatus_t describe_window(struct cuda_plan *p)
{
    const struct cuda_plan_key *k = &p->key;
    cudnnStatus_t rc = cudnnCreateConvolutionDescriptor(&p->op);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    rc = cudnnSetConvolution2dDescriptor(
        p->op, least_of(k->pad[0], k->pad[1]), least_of(k->pad[2], k->pad[3]), k->stride[0],
        k->stride[1], k->dilation[0], k->dilation[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    rc = cudnnSetConvolutionGroupCount(p->op, k->groups);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    /* f32 means f32: TF32 would make losses differ from the other backends' in the third digit. */
    return cudnnSetConvolutionMathType(p->op, k->is_exact           ? CUDNN_FMA_MATH
                                              : k->dtype == DET_F32 ? CUDNN_DEFAULT_MATH
                                                                    : CUDNN_TENSOR_OP_MATH);
}

static cudnnStatus_t describe_all(struct cuda_plan *p)
{
    cudnnStatus_t rc = describe_tensor(&p->x, p->key.x, &p->key);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = describe_tensor(&p->y, p->key.y, &p->key);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = describe_weights(p);
    return rc == CUDNN_STATUS_SUCCESS ? describe_window(p) : rc;
}

/* The three lists of algorithms, ranked by speed, have equal members: the first that gives the same
 * bits at every run, within bounds. Its memory is what it needs with the arithmetic of its line. */
#define PICK(p, list, n, math)                                                                     \
    for (int i_ = 0; i_ < (n) && (p)->rows; i_++)                                                  \
        if ((list)[i_].status == CUDNN_STATUS_SUCCESS &&                                           \
            (list)[i_].determinism == CUDNN_DETERMINISTIC && (list)[i_].memory <= WORK_MAX) {      \
            (p)->algo = (int)(list)[i_].algo;                                                      \
            (p)->work_bytes = (list)[i_].memory;                                                   \
            (p)->rows = false;                                                                     \
            *(math) = (list)[i_].mathType;                                                         \
        }

static void pick_forward(cudnnHandle_t dnn, struct cuda_plan *p, cudnnMathType_t *math)
{
    cudnnConvolutionFwdAlgoPerf_t list[FWD_MAX];
    int n = 0;
    if (cudnnGetConvolutionForwardAlgorithm_v7(dnn, p->x, p->w, p->op, p->y, FWD_MAX, &n, list) ==
        CUDNN_STATUS_SUCCESS)
        PICK(p, list, n, math);
}

static void pick_backward_data(cudnnHandle_t dnn, struct cuda_plan *p, cudnnMathType_t *math)
{
    cudnnConvolutionBwdDataAlgoPerf_t list[DATA_MAX];
    int n = 0;
    if (cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, p->w, p->y, p->op, p->x, DATA_MAX, &n,
                                                    list) == CUDNN_STATUS_SUCCESS)
        PICK(p, list, n, math);
}

static void pick_backward_weight(cudnnHandle_t dnn, struct cuda_plan *p, cudnnMathType_t *math)
{
    cudnnConvolutionBwdFilterAlgoPerf_t list[FILTER_MAX];
    int n = 0;
    if (cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, p->x, p->y, p->op, p->w, FILTER_MAX, &n,
                                                      list) == CUDNN_STATUS_SUCCESS)
        PICK(p, list, n, math);
}

/* By the v7 API: rows stays where there is no algorithm. f32 keeps its own arithmetic: "default"
 * allows TF32. */
static int choose_algorithm(struct det_device *d, struct cuda_plan *p, struct det_err *err)
{
    static void (*const pick[])(cudnnHandle_t, struct cuda_plan *, cudnnMathType_t *) = {
        [CUDA_PLAN_FORWARD] = pick_forward,
        [CUDA_PLAN_BACKWARD_DATA] = pick_backward_data,
        [CUDA_PLAN_BACKWARD_WEIGHT] = pick_backward_weight,
    };
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnStatus_t rc = describe_all(p);
    p->rows = true;
    if (cuda_plan_refused(rc))
        return 0; /* 2^31 elements and more, say */
    if (rc != CUDNN_STATUS_SUCCESS)
        return cuda_check_dnn(rc, "describe a convolution", err);
    pick[p->key.way](d->dnn, p, &math);
    if (p->rows || p->key.is_exact)
        return 0;
    return cuda_check_dnn(cudnnSetConvolutionMathType(p->op, math),
                          "set a convolution's arithmetic", err);
}

/* Groups stay with v7. */
static int choose_way(struct det_device *d, struct cuda_plan *p, struct det_err *err)
{
    bool starved = false;
    if (p->key.groups == 1 && fits_int(p->key.x) && fits_int(p->key.w) && fits_int(p->key.y))
        p->graph = cuda_graph_create(d->dnn, &p->key, WORK_MAX, &starved);
    if (starved)
        return cuda_check_dnn(CUDNN_STATUS_ALLOC_FAILED, "plan a convolution", err);
    p->work_bytes = p->graph ? cuda_graph_bytes(p->graph) : 0;
    return p->graph ? 0 : choose_algorithm(d, p, err);
}

static struct cuda_plan_key key_of(enum cuda_plan_way way, const struct det_attrs *a,
                                   const struct det_tensor *x, const struct det_tensor *w,
                                   const struct det_tensor *y)
{
    struct cuda_plan_key k;
    memset(&k, 0, sizeof k); /* also what lies between its members */
    for (int i = 0; i < 4; i++) {
        k.x[i] = x->dims[i];
        k.w[i] = w->dims[i];
        k.y[i] = y->dims[i];
    }
    k.way = way, k.dtype = (int32_t)x->dtype, k.groups = a->groups;
    k.is_exact = x->dtype == DET_F32 && !cuda_allows_tf32();
    k.pad[0] = a->pad_h, k.pad[1] = a->end_h, k.pad[2] = a->pad_w, k.pad[3] = a->end_w;
    k.stride[0] = a->stride_h, k.stride[1] = a->stride_w;
    k.dilation[0] = a->dilation_h, k.dilation[1] = a->dilation_w;
    return k;
}

/* A plan that is under way has to stay; what failed on the stream, stays told. */
static void await_runs(struct det_stream *s)
{
    cudaStreamSynchronize(s->native);
}

static void keep_plan(struct det_stream *s, struct cuda_plan *p)
{
    struct det_device *d = s->device;
    if (d->plans && imap_size(d->plans) >= PLANS_MAX) {
        await_runs(s);
        cuda_plan_finish(d);
    }
    if (!d->plans)
        d->plans = imap_create();
    struct cuda_plan *same_hash = imap_put(d->plans, hash_key(&p->key), p);
    if (!same_hash)
        return;
    await_runs(s);
    plan_destroy(same_hash);
}

static int make_plan(struct det_stream *s, const struct cuda_plan_key *key, struct cuda_plan **ret,
                     struct det_err *err)
{
    struct cuda_plan *p = det_zalloc(sizeof *p);
    p->key = *key;
    int rc = choose_way(s->device, p, err);
    if (rc < 0) {
        plan_destroy(p);
        return rc;
    }
    keep_plan(s, p);
    *ret = p;
    return 0;
}

int cuda_plan_get(struct det_stream *s, enum cuda_plan_way way, const struct det_attrs *a,
                  const struct det_tensor *x, const struct det_tensor *w,
                  const struct det_tensor *y, struct cuda_plan **ret, struct det_err *err)
{
    const struct cuda_plan_key key = key_of(way, a, x, w, y);
    struct cuda_plan *known = s->device->plans ? imap_get(s->device->plans, hash_key(&key)) : NULL;
    if (known && memcmp(&known->key, &key, sizeof key) == 0) {
        *ret = known;
        return 0;
    }
    return make_plan(s, &key, ret, err);
}

cudnnStatus_t cuda_plan_run(struct det_device *d, const struct cuda_plan *p, void *x, void *w,
                            void *y, void *work)
{
    static const float one = 1, zero = 0;
    if (p->graph)
        return cuda_graph_run(p->graph, d->dnn, x, w, y, work);
    switch (p->key.way) {
    case CUDA_PLAN_FORWARD:
        return cudnnConvolutionForward(d->dnn, &one, p->x, x, p->w, w, p->op,
                                       (cudnnConvolutionFwdAlgo_t)p->algo, work, p->work_bytes,
                                       &zero, p->y, y);
    case CUDA_PLAN_BACKWARD_DATA:
        return cudnnConvolutionBackwardData(d->dnn, &one, p->w, w, p->y, y, p->op,
                                            (cudnnConvolutionBwdDataAlgo_t)p->algo, work,
                                            p->work_bytes, &zero, p->x, x);
    default:
        return cudnnConvolutionBackwardFilter(d->dnn, &one, p->x, x, p->y, y, p->op,
                                              (cudnnConvolutionBwdFilterAlgo_t)p->algo, work,
                                              p->work_bytes, &zero, p->w, w);
    }
}

int cuda_plan_next(struct det_device *d, struct cuda_plan *p, struct det_err *err)
{
    p->rows = !p->graph;
    if (!p->graph)
        return 0;
    cuda_graph_destroy(p->graph);
    p->graph = NULL;
    return choose_algorithm(d, p, err);
}
