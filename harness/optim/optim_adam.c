/* Adam and AdamW as torch.optim computes them. The two write their groups in different orders. */
#include "mem.h"
#include "optim_impl.h"

static bool keeps_slot(const struct group *g, int i)
{
    return i < 2 || g->amsgrad;
}

#define NUMBERS                                                                                    \
    {"lr", DET_VALUE_FLOAT, offsetof(struct group, lr)},                                           \
        {"betas", DET_VALUE_PAIR, offsetof(struct group, betas)},                                  \
        {"eps", DET_VALUE_FLOAT, offsetof(struct group, eps)},                                     \
        {"weight_decay", DET_VALUE_FLOAT, offsetof(struct group, weight_decay)},                   \
    {                                                                                              \
        "amsgrad", DET_VALUE_BOOL, offsetof(struct group, amsgrad)                                 \
    }
#define MAXIMIZE                                                                                   \
    {                                                                                              \
        "maximize", DET_VALUE_BOOL, offsetof(struct group, maximize)                               \
    }
#define FOREACH                                                                                    \
    {                                                                                              \
        "foreach", DET_VALUE_NONE, -1                                                              \
    }
#define CAPTURABLE                                                                                 \
    {                                                                                              \
        "capturable", DET_VALUE_BOOL, -1                                                           \
    }

static const struct optim_type adam_type = {
    .name = "Adam",
    .fields = {NUMBERS,
               MAXIMIZE,
               FOREACH,
               CAPTURABLE,
               {"differentiable", DET_VALUE_BOOL, -1},
               {"fused", DET_VALUE_BOOL, -1}},
    .kernel = DET_KERNEL_ADAM,
    .kept = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
    .step_kind = DET_VALUE_TENSOR,
    .keeps = keeps_slot,
};

static const struct optim_type adamw_type = {
    .name = "AdamW",
    .fields = {NUMBERS, FOREACH, MAXIMIZE, CAPTURABLE},
    .kernel = DET_KERNEL_ADAM,
    .kept = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
    .step_kind = DET_VALUE_TENSOR,
    .decoupled = true,
    .keeps = keeps_slot,
};

static double option_or(double option, double fallback)
{
    return option != 0 ? option : fallback;
}

static struct det_optim *create_adam(struct det_module *m, const struct optim_type *type,
                                     const struct det_adam_options *o, double weight_decay)
{
    const struct group g = {.lr = option_or(o->lr, 1e-3),
                            .betas = {option_or(o->beta1, 0.9), option_or(o->beta2, 0.999)},
                            .eps = option_or(o->eps, 1e-8),
                            .weight_decay = option_or(o->weight_decay, weight_decay),
                            .amsgrad = o->amsgrad,
                            .maximize = o->maximize};
    const double numbers[] = {g.betas[0], g.betas[1], g.eps, g.weight_decay};
    if (m && !optim_numbers_ok(m, type->name, numbers, DET_ARRAY_LEN(numbers)))
        return NULL;
    if (m && !(g.betas[0] < 1 && g.betas[1] < 1)) {
        det_engine_fail(det_module_engine(m), DET_EINVAL, "%s: betas must be below 1", type->name);
        return NULL;
    }
    return optim_new(m, type, &g);
}

struct det_optim *det_adam_create(struct det_module *m, const struct det_adam_options *options)
{
    return create_adam(m, &adam_type, options, 0);
}

struct det_optim *det_adamw_create(struct det_module *m, const struct det_adam_options *options)
{
    return create_adam(m, &adamw_type, options, 0.01);
}
