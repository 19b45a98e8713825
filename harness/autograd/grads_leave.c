/* Gradients that are being averaged over the ranks, on another stream than the engine's: what they
 * hold is some rank's, or the mean already, as it happens. */
#include "engine.h"

static bool is_leaving(const struct det_tensor *t)
{
    return t->engine && t->engine->grads_leave && t->grad &&
           t->grad->storage == t->engine->grads_leave;
}

int det__grads_refuse(const char *what, struct det_err *err)
{
    return det_fail(err, DET_ESTATE,
                    "%s: gradients are being averaged over the ranks (DET_OVERLAP_MIB): go back "
                    "from one loss a step; look at them, clip and unscale by the options of "
                    "det_trial_step_optimizer()",
                    what);
}

int det__grad_check(const struct det_tensor *leaf, const char *what)
{
    struct det_err err;
    if (!is_leaving(leaf))
        return 0;
    det_ignore(det__grads_refuse(what, &err), "it fails");
    return det__keep_error(leaf->engine, &err);
}

struct det_tensor *det_tensor_grad(struct det_tensor *t)
{
    if (!t || det__grad_check(t, "det_tensor_grad") < 0)
        return NULL;
    return t->grad_set ? t->grad : NULL;
}
