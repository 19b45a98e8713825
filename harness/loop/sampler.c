#include "sampler.h"

bool sampler_at(const struct sampler_plan *plan, int64_t k, struct sampler_pos *ret)
{
    int64_t position = (plan->skip + k) * plan->size + plan->rank;
    if (!plan->repeat && position >= plan->batches)
        return false;
    ret->epoch = position / plan->batches;
    ret->index = position % plan->batches;
    return true;
}

int64_t sampler_shard_length(int64_t length, int size, int rank)
{
    return length / size + (length % size > rank ? 1 : 0);
}

int64_t sampler_epoch_seed(uint32_t seed, int64_t epoch)
{
    struct mt19937 r;
    mt19937_seed(&r, seed);
    int64_t drawn = mt19937_torch_i64(&r);
    for (int64_t i = 0; i <= epoch; i++)
        drawn = mt19937_torch_i64(&r);
    return drawn;
}

void sampler_shuffle(uint32_t seed, int64_t epoch, int64_t *perm, size_t n)
{
    struct mt19937 r;
    mt19937_seed(&r, (uint32_t)sampler_epoch_seed(seed, epoch));
    mt19937_torch_randperm(&r, perm, n);
}

void sampler_batch_range(int64_t records, int64_t batch_size, int64_t index, int64_t *ret_first,
                         int64_t *ret_count)
{
    int64_t first = index * batch_size;
    int64_t left = records - first;
    *ret_first = first;
    *ret_count = left < 0 ? 0 : left < batch_size ? left : batch_size;
}
