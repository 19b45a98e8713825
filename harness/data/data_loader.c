#include "data_loader.h"

#include "batch.h"
#include "data_prefetch.h"
#include "mem.h"

struct det_data_loader {
    struct det_dataset *ds;
    struct det_loader_options options;
    struct data_order order;
    int64_t k;                 /* the next batch, without prefetch */
    struct det_batch *batch;   /* the one of get(), and of next() without prefetch */
    struct prefetch *prefetch; /* NULL: none, or not started */
    int64_t *records;          /* scratch of get(): batch_size long */
};

static int check_options(const struct det_dataset *ds, const struct det_loader_options *o,
                         struct det_err *err)
{
    if (o->batch_size < 0)
        return det_fail(err, DET_EINVAL, "data loader: batch_size is %lld",
                        (long long)o->batch_size);
    if (o->prefetch < 0 || o->prefetch > PREFETCH_MAX)
        return det_fail(err, DET_EINVAL, "data loader: prefetch is %d, 0 to %d are allowed",
                        o->prefetch, PREFETCH_MAX);
    if (ds->records == 0)
        return det_fail(err, DET_EINVAL, "data loader: the dataset has no records");
    return 0;
}

/* A batch larger than the dataset holds the whole of it: no more room than that is needed. */
static int64_t capacity(const struct det_data_loader *l)
{
    int64_t n = l->options.batch_size;
    return n < l->ds->records ? n : l->ds->records;
}

struct det_data_loader *det_data_loader_create(struct det_dataset *ds,
                                               const struct det_loader_options *options,
                                               struct det_err *err)
{
    if (!ds)
        return NULL;
    if (check_options(ds, options, err) < 0) {
        det_dataset_unref(ds);
        return NULL;
    }
    struct det_data_loader *l = det_zalloc(sizeof *l);
    l->ds = ds;
    l->options = *options;
    if (l->options.batch_size == 0)
        l->options.batch_size = 1;
    l->batch = batch_create(ds, capacity(l), err);
    if (!l->batch || !(l->records = det_try_alloc(sizeof *l->records * (size_t)capacity(l)))) {
        det_data_loader_destroy(l);
        return NULL;
    }
    return l;
}

void det_data_loader_destroy(struct det_data_loader *l)
{
    if (!l)
        return;
    data_loader_stop(l);
    batch_destroy(l->batch);
    det_dataset_unref(l->ds);
    free(l->records);
    free(l);
}

int64_t det_data_loader_length(const struct det_data_loader *l)
{
    int64_t n = l->ds->records, b = l->options.batch_size;
    return n / b + (n % b && !l->options.drop_last);
}

int64_t det_data_loader_records(const struct det_data_loader *l)
{
    return l ? l->ds->records : 0;
}

const struct det_loader_options *det_data_loader_get_options(const struct det_data_loader *l)
{
    return &l->options;
}

const struct det_batch *det_data_loader_get(struct det_data_loader *l, int64_t i,
                                            struct det_err *err)
{
    if (i < 0 || i >= det_data_loader_length(l)) {
        det_fail(err, DET_ENOENT, "data loader: batch %lld of %lld", (long long)i,
                 (long long)det_data_loader_length(l));
        return NULL;
    }
    int64_t first = i * l->options.batch_size, n = l->options.batch_size;
    if (n > l->ds->records - first)
        n = l->ds->records - first;
    for (int64_t r = 0; r < n; r++)
        l->records[r] = first + r;
    return batch_fill(l->batch, l->records, (size_t)n, err) < 0 ? NULL : l->batch;
}

/* ---- in the loop's order ---- */

int data_loader_start(struct det_data_loader *l, struct data_order order, struct det_err *err)
{
    data_loader_stop(l);
    l->order = order;
    l->k = 0;
    if (l->options.prefetch == 0)
        return 0;
    return prefetch_create(l->ds, capacity(l), l->options.prefetch, order, &l->prefetch, err);
}

int data_loader_next(struct det_data_loader *l, const struct det_batch **ret, struct det_err *err)
{
    const int64_t *records;
    size_t n;
    if (l->prefetch)
        return prefetch_next(l->prefetch, ret, err);
    if (!l->order.records(l->order.arg, l->k, &records, &n))
        return det_fail(err, DET_ENOENT, "data loader: no batch after the %lld.", (long long)l->k);
    int rc = batch_fill(l->batch, records, n, err);
    if (rc < 0)
        return rc;
    l->k++;
    *ret = l->batch;
    return 0;
}

void data_loader_stop(struct det_data_loader *l)
{
    prefetch_destroy(l->prefetch);
    l->prefetch = NULL;
}
