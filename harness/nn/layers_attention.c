/* Multi-head attention with PyTorch's parameters, and the positions that go with it. */
#include <inttypes.h>
#include <math.h>

#include "det/init.h"
#include "det/nn_seq.h"
#include "layers.h"
#include "mem.h"

/* Rows from * width to (from + n) * width of in_proj_weight and in_proj_bias applied to x. */
static struct det_tensor *project_rows(struct det_module *m, struct det_tensor *x, int64_t from,
                                       int64_t n)
{
    struct det_engine *e = m->engine;
    int64_t width = m->layer.hidden;
    struct det_tensor *w = module_param(m, "in_proj_weight"), *b = module_param(m, "in_proj_bias");
    if (n == 3)
        return det_linear(e, x, w, b);
    return det_linear(e, x, det_narrow(e, w, 0, from * width, n * width),
                      b ? det_narrow(e, b, 0, from * width, n * width) : NULL);
}

/* (batch, time, width) -> (batch, heads, time, width / heads) */
static struct det_tensor *split_heads(struct det_module *m, struct det_tensor *x)
{
    const int64_t dims[] = {det_tensor_dim(x, 0), det_tensor_dim(x, 1), m->layer.groups,
                            m->layer.hidden / m->layer.groups};
    return x ? det_transpose(m->engine, det_reshape(m->engine, x, 4, dims), 1, 2) : NULL;
}

static struct det_tensor *attend_heads(struct det_module *m, struct det_tensor *const in[3],
                                       const struct det_attention_options *o)
{
    struct det_engine *e = m->engine;
    if (in[0] == in[1] && in[1] == in[2])
        return det_packed_attention_opt(e, project_rows(m, in[0], 0, 3), m->layer.groups, o);
    struct det_tensor *q = split_heads(m, project_rows(m, in[0], 0, 1));
    struct det_tensor *k = split_heads(m, project_rows(m, in[1], 1, 1));
    struct det_tensor *v = split_heads(m, project_rows(m, in[2], 2, 1));
    struct det_tensor *y = det_attention_opt(e, q, k, v, o);
    const int64_t dims[] = {det_tensor_dim(in[0], 0), det_tensor_dim(in[0], 1), m->layer.hidden};
    return y ? det_reshape(e, det_transpose(e, y, 1, 2), 3, dims) : NULL;
}

static bool check_input(struct det_module *m, const struct det_tensor *x)
{
    char text[160];
    if (!x || m->engine->err.code < 0)
        return false;
    if (x->ndim == 3 && x->dims[2] == m->layer.hidden)
        return true;
    det_engine_fail(m->engine, DET_EINVAL,
                    "multihead_attention(%s): the input must have 3 dimensions, the last %" PRId64,
                    det__tensor_text(x, text, sizeof text), m->layer.hidden);
    return false;
}

struct det_tensor *det_multihead_forward(struct det_module *m, struct det_tensor *query,
                                         struct det_tensor *key, struct det_tensor *value,
                                         const struct det_attention_options *options)
{
    struct det_attention_options o = options ? *options : (struct det_attention_options){0};
    struct det_tensor *in[3] = {query, key ? key : query, value ? value : key ? key : query};
    if (!m || !check_input(m, in[0]) || !check_input(m, in[1]) || !check_input(m, in[2]))
        return NULL;
    bool self = in[0] == in[1] && in[1] == in[2];
    for (int i = 0; i < 3 && !m->layer.batch_first; i++)
        in[i] = self && i > 0 ? in[0] : det_transpose(m->engine, in[i], 0, 1);
    o.dropout = m->training ? m->layer.p : 0;
    struct det_tensor *y = attend_heads(m, in, &o);
    y = y ? det_forward(m->children.v[0].module, y) : NULL;
    return y && !m->layer.batch_first ? det_transpose(m->engine, y, 0, 1) : y;
}

static struct det_tensor *forward_attention(struct det_module *m, struct det_tensor *x, bool relu)
{
    (void)relu;
    return det_multihead_forward(m, x, NULL, NULL, NULL);
}

static bool add_params(struct det_module *m, int64_t width, bool no_bias)
{
    struct det_engine *e = m->engine;
    struct det_tensor *w = layer_param(m, "in_proj_weight", 2, (int64_t[]){3 * width, width});
    det_init_xavier_uniform(e, w, 1);
    if (!no_bias && !layer_param(m, "in_proj_bias", 1, (int64_t[]){3 * width}))
        return false;
    struct det_module *out =
        det_module_add(m, "out_proj", det_nn_linear(e, width, width, .no_bias = no_bias));
    if (out && !no_bias)
        det_init_zeros(e, module_param(out, "bias"));
    return w && out;
}

struct det_module *det_nn_multihead_attention_create(struct det_engine *e, int64_t width,
                                                     int64_t heads,
                                                     const struct det_multihead_options *options)
{
    static const struct module_type type = {"multihead_attention", forward_attention, false};
    MODULE_OWN m = module_new(e, &type);
    if (!m)
        return NULL;
    if (width < 1 || heads < 1 || width % heads != 0) {
        det_engine_fail(e, DET_EINVAL,
                        "multihead_attention: a width of %" PRId64 " cannot be %" PRId64
                        " equal heads",
                        width, heads);
        return NULL;
    }
    m->layer.hidden = width;
    m->layer.groups = heads;
    m->layer.p = options->dropout;
    m->layer.batch_first = options->batch_first;
    return add_params(m, width, options->no_bias) ? det_take(m) : NULL;
}

struct det_tensor *det_sinusoidal_positions(struct det_engine *e, int64_t time, int64_t width)
{
    struct det_err err;
    const int64_t dims[] = {time, width};
    struct det_tensor *host = det_host_tensor(DET_F32, 2, dims, &err);
    if (!host) {
        det__keep_error(e, &err);
        return NULL;
    }
    float *v = det_tensor_data(host);
    for (int64_t i = 0; i < time * width; i++) {
        double pair = (double)(i % width / 2 * 2) / (double)width;
        double angle = (double)(i / width) / pow(10000, pair);
        v[i] = (float)(i % width % 2 ? cos(angle) : sin(angle));
    }
    struct det_tensor *y = det_from_host(e, DET_F32, 2, dims, v);
    det_tensor_unref(host);
    return y;
}
