#include "slab.h"

#include "mem.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 16, LINE_BYTES = 64 };

struct free_object {
    struct free_object *next;
};
/* At the beginning of its memory, which begins at a multiple of CHUNK_BYTES: an object knows it. */
struct slab_chunk {
    struct slab *slab;
    struct slab_chunk *prev, *next; /* while it is open */
    struct free_object *free;       /* those put back */
    size_t used, begun;             /* objects; those from begun on were never given out */
};
_Static_assert(sizeof(struct slab_chunk) <= LINE_BYTES, "the first object comes after it");

static size_t stride_bytes(const struct slab *s)
{
    return (s->bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static size_t items_per_chunk(const struct slab *s)
{
    return (CHUNK_BYTES - LINE_BYTES) / stride_bytes(s);
}

static void open_chunk(struct slab_chunk *k)
{
    k->prev = NULL;
    k->next = k->slab->open;
    if (k->next)
        k->next->prev = k;
    k->slab->open = k;
}

static void close_chunk(struct slab_chunk *k)
{
    *(k->prev ? &k->prev->next : &k->slab->open) = k->next;
    if (k->next)
        k->next->prev = k->prev;
}

static struct slab_chunk *new_chunk(struct slab *s)
{
    struct slab_chunk *k = aligned_alloc(CHUNK_BYTES, CHUNK_BYTES);
    if (!k)
        abort(); /* as small allocations do */
    *k = (struct slab_chunk){.slab = s};
    open_chunk(k);
    return k;
}

void *slab_get(struct slab *s)
{
    assert(s->bytes > 0 && s->bytes <= 4096);
    struct slab_chunk *k = s->open ? s->open : new_chunk(s);
    void *object = k->free;
    if (object)
        k->free = k->free->next;
    else
        object = (char *)k + LINE_BYTES + k->begun++ * stride_bytes(s);
    if (++k->used == items_per_chunk(s))
        close_chunk(k);
    return memset(object, 0, s->bytes);
}

void slab_put(void *object)
{
    if (!object)
        return;
    struct slab_chunk *k = (void *)((uintptr_t)object & ~(uintptr_t)(CHUNK_BYTES - 1));
    struct free_object *f = object;
    f->next = k->free;
    k->free = f;
    if (k->used-- == items_per_chunk(k->slab))
        open_chunk(k);
    if (k->used > 0)
        return;
    close_chunk(k);
    free(k);
}
