#ifndef RUN_EMPTY_H
#define RUN_EMPTY_H

#include "engine.h"

/* True where c is a layer's kernel over a batch of no records, or the gradient of one. */
bool run_is_of_nothing(const struct det_call *c);
/* What c gives then: zeros for weights, nothing for the rest; running statistics stay. */
DET_MUST int run_of_nothing(struct det_engine *e, const struct det_call *c, struct det_err *err);

#endif
