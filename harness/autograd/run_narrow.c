/*
 * Kernels on f16 and bf16 tensors where the backend has none: the inputs are copied to f32, the
 * kernel runs, its outputs are rounded back. So every kernel knows every floating dtype.
 */
#include "run_narrow.h"

#include "mem.h"

static bool narrow(const struct det_tensor *t)
{
    return t && (t->dtype == DET_BF16 || t->dtype == DET_F16);
}

/* The kernels that backend.h says take any dtype. */
static bool any_dtype(enum det_kernel k)
{
    switch (k) {
    case DET_KERNEL_FILL:
    case DET_KERNEL_COPY:
    case DET_KERNEL_ADD:
    case DET_KERNEL_SUB:
    case DET_KERNEL_MUL:
    case DET_KERNEL_UNARY:
    case DET_KERNEL_UNARY_BWD:
    case DET_KERNEL_BINARY:
    case DET_KERNEL_BINARY_BWD:
    case DET_KERNEL_COMPARE:
    case DET_KERNEL_WHERE:
    case DET_KERNEL_SUM_TO:
    case DET_KERNEL_AFFINE:
    case DET_KERNEL_CLAMP:
    case DET_KERNEL_RELU:
    case DET_KERNEL_RELU_BWD:
    case DET_KERNEL_TRIANGLE:
        return true;
    default:
        return false;
    }
}

bool run_needs_f32(struct det_engine *e, const struct det_call *c)
{
    const struct det_tensor *first = NULL;
    if (any_dtype(c->kernel))
        return false;
    for (int i = 0; i < DET_CALL_IN_MAX && !first; i++)
        first = narrow(c->in[i]) ? c->in[i] : NULL;
    for (int i = 0; i < DET_CALL_OUT_MAX && !first; i++)
        first = narrow(c->out[i]) ? c->out[i] : NULL;
    return first &&
           !(e->backend->computes && e->backend->computes(e->device, c->kernel, first->dtype));
}

/* A copy of t in f32; t itself where it is not narrow. */
static int widened(struct det_engine *e, const struct det_tensor *t, struct det_tensor **ret,
                   struct det_err *err)
{
    int rc = det__tensor_new(e, DET_F32, t->layout, t->ndim, t->dims, ret, err);
    if (rc < 0)
        return rc;
    struct det_call copy = {.kernel = DET_KERNEL_COPY, .in = {t}, .out = {*ret}};
    return det__run(e, &copy, err);
}

int run_in_f32(struct det_engine *e, const struct det_call *c, struct det_err *err)
{
    struct det_tensor *wide[DET_CALL_IN_MAX + DET_CALL_OUT_MAX] = {0};
    struct det_tensor **out = wide + DET_CALL_IN_MAX;
    struct det_call call = *c;
    int rc = 0;
    for (int i = 0; rc == 0 && i < DET_CALL_IN_MAX; i++)
        if (narrow(c->in[i]) && (rc = widened(e, c->in[i], &wide[i], err)) == 0)
            call.in[i] = wide[i];
    for (int i = 0; rc == 0 && i < DET_CALL_OUT_MAX; i++)
        if (narrow(c->out[i]) && (rc = widened(e, c->out[i], &out[i], err)) == 0)
            call.out[i] = out[i];
    if (rc == 0)
        rc = det__run(e, &call, err);
    for (int i = 0; rc == 0 && i < DET_CALL_OUT_MAX; i++)
        if (out[i])
            rc = det__run(
                e,
                &(struct det_call){.kernel = DET_KERNEL_COPY, .in = {out[i]}, .out = {c->out[i]}},
                err);
    for (int i = 0; i < DET_CALL_IN_MAX + DET_CALL_OUT_MAX; i++)
        det_tensor_unref(wide[i]);
    return rc;
}
