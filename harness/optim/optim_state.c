/* An optimizer's state under PyTorch's names, out and in. */
#include <math.h>
#include <string.h>

#include "dtype.h"
#include "mem.h"
#include "optim_impl.h"

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
        o->values[(*ret_n)++] = group_value(g, f);
    for (const struct group_field *f = scheduler_fields; f->name; f++)
        if (!isnan(*(double *)group_number(g, f)))
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

/* The steps as a host scalar; NULL where even that memory is missing. */
static struct det_tensor *step_tensor(struct slot *s)
{
    float steps = (float)s->steps;
    if (!s->step_tensor)
        s->step_tensor = det_host_tensor(DET_F32, 0, NULL, NULL);
    if (s->step_tensor)
        det_ignore(det_tensor_write(s->step_tensor, &steps, sizeof steps, NULL), "host memory");
    return s->step_tensor;
}

const struct det_value *det_optim_param_state(struct det_optim *o, size_t param, size_t *ret_n)
{
    *ret_n = 0;
    if (!o || param >= o->slots.n || !o->slots.v[param].has_state)
        return NULL;
    struct slot *s = &o->slots.v[param];
    const struct optim_type *t = o->type;
    if (t->step_kind != DET_VALUE_NONE)
        o->values[(*ret_n)++] =
            (struct det_value){.name = "step",
                               .kind = t->step_kind,
                               .i = s->steps,
                               .tensor = t->step_kind == DET_VALUE_TENSOR ? step_tensor(s) : NULL};
    for (int i = 0; i < SLOTS_MAX && t->kept[i]; i++)
        if (s->kept[i] || t->writes_none)
            o->values[(*ret_n)++] =
                (struct det_value){.name = t->kept[i],
                                   .kind = s->kept[i] ? DET_VALUE_TENSOR : DET_VALUE_NONE,
                                   .tensor = s->kept[i]};
    return o->values;
}

/* A number, whichever way it was written. */
static int as_number(const struct det_value *v, double *ret, struct det_err *err)
{
    double number = 0;
    switch (v->kind) {
    case DET_VALUE_BOOL:
    case DET_VALUE_INT: *ret = (double)v->i; return 0;
    case DET_VALUE_FLOAT: *ret = v->f; return 0;
    case DET_VALUE_TENSOR:
        if (!v->tensor || !det__is_float(v->tensor->dtype) || v->tensor->numel != 1 ||
            det_tensor_read(v->tensor, &number, det_tensor_bytes(v->tensor), NULL) < 0)
            break;
        *ret = det__load_f64(v->tensor->dtype, &number);
        return 0;
    case DET_VALUE_NONE:
    case DET_VALUE_PAIR:
    case DET_VALUE_FLOATS:
    case DET_VALUE_STR:
    case DET_VALUE_INTS:
    case DET_VALUE_NONES:
    case DET_VALUE_COUNTS:
    case DET_VALUE_DICTS: break;
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
    if (!(steps >= 0 && steps <= 0x1p53))
        return det_fail(err, DET_EINVAL, "step is %g, which is no count of steps", steps);
    s->steps = (int64_t)steps;
    s->has_state = true;
    return 0;
}

static int load_kept(struct det_optim *o, struct slot *s, int i, const struct det_value *v,
                     struct det_err *err)
{
    if (v->kind == DET_VALUE_NONE) {
        det_tensor_unref(s->kept[i]);
        s->kept[i] = NULL;
        s->has_state = true;
        return 0;
    }
    if (v->kind != DET_VALUE_TENSOR || !v->tensor || !det__is_float(v->tensor->dtype) ||
        !det__same_shape(v->tensor, s->param))
        return det_fail(err, DET_EINVAL, "%s must be a floating tensor of the parameter's shape",
                        v->name);
    int rc = slot_keep(o, s, i, 0, err);
    if (rc == 0)
        rc = v->tensor->dtype == s->kept[i]->dtype
                 ? det__tensor_assign(s->kept[i], v->tensor, err)
                 : det__copy(o->engine, v->tensor, s->kept[i], err);
    s->has_state = s->has_state || rc == 0;
    s->fresh = s->fresh && (i > 0 || rc < 0);
    return rc;
}

int det_optim_load_param_state(struct det_optim *o, size_t param, const struct det_value *v,
                               struct det_err *err)
{
    int rc = 0;
    if (!o || param >= o->slots.n)
        return det_fail(err, DET_EINVAL, "optimizer: there is no parameter %zu", param);
    struct slot *s = &o->slots.v[param];
    o->stepped = true;
    if (o->type->step_kind != DET_VALUE_NONE && strcmp(v->name, "step") == 0)
        rc = load_step(s, v, err);
    for (int i = 0; rc == 0 && i < SLOTS_MAX && o->type->kept[i]; i++)
        if (strcmp(v->name, o->type->kept[i]) == 0)
            rc = load_kept(o, s, i, v, err);
    return rc < 0 ? det_wrap(err, rc, "optimizer state of parameter %zu", param) : 0;
}
