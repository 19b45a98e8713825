/*
 * Mixed precision: the scaler of gradients that a trial wraps, or that use_amp makes; its state;
 * and use_amp's autocast around the hooks. The backward pass and the step are outside of it.
 */
#include "trial_context.h"
#include "trial_state_impl.h"

#include "log.h"

#define KEY "scaler_state_dict"

struct det_grad_scaler *det_trial_wrap_scaler(struct det_trial_context *ctx,
                                              struct det_grad_scaler *scaler)
{
    if (!scaler)
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_scaler: the scaler is NULL");
    else if (ctx->scaler)
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_scaler: there is a scaler already");
    else if (ctx->models.n)
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_wrap_scaler: wrap the scaler before the first model");
    if (scaler && !ctx->scaler)
        ctx->scaler = scaler;
    return scaler;
}

void det_trial_use_amp(struct det_trial_context *ctx)
{
    /* bf16 has the range of f32: nothing underflows, so there is nothing to scale. */
    struct det_grad_scaler *s = det_grad_scaler(ctx->engine, .disabled = true);
    if (ctx->scaler || ctx->models.n)
        det_grad_scaler_destroy(s);
    if (ctx->amp)
        return;
    if (ctx->scaler)
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_use_amp: the trial wrapped a scaler of its own; take "
                   "det_autocast_begin() with that");
    else if (ctx->models.n)
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_use_amp: call it before the first "
                   "det_trial_wrap_model()");
    else
        ctx->scaler = s;
    ctx->amp = ctx->scaler == s;
}

void trial_amp_begin(struct det_trial_context *ctx)
{
    if (ctx->amp)
        det_autocast_begin(ctx->engine, DET_BF16);
}

void trial_amp_end(struct det_trial_context *ctx)
{
    if (ctx->amp)
        det_autocast_end(ctx->engine);
}

int trial_save_scaler(struct det_trial_context *ctx, struct pth_doc *doc, struct pth_value *root,
                      struct det_err *err)
{
    struct state_writer w = {.doc = doc, .err = err};
    size_t n;
    if (!ctx->scaler)
        return 0;
    const struct det_value *values = det_grad_scaler_state(ctx->scaler, &n);
    struct pth_value *dict = pth_dict(doc);
    if (!state_put_values(&w, dict, values, n))
        return DET_ENOMEM;
    pth_put(doc, root, KEY, dict);
    return 0;
}

int trial_load_scaler(struct det_trial_context *ctx, const struct pth_value *root,
                      struct det_err *err)
{
    const struct pth_value *dict = pth_get(root, KEY);
    struct loaded l;
    if (!ctx->scaler != !dict)
        log_warning("the checkpoint %s the state of a gradient scaler, the trial %s one",
                    dict ? "has" : "has not", ctx->scaler ? "has" : "has not");
    if (!ctx->scaler || pth_len(dict) == 0)
        return 0;
    int rc = state_load_dict(&l, dict, err);
    if (rc == 0)
        rc = det_grad_scaler_load_state(ctx->scaler, l.dict.v, l.dict.n, err);
    state_loaded_finish(&l);
    return rc < 0 ? det_wrap(err, rc, KEY) : 0;
}
