/* Memory of images, raw planes, and which decoder an encoded image needs. */
#include "image.h"

#include "mem.h"
#include <string.h>

void image_work_finish(struct image_work *w)
{
    buf_finish(&w->file);
    free(w->decoded.p);
    free(w->rows.p);
    free(w->coefs.p);
    free(w->steps[0].p);
    free(w->steps[1].p);
    *w = (struct image_work){0};
}

int image_new(struct image_work *w, int width, int height, struct image *ret, struct det_err *err)
{
    struct image_room *room = &w->steps[w->turn];
    *ret = (struct image){.width = width, .height = height, .stride = (size_t)width * 4};
    ret->px = image_room(room, ret->stride * (size_t)height, err);
    w->turn = !w->turn;
    return ret->px ? 0 : DET_ENOMEM;
}

int image_open(struct image_source *ret, const char *name, const void *bytes, size_t n_bytes,
               int64_t pixels_max, struct det_err *err)
{
    int rc;
    *ret = (struct image_source){.bytes = bytes, .n_bytes = n_bytes, .name = name};
    if (n_bytes >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0)
        rc = image_open_jpeg(ret, err);
    else if (n_bytes >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        rc = image_open_png(ret, err);
    else
        return det_fail(err, DET_ECORRUPT, "%s: neither a JPEG nor a PNG file", name);
    if (rc < 0)
        return rc;
    if ((int64_t)ret->width * ret->height > pixels_max)
        return det_fail(err, DET_ETOOBIG,
                        "%s: %d x %d pixels are more than the limit of %lld (pixels_max)", name,
                        ret->width, ret->height, (long long)pixels_max);
    return 0;
}

/* ---- raw planes ---- */

static int planes_decode(const struct image_source *s, struct image_rect rect, struct image_work *w,
                         struct image *ret, struct det_err *err)
{
    size_t plane = s->channels == 3 ? (size_t)s->width * (size_t)s->height : 0;
    *ret = (struct image){
        .width = rect.width, .height = rect.height, .stride = (size_t)rect.width * 4};
    if (!(ret->px = image_room(&w->decoded, ret->stride * (size_t)rect.height, err)))
        return DET_ENOMEM;
    for (int y = 0; y < rect.height; y++) {
        const uint8_t *from = s->bytes + (size_t)(rect.y + y) * (size_t)s->width + rect.x;
        uint8_t *to = ret->px + (size_t)y * ret->stride;
        for (int x = 0; x < rect.width; x++, from++, to += 4)
            to[0] = from[0], to[1] = from[plane], to[2] = from[2 * plane], to[3] = 0;
    }
    return 0;
}

void image_open_planes(struct image_source *ret, const char *name, const uint8_t *bytes,
                       int channels, int height, int width)
{
    *ret = (struct image_source){.width = width,
                                 .height = height,
                                 .decode = planes_decode,
                                 .bytes = bytes,
                                 .channels = channels,
                                 .name = name};
}
