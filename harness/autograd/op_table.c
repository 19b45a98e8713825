#include "op.h"

#define K(name) DET_KERNEL_##name

const struct op_def op_table[OP_COUNT] = {
    /*                  name  inputs  order  shape rule  kernel  gradient rule  tolerance */
    [OP_ADD] = {"add", 2, 2, OP_ALIKE, shape_alike, K(ADD), grad_add, 1e-6},
    [OP_SUB] = {"sub", 2, 2, OP_ALIKE, shape_alike, K(SUB), grad_sub, 1e-6},
    [OP_MUL] = {"mul", 2, 2, OP_ALIKE, shape_alike, K(MUL), grad_mul, 1e-6},
    [OP_AFFINE] = {"affine", 1, 1, OP_ANY, shape_unary, K(AFFINE), grad_affine, 1e-6},
    [OP_SUM] = {"sum", 1, 1, OP_ANY, shape_scalar, K(SUM), grad_sum, 1e-6},
    [OP_CAST] = {"cast", 1, 1, OP_ANY, shape_cast, K(COPY), NULL, 0},
    [OP_LAYOUT] = {"layout", 1, 1, OP_ANY, shape_layout, K(COPY), grad_layout, 0},
    [OP_RESHAPE] = {"reshape", 1, 1, OP_PLAIN, NULL, K(COPY), grad_reshape, 0},
    [OP_RELU] = {"relu", 1, 1, OP_ANY, shape_unary, K(RELU), grad_relu, 0},
    [OP_DROPOUT] = {"dropout", 1, 1, OP_ANY, shape_dropout, K(DROPOUT), grad_dropout, 0},
    [OP_LINEAR] = {"linear", 2, 3, OP_PLAIN, shape_linear, K(LINEAR), grad_linear, 1e-5},
    [OP_CONV2D] = {"conv2d", 2, 3, OP_IMAGES, shape_conv2d, K(CONV2D), grad_conv2d, 1e-5},
    [OP_BATCH_NORM] = {"batch_norm", 3, 5, OP_IMAGES, shape_batch_norm, K(BATCH_NORM_TRAIN),
                       grad_batch_norm, 1e-5},
    [OP_MAX_POOL2D] = {"max_pool2d", 1, 1, OP_IMAGES, shape_max_pool2d, K(MAX_POOL2D),
                       grad_max_pool2d, 0},
    [OP_AVG_POOL2D] = {"avg_pool2d", 1, 1, OP_IMAGES, shape_avg_pool2d, K(AVG_POOL2D),
                       grad_avg_pool2d, 1e-6},
    [OP_LOG_SOFTMAX] = {"log_softmax", 1, 1, OP_PLAIN, shape_rows, K(LOG_SOFTMAX), grad_log_softmax,
                        1e-6},
    [OP_SOFTMAX] = {"softmax", 1, 1, OP_PLAIN, shape_rows, K(SOFTMAX), grad_softmax, 1e-6},
    [OP_NLL_LOSS] = {"nll_loss", 2, 2, OP_PLAIN, shape_nll, K(NLL), grad_nll, 1e-6},
    [OP_MSE_LOSS] = {"mse_loss", 2, 2, OP_ALIKE, shape_mse, K(MSE), grad_mse, 1e-6},
    [OP_ARGMAX] = {"argmax", 1, 1, OP_PLAIN, shape_argmax, K(ARGMAX), NULL, 0},
    [OP_EQ_COUNT] = {"eq_count", 2, 2, OP_ALIKE, shape_eq, K(EQ_COUNT), NULL, 0},
};
