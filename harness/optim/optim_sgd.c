/* Stochastic gradient descent with momentum, as torch.optim.SGD computes it. */
#include "optim_impl.h"

static int sgd_step(struct det_optim *o, struct slot *s, struct det_err *err)
{
    const struct group *g = &o->groups.v[s->group];
    bool first = !s->kept[0];
    int rc = g->momentum != 0 ? slot_keep(o, s, 0, err) : 0;
    if (rc < 0)
        return rc;
    struct det_call c = {.kernel = DET_KERNEL_SGD,
                         .in = {s->param->grad},
                         .out = {s->param, g->momentum != 0 ? s->kept[0] : NULL}};
    c.a = (struct det_attrs){.lr = g->lr,
                             .momentum = g->momentum,
                             .dampening = g->dampening,
                             .weight_decay = g->weight_decay,
                             .nesterov = g->nesterov,
                             .first = first};
    rc = det__run(o->engine, &c, err);
    s->stepped = rc == 0;
    return rc;
}

static const struct optim_type sgd_type = {
    .name = "SGD",
    .fields = {{"lr", DET_VALUE_FLOAT, offsetof(struct group, lr)},
               {"momentum", DET_VALUE_FLOAT, offsetof(struct group, momentum)},
               {"dampening", DET_VALUE_FLOAT, offsetof(struct group, dampening)},
               {"weight_decay", DET_VALUE_FLOAT, offsetof(struct group, weight_decay)},
               {"nesterov", DET_VALUE_BOOL, offsetof(struct group, nesterov)},
               {"maximize", DET_VALUE_BOOL, -1},
               {"foreach", DET_VALUE_NONE, -1},
               {"differentiable", DET_VALUE_BOOL, -1},
               {"initial_lr", DET_VALUE_FLOAT, offsetof(struct group, initial_lr)}},
    .kept = {"momentum_buffer"},
    .step = sgd_step,
};

struct det_optim *det_sgd_create(struct det_module *m, const struct det_sgd_options *options)
{
    const struct group g = {.lr = options->lr,
                            .momentum = options->momentum,
                            .dampening = options->dampening,
                            .weight_decay = options->weight_decay,
                            .nesterov = options->nesterov};
    if (m && g.nesterov && (g.momentum <= 0 || g.dampening != 0)) {
        det_engine_fail(det_module_engine(m), DET_EINVAL,
                        "SGD: nesterov needs a momentum above 0 and no dampening");
        return NULL;
    }
    if (m && (g.momentum < 0 || g.weight_decay < 0)) {
        det_engine_fail(det_module_engine(m), DET_EINVAL,
                        "SGD: momentum %g and weight_decay %g must be >= 0", g.momentum,
                        g.weight_decay);
        return NULL;
    }
    return optim_new(m, &sgd_type, &g);
}
