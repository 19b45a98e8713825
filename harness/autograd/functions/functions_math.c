/* Matrix products and indexing. */
#include "functions_math.h"

#include <string.h>

#include "dtype.h"

int function_dim(struct det_engine *e, const char *name, const struct det_tensor *x, int dim)
{
    int from_0 = x && dim < 0 ? dim + x->ndim : dim;
    if (e->err.code < 0)
        return -1;
    if (!x)
        det_engine_fail(e, DET_EINVAL, "%s: the input is NULL", name);
    else if (from_0 < 0 || from_0 >= x->ndim)
        det_engine_fail(e, DET_EINVAL, "%s: dimension %d, the input has %d", name, dim, x->ndim);
    else
        return from_0;
    return -1;
}

static int64_t product_of_dims(const struct det_tensor *x, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n *= x->dims[i];
    return n;
}

struct det_tensor *function_whole(struct det_engine *e, struct det_tensor *x)
{
    return x && !det__is_float(x->dtype) ? det_cast(e, x, DET_I64) : x;
}

struct det_tensor *function_whole_back(struct det_engine *e, struct det_tensor *y,
                                       const struct det_tensor *x)
{
    return y && !det__is_float(x->dtype) ? det_cast(e, y, x->dtype) : y;
}

struct det_tensor *function_fold(struct det_engine *e, struct det_tensor *x, int dim)
{
    if (!x)
        return NULL;
    const int64_t dims[] = {product_of_dims(x, 0, dim), x->dims[dim],
                            product_of_dims(x, dim + 1, x->ndim)};
    return det_reshape(e, x, 3, dims);
}

struct det_tensor *function_unfold(struct det_engine *e, struct det_tensor *y,
                                   const struct det_tensor *x, int dim, int64_t n)
{
    int64_t dims[DET_DIMS_MAX];
    int ndim = n < 0 ? x->ndim - 1 : x->ndim;
    if (!y)
        return NULL;
    memcpy(dims, x->dims, sizeof dims);
    if (n >= 0)
        dims[dim] = n;
    else
        memmove(dims + dim, dims + dim + 1, (size_t)(ndim - dim) * sizeof *dims);
    return det_reshape(e, y, ndim, dims);
}

struct det_tensor *det_index_select(struct det_engine *e, struct det_tensor *x, int dim,
                                    struct det_tensor *index)
{
    dim = function_dim(e, "index_select", x, dim);
    if (dim < 0)
        return NULL;
    struct op_call c = {.op = OP_INDEX_SELECT, .in = {function_fold(e, x, dim), index}};
    c.a.skip = -1;
    return function_unfold(e, op_apply(e, &c), x, dim, (int64_t)det_tensor_numel(index));
}

/* The index must have the dimensions of x but in dim: then it folds as x does. */
static bool index_fits(struct det_engine *e, const char *name, const struct det_tensor *x, int dim,
                       const struct det_tensor *index)
{
    char text[160], other[160];
    bool ok = index && index->ndim == x->ndim;
    for (int i = 0; ok && i < x->ndim; i++)
        ok = i == dim || index->dims[i] == x->dims[i];
    if (!ok)
        det_engine_fail(e, DET_EINVAL,
                        "%s(%s): what has the shape of the index is %s, and must have the input's "
                        "dimensions but for dimension %d (use det_narrow() or det_expand())",
                        name, det__tensor_text(x, text, sizeof text),
                        det__tensor_text(index, other, sizeof other), dim);
    return ok;
}

struct det_tensor *det_gather(struct det_engine *e, struct det_tensor *x, int dim,
                              struct det_tensor *index)
{
    dim = function_dim(e, "gather", x, dim);
    if (dim < 0 || !index_fits(e, "gather", x, dim, index))
        return NULL;
    struct op_call c = {.op = OP_GATHER,
                        .in = {function_fold(e, x, dim), function_fold(e, index, dim)}};
    return function_unfold(e, op_apply(e, &c), x, dim, index->dims[dim]);
}

struct det_tensor *det_scatter_add(struct det_engine *e, struct det_tensor *x, int dim,
                                   struct det_tensor *index, struct det_tensor *src)
{
    dim = function_dim(e, "scatter_add", x, dim);
    if (dim < 0 || !index_fits(e, "scatter_add", x, dim, index) ||
        !index_fits(e, "scatter_add", x, dim, src))
        return NULL;
    if (src->dtype != x->dtype && !det__is_float(x->dtype)) {
        det_engine_fail(e, DET_EINVAL,
                        "scatter_add: the source is %s, the input %s: use det_cast()",
                        det_dtype_name(src->dtype), det_dtype_name(x->dtype));
        return NULL;
    }
    struct op_call c = {.op = OP_SCATTER_ADD,
                        .in = {function_fold(e, function_whole(e, x), dim),
                               function_fold(e, index, dim),
                               function_fold(e, function_whole(e, src), dim)}};
    struct det_tensor *y = function_unfold(e, op_apply(e, &c), x, dim, x->dims[dim]);
    return function_whole_back(e, y, x);
}

struct det_tensor *det_embedding_opt(struct det_engine *e, struct det_tensor *weight,
                                     struct det_tensor *index,
                                     const struct det_embedding_options *options)
{
    int64_t dims[DET_DIMS_MAX];
    struct op_call c = {.op = OP_INDEX_SELECT, .in = {weight, index}, .a.skip = -1};
    if (weight && weight->ndim != 2) {
        det_engine_fail(e, DET_EINVAL, "embedding: the weight must be [rows, width]");
        return NULL;
    }
    if (options && options->padding && weight)
        c.a.skip = options->padding_idx + (options->padding_idx < 0 ? weight->dims[0] : 0);
    if (options && options->padding && weight && (c.a.skip < 0 || c.a.skip >= weight->dims[0])) {
        det_engine_fail(e, DET_EINVAL, "embedding: padding row %lld, the weight has %lld rows",
                        (long long)options->padding_idx, (long long)weight->dims[0]);
        return NULL;
    }
    struct det_tensor *y = op_apply(e, &c);
    if (!y || index->ndim == 1 || index->ndim >= DET_DIMS_MAX)
        return y;
    memcpy(dims, index->dims, sizeof dims);
    dims[index->ndim] = weight->dims[1];
    return det_reshape(e, y, index->ndim + 1, dims);
}

/* x with ones before its dimensions, up to ndim. */
static struct det_tensor *pad_dims(struct det_engine *e, struct det_tensor *x, int ndim)
{
    int64_t dims[DET_DIMS_MAX];
    if (!x || x->ndim >= ndim)
        return x;
    for (int i = 0; i < ndim; i++)
        dims[i] = i < ndim - x->ndim ? 1 : x->dims[i - (ndim - x->ndim)];
    return det_reshape(e, x, ndim, dims);
}

/* [.., M, K] by one matrix: the batches are further rows. */
static struct det_tensor *by_one(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    struct det_tensor *rows = det_reshape(e, a, 2, (int64_t[]){-1, a->dims[a->ndim - 1]});
    struct det_tensor *y = op_apply(e, &(struct op_call){.op = OP_MATMUL, .in = {rows, b}});
    return function_unfold(e, y, a, a->ndim - 1, b->dims[1]);
}

static struct det_tensor *multiply_matrices(struct det_engine *e, struct det_tensor *a,
                                            struct det_tensor *b)
{
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    if (b->ndim == 2 && a->ndim > 2 && a->numel > 0)
        return by_one(e, a, b);
    struct op_call c = {.op = OP_MATMUL, .in = {pad_dims(e, a, ndim), pad_dims(e, b, ndim)}};
    return op_apply(e, &c);
}

struct det_tensor *det_matmul(struct det_engine *e, struct det_tensor *a, struct det_tensor *b)
{
    if (!a || !b || a->ndim == 0 || b->ndim == 0) {
        if (e->err.code == 0)
            det_engine_fail(e, DET_EINVAL, "matmul: an input is NULL or has no dimension");
        return NULL;
    }
    struct det_tensor *left = pad_dims(e, a, 2), *right = b;
    if (b->ndim == 1)
        right = det_reshape(e, b, 2, (int64_t[]){b->dims[0], 1});
    struct det_tensor *y = left && right ? multiply_matrices(e, left, right) : NULL;
    if (y && b->ndim == 1)
        y = function_unfold(e, y, y, y->ndim - 1, -1);
    if (y && a->ndim == 1)
        y = function_unfold(e, y, y, y->ndim - (b->ndim == 1 ? 1 : 2), -1);
    return y;
}
