#include "op.h"

#define K(name) DET_KERNEL_##name

const struct op_def op_table[OP_COUNT] = {
    /* name inputs inputs_max order shape_rule kernel gradient_rule tolerance fn autocast */
    [OP_ADD] = {"add", 2, 2, OP_STRIDED, shape_numbers, K(ADD), grad_add, 1e-6, 0, OP_AMP_MIXED},
    [OP_SUB] = {"sub", 2, 2, OP_STRIDED, shape_numbers, K(SUB), grad_sub, 1e-6, 0, OP_AMP_MIXED},
    [OP_MUL] = {"mul", 2, 2, OP_STRIDED, shape_numbers, K(MUL), grad_mul, 1e-6, 0, OP_AMP_MIXED},
    [OP_AFFINE] = {"affine", 1, 1, OP_STRIDED, shape_float, K(AFFINE), grad_affine, 1e-6, 0,
                   OP_AMP_AS_IS},
    [OP_SUM] = {"sum", 1, 1, OP_ANY, shape_scalar, K(SUM), grad_sum, 1e-6},
    [OP_CAST] = {"cast", 1, 1, OP_STRIDED, shape_cast, K(COPY), grad_copy, 0, 0, OP_AMP_AS_IS},
    [OP_LAYOUT] = {"layout", 1, 1, OP_STRIDED, shape_layout, K(COPY), grad_copy, 0, 0,
                   OP_AMP_AS_IS},
    [OP_RESHAPE] = {"reshape", 1, 1, OP_PLAIN, NULL, K(COPY), grad_reshape, 0},
    [OP_PERMUTE] = {"permute", 1, 1, OP_STRIDED, NULL, K(COPY), grad_permute, 0},
    [OP_SLICE] = {"slice", 1, 1, OP_STRIDED, NULL, K(COPY), grad_slice, 0},
    [OP_EXPAND] = {"expand", 1, 1, OP_STRIDED, NULL, K(COPY), grad_expand, 0},
    [OP_WHERE] = {"where", 3, 3, OP_STRIDED, shape_where, K(WHERE), grad_where, 0, 0,
                  OP_AMP_WIDEST},
#define X(NAME, name)                                                                              \
    [OP_##NAME] = {name,     1,          1,    OP_STRIDED,       shape_float,                      \
                   K(UNARY), grad_unary, 4e-6, DET_UNARY_##NAME, OP_AMP_AS_IS},
    OP_UNARIES(X)
#undef X
#define X(NAME, name, shape)                                                                       \
    [OP_##NAME] = {name,      2,           2,    OP_STRIDED,        shape,                         \
                   K(BINARY), grad_binary, 4e-6, DET_BINARY_##NAME, OP_AMP_WIDEST},
        OP_BINARIES(X)
#undef X
#define X(NAME, name)                                                                              \
    [OP_##NAME] = {name,       2,    2, OP_STRIDED,         shape_compare,                         \
                   K(COMPARE), NULL, 0, DET_COMPARE_##NAME, OP_AMP_WIDEST},
            OP_COMPARES(X)
#undef X
                [OP_RELU] = {"relu", 1, 1, OP_ANY, shape_float, K(RELU), grad_relu, 0, 0,
                             OP_AMP_AS_IS},
    [OP_DROPOUT] = {"dropout", 1, 1, OP_ANY, shape_dropout, K(DROPOUT), grad_dropout, 0},
    [OP_LINEAR] = {"linear", 2, 3, OP_PLAIN, shape_linear, K(LINEAR), grad_linear, 1e-5, 0,
                   OP_AMP_LOW},
    [OP_CONV2D] = {"conv2d", 2, 3, OP_IMAGES, shape_conv2d, K(CONV2D), grad_conv2d, 1e-5, 0,
                   OP_AMP_LOW},
    [OP_CONV_TRANSPOSE2D] = {"conv_transpose2d", 2, 2, OP_IMAGES, shape_conv_transpose2d,
                             K(CONV2D_BWD_DATA), grad_conv_transpose2d, 1e-5, 0, OP_AMP_LOW},
    [OP_BATCH_NORM] = {"batch_norm", 3, 6, OP_IMAGES, shape_batch_norm, K(BATCH_NORM_TRAIN),
                       grad_batch_norm, 1e-5, 0, OP_AMP_FIRST},
    [OP_MAX_POOL2D] = {"max_pool2d", 1, 1, OP_IMAGES, shape_max_pool2d, K(MAX_POOL2D),
                       grad_max_pool2d, 0, 0, OP_AMP_AS_IS},
    [OP_AVG_POOL2D] = {"avg_pool2d", 1, 1, OP_IMAGES, shape_avg_pool2d, K(AVG_POOL2D),
                       grad_avg_pool2d, 1e-6, 0, OP_AMP_AS_IS},
    [OP_PAD] = {"pad", 1, 1, OP_ANY, shape_resample, K(PAD), grad_pad, 0},
    [OP_UPSAMPLE] = {"interpolate", 1, 1, OP_IMAGES, shape_resample, K(UPSAMPLE), grad_upsample,
                     1e-6},
    [OP_LOG_SOFTMAX] = {"log_softmax", 1, 1, OP_PLAIN, shape_rows, K(LOG_SOFTMAX), grad_log_softmax,
                        1e-6},
    [OP_SOFTMAX] = {"softmax", 1, 1, OP_PLAIN, shape_rows, K(SOFTMAX), grad_softmax, 1e-6},
    [OP_NLL_LOSS] = {"nll_loss", 2, 2, OP_PLAIN, shape_nll, K(NLL), grad_nll, 1e-6},
    [OP_MSE_LOSS] = {"mse_loss", 2, 2, OP_ALIKE, shape_mse, K(MSE), grad_mse, 1e-6},
    [OP_ARGMAX] = {"argmax", 1, 1, OP_PLAIN, shape_argmax, K(ARGMAX), NULL, 0},
    [OP_EQ_COUNT] = {"eq_count", 2, 2, OP_ALIKE, shape_eq, K(EQ_COUNT), NULL, 0},
    [OP_LAYER_NORM] = {"layer_norm", 1, 3, OP_PLAIN, shape_layer_norm, K(LAYER_NORM),
                       grad_layer_norm, 1e-5},
    [OP_INDEX_SELECT] = {"index_select", 2, 2, OP_PLAIN, shape_index_select, K(INDEX_SELECT),
                         grad_index_select, 1e-6},
    [OP_GATHER] = {"gather", 2, 2, OP_PLAIN, shape_gather, K(GATHER), grad_gather, 1e-6},
    [OP_SCATTER_ADD] = {"scatter_add", 3, 3, OP_PLAIN, shape_scatter_add, K(SCATTER_ADD),
                        grad_scatter_add, 1e-6},
    [OP_MATMUL] = {"matmul", 2, 2, OP_PLAIN, shape_matmul, K(MATMUL), grad_matmul, 1e-5, 0,
                   OP_AMP_LOW},
    [OP_CROSS_ENTROPY] = {"cross_entropy", 2, 3, OP_ROWS, shape_cross_entropy, K(CROSS_ENTROPY),
                          grad_cross_entropy, 1e-5, 0, OP_AMP_LOSS},
    [OP_LSTM] = {"lstm", 4, 5, OP_PLAIN, shape_lstm, K(LSTM), grad_lstm, 1e-5},
    [OP_GRU] = {"gru", 3, 4, OP_PLAIN, shape_gru, K(GRU), grad_gru, 1e-5},
    [OP_ATTENTION] = {"attention", 1, 4, OP_PLAIN, shape_attention, K(ATTENTION), grad_attention,
                      1e-5, 0, OP_AMP_LOW},
    [OP_ROTARY] = {"rotary", 1, 1, OP_PLAIN, shape_rotary, K(ROTARY), grad_rotary, 1e-6},
    [OP_REDUCE] = {"reduce", 1, 1, OP_PLAIN, shape_reduce, K(REDUCE), grad_reduce, 1e-6},
    [OP_CUMSUM] = {"cumsum", 1, 1, OP_PLAIN, shape_number_rows, K(CUMSUM), grad_cumsum, 1e-6},
    [OP_CAT] = {"cat", 1, DET_CALL_IN_MAX, OP_PLAIN, shape_cat, K(CAT), grad_cat, 0},
    [OP_SORT] = {"sort", 1, 1, OP_PLAIN, shape_number_rows, K(SORT), grad_sort, 0},
    [OP_TRIANGLE] = {"triangle", 1, 1, OP_PLAIN, shape_layout, K(TRIANGLE), grad_triangle, 0},
    [OP_ONE_HOT] = {"one_hot", 1, 1, OP_PLAIN, shape_one_hot, K(ONE_HOT), NULL, 0},
    [OP_POINT_LOSS] = {"point_loss", 2, 3, OP_PLAIN, shape_point_loss, K(POINT_LOSS),
                       grad_point_loss, 1e-6},
};
