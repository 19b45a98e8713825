/* Memory for pixels, kept from image to image. */
#include "image.h"

#include "mem.h"

void *image_room(struct image_room *r, size_t bytes, struct det_err *err)
{
    if (bytes > r->cap) {
        free(r->p);
        r->cap = 0;
        r->p = det_try_alloc(bytes);
        if (!r->p) {
            det_fail(err, DET_ENOMEM, "image: %zu bytes of pixels", bytes);
            return NULL;
        }
        r->cap = bytes;
    }
    return r->p;
}
