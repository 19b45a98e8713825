/* Resampling of NHWC images: nearest and bilinear, where PyTorch puts the samples. */
#include "ref_real.h"

#include <math.h>
#include <string.h>

/* The two pixels that an output place lies between, and how much the second one counts. */
struct between {
    int64_t first, second;
    real share;
};

static struct between locate_source(const struct det_attrs *a, int64_t out, int64_t size,
                                    double step)
{
    struct between v = {0};
    const real half = (real)0.5;
    real at = a->align_corners ? (real)out * (real)step : ((real)out + half) * (real)step - half;
    if (!a->linear)
        at = (real)floor((real)out * (real)step);
    at = at < 0 ? 0 : at;
    v.first = (int64_t)at < size - 1 ? (int64_t)at : size - 1;
    v.second = v.first < size - 1 ? v.first + 1 : v.first;
    v.share = a->linear ? at - (real)v.first : 0;
    return v;
}

/* One output pixel: its four neighbours (elements of the first channel) and their weights. */
struct sample {
    int64_t at[4], out, channels;
    real weight[4];
};

typedef void sample_fn(const struct det_call *c, const struct sample *v);

static void each_sample(const struct det_call *c, struct ref_image x, struct ref_image y,
                        sample_fn *fn)
{
    for (int64_t row = 0; row < y.n * y.h; row++) {
        struct between h = locate_source(&c->a, row % y.h, x.h, c->a.step_h);
        int64_t top = (row / y.h * x.h + h.first) * x.w, low = (row / y.h * x.h + h.second) * x.w;
        for (int64_t i = 0; i < y.w; i++) {
            struct between w = locate_source(&c->a, i, x.w, c->a.step_w);
            struct sample v = {.at = {(top + w.first) * x.c, (top + w.second) * x.c,
                                      (low + w.first) * x.c, (low + w.second) * x.c},
                               .weight = {(1 - h.share) * (1 - w.share), (1 - h.share) * w.share,
                                          h.share * (1 - w.share), h.share * w.share},
                               .out = (row * y.w + i) * y.c,
                               .channels = y.c};
            fn(c, &v);
        }
    }
}

static void gather_pixel(const struct det_call *c, const struct sample *v)
{
    const real *x = in_real(c, 0);
    real *y = out_real(c, 0) + v->out;
    memset(y, 0, (size_t)v->channels * sizeof *y);
    for (int k = 0; k < (c->a.linear ? 4 : 1); k++)
        for (int64_t i = 0; i < v->channels; i++)
            y[i] += v->weight[k] * x[v->at[k] + i];
}

REF_KERNEL(upsample)
{
    (void)s, (void)err;
    each_sample(c, ref_image(c->in[0]), ref_image(c->out[0]), gather_pixel);
    return 0;
}

static void scatter_pixel(const struct det_call *c, const struct sample *v)
{
    const real *dy = in_real(c, 0) + v->out;
    real *dx = out_real(c, 0);
    for (int k = 0; k < (c->a.linear ? 4 : 1); k++)
        for (int64_t i = 0; i < v->channels; i++)
            dx[v->at[k] + i] += v->weight[k] * dy[i];
}

REF_KERNEL(upsample_bwd)
{
    (void)s, (void)err;
    memset(c->out[0]->data, 0, c->out[0]->numel * sizeof(real));
    each_sample(c, ref_image(c->out[0]), ref_image(c->in[0]), scatter_pixel);
    return 0;
}
