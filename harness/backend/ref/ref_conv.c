/* Direct convolution over NHWC images with (O, I, kH, kW) weights. Sums are in double. */
#include "ref_real.h"

#include <string.h>

#include "mem.h"

/* A window position: the input pixel under output (h, w) and kernel (kh, kw), -1 in the padding. */
static int64_t pixel_at(const struct det_attrs *a, struct ref_image x, int64_t n,
                        const int64_t at[4])
{
    int64_t h = at[0] * a->stride_h - a->pad_h + at[2] * a->dilation_h;
    int64_t w = at[1] * a->stride_w - a->pad_w + at[3] * a->dilation_w;
    if (h < 0 || w < 0 || h >= x.h || w >= x.w)
        return -1;
    return ((n * x.h + h) * x.w + w) * x.c;
}

/* Calls fn(arg, output pixel, input pixel, kh * kW + kw) for every pair that a window joins. */
typedef void pair_fn(void *arg, int64_t out, int64_t in, int64_t tap);

static void each_pair(const struct det_attrs *a, struct ref_image x, struct ref_image y,
                      pair_fn *fn, void *arg)
{
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t h = 0; h < y.h; h++)
            for (int64_t w = 0; w < y.w; w++)
                for (int64_t kh = 0; kh < a->kernel_h; kh++)
                    for (int64_t kw = 0; kw < a->kernel_w; kw++) {
                        int64_t in = pixel_at(a, x, n, (int64_t[]){h, w, kh, kw});
                        if (in >= 0)
                            fn(arg, ((n * y.h + h) * y.w + w) * y.c, in, kh * a->kernel_w + kw);
                    }
}

/* One convolution or one of its gradients: `acc` is summed in double, then stored. */
struct conv {
    const real *x, *w, *dy;
    double *acc;
    int64_t in_channels, out_channels, taps; /* in_channels: of a group */
    int64_t group_out;                       /* output channels of a group */
};

static void pair_forward(void *arg, int64_t out, int64_t in, int64_t tap)
{
    struct conv *v = arg;
    for (int64_t o = 0; o < v->out_channels; o++) {
        int64_t first = in + o / v->group_out * v->in_channels;
        for (int64_t i = 0; i < v->in_channels; i++)
            v->acc[out + o] +=
                (double)v->x[first + i] * v->w[(o * v->in_channels + i) * v->taps + tap];
    }
}

static void pair_data(void *arg, int64_t out, int64_t in, int64_t tap)
{
    struct conv *v = arg;
    for (int64_t o = 0; o < v->out_channels; o++) {
        int64_t first = in + o / v->group_out * v->in_channels;
        for (int64_t i = 0; i < v->in_channels; i++)
            v->acc[first + i] +=
                (double)v->dy[out + o] * v->w[(o * v->in_channels + i) * v->taps + tap];
    }
}

static void pair_weight(void *arg, int64_t out, int64_t in, int64_t tap)
{
    struct conv *v = arg;
    for (int64_t o = 0; o < v->out_channels; o++) {
        int64_t first = in + o / v->group_out * v->in_channels;
        for (int64_t i = 0; i < v->in_channels; i++)
            v->acc[(o * v->in_channels + i) * v->taps + tap] +=
                (double)v->dy[out + o] * v->x[first + i];
    }
}

static int acc_alloc(size_t n, double **ret, struct det_err *err)
{
    *ret = det_try_alloc(n * sizeof **ret);
    if (!*ret)
        return det_fail(err, DET_ENOMEM, "no memory for %zu sums", n);
    memset(*ret, 0, n * sizeof **ret);
    return 0;
}

static void store_sums(const double *acc, struct det_tensor *t)
{
    real *v = (real *)(void *)t->data;
    for (size_t i = 0; i < t->numel; i++)
        v[i] = (real)acc[i];
}

REF_KERNEL(conv2d)
{
    (void)s;
    det_cleanup(freep) double *acc = NULL;
    const struct det_tensor *x = c->in[0], *w = c->in[1];
    const real *b = in_real(c, 2);
    int rc = acc_alloc(c->out[0]->numel, &acc, err);
    if (rc < 0)
        return rc;
    struct conv v = {.x = in_real(c, 0),
                     .w = in_real(c, 1),
                     .acc = acc,
                     .in_channels = w->dims[1],
                     .out_channels = w->dims[0],
                     .group_out = w->dims[0] / c->a.groups,
                     .taps = w->dims[2] * w->dims[3]};
    for (size_t i = 0; b && i < c->out[0]->numel; i++)
        acc[i] = b[i % (size_t)v.out_channels];
    each_pair(&c->a, ref_image(x), ref_image(c->out[0]), pair_forward, &v);
    for (size_t i = 0; c->a.relu && i < c->out[0]->numel; i++)
        acc[i] = acc[i] < 0 ? 0 : acc[i];
    store_sums(acc, c->out[0]);
    return 0;
}

REF_KERNEL(conv2d_bwd_data)
{
    (void)s;
    det_cleanup(freep) double *acc = NULL;
    const struct det_tensor *w = c->in[1];
    int rc = acc_alloc(c->out[0]->numel, &acc, err);
    if (rc < 0)
        return rc;
    struct conv v = {.dy = in_real(c, 0),
                     .w = in_real(c, 1),
                     .acc = acc,
                     .in_channels = w->dims[1],
                     .out_channels = w->dims[0],
                     .group_out = w->dims[0] / c->a.groups,
                     .taps = w->dims[2] * w->dims[3]};
    each_pair(&c->a, ref_image(c->out[0]), ref_image(c->in[0]), pair_data, &v);
    store_sums(acc, c->out[0]);
    return 0;
}

static void bias_grad(const struct det_tensor *dy, real *db)
{
    const real *v = (const real *)(const void *)dy->data;
    for (int64_t o = 0; o < dy->dims[1]; o++) {
        double sum = 0;
        for (size_t i = (size_t)o; i < dy->numel; i += (size_t)dy->dims[1])
            sum += v[i];
        db[o] = (real)sum;
    }
}

REF_KERNEL(conv2d_bwd_weight)
{
    (void)s;
    det_cleanup(freep) double *acc = NULL;
    const struct det_tensor *x = c->in[0], *dy = c->in[1], *dw = c->out[0];
    int rc = acc_alloc(dw->numel, &acc, err);
    if (rc < 0)
        return rc;
    struct conv v = {.x = in_real(c, 0),
                     .dy = in_real(c, 1),
                     .acc = acc,
                     .in_channels = dw->dims[1],
                     .out_channels = dw->dims[0],
                     .group_out = dw->dims[0] / c->a.groups,
                     .taps = dw->dims[2] * dw->dims[3]};
    each_pair(&c->a, ref_image(x), ref_image(dy), pair_weight, &v);
    store_sums(acc, c->out[0]);
    if (c->out[1])
        bias_grad(dy, out_real(c, 1));
    return 0;
}
