/* ReduceLROnPlateau: the rates fall when a metric gets no better. */
#include "lr_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define AT(member) offsetof(struct det_lr, member)

static void plateau_step(struct det_lr *lr)
{
    det_engine_fail(lr->optim->engine, DET_ESTATE,
                    "ReduceLROnPlateau: its steps need a metric: wrap it with DET_MANUAL_STEP and "
                    "call det_lr_step_metric()");
}

static const struct lr_type plateau_type = {
    .name = "ReduceLROnPlateau",
    .fields = {{"factor", DET_VALUE_FLOAT, AT(factor)},
               {"min_lrs", DET_VALUE_FLOATS, AT(min_lrs)},
               {"patience", DET_VALUE_INT, AT(patience)},
               {"verbose", DET_VALUE_BOOL, -1},
               {"cooldown", DET_VALUE_INT, AT(cooldown)},
               {"cooldown_counter", DET_VALUE_INT, AT(cooldown_counter)},
               {"mode", DET_VALUE_STR, AT(mode)},
               {"threshold", DET_VALUE_FLOAT, AT(threshold)},
               {"threshold_mode", DET_VALUE_STR, AT(threshold_mode)},
               {"best", DET_VALUE_FLOAT, AT(best)},
               {"num_bad_epochs", DET_VALUE_INT, AT(num_bad_epochs)},
               {"mode_worse", DET_VALUE_FLOAT, AT(mode_worse)},
               {"eps", DET_VALUE_FLOAT, AT(eps)},
               {"last_epoch", DET_VALUE_INT, AT(last_epoch)},
               {"_last_lr", DET_VALUE_FLOATS, AT(last)}},
    .own_state = true,
    .step = plateau_step,
};

static bool is_better(const struct det_lr *lr, double metric)
{
    double sign = strcmp(lr->mode, "max") == 0 ? 1 : -1;
    if (strcmp(lr->threshold_mode, "abs") == 0)
        return sign * metric > sign * (lr->best + sign * lr->threshold);
    return sign * metric > sign * (lr->best * (1 + sign * lr->threshold));
}

static void reduce_rates(struct det_lr *lr)
{
    for (size_t i = 0; i < lr->n; i++) {
        double rate = det_optim_lr(lr->optim, i), next = fmax(rate * lr->factor, lr->min_lrs[i]);
        if (rate - next > lr->eps)
            det_optim_set_lr(lr->optim, i, next);
    }
}

static void plateau_metric(struct det_lr *lr, double metric)
{
    lr->last_epoch++;
    if (is_better(lr, metric)) {
        lr->best = metric;
        lr->num_bad_epochs = 0;
    } else {
        lr->num_bad_epochs++;
    }
    if (lr->cooldown_counter > 0) {
        lr->cooldown_counter--;
        lr->num_bad_epochs = 0;
    }
    if (lr->num_bad_epochs > lr->patience) {
        reduce_rates(lr);
        lr->cooldown_counter = lr->cooldown;
        lr->num_bad_epochs = 0;
    }
    for (size_t i = 0; i < lr->n; i++)
        lr->last[i] = det_optim_lr(lr->optim, i);
}

void det_lr_step_metric(struct det_lr *lr, double metric)
{
    if (!lr || lr->optim->engine->err.code < 0)
        return;
    if (lr->type == &plateau_type)
        plateau_metric(lr, metric);
    else
        det_lr_step(lr);
}

bool det_lr_needs_metric(const struct det_lr *lr)
{
    return lr && lr->type == &plateau_type;
}

struct det_lr *det_reduce_lr_on_plateau_create(struct det_optim *o, int64_t patience,
                                               const struct det_plateau_options *p)
{
    double factor = p->factor != 0 ? p->factor : 0.1, worse = p->maximize ? -INFINITY : INFINITY;
    if (!(factor > 0 && factor < 1) || patience < 0 || p->cooldown < 0)
        return lr_refuse(o, plateau_type.name,
                         "factor must be in 0..1, patience and cooldown at least 0");
    return lr_alloc(o, &(struct det_lr){.type = &plateau_type,
                                        .factor = factor,
                                        .min_lrs = lr_filled(o ? o->groups.n : 0, p->min_lr),
                                        .patience = patience,
                                        .cooldown = p->cooldown,
                                        .mode = p->maximize ? "max" : "min",
                                        .threshold = p->threshold != 0 ? p->threshold : 1e-4,
                                        .threshold_mode = p->absolute ? "abs" : "rel",
                                        .best = worse,
                                        .mode_worse = worse,
                                        .eps = p->eps != 0 ? p->eps : 1e-8});
}
