/* Embeddings and the norms of rows and groups. */
#include <inttypes.h>
#include <string.h>

#include "det/init.h"
#include "det/nn_seq.h"
#include "layers.h"
#include "mem.h"

static struct det_tensor *embedding_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_embedding_opt(m->engine, module_param(m, "weight"), x, &m->layer.embedding);
}

static bool clear_row(struct det_module *m, struct det_tensor *weight, int64_t row)
{
    struct det_err err;
    size_t width = (size_t)weight->dims[1], n = weight->numel;
    det_cleanup(freep) float *values = det_try_alloc((n ? n : 1) * sizeof *values);
    if (!values)
        det_fail(&err, DET_ENOMEM, "embedding: no memory for %zu values", n);
    if (!values || det_tensor_read(weight, values, n * sizeof *values, &err) < 0) {
        det__keep_error(m->engine, &err);
        return false;
    }
    memset(values + (size_t)row * width, 0, width * sizeof *values);
    if (det_tensor_write(weight, values, n * sizeof *values, &err) == 0)
        return true;
    det__keep_error(m->engine, &err);
    return false;
}

struct det_module *det_nn_embedding_create(struct det_engine *e, int64_t rows, int64_t width,
                                           const struct det_embedding_options *options)
{
    static const struct module_type type = {"embedding", embedding_forward, false};
    MODULE_OWN m = module_new(e, &type);
    if (!m)
        return NULL;
    m->layer.embedding = *options;
    if (rows < 1 || width < 1 ||
        (options->padding && (options->padding_idx < 0 || options->padding_idx >= rows))) {
        det_engine_fail(e, DET_EINVAL,
                        "embedding: %" PRId64 " rows of %" PRId64 ", padding row %" PRId64
                        ": at least 1, the padding row one of them",
                        rows, width, options->padding_idx);
        return NULL;
    }
    struct det_tensor *w = layer_param(m, "weight", 2, (int64_t[]){rows, width});
    det_init_normal(e, w, 0, 1);
    if (!w || (options->padding && !clear_row(m, w, options->padding_idx)))
        return NULL;
    return det_take(m);
}

static struct det_tensor *layer_norm_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_layer_norm(m->engine, x, 1, module_param(m, "weight"), module_param(m, "bias"),
                          m->layer.rows.eps);
}

static struct det_tensor *rms_norm_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_rms_norm(m->engine, x, 1, module_param(m, "weight"), m->layer.rows.eps);
}

static struct det_tensor *group_norm_forward(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_group_norm(m->engine, x, m->layer.groups, module_param(m, "weight"),
                          module_param(m, "bias"), m->layer.rows.eps);
}

/* weight ones and bias zeros, as the options say. */
static struct det_module *make_norm(struct det_engine *e, const struct module_type *type,
                                    int64_t width, const struct det_layer_norm_options *o)
{
    MODULE_OWN m = module_new(e, type);
    if (!m)
        return NULL;
    if (width < 1) {
        det_engine_fail(e, DET_EINVAL, "%s: %" PRId64 " elements: at least 1", type->name, width);
        return NULL;
    }
    m->layer.rows = *o;
    if (!o->plain && !det_module_add_param(m, "weight", det_full(e, DET_F32, 1, &width, 1)))
        return NULL;
    if (!o->plain && !o->no_bias && !layer_param(m, "bias", 1, &width))
        return NULL;
    return det_take(m);
}

struct det_module *det_nn_layer_norm_create(struct det_engine *e, int64_t width,
                                            const struct det_layer_norm_options *options)
{
    static const struct module_type type = {"layer_norm", layer_norm_forward, false};
    return make_norm(e, &type, width, options);
}

struct det_module *det_nn_rms_norm_create(struct det_engine *e, int64_t width,
                                          const struct det_layer_norm_options *options)
{
    static const struct module_type type = {"rms_norm", rms_norm_forward, false};
    struct det_layer_norm_options o = *options;
    o.no_bias = true;
    return make_norm(e, &type, width, &o);
}

struct det_module *det_nn_group_norm_create(struct det_engine *e, int64_t groups, int64_t channels,
                                            const struct det_layer_norm_options *options)
{
    static const struct module_type type = {"group_norm", group_norm_forward, false};
    if (groups < 1 || channels % groups != 0) {
        det_engine_fail(e, DET_EINVAL,
                        "group_norm: %" PRId64 " channels cannot be %" PRId64 " equal groups",
                        channels, groups);
        return NULL;
    }
    struct det_module *m = make_norm(e, &type, channels, options);
    if (m)
        m->layer.groups = groups;
    return m;
}
