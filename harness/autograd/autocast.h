/* Mixed precision: the inputs of operations cast as the table says, weights once a step. */
#ifndef AUTOCAST_H
#define AUTOCAST_H

#include "op.h"

/* Casts the floating inputs of c, where autocast is on. 0, or the engine's error. */
int autocast_inputs(struct det_engine *e, struct op_call *c);
/* Forgets the cast weights: they may change now. */
void autocast_clear(struct det_engine *e);

#endif
