/* The public functions of attention. */
#include <math.h>
#include <string.h>

#include "functions_math.h"

static const struct det_attention_options defaults;

/* x with ones before its dimensions, up to 4. */
static struct det_tensor *four_dims(struct det_engine *e, struct det_tensor *x)
{
    int64_t dims[4] = {1, 1, 1, 1};
    if (!x || x->ndim >= 4 || x->ndim == 0)
        return x;
    memcpy(dims + 4 - x->ndim, x->dims, (size_t)x->ndim * sizeof *dims);
    if (x->ndim == 3) { /* [N, T, D]: N batches of one head */
        dims[0] = x->dims[0];
        dims[1] = 1;
    }
    return det_reshape(e, x, 4, dims);
}

/* The mask, 4-D, repeated over the queries or keys where it has one for all, as a mask of padding
 * does. What does not fit is left to the shape rule. */
static struct det_tensor *fit_mask(struct det_engine *e, const struct op_call *c,
                                   struct det_tensor *mask)
{
    mask = four_dims(e, mask);
    const struct det_tensor *q = c->in[0], *k = c->in[1];
    if (!mask || !q || mask->ndim != 4 || (mask->dims[2] != 1 && mask->dims[3] != 1))
        return mask;
    int64_t time = q->dims[k ? 2 : 1], keys = k ? k->dims[2] : time;
    const int64_t dims[] = {mask->dims[0], mask->dims[1], mask->dims[2] == 1 ? time : mask->dims[2],
                            mask->dims[3] == 1 ? keys : mask->dims[3]};
    return det_expand(e, mask, 4, dims);
}

static struct det_tensor *apply_attention(struct det_engine *e, struct op_call *c, int64_t width,
                                          const struct det_attention_options *o)
{
    if (op_wants_grad(o->mask) && det_grad_enabled(e)) {
        det_engine_fail(e, DET_EINVAL, "attention: no gradient flows to a mask: det_detach() it");
        return NULL;
    }
    struct det_tensor *mask = o->mask;
    if (mask && mask->dtype == DET_BOOL)
        mask = det_where(e, mask, det_scalar(e, c->in[0]->dtype, 0),
                         det_scalar(e, c->in[0]->dtype, -INFINITY));
    c->op = OP_ATTENTION;
    c->in[3] = fit_mask(e, c, mask);
    c->a.causal = o->causal;
    c->a.scale = o->scale != 0 ? o->scale : 1 / sqrt((double)(width > 0 ? width : 1));
    if (o->dropout > 0) {
        c->a.p = o->dropout;
        det__draw(e, &c->a);
    }
    return op_apply(e, c);
}

struct det_tensor *det_attention_opt(struct det_engine *e, struct det_tensor *q,
                                     struct det_tensor *k, struct det_tensor *v,
                                     const struct det_attention_options *options)
{
    if (!q || !k || !v) {
        if (e->err.code == 0)
            det_engine_fail(e, DET_EINVAL, "attention: query, key or value is NULL");
        return NULL;
    }
    struct op_call c = {.in = {four_dims(e, q), four_dims(e, k), four_dims(e, v)}};
    struct det_tensor *y =
        apply_attention(e, &c, det_tensor_dim(q, -1), options ? options : &defaults);
    return y && q->ndim < 4 ? det_reshape(e, y, q->ndim, q->dims) : y;
}

struct det_tensor *det_packed_attention_opt(struct det_engine *e, struct det_tensor *x,
                                            int64_t heads,
                                            const struct det_attention_options *options)
{
    if (function_dim(e, "packed_attention", x, 0) < 0)
        return NULL;
    if (x->ndim != 3 || heads < 1 || x->dims[2] % (3 * heads) != 0) {
        det_engine_fail(e, DET_EINVAL,
                        "packed_attention: the input must be [batch, time, 3 * width], the width "
                        "divisible by %lld heads",
                        (long long)heads);
        return NULL;
    }
    int64_t width = x->dims[2] / (3 * heads);
    const int64_t dims[] = {x->dims[0], x->dims[1], 3, heads, width};
    struct op_call c = {.in = {det_reshape(e, x, 5, dims)}};
    struct det_tensor *y = apply_attention(e, &c, width, options ? options : &defaults);
    return y ? det_reshape(e, y, 3, (int64_t[]){x->dims[0], x->dims[1], heads * width}) : NULL;
}

struct det_tensor *det_rotary_opt(struct det_engine *e, struct det_tensor *x,
                                  const struct det_rotary_options *options)
{
    static const struct det_rotary_options usual;
    const struct det_rotary_options *o = options ? options : &usual;
    if (function_dim(e, "rotary", x, -2) < 0)
        return NULL;
    struct op_call c = {.op = OP_ROTARY,
                        .a = {.scale = o->base != 0 ? o->base : 10000,
                              .offset = (double)o->position,
                              .halves = o->halves}};
    c.in[0] = det_reshape(e, x, 3, (int64_t[]){-1, x->dims[x->ndim - 2], x->dims[x->ndim - 1]});
    struct det_tensor *y = op_apply(e, &c);
    return y ? det_reshape(e, y, x->ndim, x->dims) : NULL;
}
