#include "guard.h"

#include "map.h"
#include "mem.h"

struct bucket {
    int64_t empty_ms; /* when it will have leaked all */
};

struct guard {
    struct map *names, *addresses; /* -> struct bucket */
};

struct guard *guard_create(void)
{
    struct guard *g = det_zalloc(sizeof *g);
    g->names = map_create();
    g->addresses = map_create();
    return g;
}

static void drop_buckets(struct map *m)
{
    const char *key;
    void *v;
    for (size_t it = 0; map_next(m, &it, &key, &v);)
        free(v);
    map_destroy(m);
}

void guard_destroy(struct guard *g)
{
    if (!g)
        return;
    drop_buckets(g->names);
    drop_buckets(g->addresses);
    free(g);
}

/* Without those that have leaked all. */
static struct map *keep_full(struct map *m, int64_t now_ms)
{
    struct map *ret = map_create();
    const char *key;
    void *v;
    for (size_t it = 0; map_next(m, &it, &key, &v);) {
        struct bucket *b = v;
        if (b->empty_ms > now_ms)
            map_put(ret, key, b);
        else
            free(b);
    }
    map_destroy(m);
    return ret;
}

/* So many addresses at once are an attack that no bucket stops: the oldest are not worth a search.
 */
static struct map *make_room(struct map *m, int64_t now_ms)
{
    if (map_size(m) < GUARD_KEYS_MAX)
        return m;
    m = keep_full(m, now_ms);
    if (map_size(m) < GUARD_KEYS_MAX)
        return m;
    drop_buckets(m);
    return map_create();
}

static struct bucket *bucket_of(struct map **m, const char *key, int64_t now_ms)
{
    struct bucket *b = map_get(*m, key);
    if (b)
        return b;
    *m = make_room(*m, now_ms);
    b = det_zalloc(sizeof *b);
    map_put(*m, key, b);
    return b;
}

static int64_t wait_of(int64_t empty_ms, int64_t burst, int64_t each_ms, int64_t now_ms)
{
    int64_t wait = empty_ms - now_ms - (burst - 1) * each_ms;
    return wait > 0 ? wait : 0;
}

static void count_try(int64_t *empty_ms, int64_t each_ms, int64_t now_ms)
{
    *empty_ms = (*empty_ms > now_ms ? *empty_ms : now_ms) + each_ms;
}

/* Caller frees. No address has a blank, so no two pairs have one key. */
static char *pair_key(const char *name, const char *address)
{
    return det_asprintf("%s %s", address, name);
}

int64_t guard_begin(struct guard *g, const char *name, const char *address, int64_t now_ms)
{
    det_cleanup(freep) char *pair = pair_key(name, address);
    struct bucket *of_address = bucket_of(&g->addresses, address, now_ms);
    int64_t wait = wait_of(of_address->empty_ms, GUARD_ADDRESS_BURST, GUARD_ADDRESS_MS, now_ms);
    if (wait > 0)
        return wait;
    struct bucket *of_name = bucket_of(&g->names, pair, now_ms);
    wait = wait_of(of_name->empty_ms, GUARD_NAME_BURST, GUARD_NAME_MS, now_ms);
    if (wait > 0)
        return wait;
    count_try(&of_address->empty_ms, GUARD_ADDRESS_MS, now_ms);
    count_try(&of_name->empty_ms, GUARD_NAME_MS, now_ms);
    return 0;
}

void guard_forgive(struct guard *g, const char *name, const char *address)
{
    det_cleanup(freep) char *pair = pair_key(name, address);
    struct bucket *of_address = map_get(g->addresses, address), *of_name = map_get(g->names, pair);
    if (of_address)
        of_address->empty_ms -= GUARD_ADDRESS_MS;
    if (of_name)
        of_name->empty_ms -= GUARD_NAME_MS;
}

bool notes_may(struct notes *n, int64_t now_ms, int64_t *ret_more)
{
    if (wait_of(n->empty_ms, NOTES_BURST, NOTES_MS, now_ms) > 0) {
        n->left_out++;
        return false;
    }
    count_try(&n->empty_ms, NOTES_MS, now_ms);
    *ret_more = n->left_out;
    n->left_out = 0;
    return true;
}
