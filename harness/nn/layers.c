/*
 * The linear layer, and what layers with parameters share. Initial values have the distributions of
 * PyTorch's defaults: weights kaiming_uniform with a = sqrt(5), which is uniform in
 * +-1/sqrt(fan_in) (He et al. 2015), biases uniform in the same range.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "mem.h"
#include "module.h"

/* Behind the engine's error: whose parameter there was no making. */
static void tell_parameter(struct det_module *m, const char *name, int ndim, const int64_t *dims)
{
    char shape[160];
    struct det_err *err = &m->engine->err;
    det_wrap(err, err->code, "parameter \"%s\" of a layer %s, %s", name, m->type->name,
             det__shape_text(DET_F32, ndim, dims, shape, sizeof shape));
}

static bool add_uniform(struct det_module *m, const char *name, int ndim, const int64_t *dims,
                        double bound)
{
    struct det_engine *e = m->engine;
    struct det_err err;
    struct det_tensor *t = det_zeros(e, DET_F32, ndim, dims);
    struct det_call c = {
        .kernel = DET_KERNEL_UNIFORM, .out = {t}, .a = {.lo = -bound, .hi = bound}};
    det__draw(e, &c.a);
    if (!t)
        return false;
    if (det__run(e, &c, &err) < 0) {
        det__keep_error(e, &err);
        return false;
    }
    return det_module_add_param(m, name, t) != NULL;
}

bool module_add_uniform(struct det_module *m, const char *name, int ndim, const int64_t *dims,
                        double bound)
{
    bool failed_before = m->engine->err.code < 0;
    if (add_uniform(m, name, ndim, dims, bound))
        return true;
    if (!failed_before && m->engine->err.code < 0)
        tell_parameter(m, name, ndim, dims);
    return false;
}

static struct det_tensor *linear_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_linear(m->engine, x, module_param(m, "weight"), module_param(m, "bias"));
}

static const struct module_type linear_type = {"linear", linear_forward, false};

struct det_module *det_nn_linear_create(struct det_engine *e, int64_t in_features,
                                        int64_t out_features,
                                        const struct det_linear_options *options)
{
    MODULE_OWN m = module_new(e, &linear_type);
    if (!m)
        return NULL;
    if (in_features < 1 || out_features < 1) {
        det_engine_fail(e, DET_EINVAL,
                        "linear: %" PRId64 " in, %" PRId64 " out: at least 1 of each", in_features,
                        out_features);
        return NULL;
    }
    double bound = 1 / sqrt((double)in_features);
    if (!module_add_uniform(m, "weight", 2, (int64_t[]){out_features, in_features}, bound))
        return NULL;
    if (!options->no_bias && !module_add_uniform(m, "bias", 1, (int64_t[]){out_features}, bound))
        return NULL;
    return det_take(m);
}
