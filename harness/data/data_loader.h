/*
 * Loaders inside: for harness/trial, which joins them with the loop's samplers.
 *
 * data_loader_start() fixes the order (a pure function k -> records of the k-th batch), then
 * data_loader_next() gives batch 0, 1, ... . With options.prefetch a thread runs ahead by that many
 * batches; it alone calls the order function then. The batch that was given stays untouched until
 * the next data_loader_next(), _start() or _stop().
 */
#ifndef DATA_LOADER_H
#define DATA_LOADER_H

#include "det/data.h"

struct data_order {
    /* *ret: the records of batch k, borrowed until the next call; 1 to batch_size of them. False:
     * there is no such batch. */
    bool (*records)(void *arg, int64_t k, const int64_t **ret, size_t *ret_n);
    void *arg;
};

/* Stops what ran before. */
int data_loader_start(struct det_data_loader *l, struct data_order order, struct det_err *err);
/* DET_ENOENT past the end. A failed record is an error at its own batch, not earlier. */
int data_loader_next(struct det_data_loader *l, const struct det_batch **ret, struct det_err *err);
void data_loader_stop(struct det_data_loader *l);

#endif
