/* Samplers: how each kind goes through its items. The shuffling ones are in sampler_shuffle.c. */
#include "sampler_impl.h"

static struct det_sampler *refuse_sampler(struct det_sampler *s)
{
    det_sampler_destroy(s);
    return NULL;
}

/* ---- sources ---- */

static bool count_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    if (s->at == s->n)
        return false;
    s->one = s->at++;
    *ret = &s->one;
    *ret_n = 1;
    return true;
}

static const struct sampler_type sequential_type = {.next = count_next};

struct det_sampler *det_sampler_sequential(int64_t n, struct det_err *err)
{
    return sampler_source(&sequential_type, n, err);
}

static bool list_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    if (s->at == s->n)
        return false;
    *ret = &s->items.v[s->at++];
    *ret_n = 1;
    return true;
}

static const struct sampler_type list_type = {.next = list_next};

struct det_sampler *det_sampler_list(const int64_t *indices, int64_t n, struct det_err *err)
{
    struct det_sampler *s = sampler_source(&list_type, n, err);
    for (int64_t i = 0; s && i < n; i++)
        vec_push(&s->items, indices[i]);
    return s;
}

/* ---- what goes round another ---- */

/* Items of one record each, gathered. */
static bool batch_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    const int64_t *item;
    size_t n;
    s->items.n = 0;
    while ((int64_t)s->items.n < s->n && det_sampler_next(s->inner, &item, &n))
        vec_push(&s->items, item[0]);
    *ret = s->items.v;
    *ret_n = s->items.n;
    return s->items.n > 0 && ((int64_t)s->items.n == s->n || !s->drop_last);
}

static const struct sampler_type batch_type = {.next = batch_next};

struct det_sampler *det_sampler_batch(struct det_sampler *inner, int64_t batch_size, bool drop_last,
                                      struct det_err *err)
{
    if (inner && (batch_size < 1 || inner->batches)) {
        det_fail(err, DET_EINVAL, "batch sampler: %s",
                 inner->batches ? "its items are batches already" : "batch_size is less than 1");
        return refuse_sampler(inner);
    }
    struct det_sampler *s = sampler_around(&batch_type, inner);
    if (!s)
        return NULL;
    s->n = batch_size;
    s->drop_last = drop_last;
    s->batches = true;
    s->length = inner->length / batch_size + (!drop_last && inner->length % batch_size ? 1 : 0);
    return s;
}

static bool repeat_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    if (det_sampler_next(s->inner, ret, ret_n))
        return true;
    det_sampler_begin(s->inner);
    return det_sampler_next(s->inner, ret, ret_n); /* false: there is nothing to repeat */
}

static const struct sampler_type repeat_type = {.next = repeat_next};

struct det_sampler *det_sampler_repeat(struct det_sampler *inner, struct det_err *err)
{
    struct det_sampler *s = sampler_around(&repeat_type, inner);
    if (s)
        s->endless = true;
    return s;
}

static bool distributed_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    while (det_sampler_next(s->inner, ret, ret_n))
        if (s->at++ % s->n == s->rank)
            return true;
    return false;
}

static const struct sampler_type distributed_type = {.next = distributed_next};

struct det_sampler *det_sampler_distributed(struct det_sampler *inner, int workers, int rank,
                                            struct det_err *err)
{
    if (inner && (workers < 1 || rank < 0 || rank >= workers)) {
        det_fail(err, DET_EINVAL, "distributed sampler: rank %d of %d workers", rank, workers);
        return refuse_sampler(inner);
    }
    struct det_sampler *s = sampler_around(&distributed_type, inner);
    if (!s)
        return NULL;
    s->n = workers;
    s->rank = rank;
    s->length = inner->length / workers + (inner->length % workers > rank ? 1 : 0);
    return s;
}

static bool skip_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    for (; s->at < s->n; s->at++)
        if (!det_sampler_next(s->inner, ret, ret_n))
            return false;
    return det_sampler_next(s->inner, ret, ret_n);
}

static const struct sampler_type skip_type = {.next = skip_next};

struct det_sampler *det_sampler_skip(struct det_sampler *inner, int64_t skip, struct det_err *err)
{
    if (inner && skip < 0) {
        det_fail(err, DET_EINVAL, "skip sampler: %lld items", (long long)skip);
        return refuse_sampler(inner);
    }
    struct det_sampler *s = sampler_around(&skip_type, inner);
    if (s)
        s->n = skip;
    return s;
}

/* ---- common ---- */

struct det_sampler *sampler_source(const struct sampler_type *type, int64_t n, struct det_err *err)
{
    if (n < 0) {
        det_fail(err, DET_EINVAL, "sampler: %lld records", (long long)n);
        return NULL;
    }
    struct det_sampler *s = det_zalloc(sizeof *s);
    s->type = type;
    s->n = s->length = n;
    return s;
}

struct det_sampler *sampler_around(const struct sampler_type *type, struct det_sampler *inner)
{
    if (!inner)
        return NULL;
    struct det_sampler *s = det_zalloc(sizeof *s);
    s->type = type;
    s->inner = inner;
    s->length = inner->length;
    s->batches = inner->batches;
    s->endless = inner->endless;
    return s;
}

void det_sampler_destroy(struct det_sampler *s)
{
    if (!s)
        return;
    det_sampler_destroy(s->inner);
    vec_free(&s->items);
    vec_free(&s->ends);
    vec_free(&s->order);
    free(s);
}

int64_t det_sampler_length(const struct det_sampler *s)
{
    return s ? s->length : 0;
}

void det_sampler_begin(struct det_sampler *s)
{
    if (s->inner)
        det_sampler_begin(s->inner);
    s->at = 0;
    s->begun = true;
    if (s->type->begin)
        s->type->begin(s);
}

bool det_sampler_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n)
{
    if (!s->begun)
        det_sampler_begin(s);
    return s->type->next(s, ret, ret_n);
}

void det_sampler_rewind(struct det_sampler *s)
{
    if (s->inner)
        det_sampler_rewind(s->inner);
    s->begun = false;
    if (s->type->rewind)
        s->type->rewind(s);
}
