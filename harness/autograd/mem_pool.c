#include "mem_pool.h"

#include "map.h"
#include "mem.h"

#define SMALL_BYTES ((size_t)1 << 20)  /* smaller pieces are cheap to keep */
#define SLACK_BYTES ((size_t)24 << 20) /* that small models keep, whatever their sizes */

/* A free piece; its size is that of its list. */
struct piece {
    struct piece *next;
    void *data;
};

struct list {
    size_t bytes;
    struct piece *free;
};

struct mem_pool {
    const struct det_backend *backend;
    struct det_device *device;
    struct imap *lists; /* rounded size -> struct list */
    size_t live;        /* pieces in use */
    size_t bytes, peak; /* in use */
    size_t unused;      /* in the lists */
    size_t limit;
    bool orphan;
};

/* Classes an eighth of a power of two apart, so that close sizes share pieces. */
static size_t class_of(size_t bytes)
{
    size_t step = 64;
    while (step * 16 < bytes)
        step *= 2;
    size_t rounded = (bytes + step - 1) / step * step;
    return rounded ? rounded : 64;
}

struct mem_pool *mem_pool_create(const struct det_backend *backend, struct det_device *device,
                                 size_t limit_bytes)
{
    struct mem_pool *p = det_zalloc(sizeof *p);
    p->backend = backend;
    p->device = device;
    p->limit = limit_bytes ? limit_bytes : SIZE_MAX;
    p->lists = imap_create();
    return p;
}

/* Gives pieces back until no more than `goal` bytes of the pool are unused. */
static void list_trim(struct mem_pool *p, struct list *l, size_t goal)
{
    while (l->free && p->unused > goal) {
        struct piece *piece = l->free;
        l->free = piece->next;
        p->unused -= l->bytes;
        p->backend->mem_free(p->device, piece->data, l->bytes);
        free(piece);
    }
}

size_t mem_pool_trim(struct mem_pool *p)
{
    uint64_t key;
    void *value;
    size_t unused = p->unused;
    for (size_t it = 0; imap_next(p->lists, &it, &key, &value);)
        list_trim(p, value, 0);
    return unused + (p->backend->mem_trim ? p->backend->mem_trim(p->device) : 0);
}

static void end_pool(struct mem_pool *p)
{
    uint64_t key;
    void *value;
    mem_pool_trim(p);
    for (size_t it = 0; imap_next(p->lists, &it, &key, &value);)
        free(value);
    imap_destroy(p->lists);
    p->backend->device_close(p->device);
    free(p);
}

void mem_pool_destroy(struct mem_pool *p)
{
    if (!p)
        return;
    p->orphan = true;
    if (p->live == 0)
        end_pool(p);
}

static struct list *list_of(struct mem_pool *p, size_t bytes)
{
    struct list *l = imap_get(p->lists, bytes);
    if (!l) {
        l = det_zalloc(sizeof *l);
        l->bytes = bytes;
        imap_put(p->lists, bytes, l);
    }
    return l;
}

/* Gives unused pieces of other sizes back before a new one is taken: a step's backward needs other
 * sizes than its forward has left, and both together are to need no more than what was in use at
 * the peak. Not on devices, where giving back waits for the device. */
static void make_room(struct mem_pool *p, size_t bytes)
{
    uint64_t key;
    void *value;
    if (!p->backend->host_memory || bytes < SMALL_BYTES ||
        p->bytes + p->unused + bytes <= p->peak + SLACK_BYTES)
        return;
    size_t goal = p->unused > bytes ? p->unused - bytes : 0;
    for (size_t it = 0; p->unused > goal && imap_next(p->lists, &it, &key, &value);)
        if (key >= SMALL_BYTES)
            list_trim(p, value, goal);
}

static int alloc_fresh(struct mem_pool *p, size_t bytes, void **ret, struct det_err *err)
{
    make_room(p, bytes);
    if (p->backend->mem_alloc(p->device, bytes, ret, NULL) == 0)
        return 0;
    mem_pool_trim(p);
    return p->backend->mem_alloc(p->device, bytes, ret, err);
}

int mem_pool_alloc(struct mem_pool *p, size_t bytes, void **ret, struct det_err *err)
{
    size_t rounded = class_of(bytes);
    if (rounded > p->limit || p->bytes > p->limit - rounded)
        return det_fail(err, DET_ENOMEM,
                        "%zu bytes beside %zu in use are more than the %zu that DET_MEM_LIMIT "
                        "allows: a smaller batch or model may fit",
                        bytes, p->bytes, p->limit);
    struct list *l = list_of(p, rounded);
    struct piece *piece = l->free;
    if (piece) {
        l->free = piece->next;
        *ret = piece->data;
        p->unused -= rounded;
        free(piece);
    } else {
        int rc = alloc_fresh(p, rounded, ret, err);
        if (rc < 0)
            return det_wrap(err, rc,
                            "no memory for %zu bytes beside %zu in use: a smaller batch or model "
                            "may fit",
                            bytes, p->bytes);
    }
    p->live++;
    p->bytes += rounded;
    p->peak = p->bytes > p->peak ? p->bytes : p->peak;
    return 0;
}

void mem_pool_free(struct mem_pool *p, void *data, size_t bytes)
{
    size_t rounded = class_of(bytes);
    struct list *l = list_of(p, rounded);
    struct piece *piece = det_alloc(sizeof *piece);
    piece->data = data;
    piece->next = l->free;
    l->free = piece;
    p->unused += rounded;
    p->live--;
    p->bytes -= rounded;
    if (p->orphan && p->live == 0)
        end_pool(p);
}

size_t mem_pool_bytes(const struct mem_pool *p)
{
    return p->bytes;
}

size_t mem_pool_peak_bytes(const struct mem_pool *p)
{
    return p->peak;
}
