/* Pooling over NHWC images. */
#include "ref_real.h"

#include <math.h>
#include <string.h>

#include "window.h"

/* One window: its rows and columns, and the elements (not bytes) where its output pixel and its
 * image begin. */
struct place {
    struct window h, w;
    int64_t out, image, row; /* row: elements of a row of the image */
};

typedef void window_fn(const struct det_call *c, const struct place *at, int64_t channels);

/* Calls fn for every window that leads from x to y. */
static void each_window(const struct det_call *c, const struct det_tensor *x,
                        const struct det_tensor *y, window_fn *fn)
{
    struct ref_image in = ref_image(x), out = ref_image(y);
    for (int64_t n = 0; n < out.n; n++)
        for (int64_t h = 0; h < out.h; h++)
            for (int64_t w = 0; w < out.w; w++) {
                struct place at = {.h = window_at(window_rows(&c->a, x, y), h),
                                   .w = window_at(window_columns(&c->a, x, y), w),
                                   .out = ((n * out.h + h) * out.w + w) * out.c,
                                   .image = n * in.h * in.w * in.c,
                                   .row = in.w * in.c};
                fn(c, &at, in.c);
            }
}

/* The first channel of the pixel under tap (i, j). */
static int64_t pixel_at(const struct place *at, int64_t channels, int64_t i, int64_t j)
{
    return at->image + (at->h.origin + i) * at->row + (at->w.origin + j) * channels;
}

static void max_window(const struct det_call *c, const struct place *at, int64_t channels)
{
    const real *x = in_real(c, 0);
    for (int64_t ch = 0; ch < channels; ch++) {
        real best = -INFINITY;
        int64_t best_tap = -1;
        for (int64_t i = at->h.from; i < at->h.to; i++)
            for (int64_t j = at->w.from; j < at->w.to; j++) {
                real v = x[pixel_at(at, channels, i, j) + ch];
                if (best_tap >= 0 && !(v > best) && !isnan(v))
                    continue;
                best = v;
                best_tap = i * c->a.kernel_w + j;
            }
        out_real(c, 0)[at->out + ch] = best;
        out_u8(c, 1)[at->out + ch] = (unsigned char)best_tap;
    }
}

REF_KERNEL(max_pool2d)
{
    (void)s, (void)err;
    each_window(c, c->in[0], c->out[0], max_window);
    return 0;
}

static void max_window_bwd(const struct det_call *c, const struct place *at, int64_t channels)
{
    const unsigned char *index = (const unsigned char *)c->in[1]->data;
    for (int64_t ch = 0; ch < channels; ch++) {
        int tap = index[at->out + ch];
        out_real(c, 0)[pixel_at(at, channels, tap / c->a.kernel_w, tap % c->a.kernel_w) + ch] +=
            in_real(c, 0)[at->out + ch];
    }
}

REF_KERNEL(max_pool2d_bwd)
{
    (void)s, (void)err;
    memset(c->out[0]->data, 0, c->out[0]->numel * sizeof(real));
    each_window(c, c->out[0], c->in[0], max_window_bwd);
    return 0;
}

static void avg_window(const struct det_call *c, const struct place *at, int64_t channels)
{
    const real *x = in_real(c, 0);
    for (int64_t ch = 0; ch < channels; ch++) {
        double sum = 0;
        for (int64_t i = at->h.from; i < at->h.to; i++)
            for (int64_t j = at->w.from; j < at->w.to; j++)
                sum += x[pixel_at(at, channels, i, j) + ch];
        out_real(c, 0)[at->out + ch] = (real)(sum / (double)(at->h.size * at->w.size));
    }
}

REF_KERNEL(avg_pool2d)
{
    (void)s, (void)err;
    each_window(c, c->in[0], c->out[0], avg_window);
    return 0;
}

static void avg_window_bwd(const struct det_call *c, const struct place *at, int64_t channels)
{
    const real *dy = in_real(c, 0);
    real *dx = out_real(c, 0), size = (real)(at->h.size * at->w.size);
    for (int64_t i = at->h.from; i < at->h.to; i++)
        for (int64_t j = at->w.from; j < at->w.to; j++)
            for (int64_t ch = 0; ch < channels; ch++)
                dx[pixel_at(at, channels, i, j) + ch] += dy[at->out + ch] / size;
}

REF_KERNEL(avg_pool2d_bwd)
{
    (void)s, (void)err;
    memset(c->out[0]->data, 0, c->out[0]->numel * sizeof(real));
    each_window(c, c->out[0], c->in[0], avg_window_bwd);
    return 0;
}
