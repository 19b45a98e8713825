/* Samplers inside: one struct for all kinds, each of which uses what it needs. */
#ifndef SAMPLER_IMPL_H
#define SAMPLER_IMPL_H

#include "det/sampler.h"
#include "rng.h"
#include "vec.h"

struct sampler_type {
    void (*begin)(struct det_sampler *s); /* may be NULL; inner has begun */
    bool (*next)(struct det_sampler *s, const int64_t **ret, size_t *ret_n);
    void (*rewind)(struct det_sampler *s); /* may be NULL */
};

struct det_sampler {
    const struct sampler_type *type;
    struct det_sampler *inner; /* owned; NULL: a source */
    int64_t length;
    bool batches; /* items are batches */
    bool endless; /* one time through does not end */
    bool begun;
    int64_t n;  /* records, batch size, workers or what to skip */
    int64_t at; /* items so far, this time through */
    int rank;
    bool drop_last;
    int64_t one;
    uint64_t seed;
    struct mt19937 rng;
    VEC(int64_t) items; /* of a list, a batch, or all batches one after another ... */
    VEC(size_t) ends;   /* ... where batch i ends in items */
    VEC(int64_t) order; /* of a shuffle */
};

struct det_sampler *sampler_source(const struct sampler_type *type, int64_t n, struct det_err *err);
struct det_sampler *sampler_around(const struct sampler_type *type, struct det_sampler *inner);

#endif
