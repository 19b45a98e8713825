/* Shape rules of layer norm and recurrent layers. */
#include <inttypes.h>

#include "op_shape.h"

int shape_layer_norm(struct op_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0];
    for (int i = 1; i < 3; i++)
        if (c->in[i] && (c->in[i]->ndim != 1 || c->in[i]->dims[0] != x->dims[1]))
            return det_fail(err, DET_EINVAL,
                            "rows of %" PRId64 " elements need a weight and a bias of as many",
                            x->dims[1]);
    c->spec[0] = op_like(x);
    c->spec[1] = c->spec[2] = (struct op_out){.dtype = op_wide(x), .ndim = 1, .dims = {x->dims[0]}};
    c->outs = 3;
    return op_all_float(c, err);
}

static int check_state(const struct op_call *c, int i, int64_t batch, int64_t hidden,
                       struct det_err *err)
{
    const struct det_tensor *t = c->in[i];
    if (t->ndim == 2 && t->dims[0] == batch && t->dims[1] == hidden)
        return 0;
    return det_fail(err, DET_EINVAL,
                    "the initial state must be [%" PRId64 ", %" PRId64 "]: batch and hidden size",
                    batch, hidden);
}

/* The first two inputs and the bias; `gates` rows of the weight for each hidden unit. */
static int check_recurrent(struct op_call *c, int64_t gates, int bias, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *w = c->in[1], *b = c->in[bias];
    if (x->ndim != 3 || w->ndim != 2 || w->dims[0] != gates * w->dims[1] ||
        x->dims[2] != w->dims[0])
        return det_fail(
            err, DET_EINVAL,
            "the weight must be [%d hidden, hidden], the input [time, batch, %d hidden]",
            (int)gates, (int)gates);
    if (b && (b->ndim != 1 || b->dims[0] != w->dims[0]))
        return det_fail(err, DET_EINVAL, "the bias must be [%" PRId64 "]", w->dims[0]);
    return op_all_float(c, err);
}

static struct op_out steps_of(enum det_dtype dtype, int64_t time, int64_t batch, int64_t width)
{
    return (struct op_out){.dtype = dtype, .ndim = 3, .dims = {time, batch, width}};
}

int shape_lstm(struct op_call *c, struct det_err *err)
{
    int rc = check_recurrent(c, 4, 4, err);
    if (rc < 0)
        return rc;
    int64_t time = c->in[0]->dims[0], batch = c->in[0]->dims[1], hidden = c->in[1]->dims[1];
    c->spec[0] = steps_of(c->in[0]->dtype, time + 1, batch, hidden);
    c->spec[1] = steps_of(op_wide(c->in[0]), time, batch, 4 * hidden);
    c->spec[2] = steps_of(op_wide(c->in[0]), time, batch, hidden);
    c->outs = 3;
    rc = check_state(c, 2, batch, hidden, err);
    return rc < 0 ? rc : check_state(c, 3, batch, hidden, err);
}

int shape_gru(struct op_call *c, struct det_err *err)
{
    int rc = check_recurrent(c, 3, 3, err);
    if (rc < 0)
        return rc;
    int64_t time = c->in[0]->dims[0], batch = c->in[0]->dims[1], hidden = c->in[1]->dims[1];
    c->spec[0] = steps_of(c->in[0]->dtype, time, batch, hidden);
    c->spec[1] = steps_of(op_wide(c->in[0]), time, batch, 4 * hidden);
    c->outs = 2;
    return check_state(c, 2, batch, hidden, err);
}
