/* Stochastic gradient descent with momentum, as torch.optim.SGD computes it. */
#include "mem.h"
#include "optim_impl.h"

static bool keeps_slot(const struct group *g, int i)
{
    (void)i;
    return g->momentum != 0;
}

static const struct optim_type sgd_type = {
    .name = "SGD",
    .fields = {{"lr", DET_VALUE_FLOAT, offsetof(struct group, lr)},
               {"momentum", DET_VALUE_FLOAT, offsetof(struct group, momentum)},
               {"dampening", DET_VALUE_FLOAT, offsetof(struct group, dampening)},
               {"weight_decay", DET_VALUE_FLOAT, offsetof(struct group, weight_decay)},
               {"nesterov", DET_VALUE_BOOL, offsetof(struct group, nesterov)},
               {"maximize", DET_VALUE_BOOL, offsetof(struct group, maximize)},
               {"foreach", DET_VALUE_NONE, -1},
               {"differentiable", DET_VALUE_BOOL, -1}},
    .kernel = DET_KERNEL_SGD,
    .kept = {"momentum_buffer"},
    .step_kind = DET_VALUE_NONE,
    .writes_none = true,
    .keeps = keeps_slot,
};

struct det_optim *det_sgd_create(struct det_module *m, const struct det_sgd_options *options)
{
    const struct group g = {.lr = options->lr,
                            .momentum = options->momentum,
                            .dampening = options->dampening,
                            .weight_decay = options->weight_decay,
                            .nesterov = options->nesterov,
                            .maximize = options->maximize};
    const double numbers[] = {g.momentum, g.weight_decay};
    if (m && g.nesterov && (g.momentum <= 0 || g.dampening != 0)) {
        det_engine_fail(det_module_engine(m), DET_EINVAL,
                        "SGD: nesterov needs a momentum above 0 and no dampening");
        return NULL;
    }
    if (m && !optim_numbers_ok(m, "SGD", numbers, DET_ARRAY_LEN(numbers)))
        return NULL;
    return optim_new(m, &sgd_type, &g);
}
