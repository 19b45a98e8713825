/* Shape rules of convolution, batch norm and pooling. */
#include "op_shape.h"

#include <inttypes.h>

/* A batch of no images is one. */
static int check_image(const struct det_tensor *x, struct det_err *err)
{
    if (x->ndim == 4 && x->dims[1] > 0 && x->dims[2] > 0 && x->dims[3] > 0)
        return 0;
    return det_fail(err, DET_EINVAL, "the input must be [N, C, H, W], only N may be 0");
}

static int check_float_image(const struct op_call *c, struct det_err *err)
{
    int rc = op_all_float(c, err);
    return rc < 0 ? rc : check_image(c->in[0], err);
}

/* One direction of a window that slides. */
struct slide {
    int64_t size, kernel;
    int stride, dilation, before, after;
};

static struct slide slide_of(const struct op_call *c, bool rows)
{
    const struct det_attrs *a = &c->a;
    return rows ? (struct slide){c->in[0]->dims[2], a->kernel_h, a->stride_h,
                                 a->dilation_h,     a->pad_h,    a->end_h}
                : (struct slide){c->in[0]->dims[3], a->kernel_w, a->stride_w,
                                 a->dilation_w,     a->pad_w,    a->end_w};
}

static int check_slide(const struct slide *s, struct det_err *err)
{
    if (s->stride < 1 || s->stride > 1024 || s->dilation < 1 || s->dilation > 1024)
        return det_fail(err, DET_EINVAL, "stride %d and dilation %d must be 1 to 1024", s->stride,
                        s->dilation);
    if (s->before < 0 || s->before > 1024 || s->after < 0 || s->after > 1024)
        return det_fail(err, DET_EINVAL, "padding %d must be 0 to 1024", s->before);
    if (s->kernel < 1 || s->kernel > (1 << 20))
        return det_fail(err, DET_EINVAL, "the kernel is %" PRId64 " and must be at least 1",
                        s->kernel);
    return 0;
}

/* How many windows there are, or 0. */
static int64_t count_windows(const struct slide *s)
{
    int64_t room = s->size + s->before + s->after - (s->kernel - 1) * s->dilation - 1;
    return room < 0 ? 0 : room / s->stride + 1;
}

/* Fills dims 2 and 3 of spec[0]. */
static int slide_both(struct op_call *c, struct det_err *err)
{
    const struct slide h = slide_of(c, true), w = slide_of(c, false);
    int rc = check_slide(&h, err);
    if (rc == 0)
        rc = check_slide(&w, err);
    if (rc < 0)
        return rc;
    c->spec[0].dims[2] = count_windows(&h);
    c->spec[0].dims[3] = count_windows(&w);
    if (c->spec[0].dims[2] == 0 || c->spec[0].dims[3] == 0)
        return det_fail(err, DET_EINVAL,
                        "the kernel %" PRId64 "x%" PRId64 " does not fit on the image %" PRId64
                        "x%" PRId64 " with padding %d",
                        h.kernel, w.kernel, h.size, w.size, h.before);
    return 0;
}

/* What holds for both directions of a convolution; `in` and `out` are channels of all groups. */
static int check_weight(struct op_call *c, int64_t in, int64_t out, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *w = c->in[1], *b = c->in[2];
    if (x->dims[1] != in)
        return det_fail(err, DET_EINVAL,
                        "the layer takes %" PRId64 " channels, the input has %" PRId64, in,
                        x->dims[1]);
    if (in % c->a.groups != 0 || out % c->a.groups != 0)
        return det_fail(err, DET_EINVAL,
                        "%" PRId64 " channels in and %" PRId64 " out must both divide into %d "
                        "groups",
                        in, out, c->a.groups);
    if (b && (b->ndim != 1 || b->dims[0] != out))
        return det_fail(err, DET_EINVAL, "the bias must be [%" PRId64 "]", out);
    c->a.kernel_h = (int)w->dims[2];
    c->a.kernel_w = (int)w->dims[3];
    c->spec[0] = (struct op_out){.dtype = x->dtype, .ndim = 4, .dims = {x->dims[0], out}};
    c->outs = 1;
    return 0;
}

static int convolution_shape(struct op_call *c, struct det_err *err)
{
    int rc = check_float_image(c, err);
    if (rc < 0)
        return rc;
    if (c->in[1]->ndim != 4 || c->in[1]->numel == 0)
        return det_fail(err, DET_EINVAL, "the weight must have 4 dimensions, none of them 0");
    if (c->a.groups < 1)
        return det_fail(err, DET_EINVAL, "groups is %d and must be at least 1", c->a.groups);
    return 0;
}

int shape_conv2d(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *w = c->in[1];
    int rc = convolution_shape(c, err);
    if (rc == 0)
        rc = check_weight(c, w->dims[1] * c->a.groups, w->dims[0], err);
    return rc < 0 ? rc : slide_both(c, err);
}

/* The size of which the convolution with this window gives `size`; -1 where there is none. */
static int64_t size_before_slide(const struct slide *s)
{
    int64_t size =
        (s->size - 1) * s->stride + (s->kernel - 1) * s->dilation + 1 - s->before - s->after;
    return size < 1 ? -1 : size;
}

/* What the kernels cut off after the image: as before it, where that is the same number of windows
 * to them. */
static int cut_after(const struct slide *s)
{
    return s->before - s->after < s->stride ? s->before : s->after;
}

/* The caller's a.end_* is padding - output_padding, what is cut off after the image; below 0 it is
 * less than a stride from a.pad_*. */
int shape_conv_transpose2d(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *w = c->in[1];
    int rc = convolution_shape(c, err);
    if (rc == 0)
        rc = check_weight(c, w->dims[0], w->dims[1] * c->a.groups, err);
    if (rc < 0)
        return rc;
    const struct slide h = slide_of(c, true), v = slide_of(c, false);
    c->spec[0].dims[2] = size_before_slide(&h);
    c->spec[0].dims[3] = size_before_slide(&v);
    if (h.stride < 1 || v.stride < 1 || h.before < 0 || v.before < 0 || c->spec[0].dims[2] < 0 ||
        c->spec[0].dims[3] < 0)
        return det_fail(err, DET_EINVAL,
                        "stride %d, padding %d: the output has no pixels left, or one is negative",
                        h.stride, h.before);
    c->a.end_h = cut_after(&h);
    c->a.end_w = cut_after(&v);
    return 0;
}

/* What belongs to the channels may be wider than x, as under autocast. */
static int norm_dtypes(const struct op_call *c, struct det_err *err)
{
    int rc = op_need_float(c, 0, err);
    for (int i = 1; rc == 0 && i < 6; i++)
        if (i == 5 || !c->in[i] || c->in[i]->dtype != op_wide(c->in[0]))
            rc = op_need_float(c, i, err);
    return rc < 0 ? rc : check_image(c->in[0], err);
}

int shape_batch_norm(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    int rc = norm_dtypes(c, err);
    if (rc < 0)
        return rc;
    for (int i = 1; i < 5; i++)
        if (!c->in[i] || c->in[i]->ndim != 1 || c->in[i]->dims[0] != x->dims[1])
            return det_fail(err, DET_EINVAL, "input %d must be [%" PRId64 "], one for each channel",
                            i + 1, x->dims[1]);
    if (c->in[5] && !det__same_shape(c->in[5], x))
        return det_fail(err, DET_EINVAL, "what is added must have the shape of the input");
    if (c->a.train && x->numel == (size_t)x->dims[1])
        return det_fail(err, DET_EINVAL, "one value a channel has no variance: use a larger batch");
    c->spec[0] = op_like(x);
    c->spec[1] = c->spec[2] = (struct op_out){.dtype = op_wide(x), .ndim = 1, .dims = {x->dims[1]}};
    c->outs = 3;
    c->kernel = c->a.train ? DET_KERNEL_BATCH_NORM_TRAIN : DET_KERNEL_BATCH_NORM_EVAL;
    if (c->a.train) {
        c->out[3] = c->in[3];
        c->out[4] = c->in[4];
    }
    return 0;
}

static bool pads_fit(const struct det_attrs *a)
{
    return a->pad_h * 2 <= a->kernel_h && a->pad_w * 2 <= a->kernel_w;
}

/* The caller of an adaptive pooling has set spec[0].dims; else the windows slide. */
static int pool_shape(struct op_call *c, struct det_err *err)
{
    const int64_t *x = c->in[0]->dims;
    int rc = check_float_image(c, err);
    if (rc < 0)
        return rc;
    if (!pads_fit(&c->a))
        return det_fail(err, DET_EINVAL, "the padding is at most half of the kernel");
    c->spec[0].dtype = c->in[0]->dtype;
    c->spec[0].ndim = 4;
    c->spec[0].dims[0] = x[0];
    c->spec[0].dims[1] = x[1];
    c->outs = 1;
    if (c->a.adaptive)
        return c->spec[0].dims[2] > 0 && c->spec[0].dims[3] > 0
                   ? 0
                   : det_fail(err, DET_EINVAL, "the output must have at least one pixel");
    return slide_both(c, err);
}

int shape_avg_pool2d(struct op_call *c, struct det_err *err)
{
    return pool_shape(c, err);
}

int shape_max_pool2d(struct op_call *c, struct det_err *err)
{
    int rc = pool_shape(c, err);
    if (rc == 0 && (int64_t)c->a.kernel_h * c->a.kernel_w > 256)
        return det_fail(err, DET_EINVAL, "the kernel %dx%d has more than 256 taps", c->a.kernel_h,
                        c->a.kernel_w);
    c->spec[1] = c->spec[0];
    c->spec[1].dtype = DET_U8;
    c->outs = 2;
    return rc;
}

/* Padding and resampling: the caller has set spec[0].dims. */
int shape_resample(struct op_call *c, struct det_err *err)
{
    int rc = op_need_float(c, 0, err);
    if (rc < 0)
        return rc;
    if (op_table[c->op].order == OP_IMAGES && (rc = check_image(c->in[0], err)) < 0)
        return rc;
    c->spec[0].dtype = c->in[0]->dtype;
    c->spec[0].ndim = c->in[0]->ndim;
    c->outs = 1;
    return 0;
}
