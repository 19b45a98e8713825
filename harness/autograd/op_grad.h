/* What gradient rules share. */
#ifndef OP_GRAD_H
#define OP_GRAD_H

#include "op.h"

/* A place for the gradient of input i: dy itself where nobody else looks at it and `reuse`, else a
 * new tensor like the input. The caller owns a reference. */
int grad_dest(struct det_engine *e, struct det_node *n, int i, struct det_tensor *reuse,
              struct det_tensor **ret, struct det_err *err);

#endif
