/* The steps on an image: crops only move a window until a step needs pixels. */
#include "image.h"

#include "mem.h"
#include <math.h>
#include <string.h>

#define SIDE_MAX  16384 /* of a result */
#define STEPS_MAX 32

/* An image under way: a window of a source that is not decoded yet, or pixels. */
struct under_way {
    const struct image_source *source; /* NULL: im has the pixels */
    struct image_rect window;
    struct image im;
    bool flipped; /* left and right are to be exchanged at the end */
};

/* ---- checks, once per dataset ---- */

static int step_height(const struct det_image_step *s)
{
    return s->height ? s->height : s->size;
}

static int step_width(const struct det_image_step *s)
{
    return s->width ? s->width : s->size;
}

static int bad_step(struct det_err *err, size_t i, const char *what)
{
    return det_fail(err, DET_EINVAL, "image steps: step %zu %s", i + 1, what);
}

/* Not a range of numbers above 0; {0, 0} is the default. */
static bool bad_range(const double r[2])
{
    return !(r[0] == 0 && r[1] == 0) && !(r[0] > 0 && r[1] >= r[0] && isfinite(r[1]));
}

static int check_numbers(const struct det_image_step *s, size_t i, struct det_err *err)
{
    if (bad_range(s->scale) || bad_range(s->ratio))
        return bad_step(err, i, "has a scale or ratio that is no range above 0");
    if (!(s->p >= 0 && s->p <= 1))
        return bad_step(err, i, "has a probability outside 0 to 1");
    if (!(s->brightness >= 0 && s->contrast >= 0 && s->saturation >= 0))
        return bad_step(err, i, "has a negative brightness, contrast or saturation");
    for (int c = 0; s->op == DET_NORMALIZE && c < 3; c++)
        if (!(s->std[c] > 0) || !isfinite(s->mean[c]))
            return bad_step(err, i, "needs three means and three standard deviations above 0");
    return 0;
}

static int check_step(const struct det_image_step *s, size_t i, struct det_err *err)
{
    if ((unsigned)s->op >= DET_IMAGE_OP_COUNT)
        return bad_step(err, i, "is none of enum det_image_op");
    bool sized = s->op <= DET_RANDOM_RESIZED_CROP;
    int h = step_height(s), w = step_width(s);
    if (sized && (h < 1 || w < 1 || h > SIDE_MAX || w > SIDE_MAX))
        return bad_step(err, i, "needs .size, or .height and .width, of 1 to 16384");
    if (s->padding < 0 || s->padding > SIDE_MAX)
        return bad_step(err, i, "has a padding outside 0 to 16384");
    if (s->op == DET_NORMALIZE && s[1].op != DET_IMAGE_END)
        return bad_step(err, i, "normalises: it must be the last one");
    return check_numbers(s, i, err);
}

/* Size of the shorter side given: the other keeps the shape, rounded down as torchvision does. */
static void resized_size(const struct det_image_step *s, int height, int width, int *ret_h,
                         int *ret_w)
{
    *ret_h = step_height(s);
    *ret_w = step_width(s);
    if (s->height || s->width)
        return;
    int64_t size = s->size;
    if (width <= height)
        *ret_h = (int)(size * height / width > INT32_MAX ? INT32_MAX : size * height / width);
    else
        *ret_w = (int)(size * width / height > INT32_MAX ? INT32_MAX : size * width / height);
}

static void follow_size(const struct det_image_step *s, int *height, int *width)
{
    if (s->op == DET_RESIZE && !s->height && !s->width) {
        if (*height)
            resized_size(s, *height, *width, height, width);
    } else if (s->op <= DET_RANDOM_RESIZED_CROP) {
        *height = step_height(s);
        *width = step_width(s);
    }
}

/* As ToTensor and Normalize compute it, in f32. */
static void fill_table(struct image_steps *s, const struct det_image_step *normalize)
{
    for (int c = 0; c < 3; c++)
        for (int v = 0; v < 256; v++) {
            float x = (float)v / 255;
            s->table[c][v] = normalize->op == DET_NORMALIZE
                                 ? (x - (float)normalize->mean[c]) / (float)normalize->std[c]
                                 : x;
        }
}

int image_steps_init(struct image_steps *s, const struct det_image_step *steps, int height,
                     int width, struct det_err *err)
{
    static const struct det_image_step none[] = {{0}};
    size_t n = 0;
    *s = (struct image_steps){.height = height, .width = width};
    for (steps = steps ? steps : none; steps[n].op != DET_IMAGE_END; n++) {
        if (n == STEPS_MAX)
            return det_fail(err, DET_EINVAL, "image steps: more than %d (is {0} at the end?)",
                            STEPS_MAX);
        int rc = check_step(&steps[n], n, err);
        if (rc < 0)
            return rc;
        follow_size(&steps[n], &s->height, &s->width);
    }
    s->v = det_memdup(steps, sizeof *steps * (n + 1));
    fill_table(s, n ? &steps[n - 1] : steps);
    return 0;
}

void image_steps_follow(const struct image_steps *s, int *height, int *width)
{
    for (const struct det_image_step *step = s->v; step->op != DET_IMAGE_END; step++)
        follow_size(step, height, width);
}

void image_steps_finish(struct image_steps *s)
{
    free(s->v);
    s->v = NULL;
}

/* ---- windows ---- */

static int now_width(const struct under_way *u)
{
    return u->source ? u->window.width : u->im.width;
}

static int now_height(const struct under_way *u)
{
    return u->source ? u->window.height : u->im.height;
}

/* Cuts to a window within the present one, given as it looks after a flip. */
static void cut_window(struct under_way *u, struct image_rect r)
{
    int x = u->flipped ? now_width(u) - r.x - r.width : r.x;
    if (u->source) {
        u->window = (struct image_rect){u->window.x + x, u->window.y + r.y, r.width, r.height};
        return;
    }
    u->im.px += (size_t)r.y * u->im.stride + (size_t)x * 4;
    u->im.width = r.width;
    u->im.height = r.height;
}

static int need_pixels(struct under_way *u, struct image_work *w, struct det_err *err)
{
    int rc = u->source ? u->source->decode(u->source, u->window, w, &u->im, err) : 0;
    u->source = NULL;
    return rc;
}

/* Zeros around: the image is at (left, top) of the new one. */
static int pad_image(struct under_way *u, int left, int top, int width, int height,
                     struct image_work *w, struct det_err *err)
{
    struct image to;
    int rc = need_pixels(u, w, err);
    if (rc < 0 || (rc = image_new(w, width, height, &to, err)) < 0)
        return rc;
    memset(to.px, 0, to.stride * (size_t)height);
    int x = u->flipped ? width - left - u->im.width : left;
    for (int y = 0; y < u->im.height; y++)
        memcpy(to.px + (size_t)(y + top) * to.stride + (size_t)x * 4,
               u->im.px + (size_t)y * u->im.stride, (size_t)u->im.width * 4);
    u->im = to;
    return 0;
}

static int resize_to(struct under_way *u, int height, int width, const char *name,
                     struct image_work *w, struct det_err *err)
{
    if ((int64_t)height * width > IMAGE_PIXELS_MAX)
        return det_fail(err, DET_ETOOBIG, "%s: resized, it would have %d x %d pixels", name, width,
                        height);
    int rc = need_pixels(u, w, err);
    return rc < 0 ? rc : image_resize(&u->im, width, height, w, &u->im, err);
}

/* ---- the steps ---- */

static int center_crop(struct under_way *u, const struct det_image_step *s, struct image_work *w,
                       struct det_err *err)
{
    int height = step_height(s), width = step_width(s);
    int dx = width - now_width(u), dy = height - now_height(u);
    if (dx > 0 || dy > 0) {
        int left = dx > 0 ? dx / 2 : 0, top = dy > 0 ? dy / 2 : 0;
        int rc = pad_image(u, left, top, dx > 0 ? width : now_width(u),
                           dy > 0 ? height : now_height(u), w, err);
        if (rc < 0)
            return rc;
    }
    /* halves go to the even side, as Python's round() has it */
    int x = (int)nearbyint((now_width(u) - width) / 2.0);
    int y = (int)nearbyint((now_height(u) - height) / 2.0);
    cut_window(u, (struct image_rect){x, y, width, height});
    return 0;
}

static int random_crop(struct under_way *u, const struct det_image_step *s, const char *name,
                       struct det_draws *d, struct image_work *w, struct det_err *err)
{
    int height = step_height(s), width = step_width(s), p = s->padding, rc = 0;
    if (now_width(u) + 2 * p < width || now_height(u) + 2 * p < height)
        return det_fail(err, DET_EINVAL, "%s: a crop of %d x %d from %d x %d pixels and %d around",
                        name, width, height, now_width(u), now_height(u), p);
    if (p > 0)
        rc = pad_image(u, p, p, now_width(u) + 2 * p, now_height(u) + 2 * p, w, err);
    if (rc < 0)
        return rc;
    int y = (int)det_draw_int(d, now_height(u) - height + 1);
    int x = (int)det_draw_int(d, now_width(u) - width + 1);
    cut_window(u, (struct image_rect){x, y, width, height});
    return 0;
}

static struct image_rect central_rect(int width, int height, double ratio_min, double ratio_max)
{
    double ratio = (double)width / height;
    struct image_rect r = {.width = width, .height = height};
    if (ratio < ratio_min)
        r.height = (int)nearbyint(width / ratio_min);
    else if (ratio > ratio_max)
        r.width = (int)nearbyint(height * ratio_max);
    r.height = r.height < 1 ? 1 : r.height > height ? height : r.height;
    r.width = r.width < 1 ? 1 : r.width > width ? width : r.width;
    r.x = (width - r.width) / 2;
    r.y = (height - r.height) / 2;
    return r;
}

static struct image_rect random_part(int width, int height, const struct det_image_step *s,
                                     struct det_draws *d)
{
    double scale[2] = {0.08, 1}, ratio[2] = {3.0 / 4, 4.0 / 3};
    if (s->scale[1] > 0)
        memcpy(scale, s->scale, sizeof scale);
    if (s->ratio[1] > 0)
        memcpy(ratio, s->ratio, sizeof ratio);
    for (int tries = 0; tries < 10; tries++) {
        double area = (double)width * height * det_draw_uniform(d, scale[0], scale[1]);
        double shape = exp(det_draw_uniform(d, log(ratio[0]), log(ratio[1])));
        double w = nearbyint(sqrt(area * shape)), h = nearbyint(sqrt(area / shape));
        if (w < 1 || h < 1 || w > width || h > height)
            continue;
        struct image_rect r = {.width = (int)w, .height = (int)h};
        r.y = (int)det_draw_int(d, height - r.height + 1);
        r.x = (int)det_draw_int(d, width - r.width + 1);
        return r;
    }
    return central_rect(width, height, ratio[0], ratio[1]);
}

static int run_step(struct under_way *u, const struct det_image_step *s, const char *name,
                    struct det_draws *d, struct image_work *w, struct det_err *err)
{
    int height = step_height(s), width = step_width(s), rc;
    switch (s->op) {
    case DET_RESIZE:
        resized_size(s, now_height(u), now_width(u), &height, &width);
        return resize_to(u, height, width, name, w, err);
    case DET_CENTER_CROP: return center_crop(u, s, w, err);
    case DET_RANDOM_CROP: return random_crop(u, s, name, d, w, err);
    case DET_RANDOM_RESIZED_CROP:
        cut_window(u, random_part(now_width(u), now_height(u), s, d));
        return resize_to(u, height, width, name, w, err);
    case DET_RANDOM_HORIZONTAL_FLIP:
        u->flipped ^= det_draw_uniform(d, 0, 1) < (s->p > 0 ? s->p : 0.5);
        return 0;
    case DET_COLOR_JITTER:
        if ((rc = need_pixels(u, w, err)) == 0)
            image_jitter(&u->im, s, d);
        return rc;
    case DET_NORMALIZE: /* it is in the table */
    case DET_IMAGE_END:
    case DET_IMAGE_OP_COUNT: break;
    }
    return 0;
}

/* Planes of f32 from pixels, each through its colour's table. */
static void write_planes(const struct image_steps *s, const struct image *im, bool flipped,
                         float *out)
{
    size_t plane = (size_t)s->height * (size_t)s->width;
    ptrdiff_t step = flipped ? -4 : 4;
    for (int y = 0; y < im->height; y++) {
        const uint8_t *p = im->px + (size_t)y * im->stride + (flipped ? (im->width - 1) * 4 : 0);
        for (int x = 0; x < im->width; x++, p += step, out++) {
            out[0] = s->table[0][p[0]];
            out[plane] = s->table[1][p[1]];
            out[2 * plane] = s->table[2][p[2]];
        }
    }
}

int image_steps_run(const struct image_steps *s, const struct image_source *source,
                    struct det_draws *draws, struct image_work *w, float *out, struct det_err *err)
{
    struct under_way u = {.source = source, .window = {0, 0, source->width, source->height}};
    int rc = 0;
    for (const struct det_image_step *step = s->v; rc == 0 && step->op != DET_IMAGE_END; step++)
        rc = run_step(&u, step, source->name, draws, w, err);
    if (rc == 0)
        rc = need_pixels(&u, w, err);
    if (rc < 0)
        return rc;
    if (u.im.width != s->width || u.im.height != s->height)
        return det_fail(err, DET_EINVAL, "%s: %d x %d pixels after the steps, %d x %d are needed",
                        source->name, u.im.width, u.im.height, s->width, s->height);
    write_planes(s, &u.im, u.flipped, out);
    return 0;
}
