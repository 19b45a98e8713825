/* Batch normalisation (Ioffe & Szegedy 2015). */
#include <inttypes.h>

#include "functions.h"
#include "module.h"

/* PyTorch counts the batches that a batch norm has seen; the count is part of its state. */
static int64_t count_batch(struct det_module *m)
{
    int64_t n = 0;
    struct det_tensor *t = module_buffer(m, "num_batches_tracked");
    if (det_tensor_read(t, &n, sizeof n, NULL) == 0) {
        n++;
        det_ignore(det_tensor_write(t, &n, sizeof n, NULL), "it could just be read");
    }
    return n;
}

/* A tensor of the module, or one of the step where the module has none. */
static struct det_tensor *or_full(struct det_module *m, struct det_tensor *own,
                                  const struct det_tensor *x, double value)
{
    return own ? own : det_full(m->engine, x->dtype, 1, &x->dims[1], value);
}

static struct det_tensor *normalise_batch(struct det_module *m, struct det_tensor *x,
                                          struct det_tensor *residual, bool relu)
{
    const struct det_batch_norm_options *o = &m->layer.norm;
    struct batch_norm_attrs a = {.eps = o->eps,
                                 .momentum = o->momentum,
                                 .relu = o->relu || relu,
                                 .train = m->training || o->no_track};
    struct det_tensor *const params[4] = {or_full(m, module_param(m, "weight"), x, 1),
                                          or_full(m, module_param(m, "bias"), x, 0),
                                          or_full(m, module_buffer(m, "running_mean"), x, 0),
                                          or_full(m, module_buffer(m, "running_var"), x, 1)};
    int64_t batches = m->training && !o->no_track ? count_batch(m) : 0;
    if (o->cumulative && batches > 0)
        a.momentum = 1 / (double)batches;
    return residual ? det__batch_norm_add(m->engine, x, params, residual, &a)
                    : det__batch_norm(m->engine, x, params, &a);
}

struct det_tensor *module_norm_add_relu(struct det_module *m, struct det_tensor *x,
                                        struct det_tensor *residual)
{
    return x && residual ? normalise_batch(m, x, residual, true) : NULL;
}

static struct det_tensor *wrong_shape(struct det_module *m, const struct det_tensor *x,
                                      const char *want)
{
    char text[160];
    det_engine_fail(m->engine, DET_EINVAL, "%s(%s): the input must be %s", m->type->name,
                    det__tensor_text(x, text, sizeof text), want);
    return NULL;
}

static struct det_tensor *forward_2d(struct det_module *m, struct det_tensor *x, bool relu)
{
    return x->ndim == 4 ? normalise_batch(m, x, NULL, relu) : wrong_shape(m, x, "[N, C, H, W]");
}

/* (N, C) and (N, C, L) as images. */
static struct det_tensor *forward_1d(struct det_module *m, struct det_tensor *x, bool relu)
{
    if (x->ndim != 2 && x->ndim != 3)
        return wrong_shape(m, x, "[N, C] or [N, C, L]");
    int64_t dims[4] = {x->dims[0], x->dims[1], 1, x->ndim == 3 ? x->dims[2] : 1};
    struct det_tensor *image = det_reshape(m->engine, x, 4, dims);
    struct det_tensor *y = image ? normalise_batch(m, image, NULL, relu) : NULL;
    return y ? det_reshape(m->engine, y, x->ndim, x->dims) : NULL;
}

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

static bool add_state(struct det_module *m, int64_t n)
{
    struct det_engine *e = m->engine;
    if (!m->layer.norm.no_affine &&
        (!det_module_add_param(m, "weight", det_full(e, DET_F32, 1, &n, 1)) ||
         !det_module_add_param(m, "bias", det_zeros(e, DET_F32, 1, &n))))
        return false;
    return m->layer.norm.no_track ||
           (det_module_add_buffer(m, "running_mean", det_zeros(e, DET_F32, 1, &n)) &&
            det_module_add_buffer(m, "running_var", det_full(e, DET_F32, 1, &n, 1)) &&
            add_count(m));
}

static struct det_module *create_norm(struct det_engine *e, const struct module_type *type,
                                      int64_t channels, const struct det_batch_norm_options *o)
{
    MODULE_OWN m = module_new(e, type);
    if (!m)
        return NULL;
    if (channels < 1) {
        det_engine_fail(e, DET_EINVAL, "%s: %" PRId64 " channels: at least 1", type->name,
                        channels);
        return NULL;
    }
    m->layer.norm = *o;
    m->layer.norm.eps = o->eps > 0 ? o->eps : 1e-5;
    m->layer.norm.momentum = o->momentum > 0 ? o->momentum : 0.1;
    return add_state(m, channels) ? det_take(m) : NULL;
}

struct det_module *det_nn_batch_norm2d_create(struct det_engine *e, int64_t channels,
                                              const struct det_batch_norm_options *options)
{
    static const struct module_type type = {"batch_norm2d", forward_2d, true};
    return create_norm(e, &type, channels, options);
}

struct det_module *det_nn_batch_norm1d_create(struct det_engine *e, int64_t channels,
                                              const struct det_batch_norm_options *options)
{
    static const struct module_type type = {"batch_norm1d", forward_1d, true};
    return create_norm(e, &type, channels, options);
}
