/*
 * Which batch comes next: the sampler chain of determined.pytorch as arithmetic. Nothing here holds
 * state, so a place in the data is found again from (seed, counter) alone, exactly, after any
 * restart.
 *
 * The loop sees a loader as `batches` batches an epoch (all ranks together). With repeat the epochs
 * follow each other without end, the sequence of batches is dealt to the ranks like cards
 * (position i belongs to rank i % size, counted on across epochs), and of a rank's share the first
 * `skip` are left out. The k-th batch a rank trains is therefore position (skip + k) * size + rank.
 *
 * So batch k of a run on n ranks is, when each rank's loader has 1/n of the global batch size, the
 * same records as batch k of a run on one rank, shuffled or not, as long as n divides the loader's
 * number of batches (else the runs drift by the remainder each epoch, as PyTorch's do). Gradients
 * then differ by rounding alone, but for a last batch that is not full: its mean is a mean of
 * unequal parts.
 *
 * Records of a shuffled loader: epoch e uses sampler_shuffle(seed, e, n), a permutation that
 * depends on nothing else. It is the order that DataLoader(shuffle=True) gives after
 * torch.manual_seed(seed) in a training that takes nothing else from the global generator: the
 * loader's iterator draws one int64, then each epoch one more, and permutes by torch.randperm under
 * it. PyTorch draws from the generator as it finds it when it comes to the epoch, and so has
 * another order after a resume; here epoch e's seed is always the same draw.
 */
#ifndef SAMPLER_H
#define SAMPLER_H

#include "rng.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sampler_plan {
    int64_t batches; /* of one epoch, all ranks; > 0, INT64_MAX: unknown */
    bool repeat;     /* training: true, validation: false */
    int size, rank;  /* 1, 0: unsharded */
    int64_t skip;    /* of this rank's share */
};
/* A batch: the index-th (0-based) of pass `epoch` over the loader's own batches. With several ranks
 * this pass is the loader's, not the loop's epoch counter. */
struct sampler_pos {
    int64_t epoch, index;
};

/* The k-th (k >= 0) batch of the plan. False when there is none (no repeat and past the end). */
bool sampler_at(const struct sampler_plan *plan, int64_t k, struct sampler_pos *ret);
/* Batches of a rank's share of one pass: L / n + (L % n > rank). */
int64_t sampler_shard_length(int64_t length, int size, int rank);

/* perm[0..n) = the record order of epoch `epoch`. */
void sampler_shuffle(uint32_t seed, int64_t epoch, int64_t *perm, size_t n);
/* The seed of an epoch's generator: draw number epoch + 1 of the trial's (a few ns per epoch). */
int64_t sampler_epoch_seed(uint32_t seed, int64_t epoch);
/* Records [*ret_first, *ret_first + *ret_count) of batch `index`. */
void sampler_batch_range(int64_t records, int64_t batch_size, int64_t index, int64_t *ret_first,
                         int64_t *ret_count);

#endif
