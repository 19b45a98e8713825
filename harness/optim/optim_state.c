/* An optimizer's state under PyTorch's names, out and in. */
#include <math.h>
#include <string.h>

#include "mem.h"
#include "optim_impl.h"

void *group_number(struct group *g, const struct group_field *f)
{
    return f->offset < 0 ? NULL : (char *)g + f->offset;
}

const struct group_field *group_field_find(const struct optim_type *type, const char *name)
{
    for (const struct group_field *f = type->fields; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

int det_optim_set(struct det_optim *o, size_t group, const char *name, double value)
{
    if (!o)
        return DET_EINVAL;
    const struct group_field *f = group_field_find(o->type, name);
    if (group >= o->groups.n || !f || f->kind != DET_VALUE_FLOAT || f->offset < 0)
        return det_engine_fail(o->engine, DET_EINVAL, "%s: group %zu has no number \"%s\"",
                               o->type->name, group, name);
    *(double *)group_number(&o->groups.v[group], f) = value;
    return 0;
}

size_t det_optim_param_count(const struct det_optim *o)
{
    return o ? o->slots.n : 0;
}

static struct det_value group_value(struct group *g, const struct group_field *f)
{
    struct det_value v = {.name = f->name, .kind = f->kind};
    void *number = group_number(g, f);
    if (!number)
        return v;
    if (f->kind == DET_VALUE_BOOL)
        v.i = *(bool *)number;
    else if (f->kind == DET_VALUE_PAIR)
        memcpy(v.pair, number, sizeof v.pair);
    else
        v.f = *(double *)number;
    return v;
}

const struct det_value *det_optim_group_values(struct det_optim *o, size_t group, size_t *ret_n)
{
    *ret_n = 0;
    if (!o || group >= o->groups.n)
        return NULL;
    struct group *g = &o->groups.v[group];
    for (const struct group_field *f = o->type->fields; f->name; f++)
        if (strcmp(f->name, "initial_lr") != 0 || !isnan(g->initial_lr))
            o->values[(*ret_n)++] = group_value(g, f);
    return o->values;
}

size_t det_optim_group_params(const struct det_optim *o, size_t group, size_t *ret_first)
{
    size_t count = 0;
    *ret_first = 0;
    for (size_t i = 0; o && i < o->slots.n; i++) {
        *ret_first += o->slots.v[i].group < group;
        count += o->slots.v[i].group == group;
    }
    return count;
}

const struct det_value *det_optim_param_state(struct det_optim *o, size_t param, size_t *ret_n)
{
    *ret_n = 0;
    if (!o || param >= o->slots.n || !o->slots.v[param].stepped)
        return NULL;
    const struct slot *s = &o->slots.v[param];
    if (o->type->counts)
        o->values[(*ret_n)++] =
            (struct det_value){.name = "step", .kind = DET_VALUE_TENSOR, .tensor = s->step};
    for (int i = 0; i < SLOTS_MAX && o->type->kept[i]; i++)
        o->values[(*ret_n)++] =
            (struct det_value){.name = o->type->kept[i],
                               .kind = s->kept[i] ? DET_VALUE_TENSOR : DET_VALUE_NONE,
                               .tensor = s->kept[i]};
    return o->values;
}

/* A number, whichever way it was written. */
static int as_number(const struct det_value *v, double *ret, struct det_err *err)
{
    float f32;
    switch (v->kind) {
    case DET_VALUE_BOOL:
    case DET_VALUE_INT:
        *ret = (double)v->i;
        return 0;
    case DET_VALUE_FLOAT:
        *ret = v->f;
        return 0;
    case DET_VALUE_TENSOR:
        if (!v->tensor || v->tensor->dtype != DET_F32 ||
            det_tensor_read(v->tensor, &f32, sizeof f32, NULL) < 0)
            break;
        *ret = f32;
        return 0;
    default:
        break;
    }
    return det_fail(err, DET_EINVAL, "%s must be a number", v->name);
}

int det_optim_load_group_value(struct det_optim *o, size_t group, const struct det_value *v,
                               struct det_err *err)
{
    double number = 0;
    if (!o || group >= o->groups.n)
        return det_fail(err, DET_EINVAL, "optimizer: there is no group %zu", group);
    const struct group_field *f = group_field_find(o->type, v->name);
    void *at = f ? group_number(&o->groups.v[group], f) : NULL;
    if (!at)
        return 0;
    if (f->kind == DET_VALUE_PAIR) {
        if (v->kind != DET_VALUE_PAIR)
            return det_fail(err, DET_EINVAL, "optimizer: %s must be a pair", v->name);
        memcpy(at, v->pair, sizeof v->pair);
        return 0;
    }
    int rc = as_number(v, &number, err);
    if (rc < 0)
        return det_wrap(err, rc, "optimizer");
    if (f->kind == DET_VALUE_BOOL)
        *(bool *)at = number != 0;
    else
        *(double *)at = number;
    return 0;
}

static int load_step(struct slot *s, const struct det_value *v, struct det_err *err)
{
    double steps = 0;
    int rc = as_number(v, &steps, err);
    if (rc < 0)
        return rc;
    if (!(steps >= 0 && steps <= 0x1p24))
        return det_fail(err, DET_EINVAL, "step is %g, which is no count of steps", steps);
    if (!s->step && !(s->step = det_host_tensor(DET_F32, 0, NULL, err)))
        return DET_ENOMEM;
    float f32 = (float)steps;
    s->stepped = true;
    return det_tensor_write(s->step, &f32, sizeof f32, err);
}

static int load_kept(struct det_optim *o, struct slot *s, int i, const struct det_value *v,
                     struct det_err *err)
{
    if (v->kind == DET_VALUE_NONE) {
        det_tensor_unref(s->kept[i]);
        s->kept[i] = NULL;
        s->stepped = true;
        return 0;
    }
    if (v->kind != DET_VALUE_TENSOR || !v->tensor || v->tensor->dtype != DET_F32 ||
        !det__same_shape(v->tensor, s->param))
        return det_fail(err, DET_EINVAL, "%s must be a float32 tensor of the parameter's shape",
                        v->name);
    int rc = slot_keep(o, s, i, err);
    if (rc == 0)
        rc = det__tensor_assign(s->kept[i], v->tensor, err);
    s->stepped = s->stepped || rc == 0;
    return rc;
}

int det_optim_load_param_state(struct det_optim *o, size_t param, const struct det_value *v,
                               struct det_err *err)
{
    int rc = 0;
    if (!o || param >= o->slots.n)
        return det_fail(err, DET_EINVAL, "optimizer: there is no parameter %zu", param);
    struct slot *s = &o->slots.v[param];
    if (o->type->counts && strcmp(v->name, "step") == 0)
        rc = load_step(s, v, err);
    for (int i = 0; rc == 0 && i < SLOTS_MAX && o->type->kept[i]; i++)
        if (strcmp(v->name, o->type->kept[i]) == 0)
            rc = load_kept(o, s, i, v, err);
    return rc < 0 ? det_wrap(err, rc, "optimizer state of parameter %zu", param) : 0;
}
