/* Activations as modules. */
#include "det/functional.h"
#include "module.h"

/* Defines the type `name` and det_nn_<name>(), whose forward is the expression of e, x and p, q. */
#define TYPE(name, expression)                                                                     \
    static struct det_tensor *name##_forward(struct det_module *m, struct det_tensor *x,           \
                                             bool relu)                                            \
    {                                                                                              \
        struct det_engine *e = m->engine;                                                          \
        double p = m->layer.p, q = m->layer.q;                                                     \
        (void)relu, (void)p, (void)q;                                                              \
        return expression;                                                                         \
    }                                                                                              \
    static const struct module_type name##_type = {#name, name##_forward, false};
#define PLAIN(name)                                                                                \
    TYPE(name, det_##name(e, x))                                                                   \
    struct det_module *det_nn_##name(struct det_engine *e)                                         \
    {                                                                                              \
        return module_new(e, &name##_type);                                                        \
    }

static struct det_module *make_layer(struct det_engine *e, const struct module_type *type, double p,
                                     double q)
{
    struct det_module *m = module_new(e, type);
    if (m) {
        m->layer.p = p;
        m->layer.q = q;
    }
    return m;
}

PLAIN(tanh)
PLAIN(sigmoid)
PLAIN(log_sigmoid)
PLAIN(gelu)
PLAIN(gelu_tanh)
PLAIN(silu)
PLAIN(mish)
PLAIN(relu6)
PLAIN(hardswish)
PLAIN(hardsigmoid)
TYPE(elu, det_elu(e, x, p))
TYPE(leaky_relu, det_leaky_relu(e, x, p))
TYPE(hardtanh, det_hardtanh(e, x, p, q))
TYPE(softplus, det_softplus(e, x, p, q))

struct det_module *det_nn_elu(struct det_engine *e, double alpha)
{
    return make_layer(e, &elu_type, alpha, 0);
}

struct det_module *det_nn_leaky_relu(struct det_engine *e, double slope)
{
    return make_layer(e, &leaky_relu_type, slope, 0);
}

struct det_module *det_nn_hardtanh(struct det_engine *e, double lo, double hi)
{
    return make_layer(e, &hardtanh_type, lo, hi);
}

struct det_module *det_nn_softplus(struct det_engine *e, double beta, double threshold)
{
    return make_layer(e, &softplus_type, beta, threshold);
}

/* One slope for all, or one for each of dimension 1 (channels, features). */
static struct det_tensor *prelu_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    struct det_tensor *slope = m->params.v[0].tensor;
    int64_t dims[DET_DIMS_MAX] = {-1, 1, 1, 1, 1, 1, 1, 1};
    int after = det_tensor_ndim(x) - 2; /* dimensions behind the channels */
    (void)relu;
    if (det_tensor_numel(slope) > 1 && after > 0)
        slope = det_reshape(m->engine, slope, after + 1, dims);
    return det_prelu(m->engine, x, slope);
}

struct det_module *det_nn_prelu(struct det_engine *e, int64_t channels, double slope)
{
    static const struct module_type type = {"prelu", prelu_forward, false};
    MODULE_OWN m = module_new(e, &type);
    if (!m || !det_module_add_param(m, "weight", det_full(e, DET_F32, 1, &channels, slope)))
        return NULL;
    return det_take(m);
}
