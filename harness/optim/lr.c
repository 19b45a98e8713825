/*
 * Learning rate schedulers, in the recursive forms of torch.optim.lr_scheduler: each step changes
 * the present rate, so a rate that somebody else set in between is carried on from.
 */
#include <math.h>
#include <stdlib.h>

#include "lr_impl.h"
#include "mem.h"

static double cosine_rate(const struct det_lr *lr, double rate, double base)
{
    double t = (double)lr->step_size, k = (double)lr->last_epoch, min = lr->gamma;
    if ((lr->last_epoch - 1 - lr->step_size) % (2 * lr->step_size) == 0)
        return rate + (base - min) * (1 - cos(M_PI / t)) / 2;
    return (1 + cos(M_PI * k / t)) / (1 + cos(M_PI * (k - 1) / t)) * (rate - min) + min;
}

static double next_rate(const struct det_lr *lr, double rate, double base)
{
    if (lr->kind == LR_LAMBDA)
        return base * lr->fn(lr->last_epoch, lr->arg);
    if (lr->last_epoch == 0)
        return rate;
    switch (lr->kind) {
    case LR_STEP:
        return lr->last_epoch % lr->step_size == 0 ? rate * lr->gamma : rate;
    case LR_EXPONENTIAL:
        return rate * lr->gamma;
    default:
        return cosine_rate(lr, rate, base);
    }
}

void det_lr_step(struct det_lr *lr)
{
    if (!lr)
        return;
    lr->step_count++;
    lr->last_epoch++;
    for (size_t i = 0; i < lr->n; i++) {
        lr->last[i] = next_rate(lr, det_optim_lr(lr->optim, i), lr->base[i]);
        det_optim_set_lr(lr->optim, i, lr->last[i]);
    }
}

static struct det_lr *create(struct det_optim *o, const struct det_lr *like)
{
    if (!o || o->engine->err.code < 0)
        return NULL;
    struct det_lr *lr = det_memdup(like, sizeof *lr);
    lr->optim = o;
    lr->n = o->groups.n;
    lr->base = det_zalloc(lr->n * sizeof *lr->base);
    lr->last = det_zalloc(lr->n * sizeof *lr->last);
    for (size_t i = 0; i < lr->n; i++) {
        struct group *g = &o->groups.v[i];
        if (isnan(g->initial_lr))
            g->initial_lr = g->lr;
        lr->base[i] = g->initial_lr;
    }
    lr->last_epoch = -1;
    det_lr_step(lr); /* PyTorch's constructors step once, to epoch 0 */
    return lr;
}

struct det_lr *det_step_lr(struct det_optim *o, int64_t step_size, double gamma)
{
    const struct det_lr like = {.kind = LR_STEP, .step_size = step_size, .gamma = gamma};
    if (o && step_size < 1) {
        det_engine_fail(o->engine, DET_EINVAL, "StepLR: step_size must be at least 1");
        return NULL;
    }
    return create(o, &like);
}

struct det_lr *det_exponential_lr(struct det_optim *o, double gamma)
{
    const struct det_lr like = {.kind = LR_EXPONENTIAL, .gamma = gamma};
    return create(o, &like);
}

struct det_lr *det_cosine_annealing_lr(struct det_optim *o, int64_t t_max, double eta_min)
{
    const struct det_lr like = {.kind = LR_COSINE, .step_size = t_max, .gamma = eta_min};
    if (o && t_max < 1) {
        det_engine_fail(o->engine, DET_EINVAL, "CosineAnnealingLR: t_max must be at least 1");
        return NULL;
    }
    return create(o, &like);
}

struct det_lr *det_lambda_lr(struct det_optim *o, double (*fn)(int64_t epoch, void *arg), void *arg)
{
    const struct det_lr like = {.kind = LR_LAMBDA, .fn = fn, .arg = arg};
    return create(o, &like);
}

void det_lr_destroy(struct det_lr *lr)
{
    if (!lr)
        return;
    free(lr->base);
    free(lr->last);
    free(lr);
}

double det_lr_last(const struct det_lr *lr, size_t group)
{
    return lr && group < lr->n ? lr->last[group] : NAN;
}

struct det_optim *det_lr_optim(const struct det_lr *lr)
{
    return lr ? lr->optim : NULL;
}
