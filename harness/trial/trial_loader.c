/* A loader under the loop's order: positions of the sampler become records of the dataset. */
#include "trial_context.h"

#include "trial_crash.h"

/* The permutation of an epoch; kept until another epoch is asked for. */
static const int64_t *epoch_permutation(struct trial_loader *l, int64_t epoch)
{
    size_t n = (size_t)det_data_loader_records(l->loader);
    if (l->perm_epoch != epoch) {
        sampler_shuffle(l->seed, epoch, l->perm, n);
        l->perm_epoch = epoch;
    }
    return l->perm;
}

/* A pure function of k (and seed, plan): a data loader's threads may run it ahead. */
static int pick_batch(void *arg, int64_t k, struct data_pick *ret, struct det_err *err)
{
    struct trial_loader *l = arg;
    const struct det_loader_options *o = det_data_loader_get_options(l->loader);
    struct sampler_pos pos;
    int64_t first, count;
    if (!sampler_at(&l->plan, k, &pos))
        return det_fail(err, DET_ENOENT, "data loader: no batch after the %lld.", (long long)k);
    if (!o->shuffle)
        return data_loader_pick(l->loader, pos.epoch, pos.index, ret, err);
    sampler_batch_range(det_data_loader_records(l->loader), o->batch_size, pos.index, &first,
                        &count);
    *ret = (struct data_pick){epoch_permutation(l, pos.epoch) + first, (size_t)count, pos.epoch};
    return 0;
}

static int on_start(void *self, const struct sampler_plan *plan, struct det_err *err)
{
    struct trial_loader *l = self;
    data_loader_stop(l->loader); /* before the plan changes under its thread */
    l->plan = *plan;
    return data_loader_start(l->loader, (struct data_order){pick_batch, l, l->seed}, err);
}

static int on_next(void *self, struct sampler_pos pos, const void **ret_batch, struct det_err *err)
{
    struct trial_loader *l = self;
    const struct det_batch *batch = NULL;
    trial_crash_mark("the data loader", pos.index);
    int rc = data_loader_next(l->loader, &batch, err);
    *ret_batch = batch;
    return rc;
}

static const struct loop_loader_type loader_type = {.start = on_start, .next = on_next};

int trial_loader_init(struct trial_loader *l, struct det_data_loader *dl, uint32_t seed,
                      struct loop_loader *ret, struct det_err *err)
{
    *l = (struct trial_loader){.loader = dl, .seed = seed, .perm_epoch = -1};
    if (!dl)
        return det_fail(err, DET_EINVAL, "it returned no data loader");
    const struct det_loader_options *o = det_data_loader_get_options(dl);
    int64_t n = det_data_loader_records(dl);
    if (det_data_loader_length(dl) == 0)
        return det_fail(err, DET_EINVAL,
                        "%lld records make no batch of %lld (.drop_last leaves out the last one)",
                        (long long)n, (long long)o->batch_size);
    l->perm = o->shuffle ? det_try_alloc(sizeof *l->perm * (size_t)n) : NULL;
    if (o->shuffle && !l->perm)
        return det_fail(err, DET_ENOMEM, "an order of %lld records", (long long)n);
    *ret = (struct loop_loader){
        .type = &loader_type, .self = l, .batches = det_data_loader_length(dl)};
    return 0;
}

void trial_loader_finish(struct trial_loader *l)
{
    det_data_loader_destroy(l->loader);
    free(l->perm);
    *l = (struct trial_loader){.perm_epoch = -1};
}
