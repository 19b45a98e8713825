#include <stdio.h>

#include "engine.h"
#include "micro.h"

/* A layer over square images, with padding that keeps their size or none. */
struct layer {
    const char *name;
    int64_t images, in, out, size, window;
    int stride, padding;
};

static const struct layer full[] = {
    {"MNIST's first", 64, 1, 32, 28, 3, 1, 0},
    {"MNIST's second", 64, 32, 64, 26, 3, 1, 0},
    {"64 to 64 of 32", 64, 64, 64, 32, 3, 1, 1},
    {"128 to 128 of 16", 64, 128, 128, 16, 3, 1, 1},
    {"256 to 256 of 8", 64, 256, 256, 8, 3, 1, 1},
    {"512 to 512 of 4", 64, 512, 512, 4, 3, 1, 1},
    {"64 to 128 of 32, stride", 64, 64, 128, 32, 3, 2, 1},
    {"64 to 256 of 56, 1 x 1", 32, 64, 256, 56, 1, 1, 0},
};
static const struct layer small[] = {{"small", 2, 16, 20, 7, 3, 1, 1}};

static const struct det_call *now;

static struct det_tensor *again(struct det_engine *e, struct det_tensor *x)
{
    struct det_err err;
    if (det__run(e, now, &err) < 0)
        fprintf(stderr, "micro: convolution: %s\n", err.text);
    return x;
}

static void say(struct det_engine *e, const struct layer *l, const char *way,
                const struct det_call *call, struct det_tensor *y)
{
    now = call;
    double us = time_us(e, &(const struct operation){"", again, 1}, y);
    double each = 2 * (double)(det_tensor_numel(y) * l->in * l->window * l->window);
    printf("{\"operation\":\"convolution f32, %s: %s\",\"us\":%.2f,\"TFLOP_s\":%.2f}\n", l->name,
           way, us, each / us * 1e-6);
    fflush(stdout);
}

static struct det_tensor *like(struct det_engine *e, struct det_tensor *x)
{
    return det_tensor_ref(det_scale(e, x, 0.5));
}

static void time_layer(struct det_engine *e, const struct layer *l)
{
    const struct det_conv2d_options o = {.stride = l->stride, .padding = l->padding};
    const int wide = (int)l->window;
    struct det_tensor *x =
        det_permute(e, det_randn(e, 4, (int64_t[]){l->images, l->size, l->size, l->in}),
                    (const int[]){0, 3, 1, 2});
    struct det_tensor *w = det_randn(e, 4, (int64_t[]){l->out, l->in, l->window, l->window});
    struct det_tensor *b = det_tensor_ref(det_full(e, DET_F32, 1, &l->out, 1));
    x = det_tensor_ref(x), w = det_tensor_ref(w);
    struct det_tensor *y = det_tensor_ref(det_conv2d(e, x, w, b, &o));
    struct det_tensor *dx = like(e, x), *dw = like(e, w), *db = like(e, b);
    const struct det_attrs a = {.kernel_h = wide,
                                .kernel_w = wide,
                                .stride_h = l->stride,
                                .stride_w = l->stride,
                                .pad_h = l->padding,
                                .pad_w = l->padding,
                                .end_h = l->padding,
                                .end_w = l->padding,
                                .dilation_h = 1,
                                .dilation_w = 1,
                                .groups = 1};
    say(e, l, "forward", &(const struct det_call){DET_KERNEL_CONV2D, {x, w, b}, {y}, a}, y);
    say(e, l, "x's gradient", &(const struct det_call){DET_KERNEL_CONV2D_BWD_DATA, {y, w}, {dx}, a},
        y);
    say(e, l, "weights' gradient",
        &(const struct det_call){DET_KERNEL_CONV2D_BWD_WEIGHT, {x, y}, {dw, db}, a}, y);
    struct det_tensor *all[] = {x, w, b, y, dx, dw, db};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        det_tensor_unref(all[i]);
    det_engine_step_end(e);
}

void time_convolutions(struct det_engine *e, bool is_full)
{
    const struct layer *all = is_full ? full : small;
    size_t n = is_full ? sizeof full / sizeof *full : sizeof small / sizeof *small;
    for (size_t i = 0; i < n; i++)
        time_layer(e, &all[i]);
}
