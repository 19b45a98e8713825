/* Layers of images and signals without parameters: pooling, padding, resampling. */
#include <string.h>

#include "module.h"

static struct det_tensor *max_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_max_pool(m->engine, x, &m->layer.pool);
}

static struct det_tensor *avg_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_avg_pool(m->engine, x, &m->layer.pool);
}

static struct det_module *make_pool(struct det_engine *e, bool max, struct det_pool_options options)
{
    static const struct module_type max_type = {"max_pool", max_forward, false};
    static const struct module_type avg_type = {"avg_pool", avg_forward, false};
    struct det_module *m = module_new(e, max ? &max_type : &avg_type);
    if (m)
        m->layer.pool = options;
    return m;
}

struct det_module *det_nn_max_pool_create(struct det_engine *e, int kernel,
                                          const struct det_pool_options *options)
{
    struct det_pool_options o = *options;
    o.kernel = kernel;
    return make_pool(e, true, o);
}

struct det_module *det_nn_avg_pool_create(struct det_engine *e, int kernel,
                                          const struct det_pool_options *options)
{
    struct det_pool_options o = *options;
    o.kernel = kernel;
    return make_pool(e, false, o);
}

#define POOL(name, max)                                                                            \
    struct det_module *det_nn_##name(struct det_engine *e, int kernel, int stride, int padding)    \
    {                                                                                              \
        return make_pool(e, max,                                                                   \
                         (struct det_pool_options){kernel, stride, padding, .ceil_mode = false});  \
    }

POOL(max_pool2d, true)
POOL(max_pool1d, true)
POOL(avg_pool2d, false)
POOL(avg_pool1d, false)

static struct det_tensor *forward_avg2d(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_adaptive_avg_pool2d(m->engine, x, m->layer.size[0], m->layer.size[1]);
}

static struct det_tensor *forward_max2d(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_adaptive_max_pool2d(m->engine, x, m->layer.size[0], m->layer.size[1]);
}

static struct det_tensor *forward_avg1d(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_adaptive_avg_pool1d(m->engine, x, m->layer.size[0]);
}

static struct det_tensor *forward_max1d(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_adaptive_max_pool1d(m->engine, x, m->layer.size[0]);
}

static struct det_module *make_adaptive(struct det_engine *e, const struct module_type *type,
                                        int64_t height, int64_t width)
{
    struct det_module *m = module_new(e, type);
    if (!m)
        return NULL;
    m->layer.size[0] = height;
    m->layer.size[1] = width;
    return m;
}

struct det_module *det_nn_adaptive_avg_pool2d(struct det_engine *e, int64_t height, int64_t width)
{
    static const struct module_type type = {"adaptive_avg_pool2d", forward_avg2d, false};
    return make_adaptive(e, &type, height, width);
}

struct det_module *det_nn_adaptive_max_pool2d(struct det_engine *e, int64_t height, int64_t width)
{
    static const struct module_type type = {"adaptive_max_pool2d", forward_max2d, false};
    return make_adaptive(e, &type, height, width);
}

struct det_module *det_nn_adaptive_avg_pool1d(struct det_engine *e, int64_t length)
{
    static const struct module_type type = {"adaptive_avg_pool1d", forward_avg1d, false};
    return make_adaptive(e, &type, length, 0);
}

struct det_module *det_nn_adaptive_max_pool1d(struct det_engine *e, int64_t length)
{
    static const struct module_type type = {"adaptive_max_pool1d", forward_max1d, false};
    return make_adaptive(e, &type, length, 0);
}

struct det_module *det_nn_global_avg_pool2d(struct det_engine *e)
{
    return det_nn_adaptive_avg_pool2d(e, 1, 1);
}

static struct det_tensor *pad_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_pad(m->engine, x, m->layer.n, m->layer.pads, m->layer.pad_mode, 0);
}

struct det_module *det_nn_pad(struct det_engine *e, enum det_pad_mode mode, int n, const int *pads)
{
    static const struct module_type type = {"pad", pad_forward, false};
    struct det_module *m = module_new(e, &type);
    if (!m)
        return NULL;
    if (n < 0 || n > 6) {
        det_engine_fail(e, DET_EINVAL, "pad: %d numbers: a pair for each dimension, at most 6", n);
        det_module_destroy(m);
        return NULL;
    }
    m->layer.pad_mode = mode;
    m->layer.n = n;
    memcpy(m->layer.pads, pads, (size_t)n * sizeof *pads);
    return m;
}

static struct det_tensor *upsample_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_interpolate(m->engine, x, &m->layer.resize);
}

struct det_module *det_nn_upsample_create(struct det_engine *e,
                                          const struct det_interpolate_options *options)
{
    static const struct module_type type = {"upsample", upsample_forward, false};
    struct det_module *m = module_new(e, &type);
    if (m)
        m->layer.resize = *options;
    return m;
}
