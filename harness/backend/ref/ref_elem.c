/* Element-wise kernels: fill, copies and conversions, arithmetic, ReLU. */
#include "ref.h"

#include <math.h>
#include <string.h>

/* Every kernel has one signature; this names its usual parameters. */
#define KERNEL(name) int name(struct det_stream *s, const struct det_call *c, struct det_err *err)
#define UNUSED_ARGS  ((void)s, (void)err)

static double load(const struct det_tensor *t, size_t i)
{
    switch (t->dtype) {
    case DET_I64:
        return (double)((const int64_t *)(const void *)t->data)[i];
    case DET_U8:
        return ((const unsigned char *)t->data)[i];
    default:
        return ((const float *)(const void *)t->data)[i];
    }
}

/* Out of range (NaN too) becomes the nearest end, so that no value is undefined. */
static double within(double v, double lo, double hi)
{
    return v >= lo ? (v <= hi ? v : hi) : lo;
}

static void store(struct det_tensor *t, size_t i, double v)
{
    switch (t->dtype) {
    case DET_I64:
        ((int64_t *)(void *)t->data)[i] = (int64_t)within(v, -0x1p62, 0x1p62);
        break;
    case DET_U8:
        ((unsigned char *)t->data)[i] = (unsigned char)within(v, 0, 255);
        break;
    default:
        ((float *)(void *)t->data)[i] = (float)v;
    }
}

KERNEL(ref_fill)
{
    UNUSED_ARGS;
    struct det_tensor *y = c->out[0];
    if (c->a.scale == 0) {
        memset(y->data, 0, y->numel * det_dtype_size(y->dtype));
        return 0;
    }
    for (size_t i = 0; i < y->numel; i++)
        store(y, i, c->a.scale);
    return 0;
}

static void convert(const struct det_tensor *x, struct det_tensor *y)
{
    if (x->dtype == y->dtype)
        memmove(y->data, x->data, x->numel * det_dtype_size(x->dtype));
    else
        for (size_t i = 0; i < x->numel; i++)
            store(y, i, load(x, i));
}

/* Position in memory of element (n, c, hw). */
static size_t at(const struct det_tensor *t, int64_t n, int64_t ch, int64_t hw)
{
    int64_t channels = t->dims[1], plane = t->dims[2] * t->dims[3];
    if (t->layout == DET_LAYOUT_NHWC)
        return (size_t)((n * plane + hw) * channels + ch);
    return (size_t)((n * channels + ch) * plane + hw);
}

KERNEL(ref_copy)
{
    UNUSED_ARGS;
    const struct det_tensor *x = c->in[0];
    struct det_tensor *y = c->out[0];
    if (x->layout == y->layout) {
        convert(x, y);
    } else if (x->dtype == y->dtype && y->layout == DET_LAYOUT_PLAIN) {
        det__nhwc_to_plain(x->dims, det_dtype_size(x->dtype), x->data, y->data);
    } else if (x->dtype == y->dtype) {
        det__plain_to_nhwc(x->dims, det_dtype_size(x->dtype), x->data, y->data);
    } else {
        for (int64_t n = 0; n < x->dims[0]; n++)
            for (int64_t ch = 0; ch < x->dims[1]; ch++)
                for (int64_t hw = 0; hw < x->dims[2] * x->dims[3]; hw++)
                    store(y, at(y, n, ch, hw), load(x, at(x, n, ch, hw)));
    }
    return 0;
}

KERNEL(ref_add)
{
    UNUSED_ARGS;
    const float *a = in_f32(c, 0), *b = in_f32(c, 1);
    float *y = out_f32(c, 0);
    for (size_t i = 0; i < c->out[0]->numel; i++)
        y[i] = a[i] + b[i];
    return 0;
}

KERNEL(ref_sub)
{
    UNUSED_ARGS;
    const float *a = in_f32(c, 0), *b = in_f32(c, 1);
    float *y = out_f32(c, 0);
    for (size_t i = 0; i < c->out[0]->numel; i++)
        y[i] = a[i] - b[i];
    return 0;
}

KERNEL(ref_mul)
{
    UNUSED_ARGS;
    const float *a = in_f32(c, 0), *b = in_f32(c, 1);
    float *y = out_f32(c, 0);
    for (size_t i = 0; i < c->out[0]->numel; i++)
        y[i] = a[i] * b[i];
    return 0;
}

KERNEL(ref_affine)
{
    UNUSED_ARGS;
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0), scale = (float)c->a.scale, offset = (float)c->a.offset;
    for (size_t i = 0; i < c->out[0]->numel; i++)
        y[i] = scale * x[i] + offset;
    return 0;
}

KERNEL(ref_clamp)
{
    UNUSED_ARGS;
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0), lo = (float)c->a.lo, hi = (float)c->a.hi;
    for (size_t i = 0; i < c->out[0]->numel; i++)
        y[i] = x[i] < lo ? lo : x[i] > hi ? hi : x[i];
    return 0;
}

KERNEL(ref_relu)
{
    UNUSED_ARGS;
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0);
    for (size_t i = 0; i < c->out[0]->numel; i++)
        y[i] = x[i] < 0 ? 0 : x[i]; /* NaN stays NaN */
    return 0;
}

KERNEL(ref_relu_bwd)
{
    UNUSED_ARGS;
    const float *dy = in_f32(c, 0), *y = in_f32(c, 1);
    float *dx = out_f32(c, 0);
    for (size_t i = 0; i < c->out[0]->numel; i++)
        dx[i] = y[i] > 0 ? dy[i] : 0;
    return 0;
}
