/* The ordered sets of fit.c: agents by (free, whole), then by hash. Private to fit*.c. */
#ifndef CORE_FIT_INDEX_H
#define CORE_FIT_INDEX_H

#include "model.h"

void fit_index_add(struct fit_index *x, int have, int whole, struct agent *a);
void fit_index_del(struct fit_index *x, int have, int whole, struct agent *a);
void fit_index_finish(struct fit_index *x);
/* The first bucket with at least so many free; x->buckets.n: none. */
size_t fit_index_from(const struct fit_index *x, int64_t have);
/* Where the walk over a bucket begins for this hash: then downwards, around the end. */
size_t fit_bucket_start(const struct fit_bucket *b, uint64_t hash);

/* How many agents have so many slots. */
void fit_tally_add(struct fit_tally *t, int size, int64_t n);

#endif
