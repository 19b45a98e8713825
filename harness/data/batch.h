/* Batches inside: buffers of a fixed capacity, filled again and again. */
#ifndef BATCH_H
#define BATCH_H

#include "dataset.h"

struct det_batch;

/* Room for `capacity` records of ds (borrowed, must outlive the batch). NULL: DET_ENOMEM. */
struct det_batch *batch_create(const struct det_dataset *ds, int64_t capacity, struct det_err *err);
void batch_destroy(struct det_batch *b); /* NULL ok */
/* The n (1..capacity) records become its content. */
int batch_fill(struct det_batch *b, const int64_t *records, size_t n, struct det_err *err);

#endif
