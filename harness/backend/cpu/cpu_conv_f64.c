/*
 * Convolution of doubles over NHWC images, as products: the pixels under each window are laid side
 * by side (Chellapilla, Puri & Simard 2006), some images at a time. The sums have the same order
 * for any number of threads.
 */
#include <string.h>

#include "cpu_dgemm.h"
#include "cpu_real.h"
#include "mem.h"

/* Elements of the windows that are laid out at a time, but at least one image's. */
#define LAID_OUT ((int64_t)1 << 20)

struct conv {
    const struct det_call *c;
    struct ref_image x, y;
    int64_t in, out, depth; /* channels of a group, elements of a window */
    const double *from;     /* the images whose windows are laid out */
    double *to;             /* the images that windows are added to */
    double *windows;        /* [pixels of some images, depth]: tap, then channel */
    double *weights;        /* [O, depth] */
    int64_t first, images;  /* those that are laid out; the most there may be */
    int64_t group;
};

static void conv_finish(struct conv *v)
{
    free(v->windows);
    free(v->weights);
}

static int conv_init(struct conv *v, const struct det_call *c, const struct det_tensor *x,
                     const struct det_tensor *w, const struct det_tensor *y, struct det_err *err)
{
    *v = (struct conv){.c = c, .x = ref_image(x), .y = ref_image(y), .in = w->dims[1]};
    v->out = w->dims[0] / c->a.groups;
    v->depth = w->dims[1] * w->dims[2] * w->dims[3];
    int64_t image = v->y.h * v->y.w * v->depth;
    v->images = image < LAID_OUT ? LAID_OUT / image : 1;
    v->images = v->images < v->y.n ? v->images : v->y.n;
    v->windows = det_try_alloc((size_t)(v->images * image) * sizeof *v->windows);
    v->weights = det_try_alloc(w->numel * sizeof *v->weights);
    if (v->windows && v->weights)
        return 0;
    conv_finish(v);
    return det_fail(err, DET_ENOMEM, "no memory for the windows of a convolution");
}

/* (O, I, taps) to [O, taps, I], or back. */
static void turn_weights(const struct conv *v, const double *from, double *to, bool back)
{
    int64_t taps = v->depth / v->in, n = v->y.c * v->depth;
    for (int64_t at = 0; at < n; at++) {
        int64_t o = at / v->depth, i = at / taps % v->in, tap = at % taps;
        int64_t turned = o * v->depth + tap * v->in + i;
        to[back ? at : turned] = from[back ? turned : at];
    }
}

/* The images that are laid out now. */
static int64_t count_images(const struct conv *v)
{
    int64_t left = v->y.n - v->first;
    return left < v->images ? left : v->images;
}

/* One window: each tap's channels, or zeros. */
static void lay_window(const struct conv *v, int64_t n, int64_t h, int64_t w, double *to)
{
    const struct det_attrs *a = &v->c->a;
    size_t bytes = (size_t)v->in * sizeof *to;
    for (int64_t kh = 0; kh < a->kernel_h; kh++)
        for (int64_t kw = 0; kw < a->kernel_w; kw++, to += v->in) {
            int64_t row = h * a->stride_h - a->pad_h + kh * a->dilation_h;
            int64_t column = w * a->stride_w - a->pad_w + kw * a->dilation_w;
            if (row < 0 || row >= v->x.h || column < 0 || column >= v->x.w)
                memset(to, 0, bytes);
            else
                memcpy(to,
                       v->from + ((n * v->x.h + row) * v->x.w + column) * v->x.c + v->group * v->in,
                       bytes);
        }
}

/* Rows of windows: row r is row r % y.h of image v->first + r / y.h. */
static void lay_rows(const void *arg, int64_t from, int64_t to)
{
    const struct conv *v = arg;
    for (int64_t r = from; r < to; r++)
        for (int64_t w = 0; w < v->y.w; w++)
            lay_window(v, v->first + r / v->y.h, r % v->y.h, w,
                       v->windows + (r * v->y.w + w) * v->depth);
}

/* What the windows of row h, at row kh of the kernel, add to a row of the image. */
static void add_taps(const struct conv *v, int64_t line, int64_t kh, double *row)
{
    const struct det_attrs *a = &v->c->a;
    for (int64_t w = 0; w < v->y.w; w++)
        for (int64_t kw = 0; kw < a->kernel_w; kw++) {
            int64_t column = w * a->stride_w - a->pad_w + kw * a->dilation_w;
            const double *from =
                v->windows + (line * v->y.w + w) * v->depth + (kh * a->kernel_w + kw) * v->in;
            for (int64_t i = 0; column >= 0 && column < v->x.w && i < v->in; i++)
                row[column * v->x.c + i] += from[i];
        }
}

/* Rows of images: the sums of all windows over them. */
static void add_rows(const void *arg, int64_t from, int64_t to)
{
    const struct conv *v = arg;
    const struct det_attrs *a = &v->c->a;
    for (int64_t r = from; r < to; r++) {
        double *row = v->to + (v->first * v->x.h + r) * v->x.w * v->x.c + v->group * v->in;
        for (int64_t w = 0; w < v->x.w; w++)
            memset(row + w * v->x.c, 0, (size_t)v->in * sizeof *row);
        for (int64_t kh = 0; kh < a->kernel_h; kh++) {
            int64_t at = r % v->x.h + a->pad_h - kh * a->dilation_h, h = at / a->stride_h;
            if (at >= 0 && at % a->stride_h == 0 && h < v->y.h)
                add_taps(v, r / v->x.h * v->y.h + h, kh, row);
        }
    }
}

/* y = max(0, y + b) of rows of pixels. */
static void finish_pixels(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = c->out[0]->dims[1];
    const double *b = in_real(c, 2);
    for (int64_t p = from; p < to; p++) {
        double *y = out_real(c, 0) + p * n;
        for (int64_t i = 0; b && i < n; i++)
            y[i] += b[i];
        for (int64_t i = 0; c->a.relu && i < n; i++)
            y[i] = y[i] < 0 ? 0 : y[i];
    }
}

typedef void step_fn(struct det_stream *s, const struct conv *v, int64_t pixels, double *y);

/* Each group of each lot of images; y: its first pixel's first channel. */
static void each_step(struct det_stream *s, struct conv *v, double *y, step_fn *step)
{
    int64_t image = v->y.h * v->y.w;
    for (v->first = 0; v->first < v->y.n; v->first += v->images)
        for (v->group = 0; v->group < v->c->a.groups; v->group++)
            step(s, v, count_images(v) * image, y + v->first * image * v->y.c + v->group * v->out);
}

static void lay_out_rows(struct det_stream *s, const struct conv *v)
{
    cpu_parallel(cpu_device(s)->threads, count_images(v) * v->y.h,
                 1 + CPU_GRAIN / (v->y.w * v->depth), lay_rows, v);
}

static void forward_step(struct det_stream *s, const struct conv *v, int64_t pixels, double *y)
{
    lay_out_rows(s, v);
    cpu_dgemm('N', 'T', pixels, v->out, v->depth, 1, v->windows, v->depth,
              v->weights + v->group * v->out * v->depth, v->depth, 0, y, v->y.c);
}

int CPU(conv2d)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv v;
    int rc = conv_init(&v, c, c->in[0], c->in[1], c->out[0], err);
    if (rc < 0)
        return rc;
    v.from = in_real(c, 0);
    turn_weights(&v, in_real(c, 1), v.weights, false);
    each_step(s, &v, out_real(c, 0), forward_step);
    if (c->in[2] || c->a.relu)
        cpu_parallel(cpu_device(s)->threads, v.y.n * v.y.h * v.y.w, 1 + CPU_GRAIN / v.y.c,
                     finish_pixels, c);
    return 0;
}

static void data_step(struct det_stream *s, const struct conv *v, int64_t pixels, double *dy)
{
    cpu_dgemm('N', 'N', pixels, v->depth, v->out, 1, dy, v->y.c,
              v->weights + v->group * v->out * v->depth, v->depth, 0, v->windows, v->depth);
    cpu_parallel(cpu_device(s)->threads, count_images(v) * v->x.h,
                 1 + CPU_GRAIN / (v->y.w * v->depth), add_rows, v);
}

int CPU(conv2d_bwd_data)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv v;
    int rc = conv_init(&v, c, c->out[0], c->in[1], c->in[0], err);
    if (rc < 0)
        return rc;
    v.to = out_real(c, 0);
    turn_weights(&v, in_real(c, 1), v.weights, false);
    each_step(s, &v, (double *)in_real(c, 0), data_step);
    return 0;
}

static void weight_step(struct det_stream *s, const struct conv *v, int64_t pixels, double *dy)
{
    lay_out_rows(s, v);
    cpu_dgemm('T', 'N', v->out, v->depth, pixels, 1, dy, v->y.c, v->windows, v->depth,
              v->first > 0 ? 1 : 0, v->weights + v->group * v->out * v->depth, v->depth);
}

int CPU(conv2d_bwd_weight)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(conv_finish) struct conv v;
    int rc = conv_init(&v, c, c->in[0], c->out[0], c->in[1], err);
    if (rc < 0)
        return rc;
    v.from = in_real(c, 0);
    each_step(s, &v, (double *)in_real(c, 1), weight_step);
    turn_weights(&v, v.weights, out_real(c, 0), true);
    if (!c->out[1])
        return 0;
    return CPU(column_sums)(cpu_device(s)->threads, in_real(c, 1), v.y.n * v.y.h * v.y.w, v.y.c,
                            out_real(c, 1), err);
}
