#include "autocast.h"

#include "dtype.h"

void autocast_clear(struct det_engine *e)
{
    for (size_t i = 0; i < e->casts.n; i++) {
        det_tensor_unref(e->casts.v[i].from);
        det_tensor_unref(e->casts.v[i].to);
    }
    e->casts.n = 0;
}

int det_autocast_begin(struct det_engine *e, enum det_dtype dtype)
{
    if (dtype != DET_F32 && dtype != DET_BF16 && dtype != DET_F16)
        return det_engine_fail(e, DET_EINVAL, "autocast: %s is none of float32, bfloat16, float16",
                               det_dtype_name(dtype));
    if (dtype == DET_F16 && e->backend->host_memory)
        dtype = DET_BF16; /* what a CPU has units for */
    vec_push(&e->autocast, dtype);
    return 0;
}

void det_autocast_end(struct det_engine *e)
{
    if (e->autocast.n > 0)
        e->autocast.n--;
    if (e->autocast.n == 0)
        autocast_clear(e);
}

enum det_dtype det_autocast_dtype(const struct det_engine *e)
{
    return e->autocast.n > 0 ? e->autocast.v[e->autocast.n - 1] : DET_F32;
}

static struct det_tensor *known_cast(const struct det_engine *e, const struct det_tensor *from,
                                     enum det_dtype dtype)
{
    for (size_t i = 0; i < e->casts.n; i++) {
        const struct autocast_entry *c = &e->casts.v[i];
        if (c->from == from && c->to->dtype == dtype && c->grad == (e->no_grad == 0))
            return c->to;
    }
    return NULL;
}

/* x in another dtype; a weight is cast once until autocast ends. */
static struct det_tensor *cast(struct det_engine *e, struct det_tensor *x, enum det_dtype dtype)
{
    bool weight = x->requires_grad && !x->node;
    struct det_tensor *y = weight ? known_cast(e, x, dtype) : NULL;
    if (y)
        return y;
    y = det_cast(e, x, dtype);
    if (y && weight)
        vec_push(&e->casts,
                 ((struct autocast_entry){det_tensor_ref(x), det_tensor_ref(y), e->no_grad == 0}));
    return y;
}

static bool castable(const struct det_tensor *x)
{
    return x && det__is_float(x->dtype) && x->dtype != DET_F64;
}

/* The common dtype of inputs that must not differ. */
static enum det_dtype widest(const struct op_call *c)
{
    int first = -1;
    for (int i = 0; i < op_table[c->op].inputs_max; i++) {
        if (!castable(c->in[i]))
            continue;
        if (first >= 0 && c->in[i]->dtype != c->in[first]->dtype)
            return DET_F32;
        first = i;
    }
    return first >= 0 ? c->in[first]->dtype : DET_F32;
}

/* What input i is cast to. */
static enum det_dtype dtype_for(const struct det_engine *e, const struct op_call *c, int i)
{
    switch (op_table[c->op].amp) {
    case OP_AMP_LOW:
        return det_autocast_dtype(e);
    case OP_AMP_WIDEST:
        return widest(c);
    case OP_AMP_FIRST:
    case OP_AMP_LOSS:
        return c->in[0] && det__same_shape(c->in[i], c->in[0]) ? c->in[0]->dtype : DET_F32;
    default:
        return DET_F32;
    }
}

int autocast_inputs(struct det_engine *e, struct op_call *c)
{
    enum det_dtype to[DET_CALL_IN_MAX];
    if (e->autocast.n == 0 || op_table[c->op].amp == OP_AMP_AS_IS)
        return 0;
    c->wide = op_table[c->op].amp == OP_AMP_LOSS;
    for (int i = 0; i < op_table[c->op].inputs_max; i++)
        to[i] = castable(c->in[i]) ? dtype_for(e, c, i) : DET_F32;
    for (int i = 0; i < op_table[c->op].inputs_max; i++)
        if (castable(c->in[i]) && c->in[i]->dtype != to[i] &&
            !(c->in[i] = cast(e, c->in[i], to[i])))
            return det_engine_error(e, NULL);
    return 0;
}
