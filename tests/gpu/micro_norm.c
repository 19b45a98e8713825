#include <stdio.h>

#include "engine.h"
#include "micro.h"

/* The call that is timed, and how many bytes it moves, as a multiple of x's. */
struct timed {
    const char *name;
    struct det_call call;
    double moved;
};

static const struct timed *now;

static struct det_tensor *again(struct det_engine *e, struct det_tensor *x)
{
    struct det_err err;
    if (det__run(e, &now->call, &err) < 0)
        fprintf(stderr, "micro: %s: %s\n", now->name, err.text);
    return x;
}

static void time_call(struct det_engine *e, const struct timed *t, struct det_tensor *x,
                      const char *dtype)
{
    char text[80];
    now = t;
    snprintf(text, sizeof text, "%s %s", t->name, dtype);
    report(text, time_us(e, &(const struct operation){"", again, 1}, x),
           t->moved * (double)det_tensor_bytes(x));
}

/* [n] of ones, f32: what networks keep beside tensors of any dtype. */
static struct det_tensor *ones(struct det_engine *e, int64_t n)
{
    return det_full(e, DET_F32, 1, &n, 1);
}

static struct det_tensor *like(struct det_engine *e, struct det_tensor *x)
{
    struct det_tensor *y = det_tensor_ref(det_cast(e, det_scale(e, x, 0.5), x->dtype));
    return y;
}

/* y and the rest belong to the caller, who keeps them while they are timed. */
static void time_batch_norm(struct det_engine *e, struct det_tensor *x, const char *dtype)
{
    struct det_tensor *y = like(e, x), *dy = like(e, x), *dx = like(e, x), *p[8];
    for (int i = 0; i < 8; i++)
        p[i] = det_tensor_ref(ones(e, x->dims[1]));
    const struct det_attrs a = {.eps = 1e-5, .momentum = 0.1, .relu = true, .train = true};
    const struct timed t[] = {
        {"batch norm",
         {DET_KERNEL_BATCH_NORM_TRAIN, {x, p[0], p[1]}, {y, p[2], p[3], p[4], p[5]}, a},
         3},
        {"batch norm, residual",
         {DET_KERNEL_BATCH_NORM_TRAIN, {x, p[0], p[1], 0, 0, dx}, {y, p[2], p[3], p[4], p[5]}, a},
         4},
        {"batch norm back",
         {DET_KERNEL_BATCH_NORM_BWD, {dy, x, y, p[0], p[2], p[3], p[1]}, {dx, p[6], p[7]}, a},
         5},
        {"batch norm back, residual",
         {DET_KERNEL_BATCH_NORM_BWD, {dy, x, y, p[0], p[2], p[3]}, {dx, p[6], p[7], dy}, a},
         7},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        time_call(e, &t[i], x, dtype);
    for (int i = 0; i < 8; i++)
        det_tensor_unref(p[i]);
    det_tensor_unref(y);
    det_tensor_unref(dy);
    det_tensor_unref(dx);
}

/* Windows of 3 x 3 at every second pixel, as ResNets begin. */
static void time_max_pool(struct det_engine *e, struct det_tensor *x, const char *dtype)
{
    struct det_tensor *y = det_tensor_ref(det_max_pool2d(e, x, 3, 2, 1)), *dx = like(e, x);
    int64_t n = det_tensor_numel(y);
    struct det_tensor *flat = det_full(e, DET_U8, 1, &n, 0);
    const int64_t nhwc[] = {y->dims[0], y->dims[2], y->dims[3], y->dims[1]};
    struct det_tensor *index =
        det_tensor_ref(det_permute(e, det_reshape(e, flat, 4, nhwc), (const int[]){0, 3, 1, 2}));
    const struct det_attrs a = {
        .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
    double taps = (double)n / (double)det_tensor_bytes(x);
    double moved = 1 + taps * (1 + (double)det_dtype_size(x->dtype));
    const struct timed t[] = {
        {"max pool", {DET_KERNEL_MAX_POOL2D, {x}, {y, index}, a}, moved},
        {"max pool back", {DET_KERNEL_MAX_POOL2D_BWD, {y, index}, {dx}, a}, moved},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        time_call(e, &t[i], x, dtype);
    det_tensor_unref(y);
    det_tensor_unref(dx);
    det_tensor_unref(index);
}

static void time_rows(struct det_engine *e, struct det_tensor *x, const char *dtype)
{
    int64_t rows = x->dims[0], n = x->dims[1];
    struct det_tensor *y = like(e, x), *dy = like(e, x), *p[5];
    for (int i = 0; i < 5; i++)
        p[i] = det_tensor_ref(ones(e, i < 2 ? rows : n));
    const struct det_attrs a = {.eps = 1e-5, .scale = 1, .mode = DET_REDUCE_DIM_SUM};
    const struct timed t[] = {
        {"layer norm", {DET_KERNEL_LAYER_NORM, {x, p[2], p[3]}, {y, p[0], p[1]}, a}, 2},
        {"layer norm back: x", {DET_KERNEL_LAYER_NORM_BWD, {dy, x, p[2], p[0], p[1]}, {y}, a}, 3},
        {"layer norm back: weights",
         {DET_KERNEL_LAYER_NORM_BWD, {dy, x, p[2], p[0], p[1]}, {0, p[3], p[4]}, a},
         2},
        {"softmax", {DET_KERNEL_SOFTMAX, {x}, {y}, a}, 2},
        {"softmax back", {DET_KERNEL_SOFTMAX_BWD, {dy, x}, {y}, a}, 3},
        {"sums of columns", {DET_KERNEL_SUM_TO, {x}, {p[4]}, a}, 1},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        time_call(e, &t[i], x, dtype);
    for (int i = 0; i < 5; i++)
        det_tensor_unref(p[i]);
    det_tensor_unref(y);
    det_tensor_unref(dy);
}

static void time_loss(struct det_engine *e, struct det_tensor *x, const char *dtype)
{
    int64_t rows = x->dims[0];
    struct det_tensor *one = det_tensor_ref(ones(e, 1));
    struct det_tensor *dx = like(e, x), *sums = det_tensor_ref(ones(e, 2 * rows));
    struct det_tensor *target = det_tensor_ref(det_full(e, DET_I64, 1, &rows, 3));
    struct det_tensor *y = det_tensor_ref(det_scalar(e, x->dtype, 1));
    struct det_tensor *count = det_tensor_ref(det_scalar(e, DET_F32, 1));
    const struct det_attrs a = {.mode = DET_REDUCE_MEAN, .skip = -100, .scale = 1};
    const struct timed t[] = {
        {"cross entropy", {DET_KERNEL_CROSS_ENTROPY, {x, target}, {y, sums, count}, a}, 1},
        {"cross entropy back",
         {DET_KERNEL_CROSS_ENTROPY_BWD, {y, x, target, NULL, sums, count}, {dx}, a},
         2},
        {"sum", {DET_KERNEL_SUM, {x}, {one}, a}, 1},
        {"sum of squares", {DET_KERNEL_SQNORM, {x}, {one}, a}, 1},
        {"greatest size", {DET_KERNEL_ABSMAX, {x}, {one}, a}, 1},
        {"mean squared error", {DET_KERNEL_MSE, {x, dx}, {one}, a}, 2},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        time_call(e, &t[i], x, dtype);
    det_tensor_unref(one);
    det_tensor_unref(dx);
    det_tensor_unref(sums);
    det_tensor_unref(target);
    det_tensor_unref(y);
    det_tensor_unref(count);
}

/* Images in the order in which convolutions leave them. */
static struct det_tensor *images(struct det_engine *e, const int64_t *dims)
{
    struct det_tensor *x = det_randn(e, 4, (int64_t[]){dims[0], dims[2], dims[3], dims[1]});
    return det_permute(e, x, (const int[]){0, 3, 1, 2});
}

static const struct subject {
    const char *name;
    void (*time)(struct det_engine *e, struct det_tensor *x, const char *dtype);
    int ndim;
    int64_t full[4], small[4];
} subjects[] = {
    {"64 x 112", time_batch_norm, 4, {256, 64, 112, 112}, {3, 8, 5, 7}},
    {"64 x 112", time_max_pool, 4, {256, 64, 112, 112}, {3, 8, 6, 8}},
    {"64 x 56", time_batch_norm, 4, {256, 64, 56, 56}, {3, 8, 5, 7}},
    {"256 x 56", time_batch_norm, 4, {256, 256, 56, 56}, {3, 8, 5, 7}},
    {"128 x 28", time_batch_norm, 4, {256, 128, 28, 28}, {3, 8, 5, 7}},
    {"512 x 28", time_batch_norm, 4, {256, 512, 28, 28}, {3, 8, 5, 7}},
    {"256 x 14", time_batch_norm, 4, {256, 256, 14, 14}, {3, 8, 5, 7}},
    {"1024 x 14", time_batch_norm, 4, {256, 1024, 14, 14}, {3, 16, 5, 7}},
    {"512 x 7", time_batch_norm, 4, {256, 512, 7, 7}, {3, 8, 5, 7}},
    {"2048 x 7", time_batch_norm, 4, {256, 2048, 7, 7}, {3, 16, 5, 7}},
    {"rows of 768", time_rows, 2, {8192, 768}, {9, 24}},
    {"rows of 3072", time_rows, 2, {8192, 3072}, {9, 40}},
    {"rows of 50257", time_loss, 2, {8192, 50257}, {9, 77}},
};

void time_norms(struct det_engine *e, bool is_full)
{
    static const enum det_dtype dtypes[] = {DET_F32, DET_BF16};
    for (size_t i = 0; i < 2 * sizeof subjects / sizeof *subjects; i++) {
        const struct subject *k = &subjects[i / 2];
        const int64_t *dims = is_full ? k->full : k->small;
        struct det_tensor *x = k->ndim == 4 ? images(e, dims) : det_randn(e, 2, dims);
        char text[60];
        snprintf(text, sizeof text, "%s, %s", det_dtype_name(dtypes[i % 2]), k->name);
        x = det_tensor_ref(det_cast(e, x, dtypes[i % 2]));
        k->time(e, x, text);
        det_tensor_unref(x);
        det_engine_step_end(e);
    }
}
