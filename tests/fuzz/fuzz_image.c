/* Hostile images, JPEG or PNG; the size of the input chooses the steps. */
#include "image.h"
#include "mem.h"
#include <stdint.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIDE       16
#define PIXELS_MAX (1 << 18)

static const struct det_image_step plans[][3] = {
    {{DET_CENTER_CROP, .size = SIDE}},
    {{DET_RANDOM_RESIZED_CROP, .size = SIDE}, {.op = DET_RANDOM_HORIZONTAL_FLIP}},
    {{DET_RESIZE, .height = SIDE, .width = SIDE}, {DET_COLOR_JITTER, .contrast = 0.4}},
    {{DET_RANDOM_CROP, .size = SIDE, .padding = 4}},
};

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* A mutant of a PNG would fail at its first checksum: give every chunk the right one. */
static void mend_checksums(uint8_t *p, size_t size)
{
    for (size_t at = 8; size >= 12 && at <= size - 12;) {
        uint32_t n = be32(p + at);
        if (n > size - 12 - at)
            return;
        uint32_t crc = (uint32_t)crc32(0, p + at + 4, n + 4);
        uint8_t sum[4] = {crc >> 24 & 255, crc >> 16 & 255, crc >> 8 & 255, crc & 255};
        memcpy(p + at + 8 + n, sum, sizeof sum);
        at += 12 + (size_t)n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float out[3 * SIDE * SIDE];
    struct image_steps steps;
    struct image_source source;
    struct image_work w = {0};
    struct det_draws draws = {.seed = size};
    if (size == 0 || image_steps_init(&steps, plans[size % 4], 0, 0, NULL) < 0)
        return 0;
    det_cleanup(freep) uint8_t *copy = det_memdup(data, size);
    if (copy[0] != 0xff)
        mend_checksums(copy, size);
    if (image_open(&source, "fuzz", copy, size, PIXELS_MAX, NULL) == 0)
        det_ignore(image_steps_run(&steps, &source, &draws, &w, out, NULL),
                   "whatever it says, nothing breaks");
    image_work_finish(&w);
    image_steps_finish(&steps);
    return 0;
}
