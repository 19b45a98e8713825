/* Functions that modules need and trials do not call by themselves. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "op.h"

struct batch_norm_attrs {
    double eps, momentum;
    bool relu, train;
};
/* params: weight, bias, running mean, running variance; the last two are updated where `train`. */
struct det_tensor *det__batch_norm(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *const params[4],
                                   const struct batch_norm_attrs *a);
/* bn(x) + residual, which has the shape of x; then ReLU where a->relu. */
struct det_tensor *det__batch_norm_add(struct det_engine *e, struct det_tensor *x,
                                       struct det_tensor *const params[4],
                                       struct det_tensor *residual,
                                       const struct batch_norm_attrs *a);

#endif
