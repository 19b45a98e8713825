/* Layers without parameters. */
#include <string.h>

#include "module.h"

static struct det_tensor *relu_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_relu(m->engine, x);
}

const struct module_type module_relu_type = {"relu", relu_forward, false};

struct det_module *det_nn_relu(struct det_engine *e)
{
    return module_new(e, &module_relu_type);
}

static struct det_tensor *dropout_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_dropout(m->engine, x, m->layer.p, m->training);
}

struct det_module *det_nn_dropout(struct det_engine *e, double p)
{
    static const struct module_type type = {"dropout", dropout_forward, false};
    struct det_module *m = module_new(e, &type);
    if (m)
        m->layer.p = p;
    return m;
}

static struct det_tensor *flatten_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_flatten(m->engine, x, 1);
}

struct det_module *det_nn_flatten(struct det_engine *e)
{
    static const struct module_type type = {"flatten", flatten_forward, false};
    return module_new(e, &type);
}

static struct det_tensor *log_softmax_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_log_softmax(m->engine, x);
}

struct det_module *det_nn_log_softmax(struct det_engine *e)
{
    static const struct module_type type = {"log_softmax", log_softmax_forward, false};
    return module_new(e, &type);
}

static struct det_tensor *softmax_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_softmax(m->engine, x);
}

struct det_module *det_nn_softmax(struct det_engine *e)
{
    static const struct module_type type = {"softmax", softmax_forward, false};
    return module_new(e, &type);
}

static struct det_tensor *identity_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)m, (void)relu;
    return x;
}

struct det_module *det_nn_identity(struct det_engine *e)
{
    static const struct module_type type = {"identity", identity_forward, false};
    return module_new(e, &type);
}

static struct det_tensor *unflatten_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    if (x->ndim != 2) {
        det_engine_fail(m->engine, DET_EINVAL, "unflatten: the input has %d dimensions, not 2",
                        x->ndim);
        return NULL;
    }
    m->layer.size[0] = x->dims[0];
    return det_reshape(m->engine, x, 1 + m->layer.n, m->layer.size);
}

struct det_module *det_nn_unflatten(struct det_engine *e, int n, const int64_t *dims)
{
    static const struct module_type type = {"unflatten", unflatten_forward, false};
    if (n < 1 || n >= DET_DIMS_MAX) {
        det_engine_fail(e, DET_EINVAL, "unflatten: %d dimensions, 1 to %d", n, DET_DIMS_MAX - 1);
        return NULL;
    }
    struct det_module *m = module_new(e, &type);
    if (!m)
        return NULL;
    m->layer.n = n;
    memcpy(m->layer.size + 1, dims, (size_t)n * sizeof *dims);
    return m;
}
