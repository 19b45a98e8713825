/* RMSprop and Adagrad, as torch.optim computes them: the gradient over the root of its squares. */
#include "mem.h"
#include "optim_impl.h"

static bool rmsprop_keeps(const struct group *g, int i)
{
    return i == 0 || (i == 1 ? g->momentum > 0 : g->centered);
}

static const struct optim_type rmsprop_type = {
    .name = "RMSprop",
    .fields = {{"lr", DET_VALUE_FLOAT, offsetof(struct group, lr)},
               {"momentum", DET_VALUE_FLOAT, offsetof(struct group, momentum)},
               {"alpha", DET_VALUE_FLOAT, offsetof(struct group, alpha)},
               {"eps", DET_VALUE_FLOAT, offsetof(struct group, eps)},
               {"centered", DET_VALUE_BOOL, offsetof(struct group, centered)},
               {"weight_decay", DET_VALUE_FLOAT, offsetof(struct group, weight_decay)},
               {"foreach", DET_VALUE_NONE, -1},
               {"maximize", DET_VALUE_BOOL, offsetof(struct group, maximize)},
               {"differentiable", DET_VALUE_BOOL, -1}},
    .kernel = DET_KERNEL_RMSPROP,
    .kept = {"square_avg", "momentum_buffer", "grad_avg"},
    .step_kind = DET_VALUE_INT,
    .keeps = rmsprop_keeps,
};

static const struct optim_type adagrad_type = {
    .name = "Adagrad",
    .fields = {{"lr", DET_VALUE_FLOAT, offsetof(struct group, lr)},
               {"lr_decay", DET_VALUE_FLOAT, offsetof(struct group, lr_decay)},
               {"eps", DET_VALUE_FLOAT, offsetof(struct group, eps)},
               {"weight_decay", DET_VALUE_FLOAT, offsetof(struct group, weight_decay)},
               {"initial_accumulator_value", DET_VALUE_FLOAT, offsetof(struct group, initial_sum)},
               {"foreach", DET_VALUE_NONE, -1},
               {"maximize", DET_VALUE_BOOL, offsetof(struct group, maximize)}},
    .kernel = DET_KERNEL_ADAGRAD,
    .kept = {"sum"},
    .step_kind = DET_VALUE_TENSOR,
    .has_state_from_start = true,
};

static double option_or(double option, double fallback)
{
    return option != 0 ? option : fallback;
}

struct det_optim *det_rmsprop_create(struct det_module *m, const struct det_rmsprop_options *o)
{
    const struct group g = {.lr = option_or(o->lr, 1e-2),
                            .alpha = option_or(o->alpha, 0.99),
                            .eps = option_or(o->eps, 1e-8),
                            .weight_decay = o->weight_decay,
                            .momentum = o->momentum,
                            .centered = o->centered,
                            .maximize = o->maximize};
    const double numbers[] = {g.alpha, g.eps, g.weight_decay, g.momentum};
    if (m && !optim_numbers_ok(m, "RMSprop", numbers, DET_ARRAY_LEN(numbers)))
        return NULL;
    return optim_new(m, &rmsprop_type, &g);
}

struct det_optim *det_adagrad_create(struct det_module *m, const struct det_adagrad_options *o)
{
    const struct group g = {.lr = option_or(o->lr, 1e-2),
                            .lr_decay = o->lr_decay,
                            .eps = option_or(o->eps, 1e-10),
                            .weight_decay = o->weight_decay,
                            .initial_sum = o->initial_accumulator_value,
                            .maximize = o->maximize};
    const double numbers[] = {g.lr_decay, g.eps, g.weight_decay, g.initial_sum};
    if (m && !optim_numbers_ok(m, "Adagrad", numbers, DET_ARRAY_LEN(numbers)))
        return NULL;
    return optim_new(m, &adagrad_type, &g);
}
