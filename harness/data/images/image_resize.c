/*
 * Bilinear resize with antialiasing: each axis is a weighted sum whose triangle is as wide as one
 * output pixel (at least one input pixel), in 22-bit fixed point, rows first and rounded to 8 bits
 * between. This is the arithmetic of Pillow's resize(BILINEAR), so the pixels are equal.
 */
#include "image.h"

#include "mem.h"
#include <math.h>
#include <string.h>

#define BITS  22
#define HALF  (1 << (BITS - 1))
#define BLOCK 32
/* Integers only, so every clone gives the same bits. ThreadSanitizer is not there yet when the
 * loader chooses one. */
#ifdef __SANITIZE_THREAD__
#define CLONES
#else
#define CLONES __attribute__((target_clones("avx2", "default")))
#endif

/* Output i is the sum of weight[i * taps + k] * input[first[i] + k], k < count[i]. */
struct filter {
    int n, taps;
    int32_t *first, *count, *weight;
};

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

static void fill_one(struct filter *f, int i, int in, double scale, double *w)
{
    double width = scale < 1 ? 1 : scale, center = (i + 0.5) * scale, sum = 0;
    int first = (int)(center - width + 0.5), end = (int)(center + width + 0.5);
    first = first < 0 ? 0 : first;
    end = end > in ? in : end;
    f->first[i] = first;
    f->count[i] = end - first;
    for (int k = 0; k < end - first; k++) {
        w[k] = triangle((k + first - center + 0.5) * (1.0 / width));
        sum += w[k];
    }
    for (int k = 0; k < end - first; k++)
        f->weight[i * f->taps + k] = (int32_t)(w[k] * (sum != 0 ? 1 / sum : 0) * (1 << BITS) + 0.5);
}

static int filter_make(struct filter *f, int in, int out, struct image_room *room,
                       struct det_err *err)
{
    double scale = (double)in / out;
    *f = (struct filter){.n = out, .taps = (int)ceil(scale < 1 ? 1 : scale) * 2 + 1};
    size_t n = (size_t)out, weights = n * (size_t)f->taps;
    /* the doubles of one output first: they need the stricter alignment */
    double *w = image_room(room, sizeof *w * (size_t)f->taps + 4 * (2 * n + weights), err);
    if (!w)
        return DET_ENOMEM;
    f->first = (int32_t *)(w + f->taps);
    f->count = f->first + n;
    f->weight = f->count + n;
    for (int i = 0; i < out; i++)
        fill_one(f, i, in, scale, w);
    return 0;
}

typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef int32_t ints4 __attribute__((vector_size(16)));

CLONES
static void resize_rows(const struct image *from, const struct filter *f, struct image *to)
{
    for (int y = 0; y < to->height; y++) {
        const uint8_t *row = from->px + (size_t)y * from->stride;
        uint8_t *out = to->px + (size_t)y * to->stride;
        for (int x = 0; x < f->n; x++, out += 4) {
            const uint8_t *p = row + (size_t)f->first[x] * 4;
            const int32_t *w = f->weight + (size_t)x * (size_t)f->taps;
            ints4 sum = {HALF, HALF, HALF, HALF};
            for (int k = 0; k < f->count[x]; k++, p += 4) {
                bytes4 px;
                memcpy(&px, p, 4);
                sum += __builtin_convertvector(px, ints4) * w[k];
            }
            bytes4 done = __builtin_convertvector(sum >> BITS, bytes4);
            memcpy(out, &done, 4);
        }
    }
}

/* n <= BLOCK bytes of one output row. */
static inline __attribute__((always_inline)) void
column_block(const uint8_t *p, size_t stride, const int32_t *w, int count, uint8_t *out, int n)
{
    int32_t sum[BLOCK];
    for (int i = 0; i < n; i++)
        sum[i] = HALF;
    for (int k = 0; k < count; k++, p += stride)
        for (int i = 0; i < n; i++)
            sum[i] += w[k] * p[i];
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)(sum[i] >> BITS);
}

CLONES
static void resize_columns(const struct image *from, const struct filter *f, struct image *to)
{
    int bytes = to->width * 4;
    for (int y = 0; y < f->n; y++) {
        const uint8_t *p = from->px + (size_t)f->first[y] * from->stride;
        const int32_t *w = f->weight + (size_t)y * (size_t)f->taps;
        uint8_t *out = to->px + (size_t)y * to->stride;
        int x = 0;
        for (; x + BLOCK <= bytes; x += BLOCK)
            column_block(p + x, from->stride, w, f->count[y], out + x, BLOCK);
        column_block(p + x, from->stride, w, f->count[y], out + x, bytes - x);
    }
}

static int resize_width(const struct image *from, int width, bool last, struct image_work *w,
                        struct image *ret, struct det_err *err)
{
    struct filter f;
    *ret = (struct image){.width = width, .height = from->height, .stride = (size_t)width * 4};
    int rc = filter_make(&f, from->width, width, &w->coefs, err);
    if (rc == 0 && last)
        rc = image_new(w, width, from->height, ret, err);
    else if (rc == 0 && !(ret->px = image_room(&w->rows, ret->stride * (size_t)ret->height, err)))
        rc = DET_ENOMEM;
    if (rc == 0)
        resize_rows(from, &f, ret);
    return rc;
}

static int resize_height(const struct image *from, int height, struct image_work *w,
                         struct image *ret, struct det_err *err)
{
    struct filter f;
    int rc = filter_make(&f, from->height, height, &w->coefs, err);
    if (rc == 0)
        rc = image_new(w, from->width, height, ret, err);
    if (rc == 0)
        resize_columns(from, &f, ret);
    return rc;
}

int image_resize(const struct image *from, int width, int height, struct image_work *w,
                 struct image *ret, struct det_err *err)
{
    struct image im = *from, next;
    int rc = 0;
    if (width != im.width) {
        rc = resize_width(&im, width, height == im.height, w, &next, err);
        im = next;
    }
    if (rc == 0 && height != im.height) {
        rc = resize_height(&im, height, w, &next, err);
        im = next;
    }
    *ret = im;
    return rc;
}
