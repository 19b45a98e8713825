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

/* Consecutive epochs must not get consecutive seeds: seed s, epoch 1 would be seed s+1, epoch 0,
 * and neighbouring trials would see each other's orders. One Philox draw mixes both. */
uint32_t sampler_epoch_seed(uint32_t seed, int64_t epoch)
{
    if (epoch == 0)
        return seed;
    uint32_t out[4];
    philox4x32(seed, 0x73616d706c6572, (uint64_t)epoch, out);
    return out[0];
}

void sampler_shuffle(uint32_t seed, int64_t epoch, int64_t *perm, size_t n)
{
    struct mt19937 r;
    for (size_t i = 0; i < n; i++)
        perm[i] = (int64_t)i;
    mt19937_seed(&r, sampler_epoch_seed(seed, epoch));
    mt19937_shuffle(&r, perm, n);
}

int64_t sampler_batches(int64_t records, int64_t batch_size, bool drop_last)
{
    return records / batch_size + (!drop_last && records % batch_size ? 1 : 0);
}

void sampler_batch_range(int64_t records, int64_t batch_size, int64_t index, int64_t *ret_first,
                         int64_t *ret_count)
{
    int64_t first = index * batch_size;
    int64_t left = records - first;
    *ret_first = first;
    *ret_count = left < 0 ? 0 : left < batch_size ? left : batch_size;
}
