/* What gradient rules share. */
#ifndef OP_GRAD_H
#define OP_GRAD_H

#include "op.h"

/* A place for the gradient of input i: dy itself where nobody else looks at it and `reuse`, else a
 * new tensor like the input. The caller owns a reference. */
DET_MUST int grad_dest(struct det_engine *e, struct det_node *n, int i, struct det_tensor *reuse,
                       struct det_tensor **ret, struct det_err *err);

/* A gradient kernel with several outputs: output k is the gradient of input to[k] of the node. */
struct grad_outputs {
    int count;
    int to[DET_CALL_OUT_MAX];
    unsigned must; /* bit k: the kernel needs output k also where nobody wants it */
};
/* Runs c and gives what it wrote to the node's inputs; an output that nobody wants is NULL. Those
 * that c has already are the caller's. */
DET_MUST int grad_run(struct det_engine *e, struct det_node *n, struct det_call *c,
                      const struct grad_outputs *o, struct det_err *err);
/* The usual rule: the gradient of input i, where it wants one, is what c gives. */
DET_MUST int grad_by_kernel(struct det_engine *e, struct det_node *n, int i, struct det_call *c,
                            struct det_tensor *reuse, struct det_err *err);
/* Adds g (borrowed) to the gradient of t, where it wants one: copied to t's dtype and layout,
 * summed to t's shape, as it needs. */
DET_MUST int grad_give(struct det_engine *e, struct det_tensor *t, struct det_tensor *g,
                       struct det_err *err);

/* The usual rule: the gradient of input i by one kernel, whose inputs and attributes c has; `reuse`
 * as above. Nothing where no gradient is wanted. */
DET_MUST int grad_by_kernel(struct det_engine *e, struct det_node *n, int i, struct det_call *c,
                            struct det_tensor *reuse, struct det_err *err);

#endif
