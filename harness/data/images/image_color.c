/* Colour jitter: blends with black, with the mean grey and with the image's own grey, as Pillow's
 * ImageEnhance does: grey is (19595 r + 38470 g + 7471 b + 2^15) >> 16 (ITU-R 601-2). */
#include "image.h"

static unsigned grey_of(const uint8_t *p)
{
    return (19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000u) >> 16;
}

static uint8_t blend_channel(double from, uint8_t v, double factor)
{
    double x = from + factor * (v - from);
    return x <= 0 ? 0 : x >= 255 ? 255 : (uint8_t)x;
}

static unsigned mean_grey(const struct image *im)
{
    uint64_t sum = 0;
    for (int y = 0; y < im->height; y++)
        for (int x = 0; x < im->width; x++)
            sum += grey_of(im->px + (size_t)y * im->stride + (size_t)x * 4);
    return (unsigned)((double)sum / ((double)im->width * im->height) + 0.5);
}

enum kind { BRIGHTNESS, CONTRAST, SATURATION };

static void adjust_pixels(struct image *im, enum kind kind, double factor)
{
    unsigned from = kind == CONTRAST ? mean_grey(im) : 0;
    for (int y = 0; y < im->height; y++) {
        uint8_t *p = im->px + (size_t)y * im->stride;
        for (int x = 0; x < im->width; x++, p += 4) {
            if (kind == SATURATION)
                from = grey_of(p);
            for (int c = 0; c < 3; c++)
                p[c] = blend_channel(from, p[c], factor);
        }
    }
}

void image_jitter(struct image *im, const struct det_image_step *step, struct det_draws *draws)
{
    static const enum kind orders[6][3] = {
        {BRIGHTNESS, CONTRAST, SATURATION}, {BRIGHTNESS, SATURATION, CONTRAST},
        {CONTRAST, BRIGHTNESS, SATURATION}, {CONTRAST, SATURATION, BRIGHTNESS},
        {SATURATION, BRIGHTNESS, CONTRAST}, {SATURATION, CONTRAST, BRIGHTNESS}};
    const double by[3] = {step->brightness, step->contrast, step->saturation};
    const enum kind *order = orders[det_draw_int(draws, 6)];
    for (int i = 0; i < 3; i++) {
        double v = by[order[i]];
        double factor = det_draw_uniform(draws, v < 1 ? 1 - v : 0, 1 + v);
        if (v > 0)
            adjust_pixels(im, order[i], factor);
    }
}
