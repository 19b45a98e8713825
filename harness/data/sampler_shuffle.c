/* Samplers that shuffle: PyTorch's and NumPy's generators. */
#include "sampler_impl.h"

static void random_begin(struct det_sampler *s)
{
    mt19937_torch_randperm(&s->rng, s->items.v, (size_t)s->n);
}

/* At its end PyTorch's draws one permutation more, of which it gives nothing. */
static bool random_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    if (s->at == s->n) {
        s->at++;
        mt19937_torch_randperm(&s->rng, s->items.v, (size_t)s->n);
    }
    if (s->at > s->n)
        return false;
    *ret = &s->items.v[s->at++];
    *ret_n = 1;
    return true;
}

static void seed_generator(struct det_sampler *s)
{
    mt19937_seed(&s->rng, (uint32_t)s->seed);
}

static const struct sampler_type random_type = {random_begin, random_next, seed_generator};

struct det_sampler *det_sampler_random(int64_t n, uint64_t seed, struct det_err *err)
{
    struct det_sampler *s = sampler_source(&random_type, n, err);
    if (!s)
        return NULL;
    s->items.v = det_try_alloc(sizeof *s->items.v * (size_t)(n ? n : 1));
    if (!s->items.v) {
        det_fail(err, DET_ENOMEM, "random sampler: an order of %lld records", (long long)n);
        det_sampler_destroy(s);
        return NULL;
    }
    s->seed = seed;
    seed_generator(s);
    return s;
}

/* All items of the inner sampler, then their order. */
static void shuffle_begin(struct det_sampler *s)
{
    const int64_t *item;
    size_t n;
    s->items.n = s->ends.n = s->order.n = 0;
    while (det_sampler_next(s->inner, &item, &n)) {
        vec_push(&s->order, (int64_t)s->ends.n);
        for (size_t i = 0; i < n; i++)
            vec_push(&s->items, item[i]);
        vec_push(&s->ends, s->items.n);
    }
    mt19937_shuffle(&s->rng, s->order.v, s->order.n);
}

static bool shuffle_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    if (s->at == (int64_t)s->order.n)
        return false;
    int64_t item = s->order.v[s->at++];
    size_t first = item ? s->ends.v[item - 1] : 0;
    *ret = s->items.v + first;
    *ret_n = s->ends.v[item] - first;
    return true;
}

static const struct sampler_type shuffle_type = {shuffle_begin, shuffle_next, seed_generator};

struct det_sampler *det_sampler_shuffle(struct det_sampler *inner, uint32_t seed,
                                        struct det_err *err)
{
    if (inner && inner->endless) {
        det_fail(err, DET_EINVAL, "shuffle sampler: a sampler that repeats for ever has no end");
        det_sampler_destroy(inner);
        return NULL;
    }
    struct det_sampler *s = sampler_around(&shuffle_type, inner);
    if (!s)
        return NULL;
    s->seed = seed;
    seed_generator(s);
    return s;
}
