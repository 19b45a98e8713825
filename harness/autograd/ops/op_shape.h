/* What shape rules share. */
#ifndef OP_SHAPE_H
#define OP_SHAPE_H

#include "op.h"

/* An output of the shape and dtype of t. */
struct op_out op_like(const struct det_tensor *t);
/* DET_EINVAL where input i is given and not of a floating dtype, which is the first one's. */
DET_MUST int op_need_float(const struct op_call *c, int i, struct det_err *err);
/* DET_EINVAL unless input 0 is of a dtype that kernels add and order in: a floating one, or i64, to
 * which the functions cast the other whole ones. */
DET_MUST int op_numbers(const struct op_call *c, struct det_err *err);
/* The same for every input. */
DET_MUST int op_all_float(const struct op_call *c, struct det_err *err);
/* Of what a kernel keeps of x for the gradient: f64 of an f64 tensor, f32 of any other. */
enum det_dtype op_wide(const struct det_tensor *x);

#endif
