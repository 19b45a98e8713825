#include "data_pass.h"

#include "sampler_impl.h"

struct data_pass {
    struct det_sampler *sampler;
    int64_t records, batches, largest;
    int64_t pass; /* listed now; -1: none */
    VEC(int64_t) items;
    VEC(size_t) ends;
};

static int take_batch(struct data_pass *p, const int64_t *item, size_t n, struct det_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (item[i] < 0 || item[i] >= p->records)
            return det_fail(err, DET_EINVAL, "sampler: record %lld of %lld", (long long)item[i],
                            (long long)p->records);
        vec_push(&p->items, item[i]);
    }
    vec_push(&p->ends, p->items.n);
    p->largest = (int64_t)n > p->largest ? (int64_t)n : p->largest;
    return 0;
}

/* The next time through. A sampler that repeats for ever just goes on, a length at a time. */
static int list_next(struct data_pass *p, struct det_err *err)
{
    const int64_t *item;
    size_t n;
    int64_t most = det_sampler_length(p->sampler);
    bool endless = p->sampler->endless;
    p->items.n = p->ends.n = 0;
    p->pass++;
    if (!endless || p->pass == 0)
        det_sampler_begin(p->sampler);
    while ((!endless || (int64_t)p->ends.n < most) && det_sampler_next(p->sampler, &item, &n)) {
        int rc = take_batch(p, item, n, err);
        if (rc < 0)
            return rc;
    }
    if (p->pass > 0 && (int64_t)p->ends.n != p->batches)
        return det_fail(err, DET_EINVAL,
                        "sampler: %zu batches in epoch %lld, but %lld in the first: all epochs "
                        "must be of equal length",
                        p->ends.n, (long long)p->pass, (long long)p->batches);
    return 0;
}

int data_pass_create(struct det_sampler *s, int64_t records, struct data_pass **ret,
                     struct det_err *err)
{
    struct data_pass *p = det_zalloc(sizeof *p);
    p->sampler = s;
    p->records = records;
    p->pass = -1;
    det_sampler_rewind(s);
    int rc = list_next(p, err);
    p->batches = (int64_t)p->ends.n;
    if (rc == 0 && p->batches == 0)
        rc = det_fail(err, DET_EINVAL, "data loader: its sampler gives no batch");
    if (rc < 0)
        data_pass_destroy(p);
    else
        *ret = p;
    return rc;
}

void data_pass_destroy(struct data_pass *p)
{
    if (!p)
        return;
    det_sampler_destroy(p->sampler);
    vec_free(&p->items);
    vec_free(&p->ends);
    free(p);
}

int64_t data_pass_batches(const struct data_pass *p)
{
    return p->batches;
}

int64_t data_pass_largest(const struct data_pass *p)
{
    return p->largest;
}

int data_pass_pick(struct data_pass *p, int64_t pass, int64_t index, struct data_pick *ret,
                   struct det_err *err)
{
    int rc = 0;
    if (pass < p->pass) {
        det_sampler_rewind(p->sampler);
        p->pass = -1;
    }
    while (rc == 0 && p->pass < pass)
        rc = list_next(p, err);
    if (rc < 0)
        return rc;
    size_t first = index ? p->ends.v[index - 1] : 0;
    *ret = (struct data_pick){p->items.v + first, p->ends.v[index] - first, pass};
    return 0;
}
