/* The CPU device and its kernel table. */
#include "cpu.h"

#include <omp.h>

#include "dnnl_prim.h"
#include "mem.h"
#include "ref.h"

static int device_count(int *ret, struct det_err *err)
{
    (void)err;
    *ret = 1;
    return 0;
}

static void device_close(struct det_device *d)
{
    if (!d)
        return;
    prim_cache_destroy(d->prims);
    free(d);
}
DET_DEFINE_CLEANUP(struct det_device *, device_close)

static void start(const void *arg, int64_t from, int64_t to)
{
    (void)arg, (void)from, (void)to;
}

static int device_open(int index, const struct det_device_options *o, struct det_device **ret,
                       struct det_err *err)
{
    if (index != 0)
        return det_fail(err, DET_ENOENT, "cpu:%d: there is only cpu:0", index);
    det_cleanup(device_closep) struct det_device *d = det_zalloc(sizeof *d);
    d->threads = o->threads > 0 ? o->threads : 1;
    omp_set_dynamic(0); /* a changing number of threads would change the bits */
    omp_set_num_threads(d->threads);
    /* Before a loop of the model's own does: what that starts would take signals. */
    cpu_parallel(d->threads, d->threads, 1, start, NULL);
    int rc = prim_cache_create(&d->prims, err);
    if (rc < 0)
        return rc;
    *ret = det_take(d);
    return 0;
}

/* oneDNN's bf16, on processors that have 512-bit vectors. */
static bool has_bf16(enum det_dtype dtype)
{
    return dtype == DET_BF16 && dnnl_get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core;
}

/* The products that oneDNN has of low dtypes; of the second kind only those whose result is one. */
static const enum {
    PRODUCT = 1,
    PRODUCT_OF_ITS_DTYPE
} products[DET_KERNEL_COUNT] = {
    [DET_KERNEL_LINEAR] = PRODUCT,
    [DET_KERNEL_LINEAR_BWD_DATA] = PRODUCT_OF_ITS_DTYPE,
    [DET_KERNEL_LINEAR_BWD_WEIGHT] = PRODUCT_OF_ITS_DTYPE,
    [DET_KERNEL_CONV2D] = PRODUCT,
    [DET_KERNEL_CONV2D_BWD_DATA] = PRODUCT,
    [DET_KERNEL_CONV2D_BWD_WEIGHT] = PRODUCT,
};

static bool computes_dtype(struct det_device *d, const struct det_call *c, enum det_dtype dtype)
{
    (void)d;
    if (!products[c->kernel] || !has_bf16(dtype))
        return false;
    return products[c->kernel] == PRODUCT || c->out[0]->dtype == dtype;
}

const struct det_backend det_backend_cpu = {
    .version = DET_BACKEND_VERSION,
    .name = "cpu",
    .host_memory = true,
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .mem_alloc = ref_mem_alloc,
    .mem_free = ref_mem_free,
    .stream_create = ref_stream_create,
    .stream_destroy = ref_stream_destroy,
    .stream_sync = ref_stream_sync,
    .copy = cpu_copy_bytes,
    .event_create = ref_event_create,
    .event_destroy = ref_event_destroy,
    .event_record = ref_event_record,
    .event_wait = ref_event_wait,
    .stream_native = ref_stream_native,
    .computes = computes_dtype,
    .kernels =
        {
            [DET_KERNEL_FILL] = ref_fill,
            [DET_KERNEL_COPY] = cpu_copy,
            [DET_KERNEL_ADD] = cpu_add,
            [DET_KERNEL_SUB] = cpu_sub,
            [DET_KERNEL_MUL] = cpu_mul,
            [DET_KERNEL_UNARY] = cpu_unary,
            [DET_KERNEL_UNARY_BWD] = cpu_unary_bwd,
            [DET_KERNEL_BINARY] = cpu_binary,
            [DET_KERNEL_BINARY_BWD] = cpu_binary_bwd,
            [DET_KERNEL_COMPARE] = cpu_compare,
            [DET_KERNEL_WHERE] = cpu_where,
            [DET_KERNEL_SUM_TO] = cpu_sum_to,
            [DET_KERNEL_NORMAL] = ref_normal,
            [DET_KERNEL_AFFINE] = cpu_affine,
            [DET_KERNEL_CLAMP] = cpu_clamp,
            [DET_KERNEL_RELU] = cpu_relu,
            [DET_KERNEL_RELU_BWD] = cpu_relu_bwd,
            [DET_KERNEL_UNIFORM] = ref_uniform,
            [DET_KERNEL_DROPOUT] = cpu_dropout,
            [DET_KERNEL_DROPOUT_BWD] = cpu_dropout_bwd,
            [DET_KERNEL_LINEAR] = cpu_linear,
            [DET_KERNEL_LINEAR_BWD_DATA] = cpu_linear_bwd_data,
            [DET_KERNEL_LINEAR_BWD_WEIGHT] = cpu_linear_bwd_weight,
            [DET_KERNEL_CONV2D] = cpu_conv2d,
            [DET_KERNEL_CONV2D_BWD_DATA] = cpu_conv2d_bwd_data,
            [DET_KERNEL_CONV2D_BWD_WEIGHT] = cpu_conv2d_bwd_weight,
            [DET_KERNEL_BATCH_NORM_TRAIN] = cpu_batch_norm_train,
            [DET_KERNEL_BATCH_NORM_EVAL] = cpu_batch_norm_eval,
            [DET_KERNEL_BATCH_NORM_BWD] = cpu_batch_norm_bwd,
            [DET_KERNEL_MAX_POOL2D] = cpu_max_pool2d,
            [DET_KERNEL_MAX_POOL2D_BWD] = cpu_max_pool2d_bwd,
            [DET_KERNEL_AVG_POOL2D] = cpu_avg_pool2d,
            [DET_KERNEL_AVG_POOL2D_BWD] = cpu_avg_pool2d_bwd,
            [DET_KERNEL_PAD] = ref_pad,
            [DET_KERNEL_PAD_BWD] = ref_pad_bwd,
            [DET_KERNEL_UPSAMPLE] = ref_upsample,
            [DET_KERNEL_UPSAMPLE_BWD] = ref_upsample_bwd,
            [DET_KERNEL_LOG_SOFTMAX] = cpu_softmax,
            [DET_KERNEL_LOG_SOFTMAX_BWD] = cpu_softmax_bwd,
            [DET_KERNEL_SOFTMAX] = cpu_softmax,
            [DET_KERNEL_SOFTMAX_BWD] = cpu_softmax_bwd,
            [DET_KERNEL_NLL] = ref_nll,
            [DET_KERNEL_NLL_BWD] = ref_nll_bwd,
            [DET_KERNEL_MSE] = ref_mse,
            [DET_KERNEL_MSE_BWD] = ref_mse_bwd,
            [DET_KERNEL_SUM] = ref_sum,
            [DET_KERNEL_SUM_BWD] = ref_sum_bwd,
            [DET_KERNEL_SQNORM] = ref_sqnorm,
            [DET_KERNEL_ABSMAX] = ref_absmax,
            [DET_KERNEL_LIMIT] = cpu_limit,
            [DET_KERNEL_ARGMAX] = ref_argmax,
            [DET_KERNEL_EQ_COUNT] = ref_eq_count,
            [DET_KERNEL_LAYER_NORM] = cpu_layer_norm,
            [DET_KERNEL_LAYER_NORM_BWD] = cpu_layer_norm_bwd,
            [DET_KERNEL_INDEX_SELECT] = ref_index_select,
            [DET_KERNEL_INDEX_ADD] = ref_index_add,
            [DET_KERNEL_GATHER] = ref_gather,
            [DET_KERNEL_SCATTER_ADD] = ref_scatter_add,
            [DET_KERNEL_MATMUL] = cpu_matmul,
            [DET_KERNEL_CROSS_ENTROPY] = cpu_cross_entropy,
            [DET_KERNEL_CROSS_ENTROPY_BWD] = cpu_cross_entropy_bwd,
            [DET_KERNEL_LSTM] = cpu_lstm,
            [DET_KERNEL_LSTM_BWD] = cpu_lstm_bwd,
            [DET_KERNEL_GRU] = cpu_gru,
            [DET_KERNEL_GRU_BWD] = cpu_gru_bwd,
            [DET_KERNEL_ATTENTION] = cpu_attention,
            [DET_KERNEL_ATTENTION_BWD] = cpu_attention_bwd,
            [DET_KERNEL_ROTARY] = ref_rotary,
            [DET_KERNEL_REDUCE] = cpu_reduce,
            [DET_KERNEL_REDUCE_BWD] = cpu_reduce_bwd,
            [DET_KERNEL_CUMSUM] = cpu_cumsum,
            [DET_KERNEL_CAT] = ref_cat,
            [DET_KERNEL_CUT] = ref_cut,
            [DET_KERNEL_SORT] = ref_sort,
            [DET_KERNEL_TRIANGLE] = ref_triangle,
            [DET_KERNEL_ONE_HOT] = ref_one_hot,
            [DET_KERNEL_POINT_LOSS] = cpu_point_loss,
            [DET_KERNEL_POINT_LOSS_BWD] = cpu_point_loss_bwd,
            [DET_KERNEL_SGD] = cpu_sgd,
            [DET_KERNEL_ADAM] = cpu_adam,
            [DET_KERNEL_RMSPROP] = cpu_rmsprop,
            [DET_KERNEL_ADAGRAD] = cpu_adagrad,
        },
    .kernels_f64 =
        {
            [DET_KERNEL_NORMAL] = ref_normal_f64,
            [DET_KERNEL_UNIFORM] = ref_uniform_f64,
            [DET_KERNEL_DROPOUT] = cpu_dropout_f64,
            [DET_KERNEL_DROPOUT_BWD] = cpu_dropout_bwd_f64,
            [DET_KERNEL_LINEAR] = cpu_linear_f64,
            [DET_KERNEL_LINEAR_BWD_DATA] = cpu_linear_bwd_data_f64,
            [DET_KERNEL_LINEAR_BWD_WEIGHT] = cpu_linear_bwd_weight_f64,
            [DET_KERNEL_CONV2D] = cpu_conv2d_f64,
            [DET_KERNEL_CONV2D_BWD_DATA] = cpu_conv2d_bwd_data_f64,
            [DET_KERNEL_CONV2D_BWD_WEIGHT] = cpu_conv2d_bwd_weight_f64,
            [DET_KERNEL_BATCH_NORM_TRAIN] = cpu_batch_norm_train_f64,
            [DET_KERNEL_BATCH_NORM_EVAL] = cpu_batch_norm_eval_f64,
            [DET_KERNEL_BATCH_NORM_BWD] = cpu_batch_norm_bwd_f64,
            [DET_KERNEL_MAX_POOL2D] = cpu_max_pool2d_f64,
            [DET_KERNEL_MAX_POOL2D_BWD] = cpu_max_pool2d_bwd_f64,
            [DET_KERNEL_AVG_POOL2D] = cpu_avg_pool2d_f64,
            [DET_KERNEL_AVG_POOL2D_BWD] = cpu_avg_pool2d_bwd_f64,
            [DET_KERNEL_PAD] = ref_pad_f64,
            [DET_KERNEL_PAD_BWD] = ref_pad_bwd_f64,
            [DET_KERNEL_UPSAMPLE] = ref_upsample_f64,
            [DET_KERNEL_UPSAMPLE_BWD] = ref_upsample_bwd_f64,
            [DET_KERNEL_LOG_SOFTMAX] = cpu_softmax_f64,
            [DET_KERNEL_LOG_SOFTMAX_BWD] = cpu_softmax_bwd_f64,
            [DET_KERNEL_SOFTMAX] = cpu_softmax_f64,
            [DET_KERNEL_SOFTMAX_BWD] = cpu_softmax_bwd_f64,
            [DET_KERNEL_NLL] = ref_nll_f64,
            [DET_KERNEL_NLL_BWD] = ref_nll_bwd_f64,
            [DET_KERNEL_MSE] = ref_mse_f64,
            [DET_KERNEL_MSE_BWD] = ref_mse_bwd_f64,
            [DET_KERNEL_SUM] = ref_sum_f64,
            [DET_KERNEL_SUM_BWD] = ref_sum_bwd_f64,
            [DET_KERNEL_SQNORM] = ref_sqnorm_f64,
            [DET_KERNEL_ABSMAX] = ref_absmax_f64,
            [DET_KERNEL_LIMIT] = cpu_limit,
            [DET_KERNEL_ARGMAX] = ref_argmax_f64,
            [DET_KERNEL_LAYER_NORM] = cpu_layer_norm_f64,
            [DET_KERNEL_LAYER_NORM_BWD] = cpu_layer_norm_bwd_f64,
            [DET_KERNEL_MATMUL] = cpu_matmul_f64,
            [DET_KERNEL_CROSS_ENTROPY] = cpu_cross_entropy_f64,
            [DET_KERNEL_CROSS_ENTROPY_BWD] = cpu_cross_entropy_bwd_f64,
            [DET_KERNEL_LSTM] = cpu_lstm_f64,
            [DET_KERNEL_LSTM_BWD] = cpu_lstm_bwd_f64,
            [DET_KERNEL_GRU] = cpu_gru_f64,
            [DET_KERNEL_GRU_BWD] = cpu_gru_bwd_f64,
            [DET_KERNEL_ATTENTION] = cpu_attention_f64,
            [DET_KERNEL_ATTENTION_BWD] = cpu_attention_bwd_f64,
            [DET_KERNEL_ROTARY] = ref_rotary_f64,
            [DET_KERNEL_POINT_LOSS] = cpu_point_loss_f64,
            [DET_KERNEL_POINT_LOSS_BWD] = cpu_point_loss_bwd_f64,
            [DET_KERNEL_SGD] = cpu_sgd_f64,
            [DET_KERNEL_ADAM] = cpu_adam_f64,
            [DET_KERNEL_RMSPROP] = cpu_rmsprop_f64,
            [DET_KERNEL_ADAGRAD] = cpu_adagrad_f64,
        },
};
