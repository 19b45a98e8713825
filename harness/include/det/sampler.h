/*
 * Samplers: torch.utils.data's and determined.pytorch.samplers', with the same sequences.
 *
 * A sampler is a sequence of items that can be gone through again and again; an item is one record
 * index, or, behind det_sampler_batch(), the indices of a batch. Repeat, skip, shards and shuffles
 * work on items, so each is the Sampler and the BatchSampler of its name at once:
 *
 *     s = det_sampler_batch(det_sampler_sequential(19, err), 2, false, err);
 *     s = det_sampler_distributed(s, 4, 1, err);          // [2,3] [10,11] [18]
 *
 * A loader takes one as .sampler (of records) or .batch_sampler; the training loop then repeats,
 * deals to ranks and skips by itself, so a trial that wants PyTorch's usual order needs none of
 * this: .shuffle is enough.
 *
 * Each function that takes a sampler TAKES it, also on failure; given NULL it returns NULL and
 * leaves *err alone. A sampler belongs to one thread at a time.
 */
#ifndef DET_SAMPLER_H
#define DET_SAMPLER_H

#include "det/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct det_sampler;

/* 0 .. n - 1 (SequentialSampler). */
struct det_sampler *det_sampler_sequential(int64_t n, struct det_err *err);
/* Each time a new permutation, torch.randperm's under one torch.Generator().manual_seed(seed)
 * (RandomSampler). */
struct det_sampler *det_sampler_random(int64_t n, uint64_t seed, struct det_err *err);
/* These indices, copied (with a permutation of one's own: any Sampler). */
struct det_sampler *det_sampler_list(const int64_t *indices, int64_t n, struct det_err *err);
/* Batches of the records of `s` (BatchSampler). */
struct det_sampler *det_sampler_batch(struct det_sampler *s, int64_t batch_size, bool drop_last,
                                      struct det_err *err);

/* RepeatSampler, RepeatBatchSampler: s, begun again for ever; the length stays that of s. */
struct det_sampler *det_sampler_repeat(struct det_sampler *s, struct det_err *err);
/* DistributedSampler, DistributedBatchSampler: the items i with i % workers == rank. */
struct det_sampler *det_sampler_distributed(struct det_sampler *s, int workers, int rank,
                                            struct det_err *err);
/* SkipSampler, SkipBatchSampler: without the first `skip` items; the length stays that of s. */
struct det_sampler *det_sampler_skip(struct det_sampler *s, int64_t skip, struct det_err *err);
/* ReproducibleShuffleSampler, ReproducibleShuffleBatchSampler: each time the items of s, shuffled
 * by one generator (numpy.random.RandomState(seed).shuffle). */
struct det_sampler *det_sampler_shuffle(struct det_sampler *s, uint32_t seed, struct det_err *err);
void det_sampler_destroy(struct det_sampler *s); /* NULL ok */

/* len(s): what one time through is announced to give. */
int64_t det_sampler_length(const struct det_sampler *s);
/* iter(s): begins once more; generators go on from where they are. */
void det_sampler_begin(struct det_sampler *s);
/* The next item; *ret is borrowed until the next call. False at the end. */
bool det_sampler_next(struct det_sampler *s, const int64_t **ret, size_t *ret_n);
/* As it was made: generators are at their seeds again. */
void det_sampler_rewind(struct det_sampler *s);

#endif
