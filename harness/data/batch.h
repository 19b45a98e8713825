/* Batches inside: buffers of a fixed capacity, filled again and again. */
#ifndef BATCH_H
#define BATCH_H

#include "buf.h"
#include "data_loader.h"
#include "dataset.h"

struct det_batch;

/* Room for `capacity` records of ds (borrowed, must outlive the batch); more is made when needed.
 * The collate function of the options, which may be NULL, is called at each filling. NULL:
 * DET_ENOMEM. */
struct det_batch *batch_create(const struct det_dataset *ds, int64_t capacity,
                               const struct det_loader_options *options, struct det_err *err);
void batch_destroy(struct det_batch *b); /* NULL ok */
/* The records (at least one) become its content. */
DET_MUST int batch_fill(struct det_batch *b, const struct data_pick *pick, uint64_t seed,
                        struct det_err *err);
/* From another thread: the filling ends with DET_ECANCELED before its next record, and so does any
 * later one. */
void batch_cancel(struct det_batch *b);

/* Did somebody ask for a field that is not there? Then says so in *out. */
bool batch_missing(const struct det_batch *b, struct buf *out);

#endif
