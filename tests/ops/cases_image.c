/* Convolution, batch norm and pooling: odd sizes, padding, strides, one and many channels. */
#include "functions.h"
#include "op_case.h"

#define CONV(...)                                                                                  \
    det_conv2d(e, in[0], in[1], in[2], &(const struct det_conv2d_options){__VA_ARGS__})
#define POOL "F.max_pool2d(x0, "

BUILD(conv, det_conv2d(e, in[0], in[1], in[2], NULL))
BUILD(conv_stride, CONV(.stride = 2, .padding = 2))
BUILD(conv_relu, CONV(.padding = 1, .relu = true))
BUILD(conv_ways, CONV(.padding_hw = {1, 3}, .dilation_hw = {3, 2}))
BUILD(conv_same, CONV(.same = true))
BUILD(conv_far, CONV(.padding = 3))
BUILD(conv_no_bias, CONV(.padding = 1))
/* NHWC and back: a flatten after a convolution, as classifiers have it. */
BUILD(conv_flatten, det_flatten(e, CONV(0), 1))
BUILD(max_pool, det_max_pool2d(e, in[0], 2, 0, 0))
BUILD(max_pool_overlap, det_max_pool2d(e, in[0], 3, 2, 1))
BUILD(max_pool_gaps, det_max_pool2d(e, in[0], 2, 3, 1))
BUILD(avg_pool, det_avg_pool2d(e, in[0], 3, 2, 1))
BUILD(global_pool, det_global_avg_pool2d(e, in[0]))

/* Two ways to the same input: gradients add up, and the ReLU must not spoil the other way's. */
static struct det_tensor *conv_twice(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *y = CONV(.relu = true);
    return det_add(e, det_relu(e, y), det_add(e, y, y));
}

static struct det_tensor *norm(struct det_engine *e, struct det_tensor **in, bool train, bool relu)
{
    struct batch_norm_attrs a = {.eps = 1e-5, .momentum = 0.1, .train = train, .relu = relu};
    struct det_tensor *var = det_mul(e, in[4], in[4]); /* a variance is not negative */
    struct det_tensor *params[4] = {in[1], in[2], det_scale(e, in[3], 1), var};
    return det__batch_norm(e, in[0], params, &a);
}

/* The first pixel is far from all others. */
static struct det_tensor *bn_far(struct det_engine *e, struct det_tensor **in)
{
    const int64_t *dims = det_tensor_dims(in[0]);
    enum det_dtype dtype = det_tensor_dtype(in[0]);
    struct det_tensor *far =
        det_host_tensor(DET_F32, 4, (int64_t[]){dims[0], 1, dims[2], dims[3]}, NULL);
    ((float *)det_tensor_data(far))[0] = 5000;
    struct det_tensor *x[] = {det_add(e, in[0], det_cast(e, det_to_device(e, far), dtype)), in[1],
                              in[2], in[3], in[4]};
    det_tensor_unref(far);
    return norm(e, x, true, false);
}
BUILD(bn_train, norm(e, in, true, false))
BUILD(bn_train_relu, norm(e, in, true, true))
BUILD(bn_eval, norm(e, in, false, false))
BUILD(bn_eval_relu, norm(e, in, false, true))

static struct det_tensor *residual(struct det_engine *e, struct det_tensor **in, bool train,
                                   bool relu)
{
    struct batch_norm_attrs a = {.eps = 1e-5, .momentum = 0.1, .train = train, .relu = relu};
    struct det_tensor *mean = det_scale(e, in[2], 0);
    struct det_tensor *var = det_full(e, det_tensor_dtype(in[2]), 1, det_tensor_dims(in[2]), 1);
    struct det_tensor *params[4] = {in[1], in[2], mean, var};
    return det__batch_norm_add(e, in[0], params, in[3], &a);
}

BUILD(residual_relu, residual(e, in, true, true))
BUILD(residual_train, residual(e, in, true, false))
BUILD(residual_eval, residual(e, in, false, true))
/* What is added is needed elsewhere too, and so is what comes out. */
BUILD(residual_shared,
      det_add(e, det_mul(e, residual(e, in, true, true), in[3]), residual(e, in, true, true)))
/* From an address that is no multiple of 16 bytes. */
static struct det_tensor *norm_odd(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *x = det_narrow(e, det_scale(e, in[0], 1), 0, 1, 37 * 8);
    x = det_reshape(e, x, 4, (int64_t[]){37, 8, 1, 1});
    return norm(e, (struct det_tensor *[]){x, in[1], in[2], in[3], in[4]}, true, true);
}
#define ADDED(train)                                                                               \
    "(F.batch_norm(x0, torch.zeros(len(x1)), torch.ones(len(x1)), x1, x2, " train ") + x3)"

#define BN(train) "F.batch_norm(x0, x3 + 0, x4 * x4, x1, x2, " train ")"

/* clang-format off */
/* By packs and not. */
#define NARROW_POOLS(name, type, back)                                                             \
    {"max_pool2d", "by packs, " name, {OF(type, 1, 2, 16, 7, 8)}, max_pool_overlap,                \
     "F.max_pool2d(x0.float(), 3, 2, 1)" back},                                                    \
    {"max_pool2d", name, {OF(type, 1, 2, 3, 7, 8)}, max_pool_overlap,                              \
     "F.max_pool2d(x0.float(), 3, 2, 1)" back},                                                    \
    {"avg_pool2d", "by packs, " name, {OF(type, 1, 2, 8, 7, 8)}, avg_pool,                         \
     "F.avg_pool2d(x0.float(), 3, 2, 1)" back}

#define OFS(type, n) OF(type, 1, n)
#define STILL(type, n) {CASE_DIMS(n), .constant = true, .dtype = type}
#define WIDELY "F.batch_norm(x0.float(), x3.float(), x4.float() ** 2, x1.float(), x2.float(), "
#define WIDELY_ADDED                                                                               \
    "F.relu(F.batch_norm(x0.float(), torch.zeros(len(x1)), torch.ones(len(x1)), "                  \
    "x1.float(), x2.float(), True) + x3.float())"
#define NARROW_NORMS(name, type, back)                                                             \
    {"batch_norm", name,                                                                           \
     {OF(type, 1, 3, 5, 7, 3), OFS(type, 5), OFS(type, 5), STILL(type, 5), STILL(type, 5)},        \
     bn_train_relu, "F.relu(" WIDELY "True))" back},                                               \
    {"batch_norm", "by packs, " name,                                                              \
     {OF(type, 1, 3, 24, 7, 13), OFS(type, 24), OFS(type, 24), STILL(type, 24), STILL(type, 24)},  \
     bn_train, WIDELY "True)" back},                                                               \
    {"batch_norm", "by packs, relu, " name,                                                        \
     {OF(type, 1, 3, 8, 7, 13), OFS(type, 8), OFS(type, 8), STILL(type, 8), STILL(type, 8)},       \
     bn_train_relu, "F.relu(" WIDELY "True))" back},                                               \
    {"batch_norm", "by packs, eval, " name,                                                        \
     {OF(type, 1, 2, 16, 4, 3), OFS(type, 16), OFS(type, 16), STILL(type, 16), STILL(type, 16)},   \
     bn_eval, WIDELY "False)" back},                                                               \
    {"batch_norm", "residual, " name,                                                              \
     {OF(type, 1, 3, 6, 7, 3), OFS(type, 6), OFS(type, 6), OF(type, 1, 3, 6, 7, 3)},               \
     residual_relu, WIDELY_ADDED back},                                                            \
    {"batch_norm", "by packs, residual, " name,                                                    \
     {OF(type, 1, 3, 16, 7, 3), OFS(type, 16), OFS(type, 16), OF(type, 1, 3, 16, 7, 3)},           \
     residual_relu, WIDELY_ADDED back}

const struct op_case cases_image[] = {
    {"conv2d", "1 channel", {IN(2, 1, 7, 6), IN(4, 1, 3, 3), IN(4)}, conv, "F.conv2d(x0, x1, x2)"},
    {"conv2d", "3 to 5, no bias", {IN(2, 3, 5, 7), IN(5, 3, 3, 3)},
     conv_no_bias, "F.conv2d(x0, x1, None, padding=1)"},
    {"conv2d", "stride", {IN(2, 3, 9, 8), IN(6, 3, 5, 5), IN(6)},
     conv_stride, "F.conv2d(x0, x1, x2, 2, 2)"},
    {"conv2d", "1x1", {IN(1, 5, 4, 3), IN(7, 5, 1, 1), IN(7)}, conv, "F.conv2d(x0, x1, x2)"},
    {"conv2d", "relu", {IN(2, 4, 6, 6), IN(3, 4, 3, 3), IN(3)},
     conv_relu, "F.relu(F.conv2d(x0, x1, x2, padding=1))"},
    {"conv2d", "used twice", {IN(1, 2, 5, 5), IN(3, 2, 3, 3), IN(3)},
     conv_twice, "3 * F.relu(F.conv2d(x0, x1, x2))"},
    {"conv2d", "16 to 32", {IN(3, 16, 10, 9), IN(32, 16, 3, 3), IN(32)},
     conv_relu, "F.relu(F.conv2d(x0, x1, x2, padding=1))"},
    {"conv2d", "large, 7x7", {IN(4, 3, 21, 22), IN(64, 3, 7, 7), IN(64)},
     conv_stride, "F.conv2d(x0, x1, x2, 2, 2)"},
    {"conv2d", "large, by tiles", {IN(2, 32, 25, 22), IN(48, 32, 3, 3), IN(48)},
     conv_relu, "F.relu(F.conv2d(x0, x1, x2, padding=1))"},
    {"conv2d", "large, by tiles, no padding", {IN(3, 48, 19, 20), IN(32, 48, 3, 3), IN(32)},
     conv, "F.conv2d(x0, x1, x2)"},
    {"conv2d", "by tiles, odd sizes", {IN(3, 20, 13, 7), IN(36, 20, 3, 2), IN(36)},
     conv, "F.conv2d(x0, x1, x2)"},
    {"conv2d", "by tiles, wide", {IN(2, 24, 9, 11), IN(100, 24, 2, 3), IN(100)},
     conv_relu, "F.relu(F.conv2d(x0, x1, x2, padding=1))"},
    {"conv2d", "by tiles, stride", {IN(2, 16, 15, 14), IN(32, 16, 5, 5), IN(32)},
     conv_stride, "F.conv2d(x0, x1, x2, 2, 2)"},
    {"conv2d", "by tiles, directions", {IN(2, 28, 9, 12), IN(40, 28, 2, 3), IN(40)},
     conv_ways, "F.conv2d(x0, x1, x2, 1, (1, 3), (3, 2))"},
    {"conv2d", "by tiles, same", {IN(2, 16, 8, 9), IN(16, 16, 2, 4)},
     conv_same, "F.conv2d(x0, x1, None, 1, 'same')"},
    {"conv2d", "by tiles, 1x1", {IN(3, 48, 7, 5), IN(72, 48, 1, 1), IN(72)},
     conv, "F.conv2d(x0, x1, x2)"},
    {"conv2d", "by tiles, more padding than window", {IN(2, 16, 4, 5), IN(16, 16, 2, 2), IN(16)},
     conv_far, "F.conv2d(x0, x1, x2, padding=3)"},
    {"conv2d", "then flatten", {IN(2, 3, 5, 4), IN(5, 3, 2, 2), IN(5)},
     conv_flatten, "F.conv2d(x0, x1, x2).flatten(1)"},
    {"layout", "images", {IN(2, 3, 5, 4), IN(5, 3, 2, 2), IN(5)},
     conv_flatten, "F.conv2d(x0, x1, x2).flatten(1)"},
    {"batch_norm", "train", {IN(3, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)},
     bn_train, BN("True")},
    {"batch_norm", "train, many pixels", {IN(5, 6, 17, 13), IN(6), IN(6), FIXED(6), FIXED(6)},
     bn_train, BN("True")},
    {"batch_norm", "large, one pixel far away",
     {IN(2, 4, 36, 36), IN(4), IN(4), FIXED(4), FIXED(4)}, bn_far, NULL},
    {"batch_norm", "train, relu", {IN(3, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)},
     bn_train_relu, "F.relu(" BN("True") ")"},
    {"batch_norm", "eval", {IN(3, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)},
     bn_eval, BN("False")},
    {"batch_norm", "eval, relu", {IN(2, 1, 4, 3), IN(1), IN(1), FIXED(1), FIXED(1)},
     bn_eval_relu, "F.relu(" BN("False") ")"},
    {"batch_norm", "residual, relu", {IN(3, 5, 4, 3), IN(5), IN(5), IN(3, 5, 4, 3)},
     residual_relu, "F.relu" ADDED("True")},
    {"batch_norm", "residual, many pixels", {IN(5, 6, 17, 13), IN(6), IN(6), IN(5, 6, 17, 13)},
     residual_relu, "F.relu" ADDED("True")},
    {"batch_norm", "residual", {IN(3, 5, 4, 3), IN(5), IN(5), IN(3, 5, 4, 3)},
     residual_train, ADDED("True")},
    {"batch_norm", "residual, eval", {IN(3, 5, 4, 3), IN(5), IN(5), IN(3, 5, 4, 3)},
     residual_eval, "F.relu" ADDED("False")},
    {"batch_norm", "residual, shared", {IN(3, 5, 4, 3), IN(5), IN(5), IN(3, 5, 4, 3)},
     residual_shared, "F.relu" ADDED("True") " * (x3 + 1)"},
    {"batch_norm", "by packs", {IN(5, 24, 17, 3), IN(24), IN(24), FIXED(24), FIXED(24)},
     bn_train, BN("True")},
    {"batch_norm", "by packs, relu", {IN(7, 8, 17, 13), IN(8), IN(8), FIXED(8), FIXED(8)},
     bn_train_relu, "F.relu(" BN("True") ")"},
    {"batch_norm", "by packs, eval, relu", {IN(5, 40, 3, 3), IN(40), IN(40), FIXED(40), FIXED(40)},
     bn_eval_relu, "F.relu(" BN("False") ")"},
    {"batch_norm", "by packs, residual", {IN(3, 16, 5, 7), IN(16), IN(16), IN(3, 16, 5, 7)},
     residual_train, ADDED("True")},
    {"batch_norm", "by packs, residual, relu", {IN(9, 16, 5, 7), IN(16), IN(16), IN(9, 16, 5, 7)},
     residual_relu, "F.relu" ADDED("True")},
    {"batch_norm", "no packs: an odd address", {IN(1 + 37 * 8), IN(8), IN(8), FIXED(8), FIXED(8)},
     norm_odd, "F.relu(F.batch_norm(x0[1:].reshape(37, 8, 1, 1), x3 + 0, x4 * x4, x1, x2, True))"},
    {"batch_norm", "a mean far from 0",
     {{CASE_DIMS(5, 8, 9, 7), .range = 3, .shift = 60}, IN(8), IN(8), FIXED(8), FIXED(8)},
     bn_train_relu, "F.relu(" BN("True") ")"},
    NARROW_NORMS("bf16", DET_BF16, ".bfloat16()"),
    NARROW_NORMS("f16", DET_F16, ".half()"),
    {"max_pool2d", "2x2", {IN(2, 5, 7, 6)}, max_pool, POOL "2)"},
    {"max_pool2d", "overlapping", {IN(2, 3, 7, 8)}, max_pool_overlap, POOL "3, 2, 1)"},
    {"max_pool2d", "gaps", {IN(2, 5, 9, 8)}, max_pool_gaps, POOL "2, 3, 1)"},
    {"avg_pool2d", "overlapping", {IN(2, 3, 7, 8)}, avg_pool, "F.avg_pool2d(x0, 3, 2, 1)"},
    {"avg_pool2d", "global", {IN(3, 5, 4, 7)}, global_pool, "F.adaptive_avg_pool2d(x0, 1)"},
    {"max_pool2d", "by packs", {IN(2, 24, 7, 8)}, max_pool_overlap, POOL "3, 2, 1)"},
    {"avg_pool2d", "by packs", {IN(2, 16, 7, 8)}, avg_pool, "F.avg_pool2d(x0, 3, 2, 1)"},
    NARROW_POOLS("bf16", DET_BF16, ".bfloat16()"),
    NARROW_POOLS("f16", DET_F16, ".half()"),
    {"conv2d", "no images", {IN(0, 3, 5, 7), IN(4, 3, 3, 3), IN(4)},
     conv_relu, "F.relu(F.conv2d(x0, x1, x2, padding=1))"},
    {"layout", "no images", {IN(0, 3, 5, 4), IN(5, 3, 2, 2), IN(5)},
     conv_flatten, "F.conv2d(x0, x1, x2).flatten(1)"},
    {"batch_norm", "train, no images", {IN(0, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)},
     bn_train_relu, "F.relu(" BN("True") ")"},
    {"batch_norm", "eval, no images", {IN(0, 5, 4, 3), IN(5), IN(5), FIXED(5), FIXED(5)},
     bn_eval, BN("False")},
    {"batch_norm", "residual, no images", {IN(0, 5, 4, 3), IN(5), IN(5), IN(0, 5, 4, 3)},
     residual_relu, "F.relu(" ADDED("True") ")"},
    {"max_pool2d", "no images", {IN(0, 3, 7, 8)}, max_pool_overlap, POOL "3, 2, 1)"},
    {"avg_pool2d", "no images", {IN(0, 3, 7, 8)}, avg_pool, "F.avg_pool2d(x0, 3, 2, 1)"},
    {"avg_pool2d", "global, no images", {IN(0, 5, 4, 7)}, global_pool,
     "F.adaptive_avg_pool2d(x0, 1)"},
    {"conv2d", "spoilt, relu", {SPOILT(2, 16, 6, 6), FIXED(16, 16, 3, 3), FIXED(16)},
     conv_relu, "F.relu(F.conv2d(x0, x1, x2, padding=1))"},
    {"batch_norm", "spoilt, relu", {SPOILT(3, 5, 4, 3), FIXED(5), FIXED(5), FIXED(5), FIXED(5)},
     bn_train_relu, "F.relu(" BN("True") ")"},
    {"batch_norm", "spoilt, eval, relu", {SPOILT(3, 5, 4, 3), FIXED(5), FIXED(5), FIXED(5), FIXED(5)},
     bn_eval_relu, "F.relu(" BN("False") ")"},
    {"batch_norm", "spoilt residual, relu", {FIXED(3, 5, 4, 3), FIXED(5), FIXED(5), SPOILT(3, 5, 4, 3)},
     residual_relu, "F.relu(" ADDED("True") ")"},
    {"max_pool2d", "spoilt", {SPOILT(2, 3, 7, 8)}, max_pool_overlap, POOL "3, 2, 1)"},
    {"avg_pool2d", "spoilt", {SPOILT(2, 3, 7, 8)}, avg_pool, "F.avg_pool2d(x0, 3, 2, 1)"},
    {0},
};
