/*
 * Loaders inside: for harness/trial, which joins them with the loop's samplers.
 *
 * data_loader_start() fixes the order (a pure function k -> records of the k-th batch), then
 * data_loader_next() gives batch 0, 1, ... . With options.workers threads run ahead by
 * options.prefetch batches; they alone call the order function then, one at a time, batch by batch.
 * The batch that was given stays untouched until the next data_loader_next(), _start() or _stop().
 */
#ifndef DATA_LOADER_H
#define DATA_LOADER_H

#include "det/data.h"

/* The records of a batch, 1 to batch_size of them, borrowed until the order is asked again. */
struct data_pick {
    const int64_t *records;
    size_t n;
    int64_t epoch; /* with `seed`, what records made by chance depend on */
};

struct data_order {
    /* The records of batch k. DET_ENOENT: there is no such batch. */
    int (*pick)(void *arg, int64_t k, struct data_pick *ret, struct det_err *err);
    void *arg;
    uint64_t seed;
};

/* Stops what ran before. */
DET_MUST int data_loader_start(struct det_data_loader *l, struct data_order order,
                               struct det_err *err);
/* DET_ENOENT past the end. A failed record is an error at its own batch, not earlier. */
DET_MUST int data_loader_next(struct det_data_loader *l, const struct det_batch **ret,
                              struct det_err *err);
void data_loader_stop(struct det_data_loader *l);

/* Batch `index` of pass `epoch` of the loader's own sampler, for the order function; without a
 * sampler these are the records in sequence. */
DET_MUST int data_loader_pick(struct det_data_loader *l, int64_t epoch, int64_t index,
                              struct data_pick *ret, struct det_err *err);

#endif
