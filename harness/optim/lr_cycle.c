/* OneCycleLR and CyclicLR: rates that rise and fall, the momentum against them. */
#include "lr_impl.h"

#include <math.h>
#include <stdlib.h>

#include "mem.h"

#define AT(member) offsetof(struct det_lr, member)

static double option_or(double option, double fallback)
{
    return option != 0 ? option : fallback;
}

static bool has_momentum(struct det_optim *o)
{
    return group_momentum(o, 0) != NULL;
}

/* ---- one cycle ---- */

/* The phase of the present step and how far into it that is. */
static const struct lr_phase *phase_of(const struct det_lr *lr, double *ret_part)
{
    double start = 0, k = (double)lr->last_epoch;
    size_t i = 0;
    while (i + 1 < lr->phases_n && k > lr->phases[i].end_step)
        start = lr->phases[i++].end_step;
    *ret_part = (k - start) / (lr->phases[i].end_step - start);
    return &lr->phases[i];
}

static double anneal_between(const struct det_lr *lr, double from, double to, double part)
{
    if (lr->linear)
        return (to - from) * part + from;
    return to + (from - to) / 2.0 * (cos(M_PI * part) + 1);
}

static double one_cycle_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)rate;
    double part;
    const struct lr_phase *p = phase_of(lr, &part);
    return anneal_between(lr, det_optim_get(lr->optim, group, p->start_lr),
                          det_optim_get(lr->optim, group, p->end_lr), part);
}

static double one_cycle_momentum(const struct det_lr *lr, size_t group)
{
    double part;
    const struct lr_phase *p = phase_of(lr, &part);
    return anneal_between(lr, det_optim_get(lr->optim, group, p->start_momentum),
                          det_optim_get(lr->optim, group, p->end_momentum), part);
}

static void one_cycle_step(struct det_lr *lr)
{
    if (lr->last_epoch + 1 > lr->total_steps) {
        det_engine_fail(lr->optim->engine, DET_ESTATE,
                        "OneCycleLR: step %lld of %lld; total_steps must be the number of all "
                        "steps of the training",
                        (long long)lr->last_epoch + 1, (long long)lr->total_steps);
        return;
    }
    lr->step_count++;
    lr->last_epoch++;
    lr_set_rates(lr);
}

static const struct lr_type one_cycle_type = {
    .name = "OneCycleLR",
    .fields = {{"total_steps", DET_VALUE_INT, AT(total_steps)},
               {"_schedule_phases", DET_VALUE_DICTS, AT(phases)},
               {"cycle_momentum", DET_VALUE_BOOL, AT(cycle_momentum)},
               {"use_beta1", DET_VALUE_BOOL, AT(use_beta1)}},
    .rate = one_cycle_rate,
    .momentum = one_cycle_momentum,
    .step = one_cycle_step,
};

static void set_phases(struct det_lr *lr, double pct, bool three)
{
    double total = (double)lr->total_steps;
    lr->phases_n = three ? 3 : 2;
    lr->phases[0] =
        (struct lr_phase){pct * total - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum"};
    lr->phases[1] =
        (struct lr_phase){three ? 2 * pct * total - 2 : total - 1, "max_lr",
                          three ? "initial_lr" : "min_lr", "base_momentum", "max_momentum"};
    lr->phases[2] =
        (struct lr_phase){total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"};
}

static void set_groups(struct det_optim *o, double max_lr, const struct det_one_cycle_options *p)
{
    for (size_t i = 0; i < o->groups.n; i++) {
        struct group *g = &o->groups.v[i];
        g->max_lr = p->max_lrs ? p->max_lrs[i] : max_lr;
        g->initial_lr = g->max_lr / option_or(p->div_factor, 25);
        g->min_lr = g->initial_lr / option_or(p->final_div_factor, 1e4);
        if (p->no_momentum)
            continue;
        g->max_momentum = option_or(p->max_momentum, 0.95);
        g->base_momentum = option_or(p->base_momentum, 0.85);
    }
}

struct det_lr *det_one_cycle_lr_create(struct det_optim *o, double max_lr, int64_t total_steps,
                                       const struct det_one_cycle_options *p)
{
    double pct = option_or(p->pct_start, 0.3);
    if (total_steps < 1 || !(pct > 0 && pct <= 1))
        return lr_refuse(o, "OneCycleLR", "total_steps must be at least 1, pct_start in 0..1");
    if (!o || o->engine->err.code < 0)
        return NULL;
    if (!p->no_momentum && !has_momentum(o))
        return lr_refuse(o, "OneCycleLR",
                         "the optimizer has no momentum: give .no_momentum = true");
    struct det_lr like = {.type = &one_cycle_type,
                          .total_steps = total_steps,
                          .linear = p->linear,
                          .cycle_momentum = !p->no_momentum};
    like.use_beta1 = like.cycle_momentum && group_field_find(o->type, "betas");
    set_phases(&like, pct, p->three_phase);
    set_groups(o, max_lr, p);
    return lr_new(o, &like);
}

/* ---- triangles ---- */

static double cycle_scale(const struct det_lr *lr)
{
    double k = (double)lr->last_epoch, cycle = floor(1 + k / lr->total_size);
    double x = 1. + k / lr->total_size - cycle;
    double scale = x <= lr->step_ratio ? x / lr->step_ratio : (x - 1) / (lr->step_ratio - 1);
    if (lr->mode[0] == 'e')
        return scale * pow(lr->gamma, k);
    return lr->mode[sizeof "triangular" - 1] == '2' ? scale / pow(2., cycle - 1) : scale;
}

static double cyclic_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)rate;
    return lr->base[group] + (lr->max_lrs[group] - lr->base[group]) * cycle_scale(lr);
}

static double cyclic_momentum(const struct det_lr *lr, size_t group)
{
    double max = lr->max_momentums[group];
    return max - (max - lr->base_momentums[group]) * cycle_scale(lr);
}

#define CYCLIC_FIELDS                                                                              \
    {"max_lrs", DET_VALUE_FLOATS, AT(max_lrs)}, {"total_size", DET_VALUE_FLOAT, AT(total_size)},   \
        {"step_ratio", DET_VALUE_FLOAT, AT(step_ratio)}, {"mode", DET_VALUE_STR, AT(mode)},        \
        {"gamma", DET_VALUE_FLOAT, AT(gamma)}, {"_scale_fn_custom", DET_VALUE_NONE, -1},           \
        {"scale_mode", DET_VALUE_STR, AT(scale_mode)},                                             \
    {                                                                                              \
        "cycle_momentum", DET_VALUE_BOOL, AT(cycle_momentum)                                       \
    }

static const struct lr_type cyclic_type = {
    .name = "CyclicLR",
    .fields = {CYCLIC_FIELDS,
               {"base_momentums", DET_VALUE_FLOATS, AT(base_momentums)},
               {"max_momentums", DET_VALUE_FLOATS, AT(max_momentums)}},
    .rate = cyclic_rate,
    .momentum = cyclic_momentum,
};

static const struct lr_type cyclic_plain_type = {
    .name = "CyclicLR",
    .fields = {CYCLIC_FIELDS},
    .rate = cyclic_rate,
};

struct det_lr *det_cyclic_lr_create(struct det_optim *o, double base_lr, double max_lr,
                                    const struct det_cyclic_options *p)
{
    static const char *const modes[] = {"triangular", "triangular2", "exp_range"};
    double up = option_or((double)p->step_size_up, 2000),
           down = option_or((double)p->step_size_down, up);
    bool cycles = !p->no_momentum;
    if (up < 1 || down < 1 || p->mode < 0 || p->mode > DET_CYCLIC_EXP_RANGE)
        return lr_refuse(o, "CyclicLR", "the sizes of steps must be at least 1, the mode known");
    if (!o || o->engine->err.code < 0)
        return NULL;
    if (cycles && !group_field_find(o->type, "momentum"))
        return lr_refuse(o, "CyclicLR", "the optimizer has no momentum: give .no_momentum = true");
    for (size_t i = 0; i < o->groups.n; i++)
        o->groups.v[i].lr = base_lr;
    size_t n = o->groups.n;
    return lr_new(
        o, &(struct det_lr){.type = cycles ? &cyclic_type : &cyclic_plain_type,
                            .max_lrs = lr_filled(n, max_lr),
                            .total_size = up + down,
                            .step_ratio = up / (up + down),
                            .mode = modes[p->mode],
                            .gamma = option_or(p->gamma, 1),
                            .scale_mode = p->mode == DET_CYCLIC_EXP_RANGE ? "iterations" : "cycle",
                            .cycle_momentum = cycles,
                            .base_momentums = lr_filled(n, option_or(p->base_momentum, 0.8)),
                            .max_momentums = lr_filled(n, option_or(p->max_momentum, 0.9))});
}
