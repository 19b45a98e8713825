/* What shape rules share. */
#ifndef OP_SHAPE_H
#define OP_SHAPE_H

#include "op.h"

/* An output of the shape and dtype of t. */
struct op_out op_like(const struct det_tensor *t);
/* DET_EINVAL where input i is given and not float32. */
int op_need_f32(const struct op_call *c, int i, struct det_err *err);
/* DET_EINVAL unless input 0 is of a dtype that kernels add and order in: a floating one, or i64, to
 * which the functions cast the other whole ones. */
int op_numbers(const struct op_call *c, struct det_err *err);
/* The same as op_need_f32() for every input; an operation of OP_AMP_LOW takes bfloat16 and float16
 * too, one for all inputs. */
int op_all_f32(const struct op_call *c, struct det_err *err);

#endif
