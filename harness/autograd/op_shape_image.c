/* Shape rules of convolution, batch norm and pooling. */
#include "op.h"

#include <inttypes.h>

static int image(const struct op_call *c, struct det_err *err)
{
    for (int i = 0; i < op_table[c->op].inputs_max; i++)
        if (c->in[i] && c->in[i]->dtype != DET_F32)
            return det_fail(err, DET_EINVAL, "input %d is %s and must be float32: use det_cast()",
                            i + 1, det_dtype_name(c->in[i]->dtype));
    if (c->in[0]->ndim != 4 || c->in[0]->numel == 0)
        return det_fail(err, DET_EINVAL, "the input must be [N, C, H, W], none of them 0");
    return 0;
}

/* The output size of a window that slides over `size` pixels, or 0. */
static int64_t slide(int64_t size, int64_t kernel, int stride, int padding)
{
    int64_t room = size + 2 * (int64_t)padding - kernel;
    return room < 0 ? 0 : room / stride + 1;
}

/* Fills dims 2 and 3 of spec[0]. */
static int slide_both(struct op_call *c, int64_t kernel_h, int64_t kernel_w, struct det_err *err)
{
    const int64_t *x = c->in[0]->dims;
    if (c->a.stride < 1 || c->a.padding < 0 || c->a.stride > 1024 || c->a.padding > 1024)
        return det_fail(err, DET_EINVAL, "stride %d must be 1 to 1024 and padding %d 0 to 1024",
                        c->a.stride, c->a.padding);
    c->spec[0].dims[2] = slide(x[2], kernel_h, c->a.stride, c->a.padding);
    c->spec[0].dims[3] = slide(x[3], kernel_w, c->a.stride, c->a.padding);
    if (c->spec[0].dims[2] == 0 || c->spec[0].dims[3] == 0)
        return det_fail(err, DET_EINVAL,
                        "the kernel %" PRId64 "x%" PRId64 " does not fit on the image %" PRId64
                        "x%" PRId64 " with padding %d",
                        kernel_h, kernel_w, x[2], x[3], c->a.padding);
    return 0;
}

int shape_conv2d(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *w = c->in[1], *b = c->in[2];
    int rc = image(c, err);
    if (rc < 0)
        return rc;
    if (w->ndim != 4 || w->numel == 0)
        return det_fail(err, DET_EINVAL, "the weight must be [out, in, kH, kW]");
    if (x->dims[1] != w->dims[1])
        return det_fail(err, DET_EINVAL,
                        "the layer takes %" PRId64 " channels, the input has %" PRId64, w->dims[1],
                        x->dims[1]);
    if (b && (b->ndim != 1 || b->dims[0] != w->dims[0]))
        return det_fail(err, DET_EINVAL, "the bias must be [%" PRId64 "]", w->dims[0]);
    c->a.kernel_h = (int)w->dims[2];
    c->a.kernel_w = (int)w->dims[3];
    c->spec[0] = (struct op_out){.dtype = DET_F32, .ndim = 4, .dims = {x->dims[0], w->dims[0]}};
    c->outs = 1;
    return slide_both(c, w->dims[2], w->dims[3], err);
}

int shape_batch_norm(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    int rc = image(c, err);
    if (rc < 0)
        return rc;
    for (int i = 1; i < 5; i++)
        if (!c->in[i] || c->in[i]->ndim != 1 || c->in[i]->dims[0] != x->dims[1])
            return det_fail(err, DET_EINVAL, "input %d must be [%" PRId64 "], one for each channel",
                            i + 1, x->dims[1]);
    if (c->a.train && x->numel == (size_t)x->dims[1])
        return det_fail(err, DET_EINVAL, "one value a channel has no variance: use a larger batch");
    c->spec[0] = (struct op_out){
        .dtype = DET_F32, .ndim = 4, .dims = {x->dims[0], x->dims[1], x->dims[2], x->dims[3]}};
    c->spec[1] = c->spec[2] = (struct op_out){.dtype = DET_F32, .ndim = 1, .dims = {x->dims[1]}};
    c->outs = 3;
    c->kernel = c->a.train ? DET_KERNEL_BATCH_NORM_TRAIN : DET_KERNEL_BATCH_NORM_EVAL;
    if (c->a.train) {
        c->out[3] = c->in[3];
        c->out[4] = c->in[4];
    }
    return 0;
}

static int pool(struct op_call *c, struct det_err *err)
{
    const int64_t *x = c->in[0]->dims;
    int rc = image(c, err);
    if (rc < 0)
        return rc;
    if (c->a.kernel_h < 1 || c->a.kernel_w < 1 || c->a.padding * 2 > c->a.kernel_h ||
        c->a.padding * 2 > c->a.kernel_w)
        return det_fail(err, DET_EINVAL,
                        "the kernel must be at least 1 and the padding at most half of it");
    c->spec[0] = (struct op_out){.dtype = DET_F32, .ndim = 4, .dims = {x[0], x[1]}};
    c->outs = 1;
    return slide_both(c, c->a.kernel_h, c->a.kernel_w, err);
}

int shape_avg_pool2d(struct op_call *c, struct det_err *err)
{
    return pool(c, err);
}

int shape_max_pool2d(struct op_call *c, struct det_err *err)
{
    int rc = pool(c, err);
    if (rc == 0 && (c->a.kernel_h > 15 || c->a.kernel_w > 15))
        return det_fail(err, DET_EINVAL, "the kernel is at most 15x15");
    c->spec[1] = c->spec[0];
    c->spec[1].dtype = DET_U8;
    c->outs = 2;
    return rc;
}
