/*
 * Images inside: 8-bit pixels of four bytes (red, green, blue, unused), so that a pixel is a
 * vector.
 *
 * An image is a window into memory that it does not own: of a decoder's or a step's output, which
 * lives in an image_work until that is used for the next record.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include "buf.h"
#include "det/image.h"

#define IMAGE_PIXELS_MAX 89478485 /* Pillow's limit: a larger one is taken for an attack */
#define IMAGE_SIDE_MAX   65500    /* JPEG's own */

struct image {
    uint8_t *px; /* the upper left pixel */
    int width, height;
    size_t stride; /* bytes from row to row */
};

struct image_rect {
    int x, y, width, height;
};

/* Memory that grows and is used again. */
struct image_room {
    void *p;
    size_t cap;
};

/* What one record at a time needs. Zero-initialised; image_work_finish() frees. */
struct image_work {
    struct buf file;
    struct image_room decoded, rows, coefs, steps[2];
    int turn; /* which of steps[] the next output goes to */
};

/* Encoded or raw pixels that have a size before they have pixels. */
struct image_source {
    int width, height;
    /* The pixels of `rect`, which lies within the image, into w->decoded; `ret` is exactly rect. */
    int (*decode)(const struct image_source *s, struct image_rect rect, struct image_work *w,
                  struct image *ret, struct det_err *err);
    const uint8_t *bytes; /* borrowed */
    size_t n_bytes;
    int channels;     /* of raw planes */
    const char *name; /* for messages */
};

void image_work_finish(struct image_work *w);
/* NULL: DET_ENOMEM; the content is lost. */
void *image_room(struct image_room *r, size_t bytes, struct det_err *err);
/* A new image in the room of the next step. */
DET_MUST int image_new(struct image_work *w, int width, int height, struct image *ret,
                       struct det_err *err);

/* A JPEG or a PNG, by its content; reads its head. DET_ECORRUPT, DET_ETOOBIG (over pixels_max); the
 * text begins with `name`. Grey, CMYK, palettes and 16 bits become 8-bit RGB, transparency is
 * dropped, as Pillow's convert("RGB") does. bytes and name are borrowed. */
DET_MUST int image_open(struct image_source *ret, const char *name, const void *bytes,
                        size_t n_bytes, int64_t pixels_max, struct det_err *err);
DET_MUST int image_open_jpeg(struct image_source *s, struct det_err *err);
DET_MUST int image_open_png(struct image_source *s, struct det_err *err);
/* Planes of height x width bytes, 1 or 3 of them. */
void image_open_planes(struct image_source *ret, const char *name, const uint8_t *bytes,
                       int channels, int height, int width);

/* Pillow's antialiased bilinear resize. */
DET_MUST int image_resize(const struct image *from, int width, int height, struct image_work *w,
                          struct image *ret, struct det_err *err);

/* ---- steps ---- */

struct image_steps {
    struct det_image_step *v; /* ends with DET_IMAGE_END; copied */
    int height, width;        /* of the result */
    float table[3][256];      /* pixel -> normalised value */
};

/* Checks and copies; height and width are those of every image, 0 where they are not known. The
 * result's are 0 then, too, unless the steps fix a size. */
DET_MUST int image_steps_init(struct image_steps *s, const struct det_image_step *steps, int height,
                              int width, struct det_err *err);
/* From the size of an image to the size of its result. */
void image_steps_follow(const struct image_steps *s, int *height, int *width);
void image_steps_finish(struct image_steps *s);
/* Takes the source through the steps to out, f32 (3, s->height, s->width). */
DET_MUST int image_steps_run(const struct image_steps *s, const struct image_source *source,
                             struct det_draws *draws, struct image_work *w, float *out,
                             struct det_err *err);
/* image_color.c: the colours of a DET_COLOR_JITTER, in place. */
void image_jitter(struct image *im, const struct det_image_step *step, struct det_draws *draws);

#endif
