/* What the functions over one dimension share. */
#ifndef FUNCTIONS_MATH_H
#define FUNCTIONS_MATH_H

#include "op.h"

/* dim from 0 on, or -1 with the engine's error set: x is NULL, or has no such dimension. */
int function_dim(struct det_engine *e, const char *name, const struct det_tensor *x, int dim);
/* x as [A, N, B], N being dimension dim (from 0 on). NULL where x is. */
struct det_tensor *function_fold(struct det_engine *e, struct det_tensor *x, int dim);
/* y, of A * n * B elements, with the dimensions of x, but n instead of dimension dim; n -1 drops
 * the dimension (y has A * B elements). */
struct det_tensor *function_unfold(struct det_engine *e, struct det_tensor *y,
                                   const struct det_tensor *x, int dim, int64_t n);
/* A whole number that is narrower than i64, or bool, as i64; any other x itself, NULL too. */
struct det_tensor *function_whole(struct det_engine *e, struct det_tensor *x);
/* y, made of function_whole(x), in the dtype of a whole x; NULL where y is. */
struct det_tensor *function_whole_back(struct det_engine *e, struct det_tensor *y,
                                       const struct det_tensor *x);

#endif
