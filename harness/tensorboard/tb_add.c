/* What can be added: scalars, histograms, images, texts; all from plain numbers. */
#include "tb.h"

#include <math.h>
#include <png.h>
#include <string.h>

#define TEXT_MAX ((size_t)16 << 20)

/* ---- scalars ---- */

static void add_scalar(struct det_tensorboard *w, const char *dir, const char *tag, double value,
                       int64_t step)
{
    struct tfevents_value v;
    struct tb_file *f = tb_wanted(w, dir, tag, step, &v) ? tb_file(w, dir) : NULL;
    if (!f)
        return;
    tfevents_scalar(&f->out, &v, value);
    tb_wrote(w, f);
}

void det_tensorboard_add_scalar(struct det_tensorboard *w, const char *tag, double value,
                                int64_t step)
{
    add_scalar(w, "", tag, value, step);
}

void det_tensorboard_add_scalars(struct det_tensorboard *w, const char *main_tag,
                                 const struct det_tensorboard_named *values, size_t n, int64_t step)
{
    for (size_t i = 0; i < n; i++) {
        det_cleanup(freep) char *dir =
            det_asprintf("%s_%s", main_tag ? main_tag : "", values[i].name ? values[i].name : "");
        for (char *c = dir; *c; c++)
            if (*c == '/')
                *c = '_';
        add_scalar(w, dir, main_tag, values[i].value, step);
    }
}

/* ---- histograms ---- */

#define HALF_MAX  800 /* edges on one side of zero; there are 774 */
#define EDGES_MAX (2 * HALF_MAX + 1)

/* TensorFlow's default buckets; ascending. */
static size_t fill_edges(double out[EDGES_MAX])
{
    double half[HALF_MAX];
    size_t n = 0;
    for (double v = 1e-12; v < 1e20; v *= 1.1)
        half[n++] = v;
    for (size_t i = 0; i < n; i++) {
        out[i] = -half[n - 1 - i];
        out[n + 1 + i] = half[i];
    }
    out[n] = 0;
    return 2 * n + 1;
}

/* The bucket [edge[i], edge[i + 1]) of v, the last one closed; n for outside. */
static size_t find_bucket(const double *edge, size_t n_edges, double v)
{
    size_t lo = 0, hi = n_edges - 1;
    if (!(v >= edge[0] && v <= edge[hi]))
        return n_edges;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (v < edge[mid])
            hi = mid;
        else
            lo = mid;
    }
    return lo;
}

struct counts {
    double edge[EDGES_MAX], count[EDGES_MAX];
    size_t n_edges;
    struct tfevents_histogram h;
};

static void count_value(struct counts *c, double v)
{
    size_t b = find_bucket(c->edge, c->n_edges, v);
    if (!isfinite(v))
        return;
    if (b < c->n_edges)
        c->count[b]++;
    c->h.min = c->h.num == 0 || v < c->h.min ? v : c->h.min;
    c->h.max = c->h.num == 0 || v > c->h.max ? v : c->h.max;
    c->h.num++;
    c->h.sum += v;
    c->h.sum_squares += v * v;
}

/* From an empty bucket below the first that holds something, up to the last that does. */
static void trim_buckets(struct counts *c, double limits[EDGES_MAX], double counts[EDGES_MAX])
{
    size_t first = 0, last = c->n_edges - 1, n = 0;
    while (first < last && c->count[first] == 0)
        first++;
    while (last > first && c->count[last] == 0)
        last--;
    limits[n] = c->edge[first];
    counts[n++] = 0;
    for (size_t i = first; i <= last && i + 1 < c->n_edges; i++) {
        limits[n] = c->edge[i + 1];
        counts[n++] = c->count[i];
    }
    c->h.limits = limits;
    c->h.counts = counts;
    c->h.n = n;
}

void tb_add_histogram(struct det_tensorboard *w, const char *tag, const double *x, size_t n,
                      int64_t step)
{
    struct tfevents_value v;
    struct counts c = {0};
    double limits[EDGES_MAX], counts[EDGES_MAX];
    if (!tb_wanted(w, "", tag, step, &v))
        return;
    c.n_edges = fill_edges(c.edge);
    for (size_t i = 0; i < n; i++)
        count_value(&c, x[i]);
    if (c.h.num == 0)
        tb_fail(w, DET_EINVAL, "TensorBoard, \"%s\": no element is finite", tag);
    struct tb_file *f = w->err.code == 0 ? tb_file(w, "") : NULL;
    if (!f)
        return;
    trim_buckets(&c, limits, counts);
    tfevents_histogram(&f->out, &v, &c.h);
    tb_wrote(w, f);
}

/* ---- images ---- */

bool tb_pixels_fit(const struct tb_pixels *p)
{
    return p->h > 0 && p->w > 0 && p->h < 65536 && p->w < 65536 && p->c > 0 && p->c <= 4;
}

/* The bytes of the image, row by row, channels last; caller frees. */
static uint8_t *to_bytes(const struct tb_pixels *p, const double *x, double scale)
{
    uint8_t *out = det_alloc((size_t)(p->h * p->w * p->c)), *at = out;
    for (int64_t i = 0; i < p->h; i++)
        for (int64_t j = 0; j < p->w; j++)
            for (int64_t k = 0; k < p->c; k++) {
                double v = x[i * p->row + j * p->column + k * p->channel] * scale;
                *at++ = (uint8_t)(v > 255 ? 255 : v > 0 ? v : 0);
            }
    return out;
}

static void *encode_png(const struct tb_pixels *p, const uint8_t *bytes, size_t *ret_bytes)
{
    static const png_uint_32 formats[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                          PNG_FORMAT_RGBA};
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)p->w,
                       .height = (png_uint_32)p->h,
                       .format = formats[p->c]};
    png_alloc_size_t n = PNG_IMAGE_PNG_SIZE_MAX(image);
    void *out = det_try_alloc(n);
    if (out && png_image_write_to_memory(&image, out, &n, 0, bytes, 0, NULL)) {
        *ret_bytes = n;
        return out;
    }
    free(out);
    return NULL;
}

void tb_add_image(struct det_tensorboard *w, const char *tag, const double *x,
                  const struct tb_pixels *p, double scale, int64_t step)
{
    struct tfevents_value v;
    if (!tb_wanted(w, "", tag, step, &v))
        return;
    det_cleanup(freep) uint8_t *bytes = to_bytes(p, x, scale);
    struct tfevents_image out = {(int32_t)p->h, (int32_t)p->w, (int32_t)p->c, NULL, 0};
    det_cleanup(freep) void *png = encode_png(p, bytes, &out.bytes);
    out.png = png;
    if (!png)
        tb_fail(w, DET_ENOMEM, "TensorBoard, \"%s\": the image cannot be encoded", tag);
    struct tb_file *f = png ? tb_file(w, "") : NULL;
    if (!f)
        return;
    tfevents_image(&f->out, &v, &out);
    tb_wrote(w, f);
}

/* ---- texts ---- */

void det_tensorboard_add_text(struct det_tensorboard *w, const char *tag, const char *text,
                              int64_t step)
{
    struct tfevents_value v;
    det_cleanup(freep) char *full = tag && *tag ? det_asprintf("%s/text_summary", tag) : NULL;
    if (!w || !tb_wanted(w, "", full, step, &v))
        return;
    if (!text || strlen(text) > TEXT_MAX)
        tb_fail(w, DET_EINVAL, "TensorBoard, \"%s\": a text of up to %zu bytes is needed", full,
                TEXT_MAX);
    struct tb_file *f = w->err.code == 0 ? tb_file(w, "") : NULL;
    if (!f)
        return;
    v.tag = tag;
    tfevents_text(&f->out, &v, text);
    tb_wrote(w, f);
}
