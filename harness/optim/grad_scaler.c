/* Scaling of losses and gradients: what to do with infinities, and how the scale moves. */
#include "det/grad_scaler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"
#include "module.h"
#include "optim_impl.h"

enum stage { UNSCALED = 1, STEPPED };

/* What was done to one optimizer since the last update. */
struct seen {
    const struct det_optim *optim;
    enum stage stage;
    struct det_tensor *most; /* of its gradients, on the device; NULL: it was read */
    bool infinite;           /* as far as was read */
};

struct det_grad_scaler {
    struct det_engine *engine;
    bool disabled;
    double scale, growth_factor, backoff_factor;
    int64_t growth_interval, growth_tracker;
    VEC(struct seen) seen;
    struct det_value values[5];
};

static double option_or(double option, double fallback)
{
    return option != 0 ? option : fallback;
}

struct det_grad_scaler *det_grad_scaler_create(struct det_engine *e,
                                               const struct det_grad_scaler_options *o)
{
    if (!e || e->err.code < 0)
        return NULL;
    struct det_grad_scaler *s = det_zalloc(sizeof *s);
    *s = (struct det_grad_scaler){
        .engine = e,
        .disabled = o->disabled,
        .scale = option_or(o->init_scale, 65536),
        .growth_factor = option_or(o->growth_factor, 2),
        .backoff_factor = option_or(o->backoff_factor, 0.5),
        .growth_interval = o->growth_interval ? o->growth_interval : 2000,
    };
    if (s->scale > 0 && s->growth_factor > 1 && s->backoff_factor > 0 && s->backoff_factor < 1 &&
        s->growth_interval > 0)
        return s;
    det_engine_fail(e, DET_EINVAL,
                    "grad_scaler: growth_factor must be above 1, backoff_factor in 0..1, the scale "
                    "and the interval above 0");
    det_grad_scaler_destroy(s);
    return NULL;
}

static void forget_seen(struct det_grad_scaler *s)
{
    for (size_t i = 0; i < s->seen.n; i++)
        det_tensor_unref(s->seen.v[i].most);
    s->seen.n = 0;
}

void det_grad_scaler_destroy(struct det_grad_scaler *s)
{
    if (!s)
        return;
    forget_seen(s);
    vec_free(&s->seen);
    free(s);
}

struct det_tensor *det_grad_scaler_scale(struct det_grad_scaler *s, struct det_tensor *loss)
{
    if (!s || s->disabled)
        return loss;
    return det_scale(s->engine, loss, s->scale);
}

static struct seen *find_seen(const struct det_grad_scaler *s, const struct det_optim *o)
{
    for (size_t i = 0; s && i < s->seen.n; i++)
        if (s->seen.v[i].optim == o)
            return &s->seen.v[i];
    return NULL;
}

static int wrong_order(struct det_grad_scaler *s, const char *what)
{
    return det_engine_fail(s->engine, DET_ESTATE, "grad_scaler: %s", what);
}

int det_grad_scaler_unscale(struct det_grad_scaler *s, struct det_optim *o)
{
    if (!s || !o)
        return DET_EINVAL;
    if (s->disabled || s->engine->err.code < 0)
        return s->engine->err.code;
    const struct seen *was = find_seen(s, o);
    if (was)
        return wrong_order(s, was->stage == STEPPED
                                  ? "unscale after the step: it is too late for this update"
                                  : "unscale was called already since the last update");
    struct det_tensor *most = module_grads_most(o->module);
    det_module_scale_grads(o->module, 1 / s->scale);
    vec_push(&s->seen, (struct seen){o, UNSCALED, most, false});
    return s->engine->err.code;
}

/* Once more: a mean over ranks may have brought another's infinity, and a clamp have hidden the
 * first. */
static int look_again(struct det_grad_scaler *s, struct seen *now)
{
    struct det_err err;
    struct det_tensor *again = module_grads_most(now->optim->module);
    struct det_call c = {.kernel = DET_KERNEL_BINARY,
                         .in = {now->most, again},
                         .out = {again},
                         .a.fn = DET_BINARY_MAXIMUM};
    if (!again)
        return s->engine->err.code;
    int rc = now->most ? det__run(s->engine, &c, &err) : 0;
    det_tensor_unref(now->most);
    now->most = again;
    return rc < 0 ? det__keep_error(s->engine, &err) : 0;
}

/* The one wait of a step: the host counts the steps that are made. */
static int read_most(struct det_grad_scaler *s, struct seen *now)
{
    if (now->most)
        now->infinite = !isfinite(det_item(s->engine, now->most));
    det_tensor_unref(now->most);
    now->most = NULL;
    return s->engine->err.code;
}

bool det_grad_scaler_unscaled(const struct det_grad_scaler *s, const struct det_optim *o)
{
    return find_seen(s, o) != NULL;
}

int det_grad_scaler_step(struct det_grad_scaler *s, struct det_optim *o)
{
    if (!s || !o)
        return DET_EINVAL;
    struct seen *now = find_seen(s, o);
    int rc = s->engine->err.code;
    if (rc == 0 && now && now->stage == STEPPED)
        return wrong_order(s, "step was called already since the last update");
    if (rc == 0 && now)
        rc = look_again(s, now);
    else if (rc == 0 && !s->disabled)
        rc = det_grad_scaler_unscale(s, o);
    if (rc < 0)
        return rc;
    now = find_seen(s, o);
    if (now)
        now->stage = STEPPED;
    if (now && (rc = read_most(s, now)) < 0)
        return rc;
    if (now && now->infinite)
        return 0;
    rc = det_optim_step(o);
    return rc < 0 ? rc : 1;
}

int det_grad_scaler_update(struct det_grad_scaler *s)
{
    bool infinite = false;
    if (!s)
        return DET_EINVAL;
    if (s->disabled || s->engine->err.code < 0)
        return s->engine->err.code;
    if (s->seen.n == 0)
        return wrong_order(s, "update without a step or unscale before it");
    for (size_t i = 0; i < s->seen.n; i++) {
        int rc = read_most(s, &s->seen.v[i]);
        if (rc < 0)
            return rc;
        infinite = infinite || s->seen.v[i].infinite;
    }
    forget_seen(s);
    if (infinite) {
        s->scale *= s->backoff_factor;
        s->growth_tracker = 0;
    } else if (++s->growth_tracker == s->growth_interval) {
        double grown = s->scale * s->growth_factor;
        s->scale = grown <= 3.4028234663852886e38 ? grown : s->scale; /* it is a float32 */
        s->growth_tracker = 0;
    }
    return 0;
}

int det_grad_scaler_update_to(struct det_grad_scaler *s, double scale)
{
    if (!s)
        return DET_EINVAL;
    if (!(scale > 0) || !isfinite(scale))
        return det_engine_fail(s->engine, DET_EINVAL, "grad_scaler: a scale of %g", scale);
    s->scale = scale;
    forget_seen(s);
    return s->engine->err.code;
}

double det_grad_scaler_get_scale(const struct det_grad_scaler *s)
{
    return !s || s->disabled ? 1 : s->scale;
}

bool det_grad_scaler_enabled(const struct det_grad_scaler *s)
{
    return s && !s->disabled;
}

const struct det_value *det_grad_scaler_state(struct det_grad_scaler *s, size_t *ret_n)
{
    *ret_n = 0;
    if (!s || s->disabled)
        return NULL;
    const struct det_value v[] = {
        {.name = "scale", .kind = DET_VALUE_FLOAT, .f = s->scale},
        {.name = "growth_factor", .kind = DET_VALUE_FLOAT, .f = s->growth_factor},
        {.name = "backoff_factor", .kind = DET_VALUE_FLOAT, .f = s->backoff_factor},
        {.name = "growth_interval", .kind = DET_VALUE_INT, .i = s->growth_interval},
        {.name = "_growth_tracker", .kind = DET_VALUE_INT, .i = s->growth_tracker},
    };
    memcpy(s->values, v, sizeof v);
    *ret_n = DET_ARRAY_LEN(v);
    return s->values;
}

static int load_one(struct det_grad_scaler *s, const struct det_value *v, struct det_err *err)
{
    struct {
        const char *name;
        double *f;
        int64_t *i;
    } to[] = {{"scale", &s->scale, NULL},
              {"growth_factor", &s->growth_factor, NULL},
              {"backoff_factor", &s->backoff_factor, NULL},
              {"growth_interval", NULL, &s->growth_interval},
              {"_growth_tracker", NULL, &s->growth_tracker}};
    double number = v->kind == DET_VALUE_INT ? (double)v->i : v->f;
    for (size_t k = 0; k < DET_ARRAY_LEN(to); k++) {
        if (strcmp(v->name, to[k].name) != 0)
            continue;
        bool whole = v->kind == DET_VALUE_INT;
        if (!(whole || (v->kind == DET_VALUE_FLOAT && to[k].f)) || !isfinite(number) ||
            number < 0 || (number == 0 && to[k].i != &s->growth_tracker))
            return det_fail(err, DET_EINVAL, "grad_scaler: %s is no such number", v->name);
        if (to[k].f)
            *to[k].f = number;
        else
            *to[k].i = v->i;
    }
    return 0;
}

int det_grad_scaler_load_state(struct det_grad_scaler *s, const struct det_value *values, size_t n,
                               struct det_err *err)
{
    int rc = s ? 0 : det_fail(err, DET_EINVAL, "grad_scaler: it is NULL");
    for (size_t i = 0; rc == 0 && !s->disabled && i < n; i++)
        rc = load_one(s, &values[i], err);
    return rc;
}
