/* Convolutions: of images and signals, forward and transposed. Bias and weight are uniform in
 * +-1/sqrt(fan_in), PyTorch's default. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "module.h"

typedef struct det_tensor *conv_fn(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *weight, struct det_tensor *bias,
                                   const struct det_conv2d_options *options);

static struct det_tensor *call(struct det_module *m, struct det_tensor *x, conv_fn *fn, bool relu)
{
    struct det_conv2d_options o = m->layer.conv;
    o.relu = o.relu || relu;
    return fn(m->engine, x, module_param(m, "weight"), module_param(m, "bias"), &o);
}

static struct det_tensor *forward2d(struct det_module *m, struct det_tensor *x, bool relu)
{
    return call(m, x, det_conv2d, relu);
}

static struct det_tensor *forward1d(struct det_module *m, struct det_tensor *x, bool relu)
{
    return call(m, x, det_conv1d, relu);
}

static struct det_tensor *transposed2d(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return call(m, x, det_conv_transpose2d, false);
}

static struct det_tensor *transposed1d(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return call(m, x, det_conv_transpose1d, false);
}

struct kind {
    struct module_type type;
    bool transposed;
    int directions;
};

static const struct kind conv2d = {{"conv2d", forward2d, true}, false, 2};
static const struct kind conv1d = {{"conv1d", forward1d, true}, false, 1};
static const struct kind conv_transpose2d = {{"conv_transpose2d", transposed2d, false}, true, 2};
static const struct kind conv_transpose1d = {{"conv_transpose1d", transposed1d, false}, true, 1};

/* The dims of the weight: two of channels, then the kernel's. */
static int check_sizes(struct det_engine *e, const struct kind *k, const int64_t channels[2],
                       const int64_t *kernel, int groups)
{
    for (int i = 0; i < 2; i++)
        if (channels[i] < 1 || channels[i] > (1 << 24) || kernel[i] < 1 || kernel[i] > 1024)
            return det_engine_fail(e, DET_EINVAL,
                                   "%s: %" PRId64 " in, %" PRId64 " out, kernel %" PRId64
                                   ": at least 1 of each",
                                   k->type.name, channels[0], channels[1], kernel[i]);
    if (groups < 1 || channels[0] % groups != 0 || channels[1] % groups != 0)
        return det_engine_fail(e, DET_EINVAL,
                               "%s: %" PRId64 " channels in and %" PRId64
                               " out must both divide into %d groups",
                               k->type.name, channels[0], channels[1], groups);
    return 0;
}

static struct det_module *create_conv(struct det_engine *e, const struct kind *k,
                                      const int64_t channels[2], int kernel,
                                      const struct det_conv2d_options *o)
{
    MODULE_OWN m = module_new(e, &k->type);
    bool pair = k->directions == 2 && (o->kernel_hw[0] != 0 || o->kernel_hw[1] != 0);
    int64_t hw[2] = {pair ? o->kernel_hw[0] : kernel, pair ? o->kernel_hw[1] : kernel};
    int groups = o->groups ? o->groups : 1;
    if (!m || check_sizes(e, k, channels, hw, groups) < 0)
        return NULL;
    m->layer.conv = *o;
    int64_t first = k->transposed ? channels[0] : channels[1];
    int64_t second = (k->transposed ? channels[1] : channels[0]) / groups;
    int64_t dims[4] = {first, second, hw[0], hw[1]};
    double bound = 1 / sqrt((double)(second * hw[0] * (k->directions == 2 ? hw[1] : 1)));
    if (!module_add_uniform(m, "weight", 2 + k->directions, dims, bound))
        return NULL;
    if (!o->no_bias && !module_add_uniform(m, "bias", 1, &channels[1], bound))
        return NULL;
    return det_take(m);
}

#define CREATE(name)                                                                               \
    struct det_module *det_nn_##name##_create(struct det_engine *e, int64_t in_channels,           \
                                              int64_t out_channels, int kernel,                    \
                                              const struct det_conv2d_options *options)            \
    {                                                                                              \
        return create_conv(e, &name, (int64_t[]){in_channels, out_channels}, kernel, options);     \
    }

CREATE(conv2d)
CREATE(conv1d)
CREATE(conv_transpose2d)
CREATE(conv_transpose1d)
