/* Threads that fill batches ahead of the one in use, in the given order. */
#ifndef DATA_PREFETCH_H
#define DATA_PREFETCH_H

#include "data_loader.h"

#define PREFETCH_MAX 1024
#define WORKERS_MAX  256

struct prefetch;

/* Starts options->workers threads; options->prefetch batches, of room for `capacity` records, run
 * ahead; both are at least 1. ds, options and order are borrowed. */
DET_MUST int prefetch_create(const struct det_dataset *ds, int64_t capacity,
                             const struct det_loader_options *options, struct data_order order,
                             struct prefetch **ret, struct det_err *err);
/* Waits for the next batch; it is the caller's until the next call. DET_ENOENT past the end. */
DET_MUST int prefetch_next(struct prefetch *p, const struct det_batch **ret, struct det_err *err);
/* Ends the threads, each after the record it is reading. NULL ok. */
void prefetch_destroy(struct prefetch *p);

#endif
