/* Joining, cutting and marking. */
#include <string.h>

#include "functions_math.h"

/* At most DET_CALL_IN_MAX tensors, all folded. */
static struct det_tensor *cat_folded(struct det_engine *e, struct det_tensor *const *xs, int n)
{
    struct op_call c = {.op = OP_CAT};
    if (n == 1)
        return xs[0];
    memcpy(c.in, xs, (size_t)n * sizeof *xs);
    return op_apply(e, &c);
}

/* More than one call takes: the joined first ones with the rest. */
static struct det_tensor *join_all(struct det_engine *e, struct det_tensor *const *xs, int n)
{
    struct det_tensor *some[DET_CALL_IN_MAX];
    int most = DET_CALL_IN_MAX, parts = 0, each = 1;
    while (each * most < n)
        each *= most;
    for (int i = 0; i < n; i += each, parts++)
        some[parts] = each == 1 ? xs[i] : join_all(e, xs + i, n - i < each ? n - i : each);
    return cat_folded(e, some, parts);
}

#define JOINED_MAX 512

/* Can x, the i-th, follow `first` along dim? */
static bool can_follow(struct det_engine *e, const struct det_tensor *first,
                       const struct det_tensor *x, int i, int dim)
{
    char one[160], other[160];
    bool ok = x && x->ndim == first->ndim;
    for (int d = 0; ok && d < first->ndim; d++)
        ok = d == dim || x->dims[d] == first->dims[d];
    if (!ok)
        det_engine_fail(e, DET_EINVAL,
                        "cat: input 1 is %s, input %d is %s: but for dimension %d they must be "
                        "equal",
                        det__tensor_text(first, one, sizeof one), i + 1,
                        det__tensor_text(x, other, sizeof other), dim);
    return ok;
}

struct det_tensor *det_cat(struct det_engine *e, struct det_tensor *const *xs, int n, int dim)
{
    struct det_tensor *folded[JOINED_MAX];
    int64_t rows = 0;
    if (n < 1 || n > JOINED_MAX) {
        det_engine_fail(e, DET_EINVAL, "cat: %d tensors, 1 to %d are possible", n, JOINED_MAX);
        return NULL;
    }
    dim = function_dim(e, "cat", xs[0], dim);
    if (dim < 0)
        return NULL;
    for (int i = 0; i < n; i++) {
        if (!can_follow(e, xs[0], xs[i], i, dim))
            return NULL;
        folded[i] = function_fold(e, xs[i], dim);
        rows += xs[i]->dims[dim];
    }
    return e->err.code < 0 ? NULL : function_unfold(e, join_all(e, folded, n), xs[0], dim, rows);
}

struct det_tensor *det_stack(struct det_engine *e, struct det_tensor *const *xs, int n, int dim)
{
    struct det_tensor *wider[JOINED_MAX];
    int ndim = xs && n > 0 ? det_tensor_ndim(xs[0]) + 1 : 0;
    if (n < 1 || n > JOINED_MAX || ndim > DET_DIMS_MAX) {
        det_engine_fail(e, DET_EINVAL, "stack: %d tensors, 1 to %d are possible", n, JOINED_MAX);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        wider[i] = det_unsqueeze(e, xs[i], dim < 0 ? dim + ndim : dim);
    return det_cat(e, wider, n, dim);
}

struct det_tensor *det_masked_fill(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *mask, double value)
{
    return x ? det_where(e, mask, det_scalar(e, x->dtype, value), x) : NULL;
}

struct det_tensor *det_one_hot(struct det_engine *e, struct det_tensor *x, int64_t classes)
{
    int64_t dims[DET_DIMS_MAX];
    if (!x || x->ndim >= DET_DIMS_MAX) {
        if (e->err.code == 0)
            det_engine_fail(e, DET_EINVAL, "one_hot: the input is NULL or has 8 dimensions");
        return NULL;
    }
    struct op_call c = {.op = OP_ONE_HOT, .in = {x}, .a.skip = classes};
    struct det_tensor *y = op_apply(e, &c);
    memcpy(dims, x->dims, sizeof dims);
    dims[x->ndim] = classes;
    return y ? det_reshape(e, y, x->ndim + 1, dims) : NULL;
}

static struct det_tensor *apply_triangle(struct det_engine *e, struct det_tensor *x,
                                         int64_t diagonal, bool upper)
{
    if (function_dim(e, upper ? "triu" : "tril", x, -2) < 0)
        return NULL;
    int64_t dims[] = {1, x->dims[x->ndim - 2], x->dims[x->ndim - 1]};
    for (int i = 0; i < x->ndim - 2; i++)
        dims[0] *= x->dims[i];
    struct op_call c = {.op = OP_TRIANGLE, .a = {.skip = diagonal, .upper = upper}};
    c.in[0] = det_reshape(e, x, 3, dims);
    struct det_tensor *y = op_apply(e, &c);
    return y ? det_reshape(e, y, x->ndim, x->dims) : NULL;
}

struct det_tensor *det_tril(struct det_engine *e, struct det_tensor *x, int64_t diagonal)
{
    return apply_triangle(e, x, diagonal, false);
}

struct det_tensor *det_triu(struct det_engine *e, struct det_tensor *x, int64_t diagonal)
{
    return apply_triangle(e, x, diagonal, true);
}
