/* Adam (Kingma & Ba 2015) as torch.optim.Adam computes it, with weight decay as an L2 term. */
#include "mem.h"
#include "optim_impl.h"

static int count(struct slot *s, int64_t *ret, struct det_err *err)
{
    if (!s->step && !(s->step = det_host_tensor(DET_F32, 0, NULL, err)))
        return DET_ENOMEM;
    float *steps = det_tensor_data(s->step);
    *steps += 1;
    *ret = (int64_t)*steps;
    return 0;
}

static int adam_step(struct det_optim *o, struct slot *s, struct det_err *err)
{
    const struct group *g = &o->groups.v[s->group];
    int64_t step = 0;
    int rc = slot_keep(o, s, 0, err);
    if (rc == 0)
        rc = slot_keep(o, s, 1, err);
    if (rc == 0)
        rc = count(s, &step, err);
    if (rc < 0)
        return rc;
    struct det_call c = {.kernel = DET_KERNEL_ADAM,
                         .in = {s->param->grad},
                         .out = {s->param, s->kept[0], s->kept[1]}};
    c.a = (struct det_attrs){.lr = g->lr,
                             .beta1 = g->betas[0],
                             .beta2 = g->betas[1],
                             .eps = g->eps,
                             .weight_decay = g->weight_decay,
                             .step = step};
    rc = det__run(o->engine, &c, err);
    s->stepped = rc == 0;
    return rc;
}

static const struct optim_type adam_type = {
    .name = "Adam",
    .fields = {{"lr", DET_VALUE_FLOAT, offsetof(struct group, lr)},
               {"betas", DET_VALUE_PAIR, offsetof(struct group, betas)},
               {"eps", DET_VALUE_FLOAT, offsetof(struct group, eps)},
               {"weight_decay", DET_VALUE_FLOAT, offsetof(struct group, weight_decay)},
               {"amsgrad", DET_VALUE_BOOL, -1},
               {"maximize", DET_VALUE_BOOL, -1},
               {"foreach", DET_VALUE_NONE, -1},
               {"capturable", DET_VALUE_BOOL, -1},
               {"differentiable", DET_VALUE_BOOL, -1},
               {"fused", DET_VALUE_BOOL, -1},
               {"initial_lr", DET_VALUE_FLOAT, offsetof(struct group, initial_lr)}},
    .kept = {"exp_avg", "exp_avg_sq"},
    .counts = true,
    .step = adam_step,
};

struct det_optim *det_adam_create(struct det_module *m, const struct det_adam_options *options)
{
    const struct group g = {.lr = options->lr != 0 ? options->lr : 1e-3,
                            .betas = {options->beta1 != 0 ? options->beta1 : 0.9,
                                      options->beta2 != 0 ? options->beta2 : 0.999},
                            .eps = options->eps != 0 ? options->eps : 1e-8,
                            .weight_decay = options->weight_decay};
    if (m && !(g.betas[0] > 0 && g.betas[0] < 1 && g.betas[1] > 0 && g.betas[1] < 1 && g.eps > 0 &&
               g.weight_decay >= 0)) {
        det_engine_fail(det_module_engine(m), DET_EINVAL,
                        "Adam: betas must be in 0..1, eps and weight_decay >= 0");
        return NULL;
    }
    return optim_new(m, &adam_type, &g);
}
