#include "fit_index.h"

#include <assert.h>

/* The first bucket not below (free, whole). */
static size_t bucket_at(const struct fit_index *x, int64_t have, int whole)
{
    return vec_bound(&x->buckets, b, b->free < have || (b->free == have && b->whole < whole));
}

/* Equal hashes stand in falling order of id, as a walk goes downwards. */
static bool is_before(const struct fit_entry *e, const struct agent *a)
{
    if (e->hash != a->hash)
        return e->hash < a->hash;
    return strcmp(e->agent->id, a->id) > 0;
}

static size_t entry_at(const struct fit_bucket *b, const struct agent *a)
{
    return vec_bound(&b->entries, e, is_before(e, a));
}

static bool is_bucket(const struct fit_index *x, size_t i, int have, int whole)
{
    return i < x->buckets.n && x->buckets.v[i].free == have && x->buckets.v[i].whole == whole;
}

void fit_index_add(struct fit_index *x, int have, int whole, struct agent *a)
{
    size_t i = bucket_at(x, have, whole);
    if (!is_bucket(x, i, have, whole))
        vec_insert(&x->buckets, i, (struct fit_bucket){.free = have, .whole = whole});
    struct fit_bucket *b = &x->buckets.v[i];
    vec_insert(&b->entries, entry_at(b, a), (struct fit_entry){a->hash, a});
}

void fit_index_del(struct fit_index *x, int have, int whole, struct agent *a)
{
    size_t i = bucket_at(x, have, whole);
    assert(is_bucket(x, i, have, whole));
    struct fit_bucket *b = &x->buckets.v[i];
    size_t k = entry_at(b, a);
    assert(k < b->entries.n && b->entries.v[k].agent == a);
    vec_remove(&b->entries, k);
    if (b->entries.n)
        return;
    vec_free(&b->entries);
    vec_remove(&x->buckets, i);
}

void fit_index_finish(struct fit_index *x)
{
    for (size_t i = 0; i < x->buckets.n; i++)
        vec_free(&x->buckets.v[i].entries);
    vec_free(&x->buckets);
}

size_t fit_index_from(const struct fit_index *x, int64_t have)
{
    return bucket_at(x, have, 0);
}

size_t fit_bucket_start(const struct fit_bucket *b, uint64_t hash)
{
    size_t after = vec_bound(&b->entries, e, e->hash <= hash);
    return after ? after - 1 : b->entries.n - 1;
}

void fit_tally_add(struct fit_tally *t, int size, int64_t n)
{
    size_t i = 0;
    while (i < t->sizes.n && t->sizes.v[i].size < size)
        i++;
    if (i == t->sizes.n || t->sizes.v[i].size != size)
        vec_insert(&t->sizes, i, (struct fit_size){.size = size});
    t->sizes.v[i].n += n;
    assert(t->sizes.v[i].n >= 0);
    if (t->sizes.v[i].n == 0)
        vec_remove(&t->sizes, i);
}
