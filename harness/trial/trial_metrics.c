/* Metrics that hooks fill in, and custom reducers. */
#include "dtype.h"
#include "trial_context.h"

#include <math.h>
#include <string.h>

static bool has_name(struct det_metrics *m, const char *fn, const char *name)
{
    if (name && *name)
        return true;
    trial_fail(m->ctx, DET_EINVAL, "det_metrics_%s: a metric needs a name", fn);
    return false;
}

void det_metrics_f64(struct det_metrics *m, const char *name, double value)
{
    if (has_name(m, "f64", name))
        loop_metrics_f64(m->m, name, value);
}

void det_metrics_array(struct det_metrics *m, const char *name, const double *values, size_t n)
{
    if (has_name(m, "array", name))
        loop_metrics_array(m->m, name, values, n);
}

void det_metrics_none(struct det_metrics *m, const char *name)
{
    if (has_name(m, "none", name))
        loop_metrics_none(m->m, name);
}

double det_metrics_get(const struct det_metrics *m, const char *name)
{
    double v;
    const struct loop_metric *x = loop_metrics_find(m->m, name);
    if (x && x->kind == LOOP_METRIC_LATER)
        return trial_late_look(&m->ctx->late, x->ticket);
    return x && loop_metric_scalar(x, &v) ? v : NAN;
}

const char *det_metrics_name(const struct det_metrics *m, size_t i)
{
    return i < m->m->n ? m->m->v[i].name : NULL;
}

const double *det_metrics_get_array(const struct det_metrics *m, const char *name, size_t *ret_n)
{
    const struct loop_metric *x = loop_metrics_find(m->m, name);
    bool array = x && x->kind == LOOP_METRIC_ARRAY;
    *ret_n = array ? x->n : 0;
    return array ? x->array : NULL;
}

static void add_array(struct det_metrics *m, const char *name, const struct det_tensor *t)
{
    size_t n = det_tensor_numel(t), bytes = det_tensor_bytes(t);
    det_cleanup(freep) void *raw = det_try_alloc(bytes + 1);
    det_cleanup(freep) double *values = det_try_alloc(n * sizeof *values + 1);
    if (!raw || !values) {
        trial_fail(m->ctx, DET_ENOMEM, "metric \"%s\": %zu elements", name, n);
        return;
    }
    if (det_tensor_read(t, raw, bytes, det_trial_err(m->ctx)) < 0)
        return;
    det__convert(det_tensor_dtype(t), raw, 1, DET_F64, values, 1, (int64_t)n);
    loop_metrics_array(m->m, name, values, n);
}

void det_metrics_tensor(struct det_metrics *m, const char *name, const struct det_tensor *t)
{
    size_t ticket;
    if (!has_name(m, "tensor", name))
        return;
    if (!t)
        trial_fail(m->ctx, DET_EINVAL,
                   "metric \"%s\": its tensor is NULL (does det_batch_tensor() ask for a field "
                   "that the dataset does not have?)",
                   name);
    else if (m->may_wait && trial_late_put(&m->ctx->late, m->ctx->engine, t, &ticket))
        loop_metrics_later(m->m, name, ticket);
    else if (det_tensor_ndim(t) == 0)
        loop_metrics_f64(m->m, name, det_item(m->ctx->engine, t));
    else
        add_array(m, name, t);
}

/* ---- reducers ---- */

static struct det_custom_reducer *new_reducer(struct det_trial_context *ctx, const char *name,
                                              bool for_training, bool for_validation)
{
    struct det_custom_reducer *r = det_zalloc(sizeof *r);
    r->ctx = ctx;
    r->name = det_strdup(name);
    r->for_training = for_training;
    r->for_validation = for_validation;
    vec_push(&ctx->reducers, r);
    return r;
}

struct det_custom_reducer *det_trial_wrap_reducer(struct det_trial_context *ctx, const char *name,
                                                  det_reduce_fn *fn, void *arg, bool for_training,
                                                  bool for_validation)
{
    trial_check_time(ctx, ctx->reducing, "det_trial_wrap_reducer");
    if (!name || !*name)
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_reducer: a function needs a metric's name");
    if (!fn)
        trial_fail(ctx, DET_EINVAL, "det_trial_wrap_reducer(\"%s\"): the function is NULL",
                   name ? name : "");
    struct det_custom_reducer *r = new_reducer(ctx, name ? name : "", for_training, for_validation);
    r->fn = fn;
    r->arg = arg;
    return r;
}

void det_trial_wrap_metric_reducer(struct det_trial_context *ctx,
                                   const struct det_reducer_type *type, void *self,
                                   bool for_training, bool for_validation)
{
    trial_check_time(ctx, ctx->reducing, "det_trial_wrap_metric_reducer");
    if (!type || !type->reset || !type->per_slot_reduce || !type->cross_slot_reduce) {
        trial_fail(ctx, DET_EINVAL,
                   "det_trial_wrap_metric_reducer: its table needs reset, per_slot_reduce and "
                   "cross_slot_reduce");
        return;
    }
    struct det_custom_reducer *r = new_reducer(ctx, NULL, for_training, for_validation);
    r->type = type;
    r->self = self;
}

void det_reducer_update(struct det_custom_reducer *r, double value)
{
    if (r)
        vec_push(&r->values, value);
}

static int on_reset(void *self, struct det_err *err)
{
    struct det_custom_reducer *r = self;
    r->values.n = 0;
    if (r->type)
        r->type->reset(r->self);
    return trial_check(r->ctx, err);
}

static int on_per_slot(void *self, void **ret, size_t *ret_bytes, struct det_err *err)
{
    struct det_custom_reducer *r = self;
    *ret_bytes = 0;
    if (r->type) {
        *ret = r->type->per_slot_reduce(r->self, ret_bytes);
    } else {
        *ret_bytes = r->values.n * sizeof(double);
        *ret = r->values.n ? det_memdup(r->values.v, *ret_bytes) : NULL;
    }
    return trial_check(r->ctx, err);
}

/* First of rank 0, first of rank 1, ..., second of rank 0, ...; ranks that have no more are
 * passed. */
static double *interleave_values(const void *const *values, const size_t *bytes, size_t n,
                                 size_t *ret_n)
{
    size_t most = 0, total = 0, k = 0;
    for (size_t r = 0; r < n; r++) {
        total += bytes[r] / sizeof(double);
        most = bytes[r] / sizeof(double) > most ? bytes[r] / sizeof(double) : most;
    }
    double *out = det_alloc(total * sizeof *out + 1);
    for (size_t i = 0; i < most; i++)
        for (size_t r = 0; r < n; r++)
            if (i < bytes[r] / sizeof(double))
                memcpy(&out[k++], (const char *)values[r] + i * sizeof *out, sizeof *out);
    *ret_n = k;
    return out;
}

static int on_cross_slot(void *self, const void *const *values, const size_t *bytes, size_t n,
                         struct loop_metrics *out, struct det_err *err)
{
    struct det_custom_reducer *r = self;
    if (r->type) {
        struct det_metrics m = {out, r->ctx, false};
        r->type->cross_slot_reduce(r->self, values, bytes, n, &m);
    } else {
        size_t k;
        det_cleanup(freep) double *all = interleave_values(values, bytes, n, &k);
        loop_metrics_f64(out, r->name, r->fn(r->arg, all, k));
    }
    return trial_check(r->ctx, err);
}

void trial_fill_reducers(struct det_trial_context *ctx)
{
    ctx->reducing = true;
    ctx->loop_reducers.n = 0;
    for (size_t i = 0; i < ctx->reducers.n; i++) {
        struct det_custom_reducer *r = ctx->reducers.v[i];
        struct loop_reducer x = {.self = r,
                                 .name = r->name,
                                 .for_training = r->for_training,
                                 .for_validation = r->for_validation,
                                 .reset = on_reset,
                                 .per_slot_reduce = on_per_slot,
                                 .cross_slot_reduce = on_cross_slot};
        vec_push(&ctx->loop_reducers, x);
    }
}
