#include "autocast.h"

#include "dtype.h"
#include "tape.h"

void autocast_forget(struct det_engine *e)
{
    for (size_t i = 0; i < e->cast_before.n; i++)
        det_tensor_unref(e->cast_before.v[i]);
    e->cast_before.n = 0;
}

static const struct autocast_entry *first_used(const struct det_engine *e)
{
    for (size_t i = 0; i < e->casts.n; i++)
        if (e->casts.v[i].used)
            return &e->casts.v[i];
    return NULL;
}

/* What was used as the first one was is what the next stretch is likely to use: of a weight that
 * was cast in several ways, one cast is made ahead. */
void autocast_clear(struct det_engine *e)
{
    const struct autocast_entry *first = first_used(e);
    if (e->casts.n == 0)
        return;
    autocast_forget(e);
    enum det_dtype dtype = first ? first->to->dtype : DET_F32;
    bool grad = first && first->grad;
    for (size_t i = 0; i < e->casts.n; i++) {
        struct autocast_entry *c = &e->casts.v[i];
        if (c->used && c->grad == grad && c->to->dtype == dtype)
            vec_push(&e->cast_before, det_tensor_ref(c->from));
        det_tensor_unref(c->from);
    }
    for (size_t i = 0; i < e->casts.n; i++)
        det_tensor_unref(e->casts.v[i].to);
    e->casts.n = 0;
}

void autocast_prune(struct det_engine *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->cast_before.n; i++) {
        struct det_tensor *t = e->cast_before.v[i];
        if (t->refs > 1)
            e->cast_before.v[kept++] = t;
        else if (det__tensor_end(t))
            vec_push(&e->dead, t);
    }
    e->cast_before.n = kept;
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

/* Forgets entry i. */
static void drop_cast(struct det_engine *e, size_t i)
{
    det_tensor_unref(e->casts.v[i].from);
    det_tensor_unref(e->casts.v[i].to);
    e->casts.v[i] = e->casts.v[--e->casts.n];
}

void autocast_wrote(struct det_engine *e, const struct det_storage *s)
{
    for (size_t i = e->casts.n; i-- > 0;)
        if (e->casts.v[i].from->storage == s)
            drop_cast(e, i);
}

/* A cast that a backward pass has gone through is none for the next one. */
static struct autocast_entry *known_cast(struct det_engine *e, const struct det_tensor *from,
                                         enum det_dtype dtype)
{
    for (size_t i = 0; i < e->casts.n; i++) {
        struct autocast_entry *c = &e->casts.v[i];
        if (c->from != from || c->to->dtype != dtype || c->grad != (e->no_grad == 0))
            continue;
        if (!c->to->node || !c->to->node->done)
            return c;
        drop_cast(e, i);
        return NULL;
    }
    return NULL;
}

static bool is_weight(const struct det_tensor *x)
{
    return x->requires_grad && !x->node;
}

/* Whether x may be one of many that are cast together. */
static bool goes_together(const struct det_engine *e, const struct det_tensor *x)
{
    return is_weight(x) && x->engine == e && x->dtype == DET_F32 && x->numel > 0 &&
           x->layout == DET_LAYOUT_PLAIN;
}

/* The call that casts x, as the tape would have it. */
static int cast_call(struct det_engine *e, struct det_tensor *x, enum det_dtype dtype,
                     struct op_call *ret, struct det_err *err)
{
    *ret = (struct op_call){.op = OP_CAST, .in = {x}, .dtype = dtype, .outs = 1};
    return det__tensor_new(e, dtype, DET_LAYOUT_PLAIN, x->ndim, x->dims, &ret->out[0], err);
}

/* Gives a finished cast to the tape and to the known ones, which take its tensor. */
static void know_cast(struct det_engine *e, const struct op_call *c)
{
    if (e->no_grad == 0)
        tape_record(e->tape, c);
    vec_push(&e->casts,
             ((struct autocast_entry){
                 .from = det_tensor_ref(c->in[0]), .to = c->out[0], .grad = e->no_grad == 0}));
}

/* Casts all weights that were cast in the last stretch. */
static int cast_together(struct det_engine *e, enum det_dtype dtype, struct det_err *err)
{
    VEC(struct op_call) all = {0};
    VEC(struct det_call) calls = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < e->cast_before.n; i++) {
        struct op_call c;
        if (!goes_together(e, e->cast_before.v[i]))
            continue;
        if ((rc = cast_call(e, e->cast_before.v[i], dtype, &c, err)) < 0)
            break;
        vec_push(&all, c);
        vec_push(&calls, ((struct det_call){
                             .kernel = DET_KERNEL_COPY, .in = {c.in[0]}, .out = {c.out[0]}}));
    }
    if (rc == 0)
        rc = det__run_steps(e, calls.v, calls.n, err);
    for (size_t i = 0; i < all.n; i++)
        if (rc == 0)
            know_cast(e, &all.v[i]);
        else
            det_tensor_unref(all.v[i].out[0]);
    vec_free(&all);
    vec_free(&calls);
    return rc;
}

/* The known cast of a weight, after all have been cast where this one was the first of the last
 * stretch's. */
static struct autocast_entry *cast_of_weight(struct det_engine *e, struct det_tensor *x,
                                             enum det_dtype dtype)
{
    struct det_err err;
    struct autocast_entry *c = known_cast(e, x, dtype);
    bool again = e->casts.n == 0 && e->cast_before.n > 1 && e->cast_before.v[0] == x;
    if (c || !again || !e->backend->steps || dtype == DET_F32)
        return c;
    int rc = cast_together(e, dtype, &err);
    if (rc == DET_ENOMEM)
        autocast_forget(e); /* some may not be wanted this time: one by one */
    else if (rc < 0)
        det__keep_error(e, &err);
    return rc < 0 ? NULL : known_cast(e, x, dtype);
}

/* x in another dtype; a weight is cast once until autocast ends. */
static struct det_tensor *cast_to(struct det_engine *e, struct det_tensor *x, enum det_dtype dtype)
{
    bool kept = is_weight(x) && x->engine == e; /* of others nobody says that they were written */
    struct autocast_entry *c = kept ? cast_of_weight(e, x, dtype) : NULL;
    if (c) {
        c->used = true;
        return c->to;
    }
    struct det_tensor *y = det_cast(e, x, dtype);
    if (y && kept)
        vec_push(&e->casts, ((struct autocast_entry){.from = det_tensor_ref(x),
                                                     .to = det_tensor_ref(y),
                                                     .grad = e->no_grad == 0,
                                                     .used = true}));
    return y;
}

static bool is_castable(const struct det_tensor *x)
{
    return x && det__is_float(x->dtype) && x->dtype != DET_F64;
}

/* Whether castable inputs differ. */
static bool inputs_differ(const struct op_call *c, enum det_dtype *ret_first)
{
    const struct det_tensor *first = NULL;
    for (int i = 0; i < op_table[c->op].inputs_max; i++) {
        if (!is_castable(c->in[i]))
            continue;
        if (first && c->in[i]->dtype != first->dtype)
            return true;
        first = c->in[i];
    }
    *ret_first = first ? first->dtype : DET_F32;
    return false;
}

/* The common dtype of inputs that must not differ. */
static enum det_dtype widest_dtype(const struct op_call *c)
{
    enum det_dtype first;
    return inputs_differ(c, &first) ? DET_F32 : first;
}

/* What input i is cast to. */
static enum det_dtype dtype_for(const struct det_engine *e, const struct op_call *c, int i)
{
    switch (op_table[c->op].amp) {
    case OP_AMP_LOW: return det_autocast_dtype(e);
    case OP_AMP_WIDEST: return widest_dtype(c);
    case OP_AMP_FIRST:
    case OP_AMP_LOSS:
        return c->in[0] && det__same_shape(c->in[i], c->in[0]) ? c->in[0]->dtype : DET_F32;
    case OP_AMP_FULL:
    case OP_AMP_AS_IS: /* these two are not cast */
    case OP_AMP_MIXED: break;
    }
    return DET_F32;
}

int autocast_inputs(struct det_engine *e, struct op_call *c)
{
    enum det_dtype to[DET_CALL_IN_MAX];
    enum det_dtype first;
    if (e->autocast.n == 0 || op_table[c->op].amp == OP_AMP_AS_IS)
        return 0;
    c->wide = op_table[c->op].amp == OP_AMP_LOSS;
    if (op_table[c->op].amp == OP_AMP_MIXED) {
        c->mixed = inputs_differ(c, &first);
        return 0;
    }
    for (int i = 0; i < op_table[c->op].inputs_max; i++)
        to[i] = is_castable(c->in[i]) ? dtype_for(e, c, i) : DET_F32;
    for (int i = 0; i < op_table[c->op].inputs_max; i++)
        if (is_castable(c->in[i]) && c->in[i]->dtype != to[i] &&
            !(c->in[i] = cast_to(e, c->in[i], to[i])))
            return det_engine_error(e, NULL);
    return 0;
}
