#include "cuda_fold.h"

#include <limits.h>

#include "cuda_pack.cuh"
#include "cuda_spot.cuh"

#ifndef CUDA_FOLD_MIN
#define CUDA_FOLD_MIN (1LL << 28) /* multiplications that are worth the copies */
#endif
#define STEP         8  /* channels that a pack has */
#define CHANNELS_MAX 64 /* that pixels may become */

typedef uint16_t element;

static int64_t over(int64_t n, int64_t d)
{
    return (n + d - 1) / d;
}

static bool pays(const struct det_attrs *a, const struct det_tensor *x, const struct det_tensor *w,
                 const struct det_tensor *y)
{
    bool half = x->dtype == DET_BF16 || x->dtype == DET_F16;
    if (!half || a->groups != 1 || x->dims[1] % STEP == 0 || w->numel == 0)
        return false;
    return (int64_t)(y->numel * (w->numel / (size_t)w->dims[0])) >= CUDA_FOLD_MIN;
}

static void set_dims(struct det_tensor *t, int64_t n, int64_t channels, int64_t h, int64_t w)
{
    t->dims[0] = n, t->dims[1] = channels, t->dims[2] = h, t->dims[3] = w;
    t->numel = (size_t)(n * channels * h * w);
    t->data = NULL;
    det__set_layout(t, DET_LAYOUT_NHWC);
}

/* How many of x's pixels `out` windows meet along a direction. */
static int64_t met(int64_t out, int stride, int64_t window, int dilation)
{
    return (out - 1) * stride + (window - 1) * dilation + 1;
}

bool cuda_fold_init(struct cuda_fold *f, const struct det_attrs *a, const struct det_tensor *x,
                    const struct det_tensor *w, const struct det_tensor *y)
{
    if (!pays(a, x, w, y))
        return false;
    const int64_t *out = y->dims + 2, *window = w->dims + 2;
    int64_t channels = x->dims[1];
    bool steps = channels * a->stride_h * window[1] <= CHANNELS_MAX && a->dilation_h == 1 &&
                 a->dilation_w == 1 && a->stride_h <= window[0];
    f->step_h = steps ? a->stride_h : 1;
    f->move_w = steps ? a->stride_w : 1;
    f->span_w = steps ? (int)window[1] : 1;
    f->pad_h = a->pad_h, f->pad_w = a->pad_w;
    f->end_h = (int)met(out[0], a->stride_h, window[0], a->dilation_h) - a->pad_h;
    f->end_w = (int)met(out[1], a->stride_w, window[1], a->dilation_w) - a->pad_w;
    f->a = *a;
    f->a.pad_h = f->a.end_h = f->a.pad_w = f->a.end_w = 0;
    f->a.stride_h /= f->step_h, f->a.stride_w /= f->move_w;
    channels = over(channels * f->step_h * f->span_w, STEP) * STEP;
    f->w = *w, f->x = *x;
    set_dims(&f->w, w->dims[0], channels, over(window[0], f->step_h), over(window[1], f->span_w));
    set_dims(&f->x, x->dims[0], channels, met(out[0], f->a.stride_h, f->w.dims[2], a->dilation_h),
             met(out[1], f->a.stride_w, f->w.dims[3], a->dilation_w));
    return f->x.numel <= INT_MAX && x->numel <= INT_MAX;
}

int cuda_fold_x(struct det_stream *s, const struct det_call *c, const struct cuda_fold *f,
                const struct det_tensor *x, struct det_err *err)
{
    int h = (int)x->dims[2], w = (int)x->dims[3], channels = (int)x->dims[1];
    int to_h = (int)f->x.dims[2], to_w = (int)f->x.dims[3], packs = (int)f->x.dims[1] / STEP;
    int step_h = f->step_h, move = f->move_w, pad_h = f->pad_h, pad_w = f->pad_w;
    int end_h = f->end_h < h ? f->end_h : h, end_w = f->end_w < w ? f->end_w : w;
    int line = w * channels, end = end_w * channels, run = f->span_w * channels;
    const element *from = (const element *)x->data;
    cuda_quad *to = (cuda_quad *)f->x.data;
    return cuda_each(
        s, c, (int64_t)f->x.numel / STEP,
        DEVICE(int64_t i) {
            struct cuda_spot at = cuda_spot_of(i, to_h, to_w, packs);
            const element *image = from + at.n * h * line;
            int left = ((int)at.w * move - pad_w) * channels; /* a row of a pixel is one run */
            int row = (int)at.channel * STEP / run, j = (int)at.channel * STEP - row * run;
            int y = (int)at.h * step_h - pad_h + row;
            uint32_t v[STEP];
            CUDA_UNROLL
            for (int k = 0; k < STEP; k++) {
                int x = left + j;
                bool inside = row < step_h && y >= 0 && y < end_h && x >= 0 && x < end;
                v[k] = inside ? image[y * line + x] : 0;
                bool last = ++j == run;
                j = last ? 0 : j;
                y += last;
                row += last;
            }
            cuda_quad q;
            CUDA_UNROLL
            for (int k = 0; k < STEP / 2; k++)
                q.w[k] = v[2 * k] | v[2 * k + 1] << 16;
            to[i] = q;
        },
        err);
}

int cuda_fold_weights(struct det_stream *s, const struct det_call *c, const struct cuda_fold *f,
                      const struct det_tensor *w, struct det_err *err)
{
    int kernel_h = (int)w->dims[2], kernel_w = (int)w->dims[3], channels = (int)w->dims[1];
    int64_t to_h = f->w.dims[2], to_w = f->w.dims[3], folded = f->w.dims[1];
    int step_h = f->step_h, span = f->span_w;
    const element *from = (const element *)w->data;
    element *to = (element *)f->w.data;
    return cuda_each(
        s, c, (int64_t)f->w.numel,
        DEVICE(int64_t i) {
            struct cuda_spot at = cuda_spot_of(i, to_h, to_w, folded);
            int pixel = (int)at.channel / channels, row = pixel / span;
            int h = (int)at.h * step_h + row, w = (int)at.w * span + pixel - row * span;
            bool inside = row < step_h && h < kernel_h && w < kernel_w;
            int64_t plane = at.n * channels + (at.channel - (int64_t)pixel * channels);
            to[i] = inside ? from[(plane * kernel_h + h) * kernel_w + w] : (element)0;
        },
        err);
}

int cuda_unfold_weights(struct det_stream *s, const struct det_call *c, const struct cuda_fold *f,
                        const struct det_tensor *w, struct det_err *err)
{
    int64_t kernel_h = w->dims[2], kernel_w = w->dims[3], channels = w->dims[1];
    int64_t from_h = f->w.dims[2], from_w = f->w.dims[3], folded = f->w.dims[1];
    int step_h = f->step_h, span = f->span_w;
    const element *from = (const element *)f->w.data;
    element *to = (element *)w->data;
    return cuda_each(
        s, c, (int64_t)w->numel,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, kernel_w), plane = cuda_div(row, kernel_h);
            int64_t o = cuda_div(plane, channels), channel = plane - o * channels;
            int h = (int)(row - plane * kernel_h), w = (int)(i - row * kernel_w);
            int64_t tap = (o * from_h + h / step_h) * from_w + w / span;
            int64_t part = (int64_t)(h % step_h) * span + w % span;
            to[i] = from[tap * folded + part * channels + channel];
        },
        err);
}
