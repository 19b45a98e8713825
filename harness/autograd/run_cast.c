/*
 * Kernels over one floating dtype on tensors of others: f16 and bf16 where the backend has no
 * kernel for them, or a mixture. The inputs are copied to f32, or to f64 where one of them is f64,
 * the kernel runs, its outputs are rounded back. So every kernel knows every floating dtype.
 */
#include "run_cast.h"

#include "dtype.h"
#include "mem.h"

/* The kernels that backend.h says take any dtype. */
static const bool any_dtype[DET_KERNEL_COUNT] = {
    [DET_KERNEL_FILL] = true,      [DET_KERNEL_COPY] = true,     [DET_KERNEL_ADD] = true,
    [DET_KERNEL_SUB] = true,       [DET_KERNEL_MUL] = true,      [DET_KERNEL_UNARY] = true,
    [DET_KERNEL_UNARY_BWD] = true, [DET_KERNEL_BINARY] = true,   [DET_KERNEL_BINARY_BWD] = true,
    [DET_KERNEL_COMPARE] = true,   [DET_KERNEL_WHERE] = true,    [DET_KERNEL_SUM_TO] = true,
    [DET_KERNEL_AFFINE] = true,    [DET_KERNEL_CLAMP] = true,    [DET_KERNEL_RELU] = true,
    [DET_KERNEL_RELU_BWD] = true,  [DET_KERNEL_TRIANGLE] = true, [DET_KERNEL_EQ_COUNT] = true,
};

/* Tensor i of the call, inputs first. */
static struct det_tensor *tensor_of_call(const struct det_call *c, int i)
{
    return i < DET_CALL_IN_MAX ? (struct det_tensor *)c->in[i] : c->out[i - DET_CALL_IN_MAX];
}

#define TENSORS (DET_CALL_IN_MAX + DET_CALL_OUT_MAX)

/* One of a floating dtype that the kernel is not given. */
static bool is_alien(const struct det_tensor *t, enum det_dtype dtype)
{
    return t && det__is_float(t->dtype) && t->dtype != dtype;
}

bool run_is_f64(const struct det_call *c)
{
    for (int i = 0; i < TENSORS; i++)
        if (tensor_of_call(c, i) && tensor_of_call(c, i)->dtype == DET_F64)
            return true;
    return false;
}

bool run_needs_cast(struct det_engine *e, const struct det_call *c, enum det_dtype *ret)
{
    const struct det_tensor *first = NULL;
    if (any_dtype[c->kernel])
        return false;
    *ret = run_is_f64(c) ? DET_F64 : DET_F32;
    for (int i = 0; i < TENSORS && !first; i++)
        first = is_alien(tensor_of_call(c, i), *ret) ? tensor_of_call(c, i) : NULL;
    return first && (*ret == DET_F64 || !e->backend->computes ||
                     !e->backend->computes(e->device, c, first->dtype));
}

bool run_as_it_is(struct det_engine *e, const struct det_call *c)
{
    enum det_dtype dtype;
    return !run_needs_cast(e, c, &dtype);
}

static int make_like(struct det_engine *e, const struct det_tensor *t, enum det_dtype dtype,
                     struct det_tensor **ret, struct det_err *err)
{
    enum det_layout layout = t->layout == DET_LAYOUT_STRIDED ? DET_LAYOUT_PLAIN : t->layout;
    return det__tensor_new(e, dtype, layout, t->ndim, t->dims, ret, err);
}

int run_cast_fits(struct det_engine *e, const struct det_call *c, enum det_dtype dtype,
                  struct det_err *err)
{
    struct det_tensor *own[TENSORS] = {0};
    int rc = 0;
    for (int i = 0; rc == 0 && i < TENSORS; i++)
        if (is_alien(tensor_of_call(c, i), dtype))
            rc = make_like(e, tensor_of_call(c, i), dtype, &own[i], err);
    for (int i = 0; i < TENSORS; i++)
        det_tensor_unref(own[i]);
    return rc;
}

/* A copy of t in another dtype. */
static int cast_copy(struct det_engine *e, const struct det_tensor *t, enum det_dtype dtype,
                     struct det_tensor **ret, struct det_err *err)
{
    int rc = make_like(e, t, dtype, ret, err);
    if (rc < 0)
        return rc;
    struct det_call copy = {.kernel = DET_KERNEL_COPY, .in = {t}, .out = {*ret}};
    return det__run(e, &copy, err);
}

int run_cast(struct det_engine *e, const struct det_call *c, enum det_dtype dtype,
             struct det_err *err)
{
    struct det_tensor *own[TENSORS] = {0}, **out = own + DET_CALL_IN_MAX;
    struct det_call call = *c;
    int rc = 0;
    for (int i = 0; rc == 0 && i < TENSORS; i++)
        if (is_alien(tensor_of_call(c, i), dtype))
            rc = cast_copy(e, tensor_of_call(c, i), dtype, &own[i], err);
    for (int i = 0; i < DET_CALL_IN_MAX; i++)
        call.in[i] = own[i] ? own[i] : c->in[i];
    for (int i = 0; i < DET_CALL_OUT_MAX; i++)
        call.out[i] = out[i] ? out[i] : c->out[i];
    if (rc == 0)
        rc = det__run(e, &call, err);
    for (int i = 0; rc == 0 && i < DET_CALL_OUT_MAX; i++)
        if (out[i])
            rc = det__run(
                e,
                &(struct det_call){.kernel = DET_KERNEL_COPY, .in = {out[i]}, .out = {c->out[i]}},
                err);
    for (int i = 0; i < TENSORS; i++)
        det_tensor_unref(own[i]);
    return rc;
}
