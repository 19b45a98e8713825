/* A scheduler's state under PyTorch's names, out and in. */
#include "lr_impl.h"

#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define AT(member) offsetof(struct det_lr, member)

/* What PyTorch's base class writes. */
static const struct lr_field common[] = {
    {"base_lrs", DET_VALUE_FLOATS, AT(base)},
    {"last_epoch", DET_VALUE_INT, AT(last_epoch)},
    {"verbose", DET_VALUE_BOOL, -1},
    {"_step_count", DET_VALUE_INT, AT(step_count)},
    {"_get_lr_called_within_step", DET_VALUE_BOOL, -1},
    {"_last_lr", DET_VALUE_FLOATS, AT(last)},
    {0},
};

static const struct lr_field *second_table(const struct lr_type *type)
{
    return type->own_state ? common + DET_ARRAY_LEN(common) - 1 : common;
}

/* ---- out ---- */

static void put_phase(struct det_lr *lr, size_t i)
{
    const struct lr_phase *p = &lr->phases[i];
    const struct det_value v[] = {
        {.name = "end_step", .kind = DET_VALUE_FLOAT, .f = p->end_step},
        {.name = "start_lr", .kind = DET_VALUE_STR, .str = p->start_lr},
        {.name = "end_lr", .kind = DET_VALUE_STR, .str = p->end_lr},
        {.name = "start_momentum", .kind = DET_VALUE_STR, .str = p->start_momentum},
        {.name = "end_momentum", .kind = DET_VALUE_STR, .str = p->end_momentum},
    };
    size_t n = lr->cycle_momentum ? DET_ARRAY_LEN(v) : 3;
    memcpy(lr->phase_values[i], v, sizeof v);
    lr->dicts[i] = (struct det_values){lr->phase_values[i], n};
}

/* The phases of a cycle, or the states of a sequence's parts. */
static void put_dicts(struct det_lr *lr, struct det_value *v)
{
    v->n = lr->phases_n + lr->parts_n;
    if (!lr->dicts)
        lr->dicts = det_zalloc((v->n + 1) * sizeof *lr->dicts);
    for (size_t i = 0; i < lr->phases_n; i++)
        put_phase(lr, i);
    for (size_t i = 0; i < lr->parts_n; i++)
        lr->dicts[i].v = det_lr_state(lr->parts[i], &lr->dicts[i].n);
    v->dicts = lr->dicts;
}

static struct det_value value_of(struct det_lr *lr, const struct lr_field *f)
{
    struct det_value v = {.name = f->name, .kind = f->kind, .n = lr->n};
    const char *at = (const char *)lr + (f->offset < 0 ? 0 : f->offset);
    if (f->kind == DET_VALUE_DICTS)
        put_dicts(lr, &v);
    if (f->offset < 0 || f->kind == DET_VALUE_DICTS)
        return v;
    switch (f->kind) {
    case DET_VALUE_INT: v.i = *(const int64_t *)(const void *)at; break;
    case DET_VALUE_BOOL: v.i = *(const bool *)at; break;
    case DET_VALUE_FLOAT: v.f = *(const double *)(const void *)at; break;
    case DET_VALUE_STR: v.str = *(const char *const *)(const void *)at; break;
    case DET_VALUE_FLOATS:
    case DET_VALUE_INTS:
    case DET_VALUE_COUNTS: v.floats = *(double *const *)(const void *)at; break;
    case DET_VALUE_NONE: /* a scheduler has none of these */
    case DET_VALUE_PAIR:
    case DET_VALUE_TENSOR:
    case DET_VALUE_NONES:
    case DET_VALUE_DICTS: break;
    }
    if (f->kind == DET_VALUE_INTS || f->kind == DET_VALUE_COUNTS)
        v.n = lr->milestones_n;
    return v;
}

const struct det_value *det_lr_state(struct det_lr *lr, size_t *ret_n)
{
    *ret_n = 0;
    if (!lr)
        return NULL;
    for (const struct lr_field *f = lr->type->fields; f->name; f++)
        lr->values[(*ret_n)++] = value_of(lr, f);
    for (const struct lr_field *f = second_table(lr->type); f->name; f++)
        lr->values[(*ret_n)++] = value_of(lr, f);
    return lr->values;
}

/* ---- in ---- */

static int refuse_value(const struct det_lr *lr, const struct det_value *v, const char *what,
                        struct det_err *err)
{
    return det_fail(err, DET_EINVAL, "%s: %s must be %s", lr->type->name, v->name, what);
}

static int load_floats(struct det_lr *lr, const struct det_value *v, double *to, size_t n,
                       struct det_err *err)
{
    if ((v->kind != DET_VALUE_FLOATS && v->kind != DET_VALUE_INTS && v->kind != DET_VALUE_COUNTS) ||
        v->n != n)
        return det_fail(err, DET_EINVAL, "%s: %s must be a list of %zu numbers", lr->type->name,
                        v->name, n);
    if (n)
        memcpy(to, v->floats, n * sizeof *to);
    return 0;
}

static int load_phases(struct det_lr *lr, const struct det_value *v, struct det_err *err)
{
    for (size_t i = 0; i < lr->phases_n; i++) {
        const struct det_values *d = &v->dicts[i];
        for (size_t k = 0; k < d->n; k++) {
            if (strcmp(d->v[k].name, "end_step") != 0)
                continue;
            if (d->v[k].kind != DET_VALUE_FLOAT && d->v[k].kind != DET_VALUE_INT)
                return refuse_value(lr, &d->v[k], "a number", err);
            lr->phases[i].end_step =
                d->v[k].kind == DET_VALUE_FLOAT ? d->v[k].f : (double)d->v[k].i;
        }
    }
    return 0;
}

static int load_dicts(struct det_lr *lr, const struct det_value *v, struct det_err *err)
{
    int rc = 0;
    if (v->kind != DET_VALUE_DICTS || v->n != lr->phases_n + lr->parts_n)
        return det_fail(err, DET_EINVAL, "%s: %s must be a list of %zu dicts", lr->type->name,
                        v->name, lr->phases_n + lr->parts_n);
    for (size_t i = 0; rc == 0 && i < lr->parts_n; i++)
        rc = det_lr_load_state(lr->parts[i], v->dicts[i].v, v->dicts[i].n, err);
    return rc < 0 ? det_wrap(err, rc, "%s: part", lr->type->name) : load_phases(lr, v, err);
}

/* Zero would be divided by. */
static bool may_be_zero(const char *name)
{
    static const char *const counts[] = {"step_size", "T_max",  "T_0",
                                         "T_i",       "T_mult", "total_steps"};
    for (size_t i = 0; i < DET_ARRAY_LEN(counts); i++)
        if (strcmp(name, counts[i]) == 0)
            return false;
    return true;
}

static int load_number(struct det_lr *lr, const struct lr_field *f, const struct det_value *v,
                       struct det_err *err)
{
    char *at = (char *)lr + f->offset;
    bool whole = v->kind == DET_VALUE_INT;
    if (f->kind == DET_VALUE_INT) {
        int64_t least = strcmp(f->name, "last_epoch") == 0 ? -1 : may_be_zero(f->name) ? 0 : 1;
        if (!whole || v->i < least)
            return refuse_value(lr, v, least == 1 ? "an integer above 0" : "a count", err);
        *(int64_t *)(void *)at = v->i;
    } else if (f->kind == DET_VALUE_FLOAT) {
        if (!whole && v->kind != DET_VALUE_FLOAT)
            return refuse_value(lr, v, "a number", err);
        *(double *)(void *)at = whole ? (double)v->i : v->f;
    } else if (v->kind != f->kind) {
        return refuse_value(lr, v, f->kind == DET_VALUE_STR ? "a str" : "a bool", err);
    } else if (f->kind == DET_VALUE_STR) {
        const char *own = *(const char *const *)(const void *)at;
        if (strcmp(v->str, own) != 0)
            return det_fail(err, DET_EINVAL, "%s: %s is %s, the scheduler's is %s", lr->type->name,
                            v->name, v->str, own);
    } else if (*(bool *)at != (v->i != 0)) {
        return refuse_value(lr, v, *(bool *)at ? "True, as the scheduler has it" : "False", err);
    }
    return 0;
}

static const struct lr_field *field_find(const struct lr_type *type, const char *name)
{
    for (const struct lr_field *f = type->fields; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    for (const struct lr_field *f = second_table(type); f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

static int load_one(struct det_lr *lr, const struct det_value *v, struct det_err *err)
{
    const struct lr_field *f = field_find(lr->type, v->name);
    if (!f || f->offset < 0)
        return 0;
    double **list = (double **)(void *)((char *)lr + f->offset);
    switch (f->kind) {
    case DET_VALUE_DICTS: return load_dicts(lr, v, err);
    case DET_VALUE_FLOATS: return load_floats(lr, v, *list, lr->n, err);
    case DET_VALUE_INTS:
    case DET_VALUE_COUNTS: return load_floats(lr, v, *list, lr->milestones_n, err);
    case DET_VALUE_NONE:
    case DET_VALUE_BOOL:
    case DET_VALUE_INT:
    case DET_VALUE_FLOAT:
    case DET_VALUE_PAIR:
    case DET_VALUE_TENSOR:
    case DET_VALUE_STR:
    case DET_VALUE_NONES: break;
    }
    return load_number(lr, f, v, err);
}

int det_lr_load_state(struct det_lr *lr, const struct det_value *values, size_t n,
                      struct det_err *err)
{
    int rc = lr ? 0 : det_fail(err, DET_EINVAL, "scheduler: it is NULL");
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = load_one(lr, &values[i], err);
    return rc;
}
