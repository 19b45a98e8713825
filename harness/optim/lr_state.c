/* A scheduler's state under PyTorch's names, out and in. */
#include <string.h>

#include "lr_impl.h"

static struct det_value *add(struct det_lr *lr, size_t *n, const char *name,
                             enum det_value_kind kind)
{
    struct det_value *v = &lr->values[(*n)++];
    *v = (struct det_value){.name = name, .kind = kind};
    return v;
}

const struct det_value *det_lr_state(struct det_lr *lr, size_t *ret_n)
{
    size_t n = 0;
    *ret_n = 0;
    if (!lr)
        return NULL;
    if (lr->kind == LR_STEP)
        add(lr, &n, "step_size", DET_VALUE_INT)->i = lr->step_size;
    if (lr->kind == LR_COSINE)
        add(lr, &n, "T_max", DET_VALUE_INT)->i = lr->step_size;
    if (lr->kind == LR_COSINE)
        add(lr, &n, "eta_min", DET_VALUE_FLOAT)->f = lr->gamma;
    if (lr->kind == LR_STEP || lr->kind == LR_EXPONENTIAL)
        add(lr, &n, "gamma", DET_VALUE_FLOAT)->f = lr->gamma;
    struct det_value *base = add(lr, &n, "base_lrs", DET_VALUE_FLOATS);
    base->floats = lr->base;
    base->n = lr->n;
    add(lr, &n, "last_epoch", DET_VALUE_INT)->i = lr->last_epoch;
    add(lr, &n, "verbose", DET_VALUE_BOOL);
    add(lr, &n, "_step_count", DET_VALUE_INT)->i = lr->step_count;
    add(lr, &n, "_get_lr_called_within_step", DET_VALUE_BOOL);
    struct det_value *last = add(lr, &n, "_last_lr", DET_VALUE_FLOATS);
    last->floats = lr->last;
    last->n = lr->n;
    *ret_n = n;
    return lr->values;
}

static int load_rates(const struct det_lr *lr, const struct det_value *v, double *to,
                      struct det_err *err)
{
    if (v->kind != DET_VALUE_FLOATS || v->n != lr->n)
        return det_fail(err, DET_EINVAL, "scheduler: %s must be a list of %zu numbers", v->name,
                        lr->n);
    memcpy(to, v->floats, lr->n * sizeof *to);
    return 0;
}

static int load_int(const struct det_value *v, int64_t least, int64_t *to, struct det_err *err)
{
    if (v->kind != DET_VALUE_INT || v->i < least)
        return det_fail(err, DET_EINVAL, "scheduler: %s must be an integer of at least %d", v->name,
                        (int)least);
    *to = v->i;
    return 0;
}

static int load_float(const struct det_value *v, double *to, struct det_err *err)
{
    if (v->kind != DET_VALUE_FLOAT && v->kind != DET_VALUE_INT)
        return det_fail(err, DET_EINVAL, "scheduler: %s must be a number", v->name);
    *to = v->kind == DET_VALUE_FLOAT ? v->f : (double)v->i;
    return 0;
}

static int load_one(struct det_lr *lr, const struct det_value *v, struct det_err *err)
{
    if (strcmp(v->name, "step_size") == 0 || strcmp(v->name, "T_max") == 0)
        return load_int(v, 1, &lr->step_size, err);
    if (strcmp(v->name, "gamma") == 0 || strcmp(v->name, "eta_min") == 0)
        return load_float(v, &lr->gamma, err);
    if (strcmp(v->name, "last_epoch") == 0)
        return load_int(v, 0, &lr->last_epoch, err);
    if (strcmp(v->name, "_step_count") == 0)
        return load_int(v, 0, &lr->step_count, err);
    if (strcmp(v->name, "base_lrs") == 0)
        return load_rates(lr, v, lr->base, err);
    if (strcmp(v->name, "_last_lr") == 0)
        return load_rates(lr, v, lr->last, err);
    return 0;
}

int det_lr_load_state(struct det_lr *lr, const struct det_value *values, size_t n,
                      struct det_err *err)
{
    int rc = lr ? 0 : det_fail(err, DET_EINVAL, "scheduler: it is NULL");
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = load_one(lr, &values[i], err);
    return rc;
}
