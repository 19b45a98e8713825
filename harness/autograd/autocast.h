/*
 * Mixed precision: the inputs of operations cast as the table says, weights once until autocast
 * ends. Where a device takes many casts in one launch, the weights that were cast in the last
 * stretch of autocast are cast together as soon as the first of them is needed again.
 */
#ifndef AUTOCAST_H
#define AUTOCAST_H

#include "op.h"

/* Casts the floating inputs of c, where autocast is on. 0, or the engine's error. */
int autocast_inputs(struct det_engine *e, struct op_call *c);
/* Forgets the casts of weights: these may change now. */
void autocast_clear(struct det_engine *e);
/* The same for the weights in s alone, which was written. */
void autocast_wrote(struct det_engine *e, const struct det_storage *s);
/* Lets go of weights that nobody else has. */
void autocast_prune(struct det_engine *e);
/* Lets go of all. */
void autocast_forget(struct det_engine *e);

#endif
