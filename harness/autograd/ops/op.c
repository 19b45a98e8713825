/* One call: inputs made ready, shapes checked, outputs allocated, kernel run, tape written. */
#include "op.h"

#include <stdio.h>
#include <string.h>

#include "autocast.h"
#include "dtype.h"
#include "tape.h"

/* "conv2d(float32[...], float32[...])" */
static void call_text(const struct op_call *c, char *buf, size_t n)
{
    const struct op_def *d = &op_table[c->op];
    int at = snprintf(buf, n, "%s(", d->name);
    for (int i = 0; i < d->inputs_max && (size_t)at < n; i++) {
        char one[120];
        if (i >= d->inputs && !c->in[i])
            continue;
        det__tensor_text(c->in[i], one, sizeof one);
        at += snprintf(buf + at, n - (size_t)at, "%s%s", i ? ", " : "", one);
    }
    if ((size_t)at < n)
        snprintf(buf + at, n - (size_t)at, ")");
}

static bool refuse_input(struct det_engine *e, const struct op_call *c, int i, const char *why)
{
    char text[500];
    call_text(c, text, sizeof text);
    det_engine_fail(e, DET_EINVAL, "%s: input %d %s", text, i + 1, why);
    return false;
}

/* Everything that can be wrong before the shape rule: the engine, missing inputs, dead ones. */
static bool is_ready(struct det_engine *e, const struct op_call *c)
{
    const struct op_def *d = &op_table[c->op];
    if (e->err.code < 0)
        return false;
    for (int i = 0; i < d->inputs_max; i++)
        if (!c->in[i] && i < d->inputs)
            return refuse_input(e, c, i, "is NULL");
        else if (c->in[i] && det__is_dead(c->in[i]))
            return refuse_input(e, c, i, DET__IS_DEAD);
    return true;
}

/* x in the other order, as a call of its own, so that gradients go back through it. */
static int reorder_input(struct det_engine *e, struct det_tensor *x, enum det_layout layout,
                         struct det_tensor **ret, struct det_err *err)
{
    struct op_call c = {.op = OP_LAYOUT, .in = {x}, .layout = layout};
    struct det_tensor *y = op_apply(e, &c);
    if (!y)
        return det_engine_error(e, err);
    *ret = det_tensor_ref(y);
    return 0;
}

static enum det_layout dense_layout(const struct det_tensor *t)
{
    return t->layout == DET_LAYOUT_STRIDED ? DET_LAYOUT_PLAIN : t->layout;
}

/* A leaf's gradient is dense, and lies as the leaf does. */
static bool rows_do(const struct det_engine *e, const struct det_tensor *t)
{
    return det__has_rows(e, t) && (t->node || !t->requires_grad);
}

static enum det_layout wanted_layout(const struct det_engine *e, const struct op_call *c, int i)
{
    switch (op_table[c->op].order) {
    case OP_ROWS: return i == 0 && rows_do(e, c->in[i]) ? DET_LAYOUT_STRIDED : DET_LAYOUT_PLAIN;
    case OP_STRIDED: return c->in[i]->layout;
    case OP_ANY: return dense_layout(c->in[i]);
    case OP_ALIKE: return dense_layout(c->in[0]);
    case OP_IMAGES:
        return i == 0 || (c->op == OP_BATCH_NORM && i == 5) ? DET_LAYOUT_NHWC : DET_LAYOUT_PLAIN;
    case OP_PLAIN: break;
    }
    return DET_LAYOUT_PLAIN;
}

static int prepare_input(struct det_engine *e, struct op_call *c, int i, struct det_tensor **own,
                         struct det_err *err)
{
    struct det_tensor *t = c->in[i];
    int rc = det__on_device(e, t, own, err);
    if (rc < 0)
        return rc;
    c->in[i] = t = *own;
    enum det_layout layout = wanted_layout(e, c, i);
    if (t->layout == layout ||
        (t->layout != DET_LAYOUT_STRIDED && det__layout_free(t->ndim, t->dims)))
        return 0;
    rc = reorder_input(e, t, layout, own, err);
    if (rc == 0) {
        det_tensor_unref(t);
        c->in[i] = *own;
    }
    return rc;
}

/* NHWC where an input that is as large as the output lies so. */
static enum det_layout as_inputs(const struct op_call *c)
{
    for (int i = 0; i < op_table[c->op].inputs_max; i++)
        if (c->in[i] && c->in[i]->layout == DET_LAYOUT_NHWC && c->spec[0].ndim == 4 &&
            memcmp(c->in[i]->dims, c->spec[0].dims, 4 * sizeof(int64_t)) == 0)
            return DET_LAYOUT_NHWC;
    return DET_LAYOUT_PLAIN;
}

static enum det_layout out_layout(const struct op_call *c)
{
    switch (op_table[c->op].order) {
    case OP_IMAGES: return DET_LAYOUT_NHWC;
    case OP_ALIKE: return c->in[0]->layout;
    case OP_STRIDED: return c->op == OP_LAYOUT ? c->layout : as_inputs(c);
    case OP_ANY: return c->spec[0].ndim == c->in[0]->ndim ? c->in[0]->layout : DET_LAYOUT_PLAIN;
    case OP_PLAIN:
    case OP_ROWS: break;
    }
    return DET_LAYOUT_PLAIN;
}

/* How far apart the rows of output 0 are to lie; 0: dense. */
static int64_t row_step(const struct det_engine *e, const struct op_call *c)
{
    struct det_call call = {.kernel = c->kernel, .a = c->a};
    if (c->op != OP_LINEAR || !e->backend->row_step)
        return 0;
    memcpy(call.in, c->in, sizeof call.in);
    int64_t step = e->backend->row_step(&call);
    return step > c->spec[0].dims[1] ? step : 0;
}

static int make_outputs(struct det_engine *e, struct op_call *c, struct det_err *err)
{
    enum det_layout layout = out_layout(c);
    int64_t step = row_step(e, c);
    int rc = 0;
    if (step > 0)
        return det__tensor_rows(e, c->spec[0].dtype, 2, c->spec[0].dims, step, &c->out[0], err);
    for (int i = 0; rc == 0 && i < c->outs; i++) {
        const struct op_out *s = &c->spec[i];
        rc = det__tensor_new(e, s->dtype, s->ndim == 4 ? layout : DET_LAYOUT_PLAIN, s->ndim,
                             s->dims, &c->out[i], err);
    }
    return rc;
}

static int run_kernel(struct det_engine *e, struct op_call *c, struct det_err *err)
{
    struct det_call call = {.kernel = c->kernel, .a = c->a};
    for (int i = 0; i < DET_CALL_IN_MAX; i++)
        call.in[i] = c->in[i];
    memcpy(call.out, c->out, sizeof call.out);
    return op_table[c->op].order == OP_STRIDED ? det__run_wide(e, &call, err)
                                               : det__run(e, &call, err);
}

static bool is_recorded(const struct det_engine *e, const struct op_call *c)
{
    if (e->no_grad > 0 || !op_table[c->op].grad || !det__is_float(c->out[0]->dtype))
        return false;
    for (int i = 0; i < op_table[c->op].inputs_max; i++)
        if (op_wants_grad(c->in[i]))
            return true;
    return false;
}

static int apply_call(struct det_engine *e, struct op_call *c, struct det_err *err)
{
    char text[500];
    c->kernel = op_table[c->op].kernel;
    c->a.fn = op_table[c->op].fn;
    int rc = op_table[c->op].shape(c, err);
    if (rc == 0)
        rc = make_outputs(e, c, err);
    if (rc == 0)
        rc = run_kernel(e, c, err);
    if (rc < 0) {
        call_text(c, text, sizeof text);
        return det_wrap(err, rc, "%s", text);
    }
    if (is_recorded(e, c))
        tape_record(e->tape, c);
    return 0;
}

struct det_tensor *op_apply(struct det_engine *e, struct op_call *c)
{
    struct det_tensor *own[DET_CALL_IN_MAX] = {0}, *ret = NULL;
    struct det_err err;
    int rc = 0;
    if (!is_ready(e, c) || autocast_inputs(e, c) < 0)
        return NULL;
    for (int i = 0; rc == 0 && i < op_table[c->op].inputs_max; i++)
        if (c->in[i])
            rc = prepare_input(e, c, i, &own[i], &err);
    if (rc == 0)
        rc = apply_call(e, c, &err);
    if (rc == 0)
        ret = det__keep(e, det_tensor_ref(c->out[0]));
    else
        det__keep_error(e, &err);
    for (int i = 0; i < c->outs; i++)
        det_tensor_unref(c->out[i]);
    for (int i = 0; i < DET_CALL_IN_MAX; i++)
        det_tensor_unref(own[i]);
    return ret;
}

/* The operands of an element-wise operation: a tensor without dimensions takes the other's dtype,
 * where both are floating or both are whole. */
static void match_scalar(struct det_engine *e, struct det_tensor **a, struct det_tensor **b)
{
    struct det_tensor **number = *a && (*a)->ndim == 0 ? a : b, *other = number == a ? *b : *a;
    if (!*number || !other || (*number)->ndim > 0 || (*number)->dtype == other->dtype)
        return;
    if (det__is_float((*number)->dtype) == det__is_float(other->dtype) && other->dtype != DET_BOOL)
        *number = det_cast(e, *number, other->dtype);
}

struct det_tensor *op_binary(struct det_engine *e, enum op_id op, struct det_tensor *a,
                             struct det_tensor *b)
{
    match_scalar(e, &a, &b);
    return op_apply(e, &(struct op_call){.op = op, .in = {a, b}});
}

bool op_wants_grad(const struct det_tensor *t)
{
    return t && (t->requires_grad || t->node);
}
