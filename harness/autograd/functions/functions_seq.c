/* The public functions behind the layers of sequences. */
#include "functions_seq.h"

#include <string.h>

#include "functions_math.h"

/* A parameter that is read as a flat vector. */
static struct det_tensor *flatten_param(struct det_engine *e, struct det_tensor *t)
{
    return t && t->ndim != 1 ? det_reshape(e, t, 1, (int64_t[]){-1}) : t;
}

static struct det_tensor *apply_norm(struct det_engine *e, const char *name, struct op_call *c,
                                     int dims)
{
    struct det_tensor *x = c->in[0];
    if (function_dim(e, name, x, -dims) < 0)
        return NULL;
    if (dims < 1) {
        det_engine_fail(e, DET_EINVAL, "%s: over %d dimensions: at least 1", name, dims);
        return NULL;
    }
    int64_t width = 1;
    for (int i = x->ndim - dims; i < x->ndim; i++)
        width *= x->dims[i];
    if (width == 0) {
        det_engine_fail(e, DET_EINVAL, "%s: the normalised dimensions are empty", name);
        return NULL;
    }
    c->op = OP_LAYER_NORM;
    c->in[0] = det_reshape(e, x, 2, (int64_t[]){(int64_t)x->numel / width, width});
    c->in[1] = flatten_param(e, c->in[1]);
    c->in[2] = flatten_param(e, c->in[2]);
    struct det_tensor *y = op_apply(e, c);
    return y ? det_reshape(e, y, x->ndim, x->dims) : NULL;
}

struct det_tensor *det_layer_norm(struct det_engine *e, struct det_tensor *x, int dims,
                                  struct det_tensor *weight, struct det_tensor *bias, double eps)
{
    struct op_call c = {.in = {x, weight, bias}, .a.eps = eps > 0 ? eps : 1e-5};
    return apply_norm(e, "layer_norm", &c, dims);
}

struct det_tensor *det_rms_norm(struct det_engine *e, struct det_tensor *x, int dims,
                                struct det_tensor *weight, double eps)
{
    struct op_call c = {.in = {x, weight}, .a = {.eps = eps > 0 ? eps : 1e-6, .rms = true}};
    return apply_norm(e, "rms_norm", &c, dims);
}

struct det_tensor *det_group_norm(struct det_engine *e, struct det_tensor *x, int64_t groups,
                                  struct det_tensor *weight, struct det_tensor *bias, double eps)
{
    int64_t dims[DET_DIMS_MAX], width = 1;
    if (function_dim(e, "group_norm", x, 1) < 0)
        return NULL;
    for (int i = 1; i < x->ndim; i++)
        width *= x->dims[i];
    if (groups < 1 || x->dims[1] % groups != 0 || width == 0) {
        det_engine_fail(e, DET_EINVAL,
                        "group_norm: %lld channels cannot be %lld equal groups, none empty",
                        (long long)x->dims[1], (long long)groups);
        return NULL;
    }
    const int64_t rows[] = {x->dims[0] * groups, width / groups};
    struct det_tensor *y = det_layer_norm(e, det_reshape(e, x, 2, rows), 1, NULL, NULL, eps);
    y = y ? det_reshape(e, y, x->ndim, x->dims) : NULL;
    for (int i = 0; i < x->ndim; i++)
        dims[i] = i == 0 ? x->dims[1] : 1;
    if (y && weight)
        y = det_mul(e, y, det_reshape(e, weight, x->ndim - 1, dims));
    return y && bias ? det_add(e, y, det_reshape(e, bias, x->ndim - 1, dims)) : y;
}

struct det_tensor *det__lstm(struct det_engine *e, struct det_tensor *const in[5], bool reverse)
{
    struct op_call c = {.op = OP_LSTM, .a.reverse = reverse};
    memcpy(c.in, in, 5 * sizeof *in);
    return op_apply(e, &c);
}

struct det_tensor *det__gru(struct det_engine *e, struct det_tensor *const in[4], bool reverse)
{
    struct op_call c = {.op = OP_GRU, .a.reverse = reverse};
    memcpy(c.in, in, 4 * sizeof *in);
    return op_apply(e, &c);
}
