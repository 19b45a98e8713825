/* Models, optimizers and schedulers of the trial; backward and step. */
#include "module.h"
#include "optim_impl.h"
#include "span.h"
#include "trial_context.h"
#include "trial_device.h"
#include "trial_overlap.h"

/* Is m, or a model that it is part of, among the wrapped? */
static bool is_wrapped(const struct det_trial_context *ctx, const struct det_module *m)
{
    for (; m; m = m->parent)
        for (size_t i = 0; i < ctx->models.n; i++)
            if (ctx->models.v[i] == m)
                return true;
    return false;
}

int trial_check_wrapped(const struct det_trial_context *ctx, struct det_err *err)
{
    if (ctx->models.n == 0)
        return det_fail(err, DET_EINVAL, "create() wrapped no model (det_trial_wrap_model)");
    if (ctx->optims.n == 0)
        return det_fail(err, DET_EINVAL,
                        "create() wrapped no optimizer (det_trial_wrap_optimizer)");
    for (size_t i = 0; i < ctx->optims.n; i++)
        if (!is_wrapped(ctx, ctx->optims.v[i]->module))
            return det_fail(err, DET_EINVAL,
                            "the model of optimizer %zu was not wrapped (det_trial_wrap_model): it "
                            "would be in no checkpoint",
                            i);
    return 0;
}

void trial_check_time(struct det_trial_context *ctx, bool too_late, const char *call)
{
    if (too_late)
        trial_fail(ctx, DET_ESTATE,
                   "%s: it is too late, the training loop would not know of it: call it in create",
                   call);
}

struct det_module *det_trial_wrap_model(struct det_trial_context *ctx, struct det_module *model)
{
    trial_check_time(ctx, ctx->made, "det_trial_wrap_model");
    if (!model)
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_model: the model is NULL");
    else if (is_wrapped(ctx, model))
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_wrap_model: this model, or one it is part of, is "
                   "wrapped already");
    else
        vec_push(&ctx->models, model);
    return model;
}

/* Its options, or NULL: it was not wrapped. */
static const struct det_wrap_optimizer_options *find_options(const struct det_trial_context *ctx,
                                                             const struct det_optim *o)
{
    for (size_t i = 0; i < ctx->optims.n; i++)
        if (ctx->optims.v[i] == o)
            return &ctx->optim_options.v[i];
    return NULL;
}

struct det_optim *det_trial_wrap_optimizer_opt(struct det_trial_context *ctx,
                                               struct det_optim *optim,
                                               const struct det_wrap_optimizer_options *options)
{
    trial_check_time(ctx, ctx->made, "det_trial_wrap_optimizer");
    if (!optim) {
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_optimizer: the optimizer is NULL");
        return NULL;
    }
    if (find_options(ctx, optim)) {
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_optimizer: it is wrapped already");
        return optim;
    }
    vec_push(&ctx->optims, optim);
    vec_push(&ctx->optim_options, *options);
    return optim;
}

struct det_module *det_trial_model(const struct det_trial_context *ctx, size_t i)
{
    return i < ctx->models.n ? ctx->models.v[i] : NULL;
}

struct det_optim *det_trial_optimizer(const struct det_trial_context *ctx, size_t i)
{
    return i < ctx->optims.n ? ctx->optims.v[i] : NULL;
}

struct det_lr *det_trial_lr_scheduler(const struct det_trial_context *ctx, size_t i)
{
    return i < ctx->lrs.n ? ctx->lrs.v[i].lr : NULL;
}

struct det_lr *det_trial_wrap_lr_scheduler(struct det_trial_context *ctx, struct det_lr *lr,
                                           enum det_step_mode mode, int64_t frequency)
{
    trial_check_time(ctx, ctx->made, "det_trial_wrap_lr_scheduler");
    if (!lr) {
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_lr_scheduler: the scheduler is NULL");
        return NULL;
    }
    if (!find_options(ctx, det_lr_optim(lr)))
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_wrap_lr_scheduler: wrap the scheduler's optimizer first");
    if (mode < DET_STEP_EVERY_EPOCH || mode > DET_STEP_EVERY_OPTIMIZER_STEP || frequency < 1)
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_wrap_lr_scheduler: step mode %d, frequency %lld (1 or more)",
                   (int)mode, (long long)frequency);
    if (det_lr_needs_metric(lr) && mode != DET_MANUAL_STEP)
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_wrap_lr_scheduler: ReduceLROnPlateau needs a metric: take "
                   "DET_MANUAL_STEP and call det_lr_step_metric(), as in on_validation_end");
    vec_push(&ctx->lrs, (struct trial_lr){lr, mode, frequency});
    return lr;
}

void det_trial_backward_opt(struct det_trial_context *ctx, struct det_tensor *loss,
                            const struct det_backward_options *options)
{
    SPAN(SPAN_LOOP, "train_batch.backward");
    if (!loss)
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_backward: the loss is NULL (does det_batch_tensor() ask for a field "
                   "that the dataset does not have?)");
    if (!loss)
        return;
    trial_amp_end(ctx);
    if (ctx->amp)
        loss = det_grad_scaler_scale(ctx->scaler, loss);
    trial_overlap_begin(ctx);
    if (!det_trial_failed(ctx))
        det_backward_opt(ctx->engine, loss, options);
    trial_amp_begin(ctx);
}

/* ---- step ---- */

struct step {
    struct det_trial_context *ctx;
    struct det_optim *optim;
    const struct det_step_options *options;
};

static int mean_over_ranks(struct comm *comm, enum det_dtype dtype, void *v, size_t n,
                           struct det_err *err)
{
    return dtype == DET_F64 ? comm_allreduce_mean_f64(comm, v, n, err)
                            : comm_allreduce_mean_f32(comm, v, n, err);
}

/* The mean of flat gradients over the ranks; through host memory where they are on a device. */
static int reduce_on_host(struct comm *comm, struct det_tensor *g, struct det_err *err)
{
    size_t n = det_tensor_numel(g), bytes = det_tensor_bytes(g);
    enum det_dtype dtype = det_tensor_dtype(g);
    if (det_tensor_is_host(g))
        return mean_over_ranks(comm, dtype, det_tensor_data(g), n, err);
    det_cleanup(freep) void *host = det_try_alloc(bytes + 1);
    if (!host)
        return det_fail(err, DET_ENOMEM, "gradients of %zu bytes", bytes);
    int rc = det_tensor_read(g, host, bytes, err);
    if (rc == 0)
        rc = mean_over_ranks(comm, dtype, host, n, err);
    return rc < 0 ? rc : det_tensor_write(g, host, bytes, err);
}

/* All of them, after the backward pass. */
static int reduce_all(struct step *s, struct comm *comm, struct det_err *err)
{
    struct det_tensor *g = module_grads_marked(s->optim->module);
    if (!g)
        return det_engine_error(s->ctx->engine, err);
    struct det_err e; /* not err: where another way is left, the trial has not failed */
    int rc = det_tensor_is_host(g) ? DET_EUNAVAIL : trial_device_mean(s->ctx, comm, g, &e);
    if (rc == DET_EUNAVAIL)
        rc = reduce_on_host(comm, g, err);
    else if (rc < 0)
        det_fail_as(err, rc, &e);
    return rc;
}

static int on_reduce(void *self, struct comm *comm, struct det_err *err)
{
    SPAN(SPAN_LOOP, "train_batch.sync_optimizers");
    struct step *s = self;
    struct det_err e; /* not err: where another way is left, the trial has not failed */
    int rc = trial_overlap_finish(s->ctx, comm, &e);
    if (rc == DET_EUNAVAIL)
        rc = reduce_all(s, comm, err);
    else if (rc < 0)
        det_fail_as(err, rc, &e);
    return rc < 0 ? rc : module_grads_heard(s->optim->module, err);
}

static int on_scale(void *self, double factor, struct det_err *err)
{
    struct step *s = self;
    det_module_scale_grads(s->optim->module, factor);
    return det_engine_error(s->ctx->engine, err);
}

/* The scaler that steps in the optimizer's place; NULL: none. */
static struct det_grad_scaler *scaler_of(const struct step *s)
{
    return s->options->scaler ? s->options->scaler : s->ctx->amp ? s->ctx->scaler : NULL;
}

static int on_clip(void *self, struct det_err *err)
{
    struct step *s = self;
    const struct det_step_options *o = s->options;
    struct det_grad_scaler *scaler = scaler_of(s);
    if (scaler && !det_grad_scaler_unscaled(scaler, s->optim))
        det_grad_scaler_unscale(scaler, s->optim);
    if (o->clip_norm > 0)
        det_clip_grad_norm(s->optim->module, o->clip_norm);
    if (o->clip_value > 0)
        det_clip_grad_value(s->optim->module, o->clip_value);
    if (o->clip_grads)
        o->clip_grads(o->clip_arg, s->optim->module);
    return trial_check(s->ctx, err);
}

static int on_step(void *self, struct det_err *err)
{
    SPAN(SPAN_LOOP, "train_batch.step_optimizer");
    struct step *s = self;
    struct det_grad_scaler *scaler = scaler_of(s);
    if (scaler)
        det_grad_scaler_step(scaler, s->optim);
    else
        det_optim_step(s->optim);
    return trial_check(s->ctx, err);
}

static int on_zero(void *self, struct det_err *err)
{
    struct step *s = self;
    det_optim_zero_grad(s->optim);
    return trial_check(s->ctx, err);
}

/* Also while they are averaged: not what they are. */
static bool has_gradient(struct det_module *m)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(m, &n);
    for (size_t i = 0; i < n; i++)
        if (p[i].tensor->grad_set)
            return true;
    return false;
}

void det_trial_step_optimizer_opt(struct det_trial_context *ctx, struct det_optim *o,
                                  const struct det_step_options *options)
{
    struct step s = {ctx, o, options};
    const struct det_wrap_optimizer_options *w = find_options(ctx, o);
    bool clips = options->clip_norm > 0 || options->clip_value > 0 || options->clip_grads;
    if (!ctx->loop)
        trial_fail(ctx, DET_ESTATE, "det_trial_step_optimizer: training has not started");
    if (det_trial_failed(ctx))
        return;
    if (!w) {
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_step_optimizer: the optimizer was not wrapped "
                   "(det_trial_wrap_optimizer in create)");
        return;
    }
    const struct loop_step_hooks hooks = {.self = &s,
                                          .reduce = on_reduce,
                                          .scale = on_scale,
                                          .clip = clips ? on_clip : NULL,
                                          .step = on_step,
                                          .zero = on_zero,
                                          .sum_aggregated = w->sum_aggregated,
                                          .keep_grads = options->keep_grads};
    if (loop_is_update_batch(ctx->loop) && !has_gradient(o->module))
        trial_fail(
            ctx, DET_ESTATE,
            "det_trial_step_optimizer: no parameter of the optimizer's model has a gradient: "
            "call det_trial_backward() with a loss of this model first");
    trial_amp_end(ctx);
    if (!det_trial_failed(ctx))
        det_ignore(loop_step_optimizer(ctx->loop, &hooks, det_trial_err(ctx)),
                   "the trial's error keeps it");
    trial_amp_begin(ctx);
}
