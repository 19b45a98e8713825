/*
 * One table serves both maps: a dense array of entries in insertion order, and an index of slots by
 * linear probing. A removed entry stays in the array, dead, until the next rebuild, so that the
 * order of the others holds and a probe never stops early.
 */
#include "map.h"

#include "hash.h"
#include "mem.h"
#include <string.h>

struct entry {
    uint64_t k; /* the key of an imap; the hash of a map's key */
    char *s;    /* a map's key, owned; NULL in an imap */
    void *value;
    bool live;
};

struct table {
    struct entry *entries;
    size_t n, cap, live;
    uint32_t *slots; /* 0: free, else index into entries plus one */
    size_t slots_n;  /* a power of two, or 0 */
};

struct map {
    struct table t;
};

struct imap {
    struct table t;
};

/* The finaliser of splitmix64: spreads consecutive ids over the slots. */
static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static struct entry *find_entry(const struct table *t, uint64_t k, const char *s)
{
    if (!t->slots_n)
        return NULL;
    for (size_t i = mix_bits(k) & (t->slots_n - 1);; i = (i + 1) & (t->slots_n - 1)) {
        if (!t->slots[i])
            return NULL;
        struct entry *e = &t->entries[t->slots[i] - 1];
        if (e->live && e->k == k && (!s || strcmp(e->s, s) == 0))
            return e;
    }
}

static void slot_add(struct table *t, size_t entry)
{
    size_t i = mix_bits(t->entries[entry].k) & (t->slots_n - 1);
    while (t->slots[i])
        i = (i + 1) & (t->slots_n - 1);
    t->slots[i] = (uint32_t)(entry + 1);
}

/* Drops the dead and makes room for as many again as live. */
static void rebuild_table(struct table *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->entries[i].live)
            t->entries[n++] = t->entries[i];
    t->n = n;
    t->cap = n * 2 < 8 ? 8 : n * 2;
    t->entries = det_reallocarray(t->entries, t->cap, sizeof *t->entries);
    size_t slots_n = 16;
    while (slots_n < t->cap * 2)
        slots_n *= 2;
    free(t->slots);
    t->slots = det_zalloc(slots_n * sizeof *t->slots);
    t->slots_n = slots_n;
    for (size_t i = 0; i < n; i++)
        slot_add(t, i);
}

static void *put_entry(struct table *t, uint64_t k, const char *s, void *value)
{
    struct entry *e = find_entry(t, k, s);
    if (e) {
        void *old = e->value;
        e->value = value;
        return old;
    }
    if (t->n == t->cap)
        rebuild_table(t);
    t->entries[t->n] = (struct entry){.k = k, .s = det_strdup(s), .value = value, .live = true};
    slot_add(t, t->n++);
    t->live++;
    return NULL;
}

static void *remove_entry(struct table *t, uint64_t k, const char *s)
{
    struct entry *e = find_entry(t, k, s);
    if (!e)
        return NULL;
    e->live = false;
    free(det_take(e->s));
    t->live--;
    return e->value;
}

static struct entry *next_entry(const struct table *t, size_t *it)
{
    while (*it < t->n) {
        struct entry *e = &t->entries[(*it)++];
        if (e->live)
            return e;
    }
    return NULL;
}

static void free_entries(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->entries[i].s);
    free(t->entries);
    free(t->slots);
}

static uint64_t hash_of(const char *key)
{
    return hash_fnv64(key, strlen(key));
}

struct map *map_create(void)
{
    return det_zalloc(sizeof(struct map));
}

void map_destroy(struct map *m)
{
    if (!m)
        return;
    free_entries(&m->t);
    free(m);
}

void *map_get(const struct map *m, const char *key)
{
    struct entry *e = find_entry(&m->t, hash_of(key), key);
    return e ? e->value : NULL;
}

void *map_put(struct map *m, const char *key, void *value)
{
    return put_entry(&m->t, hash_of(key), key, value);
}

void *map_del(struct map *m, const char *key)
{
    return remove_entry(&m->t, hash_of(key), key);
}

size_t map_size(const struct map *m)
{
    return m->t.live;
}

bool map_next(const struct map *m, size_t *it, const char **key, void **value)
{
    struct entry *e = next_entry(&m->t, it);
    if (!e)
        return false;
    *key = e->s;
    *value = e->value;
    return true;
}

struct imap *imap_create(void)
{
    return det_zalloc(sizeof(struct imap));
}

void imap_destroy(struct imap *m)
{
    if (!m)
        return;
    free_entries(&m->t);
    free(m);
}

void *imap_get(const struct imap *m, uint64_t key)
{
    struct entry *e = find_entry(&m->t, key, NULL);
    return e ? e->value : NULL;
}

void *imap_put(struct imap *m, uint64_t key, void *value)
{
    return put_entry(&m->t, key, NULL, value);
}

void *imap_del(struct imap *m, uint64_t key)
{
    return remove_entry(&m->t, key, NULL);
}

size_t imap_size(const struct imap *m)
{
    return m->t.live;
}

bool imap_next(const struct imap *m, size_t *it, uint64_t *key, void **value)
{
    struct entry *e = next_entry(&m->t, it);
    if (!e)
        return false;
    *key = e->k;
    *value = e->value;
    return true;
}
