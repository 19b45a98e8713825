/* Layers without parameters. */
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

static struct det_module *pool(struct det_engine *e, const struct module_type *type, int kernel,
                               int stride, int padding)
{
    struct det_module *m = module_new(e, type);
    if (!m)
        return NULL;
    m->layer = (struct layer){.kernel = kernel, .stride = stride, .padding = padding};
    return m;
}

static struct det_tensor *max_pool_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_max_pool2d(m->engine, x, m->layer.kernel, m->layer.stride, m->layer.padding);
}

struct det_module *det_nn_max_pool2d(struct det_engine *e, int kernel, int stride, int padding)
{
    static const struct module_type type = {"max_pool2d", max_pool_forward, false};
    return pool(e, &type, kernel, stride, padding);
}

static struct det_tensor *avg_pool_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_avg_pool2d(m->engine, x, m->layer.kernel, m->layer.stride, m->layer.padding);
}

struct det_module *det_nn_avg_pool2d(struct det_engine *e, int kernel, int stride, int padding)
{
    static const struct module_type type = {"avg_pool2d", avg_pool_forward, false};
    return pool(e, &type, kernel, stride, padding);
}

static struct det_tensor *global_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_global_avg_pool2d(m->engine, x);
}

struct det_module *det_nn_global_avg_pool2d(struct det_engine *e)
{
    static const struct module_type type = {"global_avg_pool2d", global_forward, false};
    return module_new(e, &type);
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
