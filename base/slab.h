/*
 * Objects of one size, side by side: what is looked at in one go over all of them lies in few pages
 * of memory, whatever else was allocated between. Cleared, and at the beginning of a line of the
 * processor's cache. Needs no end of its own: memory goes when the last object in it is put back.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>

struct slab_chunk;
struct slab {
    size_t bytes;            /* of an object, 1 to 4096; the caller fills it in */
    struct slab_chunk *open; /* those with room, in a list */
};

void *slab_get(struct slab *s); /* never NULL; the slab stays where it is meanwhile */
void slab_put(void *object);    /* NULL: nothing */

#endif
