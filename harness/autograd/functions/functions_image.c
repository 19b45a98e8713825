/* Convolution, pooling, padding and resampling: options become attributes here. */
#include "det/conv.h"

#include <math.h>
#include <string.h>

#include "op.h"

/* A number for both directions, or the pair where it has one that is not 0. */
static void pick_pair(int both, const int hw[2], int *ret_h, int *ret_w)
{
    bool given = hw[0] != 0 || hw[1] != 0;
    *ret_h = given ? hw[0] : both;
    *ret_w = given ? hw[1] : both;
}

static int or_one(int v)
{
    return v ? v : 1;
}

static void slide_attrs(const struct det_conv2d_options *o, struct det_attrs *a)
{
    pick_pair(o->stride, o->stride_hw, &a->stride_h, &a->stride_w);
    pick_pair(o->dilation, o->dilation_hw, &a->dilation_h, &a->dilation_w);
    pick_pair(o->padding, o->padding_hw, &a->pad_h, &a->pad_w);
    a->stride_h = or_one(a->stride_h);
    a->stride_w = or_one(a->stride_w);
    a->dilation_h = or_one(a->dilation_h);
    a->dilation_w = or_one(a->dilation_w);
    a->end_h = a->pad_h;
    a->end_w = a->pad_w;
    a->groups = or_one(o->groups);
}

/* padding='same': the odd pixel, if any, goes after the image. */
static int same_attrs(const struct det_tensor *w, struct det_attrs *a)
{
    if (a->stride_h != 1 || a->stride_w != 1 || !w || w->ndim != 4)
        return DET_EINVAL;
    int h = a->dilation_h * (int)(w->dims[2] - 1), v = a->dilation_w * (int)(w->dims[3] - 1);
    a->pad_h = h / 2;
    a->pad_w = v / 2;
    a->end_h = h - h / 2;
    a->end_w = v - v / 2;
    return 0;
}

/* Padding that is not zeros is done beforehand. */
static struct det_tensor *pad_before(struct det_engine *e, struct det_tensor *x,
                                     enum det_pad_mode mode, struct det_attrs *a)
{
    const int pads[4] = {a->pad_w, a->end_w, a->pad_h, a->end_h};
    if (mode == DET_PAD_ZEROS || a->pad_w + a->end_w + a->pad_h + a->end_h == 0)
        return x;
    a->pad_w = a->end_w = a->pad_h = a->end_h = 0;
    return det_pad(e, x, 4, pads, mode, 0);
}

static const struct det_conv2d_options no_options;

struct det_tensor *det_conv2d(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias, const struct det_conv2d_options *options)
{
    const struct det_conv2d_options *o = options ? options : &no_options;
    struct op_call c = {.op = OP_CONV2D, .in = {x, weight, bias}, .a.relu = o->relu};
    slide_attrs(o, &c.a);
    if (o->same && weight && same_attrs(weight, &c.a) < 0) {
        det_engine_fail(e, DET_EINVAL, "conv2d: \"same\" padding is for stride 1");
        return NULL;
    }
    c.in[0] = pad_before(e, x, o->padding_mode, &c.a);
    return op_apply(e, &c);
}

/* (N, C, L) as (N, C, 1, L), weights too; and back. NULL stays NULL. */
static struct det_tensor *as_image(struct det_engine *e, struct det_tensor *x, const char *what)
{
    if (!x)
        return NULL;
    if (x->ndim != 3) {
        det_engine_fail(e, DET_EINVAL, "%s: the tensor has %d dimensions and must have 3", what,
                        x->ndim);
        return NULL;
    }
    return det_reshape(e, x, 4, (int64_t[]){x->dims[0], x->dims[1], 1, x->dims[2]});
}

static struct det_tensor *as_signal(struct det_engine *e, struct det_tensor *y)
{
    return y ? det_reshape(e, y, 3, (int64_t[]){y->dims[0], y->dims[1], y->dims[3]}) : NULL;
}

/* The numbers of one direction as those of columns. */
static struct det_conv2d_options options_along(const struct det_conv2d_options *options)
{
    struct det_conv2d_options o = options ? *options : no_options;
    memcpy(o.stride_hw, (int[]){1, or_one(o.stride)}, sizeof o.stride_hw);
    memcpy(o.dilation_hw, (int[]){1, or_one(o.dilation)}, sizeof o.dilation_hw);
    memcpy(o.padding_hw, (int[]){0, o.padding}, sizeof o.padding_hw);
    memcpy(o.output_padding_hw, (int[]){0, o.output_padding}, sizeof o.output_padding_hw);
    return o;
}

struct det_tensor *det_conv1d(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias, const struct det_conv2d_options *options)
{
    const struct det_conv2d_options o = options_along(options);
    return as_signal(
        e, det_conv2d(e, as_image(e, x, "conv1d"), as_image(e, weight, "conv1d"), bias, &o));
}

/* Cuts `out` rows (or columns) less off after the image. How many of them lie outside of all
 * windows, where a convolution of this stride would see one more window: zeros to be added. */
static int count_beyond(int out, int stride, int *end)
{
    int beyond = out < stride || out <= *end ? 0 : out - *end;
    *end -= out - beyond;
    return beyond;
}

static bool is_extendable(int out, int stride, int dilation)
{
    return out >= 0 && (out < stride || out < dilation);
}

/* What det_conv_transpose2d() cannot do, as an error of the engine; 0 where it can. */
static int check_transposed(struct det_engine *e, const struct det_conv2d_options *o,
                            const struct det_attrs *a, int out_h, int out_w)
{
    if (o->relu || o->same || o->padding_mode != DET_PAD_ZEROS) {
        det_engine_fail(e, DET_EINVAL,
                        "conv_transpose2d: relu, same and padding_mode are for "
                        "conv2d");
        return DET_EINVAL;
    }
    if (is_extendable(out_h, a->stride_h, a->dilation_h) &&
        is_extendable(out_w, a->stride_w, a->dilation_w))
        return 0;
    det_engine_fail(e, DET_EINVAL,
                    "conv_transpose2d: output_padding (%d, %d) must be less than the stride (%d, "
                    "%d) or the dilation (%d, %d), and not below 0",
                    out_h, out_w, a->stride_h, a->stride_w, a->dilation_h, a->dilation_w);
    return DET_EINVAL;
}

struct det_tensor *det_conv_transpose2d(struct det_engine *e, struct det_tensor *x,
                                        struct det_tensor *weight, struct det_tensor *bias,
                                        const struct det_conv2d_options *options)
{
    const struct det_conv2d_options *o = options ? options : &no_options;
    struct op_call c = {.op = OP_CONV_TRANSPOSE2D, .in = {x, weight}};
    int out_h, out_w, zeros[4] = {0};
    slide_attrs(o, &c.a);
    pick_pair(o->output_padding, o->output_padding_hw, &out_h, &out_w);
    if (check_transposed(e, o, &c.a, out_h, out_w) < 0)
        return NULL;
    zeros[1] = count_beyond(out_w, c.a.stride_w, &c.a.end_w);
    zeros[3] = count_beyond(out_h, c.a.stride_h, &c.a.end_h);
    struct det_tensor *y = op_apply(e, &c);
    if (y && zeros[1] + zeros[3] > 0)
        y = det_pad(e, y, 4, zeros, DET_PAD_ZEROS, 0);
    if (!y || !bias)
        return y;
    return det_add(e, y, det_reshape(e, bias, 4, (int64_t[]){1, -1, 1, 1}));
}

struct det_tensor *det_conv_transpose1d(struct det_engine *e, struct det_tensor *x,
                                        struct det_tensor *weight, struct det_tensor *bias,
                                        const struct det_conv2d_options *options)
{
    const struct det_conv2d_options o = options_along(options);
    return as_signal(e, det_conv_transpose2d(e, as_image(e, x, "conv_transpose1d"),
                                             as_image(e, weight, "conv_transpose1d"), bias, &o));
}

struct det_tensor *det_pad(struct det_engine *e, struct det_tensor *x, int n, const int *pads,
                           enum det_pad_mode mode, double value)
{
    struct op_call c = {.op = OP_PAD, .in = {x}, .a = {.pad_mode = (int)mode, .scale = value}};
    if (!x)
        return op_apply(e, &c);
    if (n < 0 || n % 2 != 0 || n / 2 > x->ndim) {
        det_engine_fail(e, DET_EINVAL,
                        "pad: %d numbers for %d dimensions: a pair for each, at most", n, x->ndim);
        return NULL;
    }
    memcpy(c.spec[0].dims, x->dims, sizeof c.spec[0].dims);
    for (int i = 0; i < n; i += 2) {
        int d = x->ndim - 1 - i / 2, most = pads[i] > pads[i + 1] ? pads[i] : pads[i + 1];
        int64_t room = mode == DET_PAD_REFLECT ? x->dims[d] - 1 : x->dims[d];
        if (pads[i] < 0 || pads[i + 1] < 0 ||
            (mode != DET_PAD_ZEROS && most > 0 && most > room &&
             (mode != DET_PAD_REPLICATE || room == 0))) {
            det_engine_fail(e, DET_EINVAL,
                            "pad: %d and %d do not fit dimension %d of %lld elements: not below 0, "
                            "and less than there is to mirror or to repeat",
                            pads[i], pads[i + 1], d, (long long)x->dims[d]);
            return NULL;
        }
        c.a.before[d] = pads[i];
        c.spec[0].dims[d] += pads[i] + pads[i + 1];
    }
    return op_apply(e, &c);
}

static int64_t scaled_size(int64_t size, double scale)
{
    return (int64_t)floor((double)size * scale);
}

static double step_of(const struct det_interpolate_options *o, int64_t in, int64_t out,
                      bool by_scale)
{
    if (o->align_corners)
        return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    return by_scale ? 1 / o->scale : (double)in / (double)out;
}

struct det_tensor *det_interpolate(struct det_engine *e, struct det_tensor *x,
                                   const struct det_interpolate_options *options)
{
    struct op_call c = {.op = OP_UPSAMPLE, .in = {x}};
    const struct det_interpolate_options *o = options;
    bool by_scale = o->height == 0 && o->width == 0;
    if (!x || x->ndim != 4)
        return op_apply(e, &c);
    int64_t h = by_scale ? scaled_size(x->dims[2], o->scale) : o->height;
    int64_t w = by_scale ? scaled_size(x->dims[3], o->scale) : o->width;
    if (h < 1 || w < 1 || h > (1 << 24) || w > (1 << 24) ||
        (o->align_corners && o->mode == DET_NEAREST)) {
        det_engine_fail(e, DET_EINVAL,
                        "interpolate: give height and width, or scale, so that a pixel is left; "
                        "align_corners is for DET_BILINEAR");
        return NULL;
    }
    memcpy(c.spec[0].dims, (int64_t[]){x->dims[0], x->dims[1], h, w}, 4 * sizeof(int64_t));
    c.a = (struct det_attrs){.linear = o->mode == DET_BILINEAR,
                             .align_corners = o->align_corners,
                             .step_h = step_of(o, x->dims[2], h, by_scale),
                             .step_w = step_of(o, x->dims[3], w, by_scale)};
    return op_apply(e, &c);
}
