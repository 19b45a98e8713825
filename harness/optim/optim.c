/* What all optimizers share: groups, parameters, the step over all of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "optim_impl.h"

struct det_optim *optim_new(struct det_module *m, const struct optim_type *type,
                            const struct group *g)
{
    size_t n;
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
    o->engine = e;
    o->type = type;
    o->module = m;
    vec_push(&o->groups, *g);
    o->groups.v[0].initial_lr = NAN;
    for (size_t i = 0; i < n; i++)
        vec_push(&o->slots, (struct slot){.param = det_tensor_ref(params[i].tensor)});
    return o;
}

void det_optim_destroy(struct det_optim *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->slots.n; i++) {
        struct slot *s = &o->slots.v[i];
        det_tensor_unref(s->param);
        det_tensor_unref(s->step);
        for (int k = 0; k < SLOTS_MAX; k++)
            det_tensor_unref(s->kept[k]);
    }
    vec_free(&o->slots);
    vec_free(&o->groups);
    free(o);
}

static bool holds(const struct det_named_tensor *params, size_t n, const struct det_tensor *t)
{
    for (size_t i = 0; i < n; i++)
        if (params[i].tensor == t)
            return true;
    return false;
}

/* Parameters are numbered group after group: moves those of the last group to the end, in order. */
static void sort_slots(struct det_optim *o, size_t group)
{
    size_t kept = 0, moved = 0;
    struct slot *old = det_memdup(o->slots.v, o->slots.n * sizeof *old);
    for (size_t i = 0; i < o->slots.n; i++)
        if (old[i].group != group)
            o->slots.v[kept++] = old[i];
    for (size_t i = 0; i < o->slots.n; i++)
        if (old[i].group == group)
            o->slots.v[kept + moved++] = old[i];
    free(old);
}

int det_optim_add_group(struct det_optim *o, struct det_module *m)
{
    size_t n, found = 0, group;
    const struct det_named_tensor *params = det_module_params(m, &n);
    if (!o || !m)
        return DET_EINVAL;
    group = o->groups.n;
    for (size_t i = 0; i < o->slots.n; i++) {
        if (o->slots.v[i].stepped)
            return det_engine_fail(o->engine, DET_ESTATE,
                                   "%s: groups are added before the first step", o->type->name);
        found += holds(params, n, o->slots.v[i].param);
    }
    if (found == 0)
        return det_engine_fail(o->engine, DET_EINVAL,
                               "%s: no parameter of that module is in this optimizer",
                               o->type->name);
    struct group first = o->groups.v[0];
    vec_push(&o->groups, first);
    for (size_t i = 0; i < o->slots.n; i++)
        if (holds(params, n, o->slots.v[i].param))
            o->slots.v[i].group = group;
    sort_slots(o, group);
    return (int)group;
}

int slot_keep(struct det_optim *o, struct slot *s, int i, struct det_err *err)
{
    if (s->kept[i])
        return 0;
    int rc = det__tensor_like(o->engine, s->param, &s->kept[i], err);
    if (rc < 0)
        return rc;
    return det__run(o->engine, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {s->kept[i]}},
                    err);
}

void det_optim_zero_grad(struct det_optim *o)
{
    for (size_t i = 0; o && i < o->slots.n; i++)
        o->slots.v[i].param->grad_set = false;
}

int det_optim_step(struct det_optim *o)
{
    struct det_err err;
    int rc = 0;
    if (!o)
        return DET_EINVAL;
    if (o->engine->err.code < 0)
        return o->engine->err.code;
    for (size_t i = 0; rc == 0 && i < o->slots.n; i++)
        if (o->slots.v[i].param->grad_set)
            rc = o->type->step(o, &o->slots.v[i], &err);
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
