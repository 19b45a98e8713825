/* Pooling: how many windows there are, and where. */
#include <string.h>

#include "det/conv.h"
#include "op.h"

struct direction {
    int kernel, stride, pad;
};

/* The padding after the image with which the windows that begin inside are counted: also the only
 * one, where it is larger than the image. */
static int end_of(struct direction d, int64_t size, bool ceil_mode)
{
    if (!ceil_mode || d.stride < 1 || size + 2 * d.pad + d.stride <= d.kernel)
        return d.pad;
    int64_t n = (size + 2 * d.pad - d.kernel + d.stride - 1) / d.stride + 1;
    if ((n - 1) * d.stride >= size + d.pad)
        n--;
    int64_t end = (n - 1) * d.stride + d.kernel - size - d.pad;
    return end > d.pad ? (int)end : d.pad;
}

static int choose_size(const int hw[2], int i, int both)
{
    return hw[0] != 0 || hw[1] != 0 ? hw[i] : both;
}

/* Direction i; along a signal (one row) the numbers are those of columns. */
static struct direction direction_of(const struct det_pool_options *o, int i, bool signal)
{
    if (signal && i == 0)
        return (struct direction){1, 1, 0};
    struct direction d = {choose_size(o->kernel_hw, i, o->kernel),
                          choose_size(o->stride_hw, i, o->stride),
                          choose_size(o->padding_hw, i, o->padding)};
    d.stride = d.stride ? d.stride : d.kernel;
    return d;
}

static struct det_tensor *as_image(struct det_engine *e, struct det_tensor *x)
{
    return det_reshape(e, x, 4, (int64_t[]){x->dims[0], x->dims[1], 1, x->dims[2]});
}

static struct det_tensor *as_signal(struct det_engine *e, struct det_tensor *y)
{
    return y ? det_reshape(e, y, 3, (int64_t[]){y->dims[0], y->dims[1], y->dims[3]}) : NULL;
}

static struct det_tensor *apply_pool(struct det_engine *e, enum op_id op, struct det_tensor *x,
                                     const struct det_pool_options *o)
{
    bool signal = x && x->ndim == 3;
    struct op_call c = {.op = op, .in = {signal ? as_image(e, x) : x}};
    struct direction h = direction_of(o, 0, signal), w = direction_of(o, 1, signal);
    c.a = (struct det_attrs){.kernel_h = h.kernel,
                             .kernel_w = w.kernel,
                             .stride_h = h.stride,
                             .stride_w = w.stride,
                             .dilation_h = 1,
                             .dilation_w = 1,
                             .pad_h = h.pad,
                             .pad_w = w.pad,
                             .include_pad = !o->exclude_pad};
    if (c.in[0] && c.in[0]->ndim == 4) {
        c.a.end_h = end_of(h, c.in[0]->dims[2], o->ceil_mode);
        c.a.end_w = end_of(w, c.in[0]->dims[3], o->ceil_mode);
    }
    struct det_tensor *y = op_apply(e, &c);
    return signal ? as_signal(e, y) : y;
}

struct det_tensor *det_max_pool(struct det_engine *e, struct det_tensor *x,
                                const struct det_pool_options *options)
{
    return apply_pool(e, OP_MAX_POOL2D, x, options);
}

struct det_tensor *det_avg_pool(struct det_engine *e, struct det_tensor *x,
                                const struct det_pool_options *options)
{
    return apply_pool(e, OP_AVG_POOL2D, x, options);
}

struct det_tensor *det_max_pool2d(struct det_engine *e, struct det_tensor *x, int kernel,
                                  int stride, int padding)
{
    return apply_pool(
        e, OP_MAX_POOL2D, x,
        &(struct det_pool_options){.kernel = kernel, .stride = stride, .padding = padding});
}

struct det_tensor *det_avg_pool2d(struct det_engine *e, struct det_tensor *x, int kernel,
                                  int stride, int padding)
{
    return apply_pool(
        e, OP_AVG_POOL2D, x,
        &(struct det_pool_options){.kernel = kernel, .stride = stride, .padding = padding});
}

/* The largest window that covers 1/out of `in` pixels. */
static int widest_window(int64_t in, int64_t out)
{
    int64_t most = 0;
    for (int64_t i = 0; i < out; i++) {
        int64_t size = ((i + 1) * in + out - 1) / out - i * in / out;
        most = size > most ? size : most;
    }
    return (int)most;
}

/* Windows that divide the image are ordinary ones. */
static struct det_tensor *apply_adaptive(struct det_engine *e, enum op_id op, struct det_tensor *x,
                                         int64_t height, int64_t width)
{
    struct op_call c = {.op = op, .in = {x}};
    if (!x || x->ndim != 4)
        return op_apply(e, &c);
    int64_t h = height ? height : x->dims[2], w = width ? width : x->dims[3];
    if (h < 1 || w < 1 || h > (1 << 20) || w > (1 << 20)) {
        det_engine_fail(e, DET_EINVAL,
                        "%s: adaptive pooling to %lldx%lld pixels: at least 1 of each",
                        op_table[op].name, (long long)h, (long long)w);
        return NULL;
    }
    c.a = (struct det_attrs){.kernel_h = widest_window(x->dims[2], h),
                             .kernel_w = widest_window(x->dims[3], w),
                             .dilation_h = 1,
                             .dilation_w = 1,
                             .adaptive = x->dims[2] % h != 0 || x->dims[3] % w != 0};
    c.a.stride_h = c.a.kernel_h;
    c.a.stride_w = c.a.kernel_w;
    c.spec[0].dims[2] = h;
    c.spec[0].dims[3] = w;
    return op_apply(e, &c);
}

struct det_tensor *det_adaptive_avg_pool2d(struct det_engine *e, struct det_tensor *x,
                                           int64_t height, int64_t width)
{
    return apply_adaptive(e, OP_AVG_POOL2D, x, height, width);
}

struct det_tensor *det_adaptive_max_pool2d(struct det_engine *e, struct det_tensor *x,
                                           int64_t height, int64_t width)
{
    return apply_adaptive(e, OP_MAX_POOL2D, x, height, width);
}

struct det_tensor *det_global_avg_pool2d(struct det_engine *e, struct det_tensor *x)
{
    return apply_adaptive(e, OP_AVG_POOL2D, x, 1, 1);
}

static struct det_tensor *adaptive_signal(struct det_engine *e, enum op_id op, struct det_tensor *x,
                                          int64_t length)
{
    if (!x || x->ndim != 3)
        return apply_adaptive(e, op, x, 1, length);
    return as_signal(e, apply_adaptive(e, op, as_image(e, x), 1, length));
}

struct det_tensor *det_adaptive_avg_pool1d(struct det_engine *e, struct det_tensor *x,
                                           int64_t length)
{
    return adaptive_signal(e, OP_AVG_POOL2D, x, length);
}

struct det_tensor *det_adaptive_max_pool1d(struct det_engine *e, struct det_tensor *x,
                                           int64_t length)
{
    return adaptive_signal(e, OP_MAX_POOL2D, x, length);
}
