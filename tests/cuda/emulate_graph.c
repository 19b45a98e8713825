/* cuDNN's graph API on the host, as far as graphs of one convolution: run by emulate_dnn.c. */
#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn.h"

#define VALUES  16
#define BYTES   64 /* of a value */
#define ENGINES 4
#define TF32    2 /* for f32 */

/* What the engines say of themselves: only the last is as v7's deterministic algorithm, and
 * for halves the one before it. */
static const cudnnBackendNumericalNote_t notes[ENGINES] = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
                                                           CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                                                           CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0};

struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
    int engine;  /* a configuration's, an engine's */
    long queued; /* a plan's runs that a stream has yet to do */
    char value[VALUES][BYTES];
};

static void *pointer(const struct descriptor *d, int name)
{
    void *ret;
    memcpy(&ret, d->value[name % VALUES], sizeof ret);
    return ret;
}

static int64_t number(const struct descriptor *d, int name, int i)
{
    int64_t ret[BYTES / sizeof(int64_t)];
    memcpy(ret, d->value[name % VALUES], sizeof ret);
    return ret[i];
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch ((int)type) {
    case CUDNN_TYPE_FLOAT: return sizeof(float);
    case CUDNN_TYPE_INT64: return sizeof(int64_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void *);
    default: return sizeof(int);
    }
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *ret)
{
    struct descriptor *d = calloc(1, sizeof *d);
    *ret = d;
    if (!d)
        return CUDNN_STATUS_ALLOC_FAILED;
    d->type = type;
    return CUDNN_STATUS_SUCCESS;
}

/* A plan has the kernels that its runs are made of. */
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    const struct descriptor *of = d;
    assert(!of || of->queued == 0);
    free(d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n, const void *v)
{
    struct descriptor *to = d;
    if (to->final || n < 1 || (size_t)n * size_of(type) > BYTES)
        return CUDNN_STATUS_BAD_PARAM;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR && !(*(struct descriptor *const *)v)->final)
        return CUDNN_STATUS_BAD_PARAM;
    memcpy(to->value[name % VALUES], v, (size_t)n * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

static const struct descriptor *window_of(const struct descriptor *graph)
{
    const struct descriptor *step = pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    return pointer(step, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
}

/* As v7's, it has nothing deterministic for dilated windows. */
static int engines_for(const struct descriptor *graph)
{
    const struct descriptor *window = window_of(graph);
    bool dilated = number(window, CUDNN_ATTR_CONVOLUTION_DILATIONS, 0) > 1 ||
                   number(window, CUDNN_ATTR_CONVOLUTION_DILATIONS, 1) > 1;
    if (emulated_setting("EMULATED_GRAPH", 1) == 0)
        return 0;
    return dilated ? TF32 : ENGINES;
}

static void results(const struct descriptor *heuristic, int64_t most, int64_t *ret_n, void **ret)
{
    const struct descriptor *graph = pointer(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    int64_t n = engines_for(graph);
    emulated_count(EMULATED_QUERY, 0);
    *ret_n = n < most ? n : most;
    for (int i = 0; i < *ret_n; i++) {
        struct descriptor *config = ret[i];
        config->engine = i;
        config->final = true;
        memcpy(config->value[1], &graph, sizeof graph);
    }
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most,
                                       int64_t *ret_n, void *ret)
{
    const struct descriptor *from = d;
    (void)type;
    *ret_n = 1;
    if (!from->final || most < 1)
        return CUDNN_STATUS_BAD_PARAM;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        results(from, most, ret_n, ret);
    else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
        struct descriptor *engine = *(void **)ret;
        engine->engine = from->engine;
        engine->final = true;
    } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
        *ret_n = from->engine < ENGINES - 1;
        memcpy(ret, &notes[from->engine], sizeof *notes);
    } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
        *(int64_t *)ret = (int64_t)emulated_setting("EMULATED_ALGO_BYTES", 256);
    else
        return CUDNN_STATUS_NOT_SUPPORTED;
    return CUDNN_STATUS_SUCCESS;
}

/* A tensor for emulate_dnn.c; NULL where it is none. */
static cudnnTensorDescriptor_t tensor_of(const struct descriptor *d)
{
    int n[4];
    cudnnTensorDescriptor_t ret;
    cudnnDataType_t type;
    memcpy(&type, d->value[CUDNN_ATTR_TENSOR_DATA_TYPE], sizeof type);
    for (int i = 0; i < 4; i++)
        n[i] = (int)number(d, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
    cudnnCreateTensorDescriptor(&ret);
    if (number(d, CUDNN_ATTR_TENSOR_STRIDES, 1) == 1 &&
        number(d, CUDNN_ATTR_TENSOR_STRIDES, 3) == n[1] &&
        cudnnSetTensor4dDescriptor(ret, CUDNN_TENSOR_NHWC, type, n[0], n[1], n[2], n[3]) ==
            CUDNN_STATUS_SUCCESS)
        return ret;
    cudnnDestroyTensorDescriptor(ret);
    return NULL;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    struct descriptor *of = d;
    cudnnTensorDescriptor_t t;
    of->final = true;
    if (of->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
        emulated_setting("EMULATED_PLAN_MEMORY", 1) == 0)
        return CUDNN_STATUS_ALLOC_FAILED;
    if (of->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        return CUDNN_STATUS_SUCCESS;
    if (!(t = tensor_of(of)))
        return CUDNN_STATUS_NOT_SUPPORTED;
    return cudnnDestroyTensorDescriptor(t);
}

struct call {
    cudnnBackendDescriptorType_t way;
    cudnnTensorDescriptor_t t[3]; /* x, w, y */
    cudnnConvolutionDescriptor_t window;
    void *p[3], *work;
};

static cudnnConvolutionDescriptor_t convolution_of(const struct descriptor *d)
{
    const int pad = CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS;
    const int stride = CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES;
    const int dilation = CUDNN_ATTR_CONVOLUTION_DILATIONS;
    cudnnConvolutionDescriptor_t ret;
    cudnnCreateConvolutionDescriptor(&ret);
    cudnnSetConvolution2dDescriptor(ret, (int)number(d, pad, 0), (int)number(d, pad, 1),
                                    (int)number(d, stride, 0), (int)number(d, stride, 1),
                                    (int)number(d, dilation, 0), (int)number(d, dilation, 1),
                                    CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    cudnnSetConvolutionMathType(ret, CUDNN_FMA_MATH); /* the engine says what it is */
    return ret;
}

/* The pointer that goes with a tensor, by its number. */
static void *data_of(const struct descriptor *pack, const struct descriptor *tensor)
{
    void *p[3];
    memcpy(p, pack->value[CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS % VALUES], sizeof p);
    for (int i = 0; i < 3; i++)
        if (number(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) ==
            number(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0))
            return p[i];
    return NULL;
}

static cudnnStatus_t run(cudnnHandle_t h, const struct call *c)
{
    const size_t bytes = emulated_setting("EMULATED_ALGO_BYTES", 256);
    if (c->way == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
        return cudnnConvolutionForward(h, NULL, c->t[0], c->p[0], c->t[1], c->p[1], c->window, 1,
                                       c->work, bytes, NULL, c->t[2], c->p[2]);
    if (c->way == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
        return cudnnConvolutionBackwardData(h, NULL, c->t[1], c->p[1], c->t[2], c->p[2], c->window,
                                            1, c->work, bytes, NULL, c->t[0], c->p[0]);
    return cudnnConvolutionBackwardFilter(h, NULL, c->t[0], c->p[0], c->t[2], c->p[2], c->window, 1,
                                          c->work, bytes, NULL, c->t[1], c->p[1]);
}

static void count_done(const void *plan)
{
    (*(struct descriptor *const *)plan)->queued--;
}

static void count_queued(cudnnHandle_t h, struct descriptor *plan)
{
    emulated_lock();
    plan->queued++;
    emulated_unlock();
    emulated_later(emulated_dnn_stream(h), count_done, &plan, sizeof(struct descriptor *));
}

static bool is_f32(const struct descriptor *tensor)
{
    cudnnDataType_t type;
    memcpy(&type, tensor->value[CUDNN_ATTR_TENSOR_DATA_TYPE], sizeof type);
    return type == CUDNN_DATA_FLOAT;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    const struct descriptor *config = pointer(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const struct descriptor *graph = pointer(config, 1);
    const struct descriptor *step = pointer(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    struct call c = {.way = step->type};
    if (number(window_of(graph), CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 0) > 1)
        return CUDNN_STATUS_NOT_SUPPORTED;
    c.work = pointer(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    c.window = convolution_of(window_of(graph));
    for (int i = 0; i < 3; i++) {
        const struct descriptor *tensor =
            pointer(step, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X + i);
        c.t[i] = tensor_of(tensor);
        c.p[i] = data_of(pack, tensor);
    }
    if (config->engine == TF32 && is_f32(pointer(step, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)))
        emulated_count(EMULATED_TF32, 0);
    cudnnStatus_t rc = run(h, &c);
    for (int i = 0; i < 3; i++)
        cudnnDestroyTensorDescriptor(c.t[i]);
    cudnnDestroyConvolutionDescriptor(c.window);
    if (rc == CUDNN_STATUS_SUCCESS && !emulated_is_empty())
        count_queued(h, plan);
    return rc;
}
