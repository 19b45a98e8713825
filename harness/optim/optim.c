/* What all optimizers share: life, the step over all parameters, rates. */
#include <math.h>
#include <stdlib.h>

#include "autocast.h"
#include "log.h"
#include "mem.h"
#include "optim_impl.h"

static int fill_from_start(struct det_optim *o, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->slots.n; i++) {
        rc = slot_keep(o, &o->slots.v[i], 0, o->groups.v[0].initial_sum, err);
        o->slots.v[i].has_state = true;
    }
    return rc;
}

struct det_optim *optim_new(struct det_module *m, const struct optim_type *type,
                            const struct group *g)
{
    size_t n;
    struct det_err err;
    const struct det_named_tensor *params = det_module_params(m, &n);
    struct det_engine *e = det_module_engine(m);
    if (!m || e->err.code < 0)
        return NULL;
    if (n == 0 || !(g->lr >= 0) || !isfinite(g->lr)) {
        det_engine_fail(e, DET_EINVAL,
                        n == 0 ? "%s: the module has no parameters"
                               : "%s: the learning rate must be given and >= 0",
                        type->name);
        return NULL;
    }
    struct det_optim *o = det_zalloc(sizeof *o);
    *o = (struct det_optim){.engine = e, .type = type, .module = m};
    vec_push(&o->groups, *g);
    struct group *first = &o->groups.v[0];
    first->initial_lr = first->max_lr = first->min_lr = NAN;
    first->max_momentum = first->base_momentum = NAN;
    for (size_t i = 0; i < n; i++)
        vec_push(&o->slots, (struct slot){.param = det_tensor_ref(params[i].tensor)});
    if (!type->has_state_from_start || fill_from_start(o, &err) == 0)
        return o;
    det__keep_error(e, &err);
    det_optim_destroy(o);
    return NULL;
}

bool optim_numbers_ok(struct det_module *m, const char *type, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (v[i] >= 0 && isfinite(v[i]))
            continue;
        det_engine_fail(det_module_engine(m), DET_EINVAL,
                        "%s: an option is %g; all numbers must be finite and >= 0", type, v[i]);
        return false;
    }
    return true;
}

void det_optim_destroy(struct det_optim *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->slots.n; i++) {
        struct slot *s = &o->slots.v[i];
        det_tensor_unref(s->param);
        det_tensor_unref(s->step_tensor);
        for (int k = 0; k < SLOTS_MAX; k++)
            det_tensor_unref(s->kept[k]);
    }
    vec_free(&o->slots);
    vec_free(&o->groups);
    free(o);
}

int slot_keep(struct det_optim *o, struct slot *s, int i, double value, struct det_err *err)
{
    if (s->kept[i])
        return 0;
    int rc = det__tensor_like(o->engine, s->param, &s->kept[i], err);
    if (rc < 0)
        return rc;
    struct det_call c = {.kernel = DET_KERNEL_FILL, .out = {s->kept[i]}, .a.scale = value};
    return det__run(o->engine, &c, err);
}

void det_optim_zero_grad(struct det_optim *o)
{
    for (size_t i = 0; o && i < o->slots.n; i++)
        if (det__grad_check(o->slots.v[i].param, "det_optim_zero_grad") == 0)
            o->slots.v[i].param->grad_set = false;
}

/* Of the step that comes. Adagrad's rate falls with its own steps (lr_decay, 0 in all others). */
static struct det_optim_attrs attrs_of(const struct det_optim *o, const struct slot *s)
{
    const struct group *g = &o->groups.v[s->group];
    double fall = 1 + (double)s->steps * g->lr_decay;
    return (struct det_optim_attrs){.lr = g->lr / fall,
                                    .momentum = g->momentum,
                                    .dampening = g->dampening,
                                    .weight_decay = g->weight_decay,
                                    .beta1 = g->betas[0],
                                    .beta2 = g->betas[1],
                                    .alpha = g->alpha,
                                    .eps = g->eps,
                                    .step = s->steps + 1,
                                    .nesterov = g->nesterov,
                                    .maximize = g->maximize,
                                    .decoupled = o->type->decoupled,
                                    .first = s->fresh};
}

/* What the step of a parameter is to the device, and what it keeps. */
static int prepare_step(struct det_optim *o, struct slot *s, struct det_call *ret,
                        struct det_err *err)
{
    const struct optim_type *t = o->type;
    int rc = 0;
    s->fresh = s->fresh || !s->kept[0];
    *ret = (struct det_call){
        .kernel = t->kernel, .in = {s->param->grad}, .out = {s->param}, .a.optim = attrs_of(o, s)};
    for (int i = 0; rc == 0 && i < SLOTS_MAX && t->kept[i]; i++) {
        if (t->keeps && !t->keeps(&o->groups.v[s->group], i))
            continue;
        rc = slot_keep(o, s, i, 0, err);
        ret->out[1 + i] = s->kept[i];
    }
    return rc;
}

static void count_steps(struct det_optim *o)
{
    for (size_t i = 0; i < o->slots.n; i++) {
        struct slot *s = &o->slots.v[i];
        if (!s->param->grad_set)
            continue;
        s->steps++;
        s->has_state = true;
        s->fresh = false;
    }
}

/* Memory is taken before the first parameter changes; a step that fails for want of it can be made
 * again. */
static int step_all(struct det_optim *o, struct det_err *err)
{
    VEC(struct det_call) calls = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->slots.n; i++) {
        struct det_call c;
        if (!o->slots.v[i].param->grad_set)
            continue;
        rc = prepare_step(o, &o->slots.v[i], &c, err);
        vec_push(&calls, c);
    }
    autocast_clear(o->engine);
    if (rc == 0)
        rc = det__run_steps(o->engine, calls.v, calls.n, err);
    if (rc == 0)
        count_steps(o);
    vec_free(&calls);
    return rc;
}

/* A rate that was forgotten and one of 0 look the same in C; a scheduler may begin at 0. */
static void warn_without_rate(const struct det_optim *o)
{
    for (size_t i = 0; i < o->groups.n; i++) {
        const struct group *g = &o->groups.v[i];
        if (g->lr != 0 || (!isnan(g->initial_lr) && g->initial_lr != 0))
            return;
    }
    log_warning("%s: the learning rate is 0, so its steps change nothing; give one, as in "
                "det_sgd(net, .lr = 0.1)",
                o->type->name);
}

static int check_grads(const struct det_optim *o)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < o->slots.n; i++)
        rc = det__grad_check(o->slots.v[i].param, "det_optim_step");
    return rc;
}

int det_optim_step(struct det_optim *o)
{
    struct det_err err;
    if (!o)
        return DET_EINVAL;
    if (o->engine->err.code < 0 || check_grads(o) < 0)
        return o->engine->err.code;
    if (!o->stepped)
        warn_without_rate(o);
    o->stepped = true;
    int rc = step_all(o, &err);
    if (rc == 0)
        return 0;
    det_wrap(&err, rc, "%s", o->type->name);
    return det__keep_error(o->engine, &err);
}

size_t det_optim_groups(const struct det_optim *o)
{
    return o ? o->groups.n : 0;
}

double det_optim_lr(const struct det_optim *o, size_t group)
{
    return o && group < o->groups.n ? o->groups.v[group].lr : NAN;
}

void det_optim_set_lr(struct det_optim *o, size_t group, double lr)
{
    if (o && group < o->groups.n)
        o->groups.v[group].lr = lr;
}

struct det_engine *det_optim_engine(const struct det_optim *o)
{
    return o ? o->engine : NULL;
}
