#ifndef RUN_CAST_H
#define RUN_CAST_H

#include "engine.h"

/* True where a tensor of c is f64: then all floating ones are to be. */
bool run_is_f64(const struct det_call *c);
/* True where the backend's kernel takes c's floating tensors only in *ret, which some are not. */
bool run_needs_cast(struct det_engine *e, const struct det_call *c, enum det_dtype *ret);
/* True where the backend's kernel takes c's tensors as they are; only their dtypes matter. */
bool run_as_it_is(struct det_engine *e, const struct det_call *c);
/* Runs c by way of copies in that dtype. */
DET_MUST int run_cast(struct det_engine *e, const struct det_call *c, enum det_dtype dtype,
                      struct det_err *err);
/* Whether there is memory for these copies now; else DET_ENOMEM. */
DET_MUST int run_cast_fits(struct det_engine *e, const struct det_call *c, enum det_dtype dtype,
                           struct det_err *err);

#endif
