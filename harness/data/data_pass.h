/* A loader's sampler, one time through after the other: which records batch i of pass p has. */
#ifndef DATA_PASS_H
#define DATA_PASS_H

#include "data_loader.h"

struct data_pass;

/* Takes the sampler, whose items are batches, also on failure; goes through it once. Indices must
 * be within 0 .. records - 1. */
DET_MUST int data_pass_create(struct det_sampler *s, int64_t records, struct data_pass **ret,
                              struct det_err *err);
void data_pass_destroy(struct data_pass *p);          /* NULL ok */
int64_t data_pass_batches(const struct data_pass *p); /* of every pass; > 0 */
int64_t data_pass_largest(const struct data_pass *p); /* batch of the first pass */
/* Going forward costs one time through per pass; going back begins anew. */
DET_MUST int data_pass_pick(struct data_pass *p, int64_t pass, int64_t index, struct data_pick *ret,
                            struct det_err *err);

#endif
