/* PNG by libpng, which reports errors by longjmp: no local that changes lives across setjmp. */
#include "image.h"

#include <png.h>
#include <string.h>

#define CHUNK_MAX (8u << 20) /* memory for one chunk that is not pixels */

struct png_reader {
    png_structp png;
    png_infop info;
    const uint8_t *bytes;
    size_t n, at;
    char text[128];
};

static void on_error(png_structp png, png_const_charp words)
{
    struct png_reader *r = png_get_error_ptr(png);
    snprintf(r->text, sizeof r->text, "%s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words)
{
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    struct png_reader *r = png_get_io_ptr(png);
    if (n > r->n - r->at)
        png_error(png, "it ends early");
    memcpy(to, r->bytes + r->at, n);
    r->at += n;
}

static int fail_damaged(struct png_reader *r, const struct image_source *s, struct det_err *err)
{
    png_destroy_read_struct(&r->png, &r->info, NULL);
    return det_fail(err, DET_ECORRUPT, "%s: the PNG is damaged or cut short: %s", s->name, r->text);
}

static int init_reader(struct png_reader *r, const struct image_source *s, struct det_err *err)
{
    *r = (struct png_reader){.bytes = s->bytes, .n = s->n_bytes, .text = "out of memory"};
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info) {
        png_destroy_read_struct(&r->png, NULL, NULL);
        return det_fail(err, DET_ENOMEM, "%s: libpng could not begin", s->name);
    }
    png_set_read_fn(r->png, r, on_read);
    png_set_user_limits(r->png, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX);
    png_set_chunk_malloc_max(r->png, CHUNK_MAX);
    png_set_chunk_cache_max(r->png, 1); /* keeps no text: hundreds of packed ones fit in a file */
    return 0;
}

/* Whatever it is, four bytes a pixel. */
static void to_rgbx(struct png_reader *r)
{
    png_set_strip_16(r->png);
    png_set_packing(r->png);
    int type = png_get_color_type(r->png, r->info);
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(r->png);
    if (type == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(r->png);
    if (!(type & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(r->png);
    if (!(type & PNG_COLOR_MASK_ALPHA))
        png_set_filler(r->png, 0xff, PNG_FILLER_AFTER);
}

/* Row by row; an interlaced file comes in passes over all rows. Within setjmp. */
static void read_rows(struct png_reader *r, uint8_t *px, size_t stride, int height)
{
    int passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    if (png_get_rowbytes(r->png, r->info) != stride)
        png_error(r->png, "its rows are not of four bytes a pixel");
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < height; y++)
            png_read_row(r->png, px + (size_t)y * stride, NULL);
}

static int png_decode(const struct image_source *s, struct image_rect rect, struct image_work *w,
                      struct image *ret, struct det_err *err)
{
    struct png_reader r;
    size_t stride = (size_t)s->width * 4;
    uint8_t *px = image_room(&w->decoded, stride * (size_t)s->height, err);
    if (!px)
        return DET_ENOMEM;
    int rc = init_reader(&r, s, err);
    if (rc < 0)
        return rc;
    if (setjmp(png_jmpbuf(r.png)))
        return fail_damaged(&r, s, err);
    png_read_info(r.png, r.info);
    to_rgbx(&r);
    read_rows(&r, px, stride, s->height);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    *ret = (struct image){.px = px + (size_t)rect.y * stride + (size_t)rect.x * 4,
                          .width = rect.width,
                          .height = rect.height,
                          .stride = stride};
    return 0;
}

int image_open_png(struct image_source *s, struct det_err *err)
{
    struct png_reader r;
    int rc = init_reader(&r, s, err);
    if (rc < 0)
        return rc;
    if (setjmp(png_jmpbuf(r.png)))
        return fail_damaged(&r, s, err);
    png_read_info(r.png, r.info);
    s->width = (int)png_get_image_width(r.png, r.info);
    s->height = (int)png_get_image_height(r.png, r.info);
    s->decode = png_decode;
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return 0;
}
