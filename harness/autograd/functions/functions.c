/* The public functions that are not layers: arithmetic, reductions, casts. */
#include <math.h>

#include "det/functional.h"
#include "dtype.h"
#include "op.h"

struct det_tensor *det_add(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_binary(e, OP_ADD, a, b);
}

struct det_tensor *det_sub(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_binary(e, OP_SUB, a, b);
}

struct det_tensor *det_mul(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_binary(e, OP_MUL, a, b);
}

struct det_tensor *det_div(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    return op_binary(e, OP_DIV, a, b);
}

static bool is_one_of(enum det_dtype whole, double v)
{
    bool has_sign = whole != DET_U8;
    double end = ldexp(1, 8 * (int)det_dtype_size(whole) - has_sign);
    return rint(v) == v && v < end && v >= (has_sign ? -end : 0);
}

/* The kernel is for floating dtypes; whole numbers wrap as in products and sums. */
static struct det_tensor *apply_affine(struct det_engine *e, const char *name, struct det_tensor *x,
                                       double factor, double offset)
{
    char text[160];
    struct op_call c = {.op = OP_AFFINE, .in = {x}, .a = {.scale = factor, .offset = offset}};
    if (!x || det__is_float(x->dtype) || x->dtype == DET_BOOL)
        return op_apply(e, &c);
    if (is_one_of(x->dtype, factor) && is_one_of(x->dtype, offset)) {
        struct det_tensor *y = det_mul(e, x, det_scalar(e, x->dtype, factor));
        return offset == 0 ? y : det_add(e, y, det_scalar(e, x->dtype, offset));
    }
    det_engine_fail(e, DET_EINVAL, "%s(%s): no %s is %g: use det_cast(e, x, DET_F32)", name,
                    det__tensor_text(x, text, sizeof text), det_dtype_name(x->dtype),
                    is_one_of(x->dtype, factor) ? offset : factor);
    return NULL;
}

struct det_tensor *det_affine(struct det_engine *e, struct det_tensor *x, double factor,
                              double offset)
{
    return apply_affine(e, "affine", x, factor, offset);
}

struct det_tensor *det_scale(struct det_engine *e, struct det_tensor *x, double factor)
{
    return apply_affine(e, "scale", x, factor, 0);
}

/* The kernel that sums all at once is for floating dtypes and wants something to sum. */
static bool summed_by_rows(const struct det_tensor *x)
{
    return x && (!det__is_float(x->dtype) || x->numel == 0);
}

struct det_tensor *det_sum(struct det_engine *e, struct det_tensor *x)
{
    if (summed_by_rows(x))
        return det_sum_over(e, x, &(const struct det_dims){0});
    return op_apply(e, &(struct op_call){.op = OP_SUM, .in = {x}, .a.scale = 1});
}

struct det_tensor *det_mean(struct det_engine *e, struct det_tensor *x)
{
    if (summed_by_rows(x))
        return det_mean_over(e, x, &(const struct det_dims){0});
    double share = x ? 1.0 / (double)x->numel : 0;
    return op_apply(e, &(struct op_call){.op = OP_SUM, .in = {x}, .a.scale = share});
}

struct det_tensor *det_cast(struct det_engine *e, struct det_tensor *x, enum det_dtype dtype)
{
    if (x && x->dtype == dtype)
        return x;
    return op_apply(e, &(struct op_call){.op = OP_CAST, .in = {x}, .dtype = dtype});
}

struct det_tensor *det_relu(struct det_engine *e, struct det_tensor *x)
{
    return op_apply(e, &(struct op_call){.op = OP_RELU, .in = {x}});
}

struct det_tensor *det_dropout(struct det_engine *e, struct det_tensor *x, double p, bool training)
{
    struct op_call c = {.op = OP_DROPOUT, .in = {x}, .a.p = p};
    if (x && (!training || p == 0))
        return x;
    det__draw(e, &c.a);
    return op_apply(e, &c);
}
