#include "cuda_graph.h"

#include "mem.h"

#define CONFIGS_MAX 24 /* of an answer that are looked at */
#define NOTES_MAX   32

enum part {
    PART_X,
    PART_W,
    PART_Y,
    PART_WINDOW,
    PART_STEP,
    PART_GRAPH,
    PART_CONFIG,
    PART_PLAN,
    PARTS
};

/* All that the plan was made of lives as long as it. */
struct cuda_graph {
    cudnnBackendDescriptor_t part[PARTS];
    int64_t work_bytes;
    cudnnStatus_t rc; /* of what it is made of: the first that failed */
    bool starved;     /* for lack of memory: an engine that is there was not looked at */
};

static void note_status(struct cuda_graph *g, cudnnStatus_t rc)
{
    g->starved = g->starved || cuda_status_no_memory((int)rc, CUDNN_STATUS_ALLOC_FAILED);
}

static void create_part(struct cuda_graph *g, enum part part, cudnnBackendDescriptorType_t type)
{
    if (g->rc == CUDNN_STATUS_SUCCESS)
        g->rc = cudnnBackendCreateDescriptor(type, &g->part[part]);
}

static void set_attribute(struct cuda_graph *g, enum part part, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t n, const void *v)
{
    if (g->rc == CUDNN_STATUS_SUCCESS)
        g->rc = cudnnBackendSetAttribute(g->part[part], name, type, n, v);
}

static void set_part(struct cuda_graph *g, enum part part, cudnnBackendAttributeName_t name,
                     enum part value)
{
    set_attribute(g, part, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->part[value]);
}

static void finish_part(struct cuda_graph *g, enum part part)
{
    if (g->rc == CUDNN_STATUS_SUCCESS)
        g->rc = cudnnBackendFinalize(g->part[part]);
}

/* The dimensions as N C H W, the elements as NHWC. */
static void describe_tensor(struct cuda_graph *g, enum part part, const int64_t d[4],
                            cudnnDataType_t type)
{
    const int64_t strides[4] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};
    const int64_t id = part + 1, alignment = 16;
    create_part(g, part, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_attribute(g, part, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set_attribute(g, part, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, d);
    set_attribute(g, part, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set_attribute(g, part, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set_attribute(g, part, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    finish_part(g, part);
}

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void describe_window(struct cuda_graph *g, const struct cuda_plan_key *k)
{
    const int64_t dims = 2;
    const int64_t pad[2] = {least_of(k->pad[0], k->pad[1]), least_of(k->pad[2], k->pad[3])};
    const int64_t strides[2] = {k->stride[0], k->stride[1]};
    const int64_t dilations[2] = {k->dilation[0], k->dilation[1]};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    enum part p = PART_WINDOW;
    create_part(g, p, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_attribute(g, p, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    set_attribute(g, p, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    set_attribute(g, p, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set_attribute(g, p, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set_attribute(g, p, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set_attribute(g, p, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
    set_attribute(g, p, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    finish_part(g, p);
}

/* What the three ways call what they have alike. */
struct names {
    cudnnBackendDescriptorType_t step;
    cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};

static const struct names names[] = {
    [CUDA_PLAN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CUDA_PLAN_BACKWARD_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CUDA_PLAN_BACKWARD_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static void describe_step(struct cuda_graph *g, const struct names *n)
{
    const float one = 1, zero = 0;
    create_part(g, PART_STEP, n->step);
    set_part(g, PART_STEP, n->x, PART_X);
    set_part(g, PART_STEP, n->w, PART_W);
    set_part(g, PART_STEP, n->y, PART_Y);
    set_part(g, PART_STEP, n->window, PART_WINDOW);
    set_attribute(g, PART_STEP, n->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set_attribute(g, PART_STEP, n->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish_part(g, PART_STEP);
}

static void describe_graph(struct cuda_graph *g, cudnnHandle_t dnn, const struct cuda_plan_key *k)
{
    cudnnDataType_t type = cuda_plan_type(k);
    describe_tensor(g, PART_X, k->x, type);
    describe_tensor(g, PART_W, k->w, type);
    describe_tensor(g, PART_Y, k->y, type);
    describe_window(g, k);
    describe_step(g, &names[k->way]);
    create_part(g, PART_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set_part(g, PART_GRAPH, CUDNN_ATTR_OPERATIONGRAPH_OPS, PART_STEP);
    set_attribute(g, PART_GRAPH, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn);
    finish_part(g, PART_GRAPH);
}

/* Whether an engine keeps what we promise; is_exact: of f32, without TF32. A list that cannot be
 * read promises nothing. */
static bool keeps_promise(struct cuda_graph *g, cudnnBackendDescriptor_t config, bool is_exact)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t notes[NOTES_MAX];
    int64_t n = 0;
    cudnnStatus_t rc = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    note_status(g, rc);
    if (rc != CUDNN_STATUS_SUCCESS)
        return false;
    rc = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                      CUDNN_TYPE_NUMERICAL_NOTE, NOTES_MAX, &n, notes);
    note_status(g, rc);
    bool ret = rc == CUDNN_STATUS_SUCCESS && n <= NOTES_MAX;
    for (int64_t i = 0; ret && i < n; i++)
        ret = notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC &&
              notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS &&
              notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION &&
              !(is_exact && notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    cudnnBackendDestroyDescriptor(engine);
    return ret;
}

/* Makes the plan of a configuration, which is g's from then on; false where it cannot be had. */
static bool take_config(struct cuda_graph *g, cudnnHandle_t dnn, cudnnBackendDescriptor_t config,
                        int64_t most_bytes)
{
    int64_t n = 0;
    g->rc = CUDNN_STATUS_SUCCESS;
    g->part[PART_CONFIG] = config;
    create_part(g, PART_PLAN, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set_attribute(g, PART_PLAN, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn);
    set_part(g, PART_PLAN, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, PART_CONFIG);
    finish_part(g, PART_PLAN);
    if (g->rc == CUDNN_STATUS_SUCCESS)
        g->rc =
            cudnnBackendGetAttribute(g->part[PART_PLAN], CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &n, &g->work_bytes);
    note_status(g, g->rc);
    if (g->rc == CUDNN_STATUS_SUCCESS && g->work_bytes <= most_bytes)
        return true;
    if (g->part[PART_PLAN])
        cudnnBackendDestroyDescriptor(g->part[PART_PLAN]);
    g->part[PART_PLAN] = g->part[PART_CONFIG] = NULL;
    return false;
}

/* Up to CONFIGS_MAX configurations, best first; returns how many. The caller destroys all. */
static int64_t ask_configs(struct cuda_graph *g, bool is_exact,
                           cudnnBackendDescriptor_t configs[CONFIGS_MAX])
{
    cudnnBackendDescriptor_t heuristic = NULL;
    /* For exact f32, A names engines first that take 3 to 7 times as long for weights' gradients.
     */
    const cudnnBackendHeurMode_t mode = is_exact ? CUDNN_HEUR_MODE_B : CUDNN_HEUR_MODE_A;
    int64_t n = 0;
    cudnnStatus_t rc =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);
    note_status(g, rc);
    if (rc != CUDNN_STATUS_SUCCESS)
        return 0;
    rc = cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->part[PART_GRAPH]);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
                                      1, &mode);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendFinalize(heuristic);
    for (int i = 0; rc == CUDNN_STATUS_SUCCESS && i < CONFIGS_MAX; i++)
        rc = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, &n, configs);
    cudnnBackendDestroyDescriptor(heuristic);
    note_status(g, rc);
    return rc != CUDNN_STATUS_SUCCESS ? 0 : least_of(n, CONFIGS_MAX);
}

static bool plan_graph(struct cuda_graph *g, cudnnHandle_t dnn, bool is_exact, size_t most_bytes)
{
    cudnnBackendDescriptor_t configs[CONFIGS_MAX] = {NULL};
    int64_t n = ask_configs(g, is_exact, configs);
    bool done = false;
    for (int64_t i = 0; i < n && !done && !g->starved; i++)
        if (keeps_promise(g, configs[i], is_exact) &&
            take_config(g, dnn, configs[i], (int64_t)most_bytes)) {
            configs[i] = NULL;
            done = true;
        }
    for (int i = 0; i < CONFIGS_MAX; i++)
        if (configs[i])
            cudnnBackendDestroyDescriptor(configs[i]);
    return done;
}

struct cuda_graph *cuda_graph_create(cudnnHandle_t dnn, const struct cuda_plan_key *k,
                                     size_t most_bytes, bool *ret_starved)
{
    struct cuda_graph *g = det_zalloc(sizeof *g);
    describe_graph(g, dnn, k);
    note_status(g, g->rc);
    bool found = g->rc == CUDNN_STATUS_SUCCESS && plan_graph(g, dnn, k->is_exact, most_bytes);
    *ret_starved = !found && g->starved;
    if (found)
        return g;
    cuda_graph_destroy(g);
    return NULL;
}

void cuda_graph_destroy(struct cuda_graph *g)
{
    for (int i = PARTS - 1; g && i >= 0; i--)
        if (g->part[i])
            cudnnBackendDestroyDescriptor(g->part[i]);
    free(g);
}

size_t cuda_graph_bytes(const struct cuda_graph *g)
{
    return (size_t)g->work_bytes;
}

cudnnStatus_t cuda_graph_run(const struct cuda_graph *g, cudnnHandle_t dnn, void *x, void *w,
                             void *y, void *work)
{
    const int64_t ids[3] = {PART_X + 1, PART_W + 1, PART_Y + 1};
    void *tensors[3] = {x, w, y};
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t rc = cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (rc != CUDNN_STATUS_SUCCESS)
        return rc;
    rc = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3,
                                  ids);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                      CUDNN_TYPE_VOID_PTR, 3, tensors);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
                                      1, &work);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendFinalize(pack);
    if (rc == CUDNN_STATUS_SUCCESS)
        rc = cudnnBackendExecute(dnn, g->part[PART_PLAN], pack);
    cudnnBackendDestroyDescriptor(pack);
    return rc;
}
