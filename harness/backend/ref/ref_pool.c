/* Pooling over NHWC images. */
#include "ref.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The input pixel under a window's tap, as an offset of its first channel; -1 in the padding. */
static int64_t pixel(const struct det_attrs *a, struct ref_image x, int64_t base_h, int64_t base_w,
                     int64_t tap)
{
    int64_t h = base_h * a->stride - a->padding + tap / a->kernel_w;
    int64_t w = base_w * a->stride - a->padding + tap % a->kernel_w;
    return h < 0 || w < 0 || h >= x.h || w >= x.w ? -1 : (h * x.w + w) * x.c;
}

/* One window: output pixel `out`, its place (h, w), and the image the window lies on. */
typedef void window_fn(const struct det_call *c, struct ref_image x, int64_t out, int64_t image,
                       const int64_t hw[2]);

static void each_window(const struct det_call *c, struct ref_image x, struct ref_image y,
                        window_fn *fn)
{
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t h = 0; h < y.h; h++)
            for (int64_t w = 0; w < y.w; w++)
                fn(c, x, ((n * y.h + h) * y.w + w) * y.c, n * x.h * x.w * x.c, (int64_t[]){h, w});
}

static void max_window(const struct det_call *c, struct ref_image x, int64_t out, int64_t image,
                       const int64_t hw[2])
{
    const float *v = in_f32(c, 0);
    float *y = out_f32(c, 0);
    unsigned char *index = out_u8(c, 1);
    for (int64_t ch = 0; ch < x.c; ch++) {
        float best = -INFINITY;
        int64_t best_tap = -1;
        for (int64_t tap = 0; tap < c->a.kernel_h * c->a.kernel_w; tap++) {
            int64_t p = pixel(&c->a, x, hw[0], hw[1], tap);
            if (p < 0 ||
                (best_tap >= 0 && !(v[image + p + ch] > best) && !isnan(v[image + p + ch])))
                continue;
            best = v[image + p + ch];
            best_tap = tap;
        }
        y[out + ch] = best;
        index[out + ch] = (unsigned char)best_tap;
    }
}

int ref_max_pool2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    each_window(c, ref_image(c->in[0]), ref_image(c->out[0]), max_window);
    return 0;
}

static void max_window_bwd(const struct det_call *c, struct ref_image x, int64_t out, int64_t image,
                           const int64_t hw[2])
{
    const float *dy = in_f32(c, 0);
    const unsigned char *index = (const unsigned char *)c->in[1]->data;
    float *dx = out_f32(c, 0);
    for (int64_t ch = 0; ch < x.c; ch++) {
        int64_t p = pixel(&c->a, x, hw[0], hw[1], index[out + ch]);
        if (p >= 0)
            dx[image + p + ch] += dy[out + ch];
    }
}

int ref_max_pool2d_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    memset(c->out[0]->data, 0, c->out[0]->numel * sizeof(float));
    each_window(c, ref_image(c->out[0]), ref_image(c->in[0]), max_window_bwd);
    return 0;
}

static void avg_window(const struct det_call *c, struct ref_image x, int64_t out, int64_t image,
                       const int64_t hw[2])
{
    const float *v = in_f32(c, 0);
    int64_t taps = (int64_t)c->a.kernel_h * c->a.kernel_w;
    for (int64_t ch = 0; ch < x.c; ch++) {
        double sum = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t p = pixel(&c->a, x, hw[0], hw[1], tap);
            sum += p < 0 ? 0 : v[image + p + ch];
        }
        out_f32(c, 0)[out + ch] = (float)(sum / (double)taps);
    }
}

int ref_avg_pool2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    each_window(c, ref_image(c->in[0]), ref_image(c->out[0]), avg_window);
    return 0;
}

static void avg_window_bwd(const struct det_call *c, struct ref_image x, int64_t out, int64_t image,
                           const int64_t hw[2])
{
    const float *dy = in_f32(c, 0);
    float *dx = out_f32(c, 0);
    int64_t taps = (int64_t)c->a.kernel_h * c->a.kernel_w;
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t p = pixel(&c->a, x, hw[0], hw[1], tap);
        for (int64_t ch = 0; p >= 0 && ch < x.c; ch++)
            dx[image + p + ch] += dy[out + ch] / (float)taps;
    }
}

int ref_avg_pool2d_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    memset(c->out[0]->data, 0, c->out[0]->numel * sizeof(float));
    each_window(c, ref_image(c->out[0]), ref_image(c->in[0]), avg_window_bwd);
    return 0;
}
