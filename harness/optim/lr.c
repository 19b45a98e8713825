/* What all schedulers share: life, the step, the restart. */
#include "lr_impl.h"

#include <math.h>
#include <stdlib.h>

#include "mem.h"

double *lr_filled(size_t n, double v)
{
    double *p = det_alloc((n + 1) * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = v;
    return p;
}

struct det_lr *lr_refuse(struct det_optim *o, const char *kind, const char *text)
{
    if (o)
        det_engine_fail(o->engine, DET_EINVAL, "%s: %s", kind, text);
    return NULL;
}

struct det_lr *lr_alloc(struct det_optim *o, const struct det_lr *like)
{
    struct det_lr *lr = det_memdup(like, sizeof *lr);
    if (!o || o->engine->err.code < 0) {
        det_lr_destroy(lr);
        return NULL;
    }
    lr->optim = o;
    lr->n = o->groups.n;
    lr->base = lr_filled(lr->n, 0);
    lr->last = lr_filled(lr->n, 0);
    for (size_t i = 0; i < lr->n; i++) {
        struct group *g = &o->groups.v[i];
        if (isnan(g->initial_lr))
            g->initial_lr = g->lr;
        lr->base[i] = g->initial_lr;
        lr->last[i] = g->lr;
    }
    return lr;
}

struct det_lr *lr_new(struct det_optim *o, const struct det_lr *like)
{
    struct det_lr *lr = lr_alloc(o, like);
    if (!lr)
        return NULL;
    lr->last_epoch = -1;
    det_lr_step(lr); /* PyTorch's constructors step once, to epoch 0 */
    return lr;
}

void lr_set_rates(struct det_lr *lr)
{
    for (size_t i = 0; i < lr->n; i++) {
        lr->last[i] = lr->type->rate(lr, i, det_optim_lr(lr->optim, i));
        det_optim_set_lr(lr->optim, i, lr->last[i]);
        if (lr->cycle_momentum)
            *group_momentum(lr->optim, i) = lr->type->momentum(lr, i);
    }
}

void det_lr_step(struct det_lr *lr)
{
    if (!lr || lr->optim->engine->err.code < 0)
        return;
    if (lr->type->step) {
        lr->type->step(lr);
        return;
    }
    lr->step_count++;
    lr->last_epoch++;
    lr_set_rates(lr);
}

void lr_restart(struct det_lr *lr)
{
    for (size_t i = 0; i < lr->n && !lr->type->relative; i++)
        det_optim_set_lr(lr->optim, i, lr->base[i]);
    if (lr->type->restart) {
        lr->type->restart(lr);
        return;
    }
    lr->step_count++;
    lr->last_epoch = 0;
    lr_set_rates(lr);
}

void det_lr_destroy(struct det_lr *lr)
{
    if (!lr)
        return;
    double *arrays[] = {lr->base,           lr->last,          lr->max_lrs,   lr->min_lrs,
                        lr->base_momentums, lr->max_momentums, lr->milestones};
    for (size_t i = 0; i < DET_ARRAY_LEN(arrays); i++)
        free(arrays[i]);
    for (size_t i = 0; i < lr->parts_n; i++)
        det_lr_destroy(lr->parts[i]);
    free(lr->parts);
    free(lr->dicts);
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
