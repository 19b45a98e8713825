/* Pooling over NHWC images: windows tap by tap, all channels of a pixel side by side. */
#include "cpu_real.h"

#include <string.h>

#include "window.h"

static inline __attribute__((always_inline)) void max_tap(int64_t n, unsigned char tap,
                                                          const real *restrict x, real *restrict y,
                                                          unsigned char *restrict index)
{
    for (int64_t i = 0; i < n; i++) {
        bool greater = (x[i] > y[i]) | (x[i] != x[i]);
        y[i] = greater ? x[i] : y[i];
        index[i] = greater ? tap : index[i];
    }
}

/* One output pixel; `image` is the first value of its image. */
static inline __attribute__((always_inline)) void max_pixel(const struct det_call *c,
                                                            struct ref_image x, const real *image,
                                                            struct window h, struct window w,
                                                            int64_t out)
{
    real *y = out_real(c, 0) + out;
    unsigned char *index = out_u8(c, 1) + out;
    bool first = true;
    for (int64_t i = h.from; i < h.to; i++)
        for (int64_t j = w.from; j < w.to; j++) {
            const real *v = image + ((h.origin + i) * x.w + w.origin + j) * x.c;
            unsigned char tap = (unsigned char)(i * c->a.kernel_w + j);
            if (first) {
                memcpy(y, v, (size_t)x.c * sizeof *y);
                memset(index, tap, (size_t)x.c);
            } else {
                max_tap(x.c, tap, v, y, index);
            }
            first = false;
        }
}

struct pooling {
    struct ref_image image, pooled;
    struct window_line rows, columns;
};

static inline __attribute__((always_inline)) struct pooling
pooling_of(const struct det_attrs *a, const struct det_tensor *image,
           const struct det_tensor *pooled)
{
    return (struct pooling){ref_image(image), ref_image(pooled), window_rows(a, image, pooled),
                            window_columns(a, image, pooled)};
}

typedef void pixel_fn(const struct det_call *c, struct ref_image x, const real *image,
                      struct window h, struct window w, int64_t out);

/* The loops over output rows: row r is row r % y.h of image r / y.h. */
static inline __attribute__((always_inline)) void pool_rows(const struct det_call *c, int64_t from,
                                                            int64_t to, pixel_fn *pool_pixel)
{
    struct pooling p = pooling_of(&c->a, c->in[0], c->out[0]);
    struct ref_image x = p.image, y = p.pooled;
    for (int64_t row = from; row < to; row++) {
        const real *image = in_real(c, 0) + row / y.h * x.h * x.w * x.c;
        struct window h = window_at(p.rows, row % y.h);
        for (int64_t w = 0; w < y.w; w++)
            pool_pixel(c, x, image, h, window_at(p.columns, w), (row * y.w + w) * y.c);
    }
}

CPU_CLONES static void max_rows(const void *arg, int64_t from, int64_t to)
{
    pool_rows(arg, from, to, max_pixel);
}

int CPU(max_pool2d)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, c->out[0]->dims[0] * c->out[0]->dims[2], 4, max_rows, c);
    return 0;
}

static inline __attribute__((always_inline)) void max_back_tap(int64_t n, unsigned char tap,
                                                               const real *restrict dy,
                                                               const unsigned char *restrict index,
                                                               real *restrict dx, bool add)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = (add ? dx[i] : 0) + (index[i] == tap ? dy[i] : 0);
}

/* Each pixel of the image lies under one window. */
static bool is_tiled(const struct det_attrs *a, struct ref_image x, struct ref_image y)
{
    return !a->adaptive && a->kernel_h == a->stride_h && a->kernel_w == a->stride_w &&
           a->pad_h == 0 && a->pad_w == 0 && y.h * a->kernel_h == x.h && y.w * a->kernel_w == x.w;
}

/* Windows may overlap, so an image is the smallest part for a thread. */
CPU_CLONES static void max_back_images(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    struct pooling p = pooling_of(&c->a, c->out[0], c->in[0]);
    struct ref_image x = p.image, y = p.pooled;
    const unsigned char *index = (const unsigned char *)c->in[1]->data;
    real *dx = out_real(c, 0);
    int64_t image = x.h * x.w * x.c;
    bool add = !is_tiled(&c->a, x, y);
    if (add)
        memset(dx + from * image, 0, (size_t)((to - from) * image) * sizeof *dx);
    for (int64_t row = from * y.h; row < to * y.h; row++) {
        struct window h = window_at(p.rows, row % y.h);
        for (int64_t at = 0; at < y.w; at++) {
            struct window w = window_at(p.columns, at);
            int64_t out = (row * y.w + at) * y.c;
            for (int64_t i = h.from; i < h.to; i++)
                for (int64_t j = w.from; j < w.to; j++)
                    max_back_tap(
                        x.c, (unsigned char)(i * c->a.kernel_w + j), in_real(c, 0) + out,
                        index + out,
                        dx + row / y.h * image + ((h.origin + i) * x.w + w.origin + j) * x.c, add);
        }
    }
}

int CPU(max_pool2d_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, c->out[0]->dims[0], 1, max_back_images, c);
    return 0;
}

static inline __attribute__((always_inline)) void
add_scaled(int64_t n, real scale, const real *restrict x, real *restrict y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += scale * x[i];
}

static inline __attribute__((always_inline)) void avg_pixel(const struct det_call *c,
                                                            struct ref_image x, const real *image,
                                                            struct window h, struct window w,
                                                            int64_t out)
{
    real *y = out_real(c, 0) + out, scale = 1 / (real)(h.size * w.size);
    memset(y, 0, (size_t)x.c * sizeof *y);
    for (int64_t i = h.from; i < h.to; i++)
        for (int64_t j = w.from; j < w.to; j++)
            add_scaled(x.c, scale, image + ((h.origin + i) * x.w + w.origin + j) * x.c, y);
}

CPU_CLONES static void avg_rows(const void *arg, int64_t from, int64_t to)
{
    pool_rows(arg, from, to, avg_pixel);
}

int CPU(avg_pool2d)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, c->out[0]->dims[0] * c->out[0]->dims[2], 4, avg_rows, c);
    return 0;
}

CPU_CLONES static void avg_back_images(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    struct pooling p = pooling_of(&c->a, c->out[0], c->in[0]);
    struct ref_image x = p.image, y = p.pooled;
    real *dx = out_real(c, 0);
    int64_t image = x.h * x.w * x.c;
    memset(dx + from * image, 0, (size_t)((to - from) * image) * sizeof *dx);
    for (int64_t row = from * y.h; row < to * y.h; row++) {
        struct window h = window_at(p.rows, row % y.h);
        for (int64_t at = 0; at < y.w; at++) {
            struct window w = window_at(p.columns, at);
            const real *dy = in_real(c, 0) + (row * y.w + at) * y.c;
            real scale = 1 / (real)(h.size * w.size);
            for (int64_t i = h.from; i < h.to; i++)
                for (int64_t j = w.from; j < w.to; j++)
                    add_scaled(y.c, scale, dy,
                               dx + row / y.h * image +
                                   ((h.origin + i) * x.w + w.origin + j) * x.c);
        }
    }
}

int CPU(avg_pool2d_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, c->out[0]->dims[0], 1, avg_back_images, c);
    return 0;
}
