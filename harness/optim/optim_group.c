/* Groups of parameters: made, and their numbers set and asked by name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "mem.h"
#include "optim_impl.h"

const struct group_field scheduler_fields[] = {
    {"initial_lr", DET_VALUE_FLOAT, offsetof(struct group, initial_lr)},
    {"max_lr", DET_VALUE_FLOAT, offsetof(struct group, max_lr)},
    {"min_lr", DET_VALUE_FLOAT, offsetof(struct group, min_lr)},
    {"max_momentum", DET_VALUE_FLOAT, offsetof(struct group, max_momentum)},
    {"base_momentum", DET_VALUE_FLOAT, offsetof(struct group, base_momentum)},
    {0},
};

void *group_number(struct group *g, const struct group_field *f)
{
    return f->offset < 0 ? NULL : (char *)g + f->offset;
}

static const struct group_field *find_in(const struct group_field *f, const char *name)
{
    for (; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

const struct group_field *group_field_find(const struct optim_type *type, const char *name)
{
    const struct group_field *f = find_in(type->fields, name);
    return f ? f : find_in(scheduler_fields, name);
}

/* The one number, or NULL with *flag, that a name means in group g. */
static double *number_of(struct det_optim *o, size_t group, const char *name, bool **flag)
{
    bool first = strcmp(name, "beta1") == 0, pair = first || strcmp(name, "beta2") == 0;
    const struct group_field *f = group_field_find(o->type, pair ? "betas" : name);
    void *at = f && group < o->groups.n ? group_number(&o->groups.v[group], f) : NULL;
    *flag = NULL;
    if (!at)
        return NULL;
    if (f->kind == DET_VALUE_PAIR)
        return pair ? (double *)at + !first : NULL;
    if (f->kind == DET_VALUE_FLOAT)
        return at;
    *flag = at;
    return NULL;
}

double *group_momentum(struct det_optim *o, size_t group)
{
    bool *flag;
    bool pair = group_field_find(o->type, "betas") != NULL;
    return number_of(o, group, pair ? "beta1" : "momentum", &flag);
}

/* A beta is a number of its own, the pair of them none. */
static int no_number(struct det_optim *o, size_t group, const char *name)
{
    det_cleanup(buf_finish) struct buf has = BUF_INIT;
    if (group >= o->groups.n)
        return det_engine_fail(o->engine, DET_EINVAL, "%s: there is no group %zu, the last is %zu",
                               o->type->name, group, o->groups.n - 1);
    for (const struct group_field *f = o->type->fields; f->name; f++)
        if (group_number(&o->groups.v[group], f))
            buf_addf(&has, "%s%s", has.len > 0 ? ", " : "",
                     f->kind == DET_VALUE_PAIR ? "beta1, beta2" : f->name);
    return det_engine_fail(o->engine, DET_EINVAL, "%s: group %zu has no number \"%s\"; it has: %s",
                           o->type->name, group, name, buf_str(&has));
}

int det_optim_set(struct det_optim *o, size_t group, const char *name, double value)
{
    bool *flag;
    if (!o)
        return DET_EINVAL;
    double *number = number_of(o, group, name, &flag);
    if (!number && !flag)
        return no_number(o, group, name);
    if (!(value >= 0) || !isfinite(value))
        return det_engine_fail(o->engine, DET_EINVAL, "%s: %s is %g, it must be finite and >= 0",
                               o->type->name, name, value);
    if (number)
        *number = value;
    else
        *flag = value != 0;
    return 0;
}

double det_optim_get(const struct det_optim *o, size_t group, const char *name)
{
    bool *flag = NULL;
    const double *number = o ? number_of((struct det_optim *)o, group, name, &flag) : NULL;
    return number ? *number : flag ? *flag : NAN;
}

/* ---- making one ---- */

/* Which of the parameters a new group takes. */
struct choice {
    struct det_module *m;
    det_param_test *want;
    void *arg;
};

static bool takes_tensor(const struct choice *c, const struct det_tensor *t)
{
    size_t n;
    const struct det_named_tensor *params = det_module_params(c->m, &n);
    for (size_t i = 0; i < n; i++)
        if (params[i].tensor == t)
            return !c->want || c->want(c->arg, params[i].name, t);
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

static int set_all(struct det_optim *o, size_t group, const struct det_settings *settings)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < settings->n; i++)
        rc = det_optim_set(o, group, settings->v[i].name, settings->v[i].value);
    return rc;
}

int det_optim_add_group_of(struct det_optim *o, struct det_module *m, det_param_test *want,
                           void *arg, const struct det_settings *settings)
{
    if (!o || (!m && !want))
        return DET_EINVAL;
    const struct choice choice = {m ? m : o->module, want, arg};
    size_t found = 0, group = o->groups.n;
    if (o->stepped)
        return det_engine_fail(o->engine, DET_ESTATE, "%s: groups are added before the first step",
                               o->type->name);
    for (size_t i = 0; i < o->slots.n; i++)
        found += takes_tensor(&choice, o->slots.v[i].param);
    if (found == 0)
        return det_engine_fail(o->engine, DET_EINVAL,
                               "%s: no such parameter of that module is in this optimizer",
                               o->type->name);
    struct group first = o->groups.v[0];
    vec_push(&o->groups, first);
    int rc = set_all(o, group, settings);
    if (rc < 0) {
        o->groups.n--;
        return rc;
    }
    for (size_t i = 0; i < o->slots.n; i++)
        if (takes_tensor(&choice, o->slots.v[i].param))
            o->slots.v[i].group = group;
    sort_slots(o, group);
    return (int)group;
}
