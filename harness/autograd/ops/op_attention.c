/* Shape and gradient rules of attention and of what it is fed with. */
#include <inttypes.h>

#include "op_grad.h"
#include "op_shape.h"

static int check_apart(const struct op_call *c, struct det_err *err)
{
    const struct det_tensor *q = c->in[0], *k = c->in[1], *v = c->in[2];
    bool ok = v && q->ndim == 4 && k->ndim == 4 && det__same_shape(k, v);
    for (int i = 0; ok && i < 4; i++)
        ok = i == 2 || q->dims[i] == k->dims[i];
    if (ok)
        return 0;
    return det_fail(err, DET_EINVAL,
                    "the query must be [batch, heads, time, width], key and value alike, with "
                    "another time at most");
}

static int check_mask(const struct op_call *c, int64_t batch, int64_t heads, int64_t time,
                      int64_t keys, struct det_err *err)
{
    const struct det_tensor *m = c->in[3];
    if (!m ||
        (m->ndim == 4 && (m->dims[0] == 1 || m->dims[0] == batch) &&
         (m->dims[1] == 1 || m->dims[1] == heads) && m->dims[2] == time && m->dims[3] == keys))
        return 0;
    return det_fail(err, DET_EINVAL,
                    "the mask must be [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                    "] (batch, heads, time, keys), each of them or 1",
                    batch, heads, time, keys);
}

int shape_attention(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *q = c->in[0];
    bool packed = !c->in[1];
    int rc = packed ? 0 : check_apart(c, err);
    if (rc == 0 && packed && (q->ndim != 5 || q->dims[2] != 3))
        return det_fail(err, DET_EINVAL, "the input must be [batch, time, 3, heads, width]");
    if (rc < 0)
        return rc;
    int64_t batch = q->dims[0], heads = q->dims[packed ? 3 : 1], time = q->dims[packed ? 1 : 2];
    int64_t width = q->dims[packed ? 4 : 3];
    c->spec[0] = op_like(q);
    if (packed)
        c->spec[0] =
            (struct op_out){.dtype = q->dtype, .ndim = 4, .dims = {batch, time, heads, width}};
    c->spec[1] = (struct op_out){.dtype = op_wide(q), .ndim = 4, .dims = {2, batch, heads, time}};
    c->outs = 2;
    if (!(c->a.p >= 0 && c->a.p < 1))
        return det_fail(err, DET_EINVAL, "dropout is %g and must be in 0..1", c->a.p);
    rc = check_mask(c, batch, heads, time, packed ? time : c->in[1]->dims[2], err);
    return rc < 0 ? rc : op_all_float(c, err);
}

int grad_attention(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                   struct det_err *err)
{
    static const struct grad_outputs apart = {3, {0, 1, 2}, 1 | 2 | 4}, packed = {1, {0}, 1};
    struct det_call c = {.kernel = DET_KERNEL_ATTENTION_BWD,
                         .in = {dy, n->in[0], n->in[1], n->in[2], n->in[3], n->out[1], n->out[0]},
                         .a = n->a};
    return grad_run(e, n, &c, n->in[1] ? &apart : &packed, err);
}

int shape_rotary(struct op_call *c, struct det_err *err)
{
    c->spec[0] = op_like(c->in[0]);
    c->outs = 1;
    if (c->in[0]->dims[2] % 2 != 0)
        return det_fail(err, DET_EINVAL, "the width must be even");
    return op_all_float(c, err);
}

int grad_rotary(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                struct det_err *err)
{
    static const struct grad_outputs o = {1, {0}, 0};
    struct det_call c = {.kernel = DET_KERNEL_ROTARY, .in = {dy}, .a = n->a};
    c.a.reverse = !c.a.reverse;
    return op_wants_grad(n->in[0]) ? grad_run(e, n, &c, &o, err) : 0;
}
