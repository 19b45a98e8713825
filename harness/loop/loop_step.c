/* step_optimizer (docs/contract/loop.md 1): the one place where gradients meet ranks and
 * aggregation. */
#include "loop_impl.h"

bool loop_is_update_batch(const struct loop *l)
{
    return (l->batch_idx + 1) % l->c->aggregation_frequency == 0;
}

static int update_weights(struct loop *l, const struct loop_step_hooks *h, struct det_err *err)
{
    int64_t a = l->c->aggregation_frequency;
    int rc = 0;
    if (l->size > 1 && h->reduce)
        rc = h->reduce(h->self, l->comm, err);
    if (rc == 0 && a > 1 && l->c->average_aggregated_gradients && !h->sum_aggregated)
        rc = h->scale(h->self, 1.0 / (double)a, err);
    if (rc == 0 && h->clip)
        rc = h->clip(h->self, err);
    if (rc == 0)
        rc = h->step(h->self, err);
    if (rc == 0 && !h->keep_grads)
        rc = h->zero(h->self, err);
    return rc;
}

int loop_step_optimizer(struct loop *l, const struct loop_step_hooks *h, struct det_err *err)
{
    if (h->keep_grads && l->c->aggregation_frequency > 1)
        return det_fail(err, DET_EINVAL,
                        "step_optimizer: gradients must be zeroed at each step when "
                        "aggregation_frequency is above 1");
    if (l->batch_idx < 0)
        return det_fail(err, DET_ESTATE, "step_optimizer: training has not started");
    return loop_is_update_batch(l) ? update_weights(l, h, err) : 0;
}
