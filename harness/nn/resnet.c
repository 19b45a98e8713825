/* Residual networks with torchvision's names. */
#include <stdio.h>

#include "det/init.h"
#include "det/vision.h"
#include "mem.h"
#include "module.h"

struct family {
    int depth;
    bool bottleneck;
    int blocks[4];
};

static const struct family families[] = {
    {18, false, {2, 2, 2, 2}},  {34, false, {3, 4, 6, 3}},  {50, true, {3, 4, 6, 3}},
    {101, true, {3, 4, 23, 3}}, {152, true, {3, 8, 36, 3}},
};

/* A block's children: conv1 bn1 conv2 bn2 [conv3 bn3] [downsample]. */
static struct det_module *child_at(const struct det_module *m, size_t i)
{
    return m->children.v[i].module;
}

static struct det_tensor *block_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    size_t pairs = m->children.n / 2;
    bool shrinks = m->children.n % 2;
    size_t mark = det__step_mark(m->engine);
    struct det_tensor *y = x, *skip = shrinks ? det_forward(child_at(m, 2 * pairs), x) : x;
    for (size_t i = 0; i < pairs; i++) {
        struct det_module *norm = child_at(m, 2 * i + 1);
        y = det_forward(child_at(m, 2 * i), y);
        y = i + 1 < pairs ? norm->type->forward(norm, y, true)
                          : module_norm_add_relu(norm, y, skip);
    }
    det__step_drop(m->engine, mark, y);
    return y;
}

static const struct module_type block_type = {"residual_block", block_forward, false};

struct convolution {
    int64_t in, out;
    int kernel, stride;
};

static struct det_module *make_convolution(struct det_engine *e, struct convolution c)
{
    struct det_module *m = det_nn_conv2d(e, c.in, c.out, c.kernel, .stride = c.stride,
                                         .padding = c.kernel / 2, .no_bias = true);
    if (m)
        det_init_kaiming_normal(e, module_param(m, "weight"), .fan_out = true,
                                .nonlinearity = "relu");
    return m;
}

static void add_pair(struct det_module *m, int i, struct convolution c)
{
    char conv[16], norm[16];
    snprintf(conv, sizeof conv, "conv%d", i);
    snprintf(norm, sizeof norm, "bn%d", i);
    det_module_add(m, conv, make_convolution(m->engine, c));
    det_module_add(m, norm, det_nn_batch_norm2d(m->engine, c.out));
}

/* From `in` channels to `out`; `width` inside a bottleneck. */
static struct det_module *make_block(struct det_engine *e, bool bottleneck, int64_t in,
                                     int64_t width, int stride)
{
    struct det_module *m = module_new(e, &block_type);
    int64_t out = bottleneck ? 4 * width : width;
    if (!m)
        return NULL;
    if (bottleneck) {
        add_pair(m, 1, (struct convolution){in, width, 1, 1});
        add_pair(m, 2, (struct convolution){width, width, 3, stride});
        add_pair(m, 3, (struct convolution){width, out, 1, 1});
    } else {
        add_pair(m, 1, (struct convolution){in, width, 3, stride});
        add_pair(m, 2, (struct convolution){width, width, 3, 1});
    }
    if (stride != 1 || in != out)
        det_module_add(
            m, "downsample",
            det_nn_sequential(e, make_convolution(e, (struct convolution){in, out, 1, stride}),
                              det_nn_batch_norm2d(e, out)));
    return m;
}

static void add_layers(struct det_module *m, const struct family *f)
{
    int64_t in = 64, width = 64;
    for (int i = 0; i < 4; i++, width *= 2) {
        char name[16];
        snprintf(name, sizeof name, "layer%d", i + 1);
        struct det_module *layer = det_module_add(m, name, det_nn_sequential(m->engine));
        for (int k = 0; k < f->blocks[i]; k++) {
            int stride = k == 0 && i > 0 ? 2 : 1;
            det_module_append(layer, make_block(m->engine, f->bottleneck, in, width, stride));
            in = f->bottleneck ? 4 * width : width;
        }
    }
}

static void zero_last_norms(struct det_module *layer)
{
    for (size_t i = 0; i < layer->children.n; i++) {
        struct det_module *b = child_at(layer, i);
        struct det_tensor *w = module_param(child_at(b, b->children.n / 2 * 2 - 1), "weight");
        struct det_err err;
        if (det__run(b->engine, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {w}}, &err) <
            0)
            det__keep_error(b->engine, &err);
    }
}

/* Children: conv1 bn1 layer1 ... layer4 fc. */
static struct det_tensor *forward_resnet(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    struct det_module *norm = child_at(m, 1);
    size_t mark = det__step_mark(m->engine);
    x = norm->type->forward(norm, det_forward(child_at(m, 0), x), true);
    if (child_at(m, 0)->layer.conv.stride == 2)
        x = det_max_pool2d(m->engine, x, 3, 2, 1);
    for (size_t i = 2; i < 6; i++) {
        x = det_forward(child_at(m, i), x);
        det__step_drop(m->engine, mark, x);
    }
    x = det_flatten(m->engine, det_global_avg_pool2d(m->engine, x), 1);
    return det_forward(child_at(m, 6), x);
}

static const struct family *family_of(struct det_engine *e, int depth)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (families[i].depth == depth)
            return &families[i];
    det_engine_fail(e, DET_EINVAL, "resnet: the depth is %d and must be 18, 34, 50, 101 or 152",
                    depth);
    return NULL;
}

struct det_module *det_nn_resnet_create(struct det_engine *e, int depth,
                                        const struct det_resnet_options *options)
{
    static const struct module_type type = {"resnet", forward_resnet, false};
    int64_t classes = options->classes ? options->classes : 1000;
    int64_t channels = options->channels ? options->channels : 3;
    const struct family *f = family_of(e, depth);
    struct det_module *m = f ? module_new(e, &type) : NULL;
    if (!m)
        return NULL;
    add_pair(m, 1,
             options->small_images ? (struct convolution){channels, 64, 3, 1}
                                   : (struct convolution){channels, 64, 7, 2});
    add_layers(m, f);
    det_module_add(m, "fc", det_nn_linear(e, f->bottleneck ? 2048 : 512, classes));
    for (size_t i = 2; options->zero_init_residual && e->err.code == 0 && i < 6; i++)
        zero_last_norms(child_at(m, i));
    if (e->err.code == 0)
        return m;
    det_module_destroy(m);
    return NULL;
}
