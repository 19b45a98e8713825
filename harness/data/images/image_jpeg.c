/*
 * JPEG by libjpeg-turbo. Only the rows and the MCU columns of the wanted rectangle are transformed
 * back; one more MCU on either side keeps the smooth upsampling of the colours what it is in the
 * whole image. The library reports errors by longjmp: no local that changes lives across setjmp.
 */
#include "image.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#define SCANS_MAX 500 /* a progressive file of more only costs time */

struct jpeg {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf stop;
    char text[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr cinfo)
{
    struct jpeg *j = cinfo->client_data;
    cinfo->err->format_message(cinfo, j->text);
    longjmp(j->stop, 1);
}

/* Warnings: an image that ends early lacks pixels; what else the library mends is good enough, as
 * it is for Pillow. */
static void on_message(j_common_ptr cinfo, int level)
{
    if (level < 0 && cinfo->err->msg_code == JWRN_JPEG_EOF)
        on_error(cinfo);
}

static void on_progress(j_common_ptr cinfo)
{
    struct jpeg *j = cinfo->client_data;
    if (j->cinfo.input_scan_number > SCANS_MAX) {
        snprintf(j->text, sizeof j->text, "more than %d scans", SCANS_MAX);
        longjmp(j->stop, 1);
    }
}

/* Within setjmp: the library's state and the file's head. */
static void begin_decompress(struct jpeg *j, const struct image_source *s)
{
    jpeg_create_decompress(&j->cinfo);
    j->cinfo.client_data = j;
    j->cinfo.progress = &j->progress;
    j->progress.progress_monitor = on_progress;
    jpeg_mem_src(&j->cinfo, s->bytes, s->n_bytes);
    jpeg_read_header(&j->cinfo, TRUE);
}

static void init_reader(struct jpeg *j)
{
    memset(j, 0, sizeof *j);
    j->cinfo.err = jpeg_std_error(&j->errors);
    j->cinfo.client_data = j;
    j->errors.error_exit = on_error;
    j->errors.emit_message = on_message;
}

static int fail_damaged(struct jpeg *j, const struct image_source *s, struct det_err *err)
{
    jpeg_destroy_decompress(&j->cinfo);
    return det_fail(err, DET_ECORRUPT, "%s: the JPEG is damaged or cut short: %s", s->name,
                    j->text);
}

/* Inks as bytes, of which Adobe's files hold the complement, to red, green and blue. */
static void cmyk_row(uint8_t *row, JDIMENSION width, bool inverted)
{
    for (JDIMENSION x = 0; x < width; x++, row += 4) {
        unsigned k = inverted ? row[3] : 255u - row[3];
        for (int c = 0; c < 3; c++) {
            unsigned v = inverted ? row[c] : 255u - row[c];
            row[c] = (uint8_t)((v * k + 127) / 255);
        }
    }
}

static void read_rows(struct jpeg *j, int rows, uint8_t *to, size_t stride)
{
    bool cmyk = j->cinfo.out_color_space == JCS_CMYK;
    for (int y = 0; y < rows; y++, to += stride) {
        JSAMPROW row = to;
        if (jpeg_read_scanlines(&j->cinfo, &row, 1) != 1)
            ERREXIT(&j->cinfo, JERR_INPUT_EMPTY);
        if (cmyk)
            cmyk_row(to, j->cinfo.output_width, j->cinfo.saw_Adobe_marker);
    }
}

/* Columns to decode: rect and an MCU on either side; *ret_x is where they begin. */
static void crop_columns(struct jpeg *j, struct image_rect rect, int *ret_x)
{
    int mcu = j->cinfo.max_h_samp_factor * DCTSIZE, all = (int)j->cinfo.output_width;
    int first = rect.x > mcu ? rect.x - mcu : 0;
    int end = rect.x + rect.width + mcu < all ? rect.x + rect.width + mcu : all;
    JDIMENSION x = (JDIMENSION)first, width = (JDIMENSION)(end - first);
    *ret_x = 0;
    if (width >= j->cinfo.output_width)
        return;
    jpeg_crop_scanline(&j->cinfo, &x, &width);
    *ret_x = (int)x;
}

/* Within setjmp. */
static int decode_rows(struct jpeg *j, struct image_rect rect, struct image_work *w,
                       struct image *ret, struct det_err *err)
{
    int x;
    struct jpeg_decompress_struct *c = &j->cinfo;
    bool inks = c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
    c->out_color_space = inks ? JCS_CMYK : JCS_EXT_RGBX;
    jpeg_start_decompress(c);
    crop_columns(j, rect, &x);
    size_t stride = (size_t)c->output_width * 4;
    uint8_t *px = image_room(&w->decoded, stride * (size_t)rect.height, err);
    if (!px)
        return DET_ENOMEM;
    if (rect.y > 0)
        jpeg_skip_scanlines(c, (JDIMENSION)rect.y);
    read_rows(j, rect.height, px, stride);
    *ret = (struct image){.px = px + (size_t)(rect.x - x) * 4,
                          .width = rect.width,
                          .height = rect.height,
                          .stride = stride};
    return 0;
}

static int jpeg_decode(const struct image_source *s, struct image_rect rect, struct image_work *w,
                       struct image *ret, struct det_err *err)
{
    struct jpeg j;
    init_reader(&j);
    if (setjmp(j.stop))
        return fail_damaged(&j, s, err);
    begin_decompress(&j, s);
    int rc = decode_rows(&j, rect, w, ret, err);
    jpeg_destroy_decompress(&j.cinfo);
    return rc;
}

int image_open_jpeg(struct image_source *s, struct det_err *err)
{
    struct jpeg j;
    init_reader(&j);
    if (setjmp(j.stop))
        return fail_damaged(&j, s, err);
    begin_decompress(&j, s);
    s->width = (int)j.cinfo.image_width;
    s->height = (int)j.cinfo.image_height;
    s->decode = jpeg_decode;
    jpeg_destroy_decompress(&j.cinfo);
    return 0;
}
