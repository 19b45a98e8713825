#include "data_loader.h"

#include "batch.h"
#include "data_pass.h"
#include "data_prefetch.h"
#include "mem.h"
#include "sampler_impl.h"

struct det_data_loader {
    struct det_dataset *ds;
    struct det_loader_options options;
    struct data_pass *pass; /* of a sampler; NULL: none */
    struct data_order order;
    int64_t k;                 /* the next batch, without prefetch */
    struct det_batch *batch;   /* the one of get(), and of next() without prefetch */
    struct prefetch *prefetch; /* NULL: none, or not started */
    int64_t *records;          /* scratch of get(): batch_size long */
};

static int bad_option(struct det_err *err, const char *what)
{
    return det_fail(err, DET_EINVAL, "data loader: %s", what);
}

static int check_samplers(const struct det_loader_options *o, struct det_err *err)
{
    if (!o->sampler && !o->batch_sampler)
        return 0;
    if (o->shuffle)
        return bad_option(err, "shuffle and a sampler: one order only");
    if (o->batch_sampler && (o->sampler || o->batch_size > 1 || o->drop_last))
        return bad_option(err, "batch_sampler goes without batch_size, drop_last and sampler");
    if (o->batch_sampler && !o->batch_sampler->batches)
        return bad_option(err, "batch_sampler's items are records: det_sampler_batch() makes "
                               "batches");
    if (o->sampler && o->sampler->batches)
        return bad_option(err, "sampler's items are batches: give it as batch_sampler");
    return 0;
}

static int check_options(const struct det_dataset *ds, const struct det_loader_options *o,
                         struct det_err *err)
{
    if (o->batch_size < 0)
        return det_fail(err, DET_EINVAL, "data loader: batch_size is %lld",
                        (long long)o->batch_size);
    if (o->prefetch < 0 || o->prefetch > PREFETCH_MAX)
        return det_fail(err, DET_EINVAL, "data loader: prefetch is %d, 0 to %d are allowed",
                        o->prefetch, PREFETCH_MAX);
    if (o->workers < 0 || o->workers > WORKERS_MAX)
        return det_fail(err, DET_EINVAL, "data loader: workers is %d, 0 to %d are allowed",
                        o->workers, WORKERS_MAX);
    if (ds->records == 0)
        return bad_option(err, "the dataset has no records");
    return check_samplers(o, err);
}

/* What the options leave to us. */
static void fill_options(struct det_loader_options *o)
{
    if (o->batch_size == 0)
        o->batch_size = 1;
    if (o->workers > 0 && o->prefetch == 0)
        o->prefetch = 2 * o->workers;
    if (o->prefetch > 0 && o->workers == 0)
        o->workers = 1;
}

/* A batch larger than the dataset holds the whole of it: no more room than that is needed. */
static int64_t batch_capacity(const struct det_data_loader *l)
{
    int64_t n = l->options.batch_size;
    if (l->pass)
        return data_pass_largest(l->pass);
    return n < l->ds->records ? n : l->ds->records;
}

/* Takes the options' sampler. */
static int make_pass(struct det_data_loader *l, struct det_err *err)
{
    struct det_loader_options *o = &l->options;
    struct det_sampler *s = o->batch_sampler;
    if (o->sampler)
        s = det_sampler_batch(o->sampler, o->batch_size, o->drop_last, err);
    if (!s)
        return o->sampler ? DET_EINVAL : 0;
    return data_pass_create(s, l->ds->records, &l->pass, err);
}

static int make_parts(struct det_data_loader *l, struct det_err *err)
{
    int rc = make_pass(l, err);
    l->options.sampler = l->options.batch_sampler = NULL;
    if (rc < 0)
        return rc;
    l->batch = batch_create(l->ds, batch_capacity(l), &l->options, err);
    l->records = det_try_alloc(sizeof *l->records * (size_t)batch_capacity(l));
    if (l->batch && !l->records)
        return det_fail(err, DET_ENOMEM, "data loader: the order of a batch");
    return l->batch ? 0 : DET_ENOMEM;
}

struct det_data_loader *det_data_loader_create(struct det_dataset *ds,
                                               const struct det_loader_options *options,
                                               struct det_err *err)
{
    if (!ds || check_options(ds, options, err) < 0) {
        det_sampler_destroy(options->sampler);
        det_sampler_destroy(options->batch_sampler);
        det_dataset_unref(ds);
        return NULL;
    }
    struct det_data_loader *l = det_zalloc(sizeof *l);
    l->ds = data_fake_wanted() ? dataset_fake(ds, err) : ds;
    l->options = *options;
    fill_options(&l->options);
    if (make_parts(l, err) < 0) {
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
    data_pass_destroy(l->pass);
    det_dataset_unref(l->ds);
    free(l->records);
    free(l);
}

int64_t det_data_loader_length(const struct det_data_loader *l)
{
    int64_t n = l->ds->records, b = l->options.batch_size;
    if (l->pass)
        return data_pass_batches(l->pass);
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

int data_loader_pick(struct det_data_loader *l, int64_t epoch, int64_t index, struct data_pick *ret,
                     struct det_err *err)
{
    if (l->pass)
        return data_pass_pick(l->pass, epoch, index, ret, err);
    int64_t first = index * l->options.batch_size, n = l->options.batch_size;
    if (n > l->ds->records - first)
        n = l->ds->records - first;
    for (int64_t r = 0; r < n; r++)
        l->records[r] = first + r;
    *ret = (struct data_pick){l->records, (size_t)n, epoch};
    return 0;
}

const struct det_batch *det_data_loader_get(struct det_data_loader *l, int64_t i,
                                            struct det_err *err)
{
    struct data_pick pick;
    if (i < 0 || i >= det_data_loader_length(l)) {
        det_fail(err, DET_ENOENT, "data loader: batch %lld of %lld", (long long)i,
                 (long long)det_data_loader_length(l));
        return NULL;
    }
    if (data_loader_pick(l, 0, i, &pick, err) < 0)
        return NULL;
    return batch_fill(l->batch, &pick, l->order.seed, err) < 0 ? NULL : l->batch;
}

/* ---- in the loop's order ---- */

int data_loader_start(struct det_data_loader *l, struct data_order order, struct det_err *err)
{
    data_loader_stop(l);
    l->order = order;
    l->k = 0;
    if (l->options.prefetch == 0)
        return 0;
    return prefetch_create(l->ds, batch_capacity(l), &l->options, order, &l->prefetch, err);
}

int data_loader_next(struct det_data_loader *l, const struct det_batch **ret, struct det_err *err)
{
    struct data_pick pick;
    if (l->prefetch)
        return prefetch_next(l->prefetch, ret, err);
    int rc = l->order.pick(l->order.arg, l->k, &pick, err);
    if (rc == 0)
        rc = batch_fill(l->batch, &pick, l->order.seed, err);
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
