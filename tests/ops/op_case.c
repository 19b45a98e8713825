#include "op_case.h"

#include "functions.h"

#define T           struct det_tensor *
#define BUILD(name) static T name(struct det_engine *e, T *in)

BUILD(add)
{
    return det_add(e, in[0], in[1]);
}

BUILD(add_self)
{
    return det_add(e, in[0], in[0]);
}

BUILD(sub)
{
    return det_sub(e, in[0], in[1]);
}

BUILD(mul)
{
    return det_mul(e, in[0], in[1]);
}

BUILD(square)
{
    return det_mul(e, in[0], in[0]);
}

BUILD(affine)
{
    return det_affine(e, in[0], -2.5, 0.75);
}

BUILD(sum)
{
    return det_sum(e, in[0]);
}

BUILD(mean)
{
    return det_mean(e, in[0]);
}

BUILD(relu)
{
    return det_relu(e, in[0]);
}

BUILD(linear)
{
    return det_linear(e, in[0], in[1], in[2]);
}

BUILD(linear_no_bias)
{
    return det_linear(e, in[0], in[1], NULL);
}

BUILD(conv)
{
    return det_conv2d(e, in[0], in[1], in[2], NULL);
}

BUILD(conv_no_bias)
{
    return det_conv2d(e, in[0], in[1], NULL, &(struct det_conv2d_options){.padding = 1});
}

BUILD(conv_stride)
{
    return det_conv2d(e, in[0], in[1], in[2],
                      &(struct det_conv2d_options){.stride = 2, .padding = 2});
}

BUILD(conv_relu)
{
    return det_conv2d(e, in[0], in[1], in[2],
                      &(struct det_conv2d_options){.padding = 1, .relu = true});
}

/* Two ways to the same input: gradients add up, and the ReLU must not spoil the other way's. */
BUILD(conv_twice)
{
    T y = det_conv2d(e, in[0], in[1], in[2], &(struct det_conv2d_options){.relu = true});
    return det_add(e, det_relu(e, y), det_add(e, y, y));
}

static T batch_norm(struct det_engine *e, T *in, bool train, bool use_relu)
{
    struct batch_norm_attrs a = {.eps = 1e-5, .momentum = 0.1, .train = train, .relu = use_relu};
    T var = det_mul(e, in[4], in[4]); /* a variance is not negative */
    T params[4] = {in[1], in[2], in[3], var};
    return det__batch_norm(e, in[0], params, &a);
}

BUILD(bn_train)
{
    return batch_norm(e, in, true, false);
}

BUILD(bn_train_relu)
{
    return batch_norm(e, in, true, true);
}

BUILD(bn_eval)
{
    return batch_norm(e, in, false, false);
}

BUILD(bn_eval_relu)
{
    return batch_norm(e, in, false, true);
}

BUILD(max_pool)
{
    return det_max_pool2d(e, in[0], 2, 0, 0);
}

BUILD(max_pool_overlap)
{
    return det_max_pool2d(e, in[0], 3, 2, 1);
}

BUILD(avg_pool)
{
    return det_avg_pool2d(e, in[0], 3, 2, 1);
}

BUILD(global_pool)
{
    return det_global_avg_pool2d(e, in[0]);
}

BUILD(log_softmax)
{
    return det_log_softmax(e, in[0]);
}

BUILD(softmax)
{
    return det_softmax(e, in[0]);
}

BUILD(nll)
{
    return det_nll_loss(e, in[0], in[1]);
}

BUILD(cross_entropy)
{
    return det_cross_entropy(e, in[0], in[1]);
}

BUILD(mse)
{
    return det_mse_loss(e, in[0], in[1]);
}

BUILD(dropout)
{
    det_engine_set_rng_state(e, (struct det_rng_state){.seed = 77, .calls = 3});
    return det_dropout(e, in[0], 0.3, true);
}

/* NHWC and back: a flatten after a convolution, as classifiers have it. */
BUILD(conv_flatten)
{
    return det_flatten(e, det_conv2d(e, in[0], in[1], in[2], NULL), 1);
}

BUILD(reshape)
{
    return det_reshape(e, in[0], 3, (int64_t[]){2, -1, 5});
}

BUILD(cast)
{
    return det_cast(e, det_cast(e, in[0], DET_I64), DET_F32);
}

BUILD(argmax)
{
    return det_cast(e, det_argmax(e, in[0]), DET_F32);
}

BUILD(eq_count)
{
    return det_eq_count(e, det_argmax(e, in[0]), in[1]);
}

#define IN(...)                                                                                    \
    {                                                                                              \
        .ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = { __VA_ARGS__ }        \
    }
#define FIXED(n)                                                                                   \
    {                                                                                              \
        .ndim = 1, .dims = {n}, .constant = true                                                   \
    }
#define FIXED2(...)                                                                                \
    {                                                                                              \
        .ndim = 2, .dims = {__VA_ARGS__}, .constant = true                                         \
    }
#define CLASSES(n, most)                                                                           \
    {                                                                                              \
        .ndim = 1, .dims = {n}, .classes = true, .range = most                                     \
    }

const struct op_case op_cases[] = {
    {"add", "3x5x7", {IN(3, 5, 7), IN(3, 5, 7)}, add},
    {"add", "twice the same", {IN(3, 5)}, add_self},
    {"add", "large", {IN(129, 517), IN(129, 517)}, add},
    {"sub", "3x5", {IN(3, 5), IN(3, 5)}, sub},
    {"mul", "3x5", {IN(3, 5), IN(3, 5)}, mul},
    {"mul", "a square", {IN(3, 5)}, square},
    {"affine", "7x11", {IN(7, 11)}, affine},
    {"sum", "5x9", {IN(5, 9)}, sum},
    {"sum", "a mean", {IN(2, 3, 5, 5)}, mean},
    {"sum", "large", {IN(97, 331)}, mean},
    {"relu", "7x13", {IN(7, 13)}, relu},
    {"relu", "large", {IN(130, 300)}, relu},
    {"linear", "5x7 to 3", {IN(5, 7), IN(3, 7), IN(3)}, linear},
    {"linear", "no bias", {IN(5, 7), IN(3, 7)}, linear_no_bias},
    {"linear", "3 dimensions", {IN(2, 3, 7), IN(4, 7), IN(4)}, linear},
    {"linear", "large", {IN(33, 700), IN(65, 700), IN(65)}, linear},
    {"linear", "large enough to reorder", {IN(65, 700), IN(97, 700), IN(97)}, linear},
    {"linear", "the same without bias", {IN(65, 700), IN(97, 700)}, linear_no_bias},
    {"conv2d", "1 channel", {IN(2, 1, 7, 6), IN(4, 1, 3, 3), IN(4)}, conv},
    {"conv2d", "3 to 5, no bias", {IN(2, 3, 5, 7), IN(5, 3, 3, 3)}, conv_no_bias},
    {"conv2d", "stride", {IN(2, 3, 9, 8), IN(6, 3, 5, 5), IN(6)}, conv_stride},
    {"conv2d", "1x1", {IN(1, 5, 4, 3), IN(7, 5, 1, 1), IN(7)}, conv},
    {"conv2d", "relu", {IN(2, 4, 6, 6), IN(3, 4, 3, 3), IN(3)}, conv_relu},
    {"conv2d", "used twice", {IN(1, 2, 5, 5), IN(3, 2, 3, 3), IN(3)}, conv_twice},
    {"conv2d", "16 to 32", {IN(3, 16, 10, 9), IN(32, 16, 3, 3), IN(32)}, conv_relu},
    {"conv2d", "then flatten", {IN(2, 3, 5, 4), IN(5, 3, 2, 2), IN(5)}, conv_flatten},
    {"batch_norm", "train", {IN(3, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)}, bn_train},
    {"batch_norm",
     "train, many pixels",
     {IN(5, 6, 17, 13), IN(6), IN(6), FIXED(6), FIXED(6)},
     bn_train},
    {"batch_norm",
     "train, relu",
     {IN(3, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)},
     bn_train_relu},
    {"batch_norm", "eval", {IN(3, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)}, bn_eval},
    {"batch_norm", "eval, relu", {IN(2, 1, 4, 3), IN(1), IN(1), FIXED(1), FIXED(1)}, bn_eval_relu},
    {"max_pool2d", "2x2", {IN(2, 5, 7, 6)}, max_pool},
    {"max_pool2d", "overlapping", {IN(2, 3, 7, 8)}, max_pool_overlap},
    {"avg_pool2d", "overlapping", {IN(2, 3, 7, 8)}, avg_pool},
    {"avg_pool2d", "global", {IN(3, 5, 4, 7)}, global_pool},
    {"log_softmax", "5x10", {{.ndim = 2, .dims = {5, 10}, .range = 3}}, log_softmax},
    {"log_softmax", "3 dimensions", {{.ndim = 3, .dims = {2, 3, 4}, .range = 3}}, log_softmax},
    {"softmax", "5x10", {{.ndim = 2, .dims = {5, 10}, .range = 3}}, softmax},
    {"nll_loss", "5x10", {IN(5, 10), CLASSES(5, 9)}, nll},
    {"nll_loss", "cross entropy", {IN(5, 10), CLASSES(5, 9)}, cross_entropy},
    {"mse_loss", "4x6", {IN(4, 6), IN(4, 6)}, mse},
    {"dropout", "4x33", {IN(4, 33)}, dropout},
    {"dropout", "large", {IN(131, 301)}, dropout},
    {"layout", "images", {IN(2, 3, 5, 4), IN(5, 3, 2, 2), IN(5)}, conv_flatten},
    {"reshape", "6x5", {IN(6, 5)}, reshape},
    {"cast", "to integers", {{.ndim = 2, .dims = {3, 4}, .constant = true, .range = 9}}, cast},
    {"argmax", "rows", {FIXED2(7, 9)}, argmax},
    {"eq_count", "argmax", {FIXED2(9, 4), CLASSES(9, 3)}, eq_count},
};

const int op_cases_n = sizeof op_cases / sizeof *op_cases;
