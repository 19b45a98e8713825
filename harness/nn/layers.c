/*
 * Layers with parameters. Initial values have the distributions of PyTorch's defaults: weights
 * kaiming_uniform with a = sqrt(5), which is uniform in +-1/sqrt(fan_in) (He et al. 2015), biases
 * uniform in the same range.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "functions.h"
#include "mem.h"
#include "module.h"

static void module_destroyp(struct det_module **m)
{
    det_module_destroy(*m);
}
#define MODULE_OWN det_cleanup(module_destroyp) struct det_module *

/* A parameter of uniform draws in +-bound. */
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
    if (!add_uniform(m, "weight", 2, (int64_t[]){out_features, in_features}, bound))
        return NULL;
    if (!options->no_bias && !add_uniform(m, "bias", 1, (int64_t[]){out_features}, bound))
        return NULL;
    return det_take(m);
}

static struct det_tensor *conv2d_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    struct det_conv2d_options o = m->layer.conv;
    o.relu = o.relu || relu;
    return det_conv2d(m->engine, x, module_param(m, "weight"), module_param(m, "bias"), &o);
}

static const struct module_type conv2d_type = {"conv2d", conv2d_forward, true};

struct det_module *det_nn_conv2d_create(struct det_engine *e, int64_t in_channels,
                                        int64_t out_channels, int kernel,
                                        const struct det_conv2d_options *options)
{
    MODULE_OWN m = module_new(e, &conv2d_type);
    if (!m)
        return NULL;
    if (in_channels < 1 || out_channels < 1 || kernel < 1 || kernel > 1024 ||
        in_channels > (1 << 24)) {
        det_engine_fail(e, DET_EINVAL,
                        "conv2d: %" PRId64 " in, %" PRId64 " out, kernel %d: at least 1 of each",
                        in_channels, out_channels, kernel);
        return NULL;
    }
    m->layer.conv = *options;
    double bound = 1 / sqrt((double)(in_channels * kernel * kernel));
    if (!add_uniform(m, "weight", 4, (int64_t[]){out_channels, in_channels, kernel, kernel}, bound))
        return NULL;
    if (!options->no_bias && !add_uniform(m, "bias", 1, (int64_t[]){out_channels}, bound))
        return NULL;
    return det_take(m);
}

/* PyTorch counts the batches that a batch norm has seen; the count is part of its state. */
static void count_batch(struct det_module *m)
{
    int64_t n;
    struct det_tensor *t = module_buffer(m, "num_batches_tracked");
    if (det_tensor_read(t, &n, sizeof n, NULL) == 0) {
        n++;
        det_tensor_write(t, &n, sizeof n, NULL);
    }
}

static struct det_tensor *batch_norm_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    struct det_tensor *const params[4] = {module_param(m, "weight"), module_param(m, "bias"),
                                          module_buffer(m, "running_mean"),
                                          module_buffer(m, "running_var")};
    struct batch_norm_attrs a = {.eps = m->layer.norm.eps,
                                 .momentum = m->layer.norm.momentum,
                                 .relu = m->layer.norm.relu || relu,
                                 .train = m->training};
    struct det_tensor *y = det__batch_norm(m->engine, x, params, &a);
    if (y && m->training)
        count_batch(m);
    return y;
}

static const struct module_type batch_norm_type = {"batch_norm2d", batch_norm_forward, true};

/* The count stays in ordinary memory, on every device: it is touched at each batch. */
static bool add_count(struct det_module *m)
{
    struct det_err err;
    struct det_tensor *t = det_host_tensor(DET_I64, 0, NULL, &err);
    if (!t) {
        det__keep_error(m->engine, &err);
        return false;
    }
    vec_push(&m->buffers, (struct module_entry){det_strdup("num_batches_tracked"), t});
    return true;
}

struct det_module *det_nn_batch_norm2d_create(struct det_engine *e, int64_t channels,
                                              const struct det_batch_norm_options *options)
{
    MODULE_OWN m = module_new(e, &batch_norm_type);
    if (!m)
        return NULL;
    if (channels < 1) {
        det_engine_fail(e, DET_EINVAL, "batch_norm2d: %" PRId64 " channels: at least 1", channels);
        return NULL;
    }
    m->layer.norm = *options;
    m->layer.norm.eps = options->eps > 0 ? options->eps : 1e-5;
    m->layer.norm.momentum = options->momentum > 0 ? options->momentum : 0.1;
    if (!det_module_add_param(m, "weight", det_full(e, DET_F32, 1, &channels, 1)) ||
        !det_module_add_param(m, "bias", det_zeros(e, DET_F32, 1, &channels)) ||
        !det_module_add_buffer(m, "running_mean", det_zeros(e, DET_F32, 1, &channels)) ||
        !det_module_add_buffer(m, "running_var", det_full(e, DET_F32, 1, &channels, 1)) ||
        !add_count(m))
        return NULL;
    return det_take(m);
}
