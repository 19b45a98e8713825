/*
 * Curves as dots. A path is drawn into a mask first, each of its dots as much as the line covers of
 * it, then the mask is laid over the picture: where two pieces of a path meet nothing is darker.
 */
#include "plot_canvas.h"

#include "mem.h"
#include "plot_font.h"
#include <math.h>
#include <png.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SCALE = 2, W = CANVAS_W * SCALE, H = CANVAS_H * SCALE, RGB = 3 };
enum { DOT = SCALE, ADVANCE = (FONT_W + 1) * DOT }; /* of letters */

struct picture {
    uint8_t rgb[H][W][RGB];
    uint8_t mask[H][W]; /* 0 between two paths */
};

/* ---- paths ---- */

static int clamp_pixel(double v, int most)
{
    return v < 0 ? 0 : v > most ? most : (int)v;
}

static double distance_to_line(struct plot_point p, struct plot_point a, struct plot_point b)
{
    double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    double t = length > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length : 0;
    t = fmin(1, fmax(0, t));
    return hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

static void paint_line(struct picture *p, struct plot_point a, struct plot_point b, double width)
{
    double reach = width / 2 + 1;
    int x1 = clamp_pixel(fmax(a.x, b.x) + reach, W - 1),
        y1 = clamp_pixel(fmax(a.y, b.y) + reach, H - 1);
    for (int y = clamp_pixel(fmin(a.y, b.y) - reach, H - 1); y <= y1; y++)
        for (int x = clamp_pixel(fmin(a.x, b.x) - reach, W - 1); x <= x1; x++) {
            struct plot_point middle = {x + 0.5, y + 0.5};
            double part = fmin(1, fmax(0, width / 2 + 0.5 - distance_to_line(middle, a, b)));
            uint8_t covered = (uint8_t)lround(part * UINT8_MAX);
            if (covered > p->mask[y][x])
                p->mask[y][x] = covered;
        }
}

static void lay_over(struct picture *p, unsigned colour)
{
    const int channels[RGB] = {colour >> 16 & 0xff, colour >> 8 & 0xff, colour & 0xff};
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int i = 0; p->mask[y][x] && i < RGB; i++) {
                int under = p->rgb[y][x][i];
                int step = (channels[i] - under) * p->mask[y][x] / UINT8_MAX;
                p->rgb[y][x][i] = (uint8_t)(under + step);
            }
    memset(p->mask, 0, sizeof p->mask);
}

static void draw_path(void *self, const struct plot_point *v, size_t n, unsigned colour,
                      double width)
{
    struct plot_point before = {0};
    bool joined = false;
    for (size_t i = 0; i < n; i++) {
        struct plot_point p = {v[i].x * SCALE, v[i].y * SCALE};
        bool good = isfinite(p.x) && isfinite(p.y);
        if (good)
            paint_line(self, joined ? before : p, p, width * SCALE);
        joined = good;
        before = p;
    }
    lay_over(self, colour);
}

/* ---- letters ---- */

static bool begins_letter(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80; /* a letter, in UTF-8 */
}

static void draw_dot(struct picture *p, int x, int y)
{
    for (int k = 0; k < DOT; k++)
        for (int i = 0; i < DOT; i++)
            if (x + i >= 0 && x + i < W && y + k >= 0 && y + k < H)
                memset(p->rgb[y + k][x + i], 0, RGB);
}

/* (x, y): its corner at the left, on the base line. */
static void draw_letter(struct picture *p, char c, int x, int y)
{
    const uint8_t *rows = font[(c >= FONT_FIRST && c <= FONT_LAST ? c : '?') - FONT_FIRST];
    int top = y - (FONT_H - rows[FONT_H]) * DOT;
    for (int row = 0; row < FONT_H; row++)
        for (int i = 0; i < FONT_W; i++)
            if (rows[row] >> (FONT_W - 1 - i) & 1)
                draw_dot(p, x + i * DOT, top + row * DOT);
}

static void draw_text(void *self, double x, double y, enum canvas_anchor anchor, const char *text)
{
    int n = 0;
    for (const char *p = text; *p; p++)
        n += begins_letter(*p);
    int left = (int)(x * SCALE) - n * ADVANCE * (int)anchor / 2;
    for (; *text; text++)
        if (begins_letter(*text)) {
            draw_letter(self, *text, left, (int)(y * SCALE));
            left += ADVANCE;
        }
}

/* ---- the file ---- */

static int encode_png(const struct picture *p, struct buf *out, struct det_err *err)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = W, .height = H, .format = PNG_FORMAT_RGB};
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
    uint8_t *file det_cleanup(freep) = det_reallocarray(NULL, bytes, 1);
    if (!png_image_write_to_memory(&image, file, &bytes, 0, p->rgb, 0, NULL))
        return det_fail(err, DET_EIO, "the picture cannot be made: %s", image.message);
    buf_add(out, file, bytes);
    return 0;
}

int plot_png(const struct plot_line *lines, size_t n, const struct plot_axes *axes, struct buf *out,
             struct det_err *err)
{
    struct picture *p det_cleanup(freep) = det_zalloc(sizeof *p);
    memset(p->rgb, UINT8_MAX, sizeof p->rgb);
    canvas_plot(&(struct canvas){draw_path, draw_text, p}, lines, n, axes);
    return encode_png(p, out, err);
}
