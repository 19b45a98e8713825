/* Reductions over dimensions, running sums, order. */
#include <math.h>
#include <string.h>

#include "dtype.h"

#include "functions_math.h"

/* The index output of a reduction or an order: made here, because it is the caller's to keep. */
static struct det_tensor *index_for(struct det_engine *e, int ndim, const int64_t *dims)
{
    struct det_tensor *t = NULL;
    struct det_err err;
    if (det__tensor_new(e, DET_I64, DET_LAYOUT_PLAIN, ndim, dims, &t, &err) == 0)
        return det__keep(e, t);
    det__keep_error(e, &err);
    return NULL;
}

/* y [A, B], of x without dimension dim, or with 1 in its place. */
static struct det_tensor *unfold_reduced(struct det_engine *e, struct det_tensor *y,
                                         const struct det_tensor *x, int dim, bool keep)
{
    return function_unfold(e, y, x, dim, keep ? 1 : -1);
}

static struct det_tensor *one_dim(struct det_engine *e, struct det_tensor *x, int dim, bool keep,
                                  const struct det_attrs *a)
{
    struct op_call c = {
        .op = OP_REDUCE, .in = {function_fold(e, function_whole(e, x), dim)}, .a = *a};
    return unfold_reduced(e, op_apply(e, &c), x, dim, keep);
}

/* The dimensions of a reduction, from 0 on, each at most once; a bit for each. -1: refused. */
static int dims_mask(struct det_engine *e, const char *name, const struct det_tensor *x,
                     const struct det_dims *d)
{
    int mask = 0;
    for (int i = 0; i < d->n; i++) {
        int dim = function_dim(e, name, x, d->dims[i]);
        if (dim < 0)
            return -1;
        if (mask & 1 << dim) {
            det_engine_fail(e, DET_EINVAL, "%s: dimension %d is named twice", name, dim);
            return -1;
        }
        mask |= 1 << dim;
    }
    return mask;
}

static struct det_tensor *sum_mask(struct det_engine *e, struct det_tensor *x, int mask, bool keep,
                                   double scale)
{
    int64_t out[DET_DIMS_MAX], rest = 1, over = 1;
    int order[DET_DIMS_MAX], n = 0, kept = 0;
    for (int i = 0; i < x->ndim; i++)
        if (!(mask & 1 << i)) {
            rest *= x->dims[i];
            order[n++] = i;
        }
    for (int i = 0; i < x->ndim; i++) {
        if (mask & 1 << i) {
            over *= x->dims[i];
            order[n++] = i;
        }
        if (keep || !(mask & 1 << i))
            out[kept++] = mask & 1 << i ? 1 : x->dims[i];
    }
    struct det_tensor *rows =
        det_reshape(e, det_permute(e, function_whole(e, x), order), 3, (int64_t[]){rest, over, 1});
    struct det_attrs a = {.mode = DET_REDUCE_DIM_SUM, .scale = scale};
    struct op_call c = {.op = OP_REDUCE, .in = {rows}, .a = a};
    struct det_tensor *y = op_apply(e, &c);
    return y ? det_reshape(e, y, kept, out) : NULL;
}

/* scale * the sum over the dimensions; no dimension named means all. */
static struct det_tensor *sum_over(struct det_engine *e, const char *name, struct det_tensor *x,
                                   const struct det_dims *d, double scale)
{
    if (!x || e->err.code < 0) {
        function_dim(e, name, x, 0);
        return NULL;
    }
    int mask = d->n == 0 ? (1 << x->ndim) - 1 : dims_mask(e, name, x, d);
    if (mask < 0)
        return NULL;
    for (int i = 0; i < x->ndim; i++)
        if (mask == 1 << i) {
            struct det_attrs a = {.mode = DET_REDUCE_DIM_SUM, .scale = scale};
            return one_dim(e, x, i, d->keep, &a);
        }
    return sum_mask(e, x, mask, d->keep, scale);
}

static double count_over(const struct det_tensor *x, const struct det_dims *d)
{
    double n = 1;
    for (int i = 0; x && i < (d->n ? d->n : x->ndim); i++)
        n *= (double)det_tensor_dim(x, d->n ? d->dims[i] : i);
    return n;
}

struct det_tensor *det_sum_over(struct det_engine *e, struct det_tensor *x,
                                const struct det_dims *over)
{
    return sum_over(e, "sum", x, over, 1);
}

struct det_tensor *det_mean_over(struct det_engine *e, struct det_tensor *x,
                                 const struct det_dims *over)
{
    if (x && !det__is_float(x->dtype)) {
        det_engine_fail(e, DET_EINVAL,
                        "mean: the input is %s and must be of a floating dtype: use "
                        "det_cast(e, x, DET_F32)",
                        det_dtype_name(x->dtype));
        return NULL;
    }
    return sum_over(e, "mean", x, over, 1 / count_over(x, over));
}

struct det_tensor *det_var_over(struct det_engine *e, struct det_tensor *x, double correction,
                                const struct det_dims *over)
{
    struct det_dims kept = *over;
    kept.keep = true;
    struct det_tensor *d = det_sub(e, x, det_mean_over(e, x, &kept));
    double n = count_over(x, over) - correction;
    return sum_over(e, "var", det_mul(e, d, d), over, n > 0 ? 1 / n : NAN);
}

/* The p-th root of a sum; where that is 0 its slope counts as 0, as PyTorch's does, not as inf. */
static struct det_tensor *take_root(struct det_engine *e, struct det_tensor *sum, double p)
{
    if (!sum)
        return NULL;
    struct det_tensor *none = det_eq(e, sum, det_scalar(e, sum->dtype, 0));
    struct det_tensor *y = det_masked_fill(e, sum, none, 1);
    return det_masked_fill(e, p == 2 ? det_sqrt(e, y) : det_pow(e, y, 1 / p), none, 0);
}

struct det_tensor *det_std_over(struct det_engine *e, struct det_tensor *x, double correction,
                                const struct det_dims *over)
{
    return take_root(e, det_var_over(e, x, correction, over), 2);
}

/* The greatest or least |x|; of equals the gradient goes to the first. */
static struct det_tensor *extreme_norm(struct det_engine *e, struct det_tensor *x, bool least,
                                       const struct det_dims *over)
{
    int64_t out[DET_DIMS_MAX];
    int n = 0, mask = over->n == 0 ? -1 : x ? dims_mask(e, "norm", x, over) : 0;
    struct det_tensor *y = det_abs(e, x);
    for (int i = 0; y && i < x->ndim; i++) {
        if (mask & 1 << i)
            y = (least ? det_min_over : det_max_over)(e, y, i, true, NULL);
        if (over->keep || !(mask & 1 << i))
            out[n++] = mask & 1 << i ? 1 : x->dims[i];
    }
    return y ? det_reshape(e, y, n, out) : NULL;
}

struct det_tensor *det_norm_over(struct det_engine *e, struct det_tensor *x, double p,
                                 const struct det_dims *over)
{
    if (p == 2)
        return take_root(e, det_sum_over(e, det_mul(e, x, x), over), 2);
    if (p == 1)
        return det_sum_over(e, det_abs(e, x), over);
    if (p == 0) /* how many are not 0 */
        return det_sum_over(e, det_sign(e, det_abs(e, x)), over);
    if (isinf(p))
        return extreme_norm(e, x, p < 0, over);
    return take_root(e, det_sum_over(e, det_pow(e, det_abs(e, x), p), over), p);
}

struct det_tensor *det_prod_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep)
{
    dim = function_dim(e, "prod", x, dim);
    struct det_attrs a = {.mode = DET_REDUCE_DIM_PROD};
    return dim < 0 ? NULL : one_dim(e, x, dim, keep, &a);
}

static struct det_tensor *find_extreme(struct det_engine *e, struct det_tensor *x, int dim,
                                       bool keep, int mode, struct det_tensor **ret_index)
{
    dim = function_dim(e, mode == DET_REDUCE_DIM_MAX ? "max" : "min", x, dim);
    if (dim < 0)
        return NULL;
    struct op_call c = {
        .op = OP_REDUCE, .in = {function_fold(e, function_whole(e, x), dim)}, .a.mode = mode};
    if (!c.in[0])
        return NULL;
    c.out[1] = index_for(e, 2, (int64_t[]){c.in[0]->dims[0], c.in[0]->dims[2]});
    struct det_tensor *y = c.out[1] ? op_apply(e, &c) : NULL;
    if (ret_index)
        *ret_index = y ? unfold_reduced(e, c.out[1], x, dim, keep) : NULL;
    return unfold_reduced(e, function_whole_back(e, y, x), x, dim, keep);
}

struct det_tensor *det_max_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep,
                                struct det_tensor **ret_index)
{
    return find_extreme(e, x, dim, keep, DET_REDUCE_DIM_MAX, ret_index);
}

struct det_tensor *det_min_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep,
                                struct det_tensor **ret_index)
{
    return find_extreme(e, x, dim, keep, DET_REDUCE_DIM_MIN, ret_index);
}

struct det_tensor *det_argmax_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep)
{
    struct det_tensor *index = NULL;
    det_max_over(e, x, dim, keep, &index);
    return index;
}

struct det_tensor *det_argmin_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep)
{
    struct det_tensor *index = NULL;
    det_min_over(e, x, dim, keep, &index);
    return index;
}

static bool is_missing(struct det_engine *e, const struct det_tensor *x, const char *name)
{
    if (!x)
        det_engine_fail(e, DET_EINVAL, "%s: the input is NULL", name);
    return !x;
}

struct det_tensor *det_any_over(struct det_engine *e, struct det_tensor *x,
                                const struct det_dims *over)
{
    if (is_missing(e, x, "any"))
        return NULL;
    struct det_tensor *hits = det_ne(e, x, det_scalar(e, x->dtype, 0));
    struct det_tensor *n = det_sum_over(e, det_cast(e, hits, DET_F32), over);
    return det_gt(e, n, det_scalar(e, DET_F32, 0));
}

struct det_tensor *det_all_over(struct det_engine *e, struct det_tensor *x,
                                const struct det_dims *over)
{
    if (is_missing(e, x, "all"))
        return NULL;
    struct det_tensor *misses = det_eq(e, x, det_scalar(e, x->dtype, 0));
    struct det_tensor *n = det_sum_over(e, det_cast(e, misses, DET_F32), over);
    return det_eq(e, n, det_scalar(e, DET_F32, 0));
}

struct det_tensor *det_logsumexp(struct det_engine *e, struct det_tensor *x, int dim, bool keep)
{
    struct det_tensor *max = det_detach(e, det_max_over(e, x, dim, true, NULL));
    struct det_tensor *all = det_exp(e, det_sub(e, x, max));
    struct det_tensor *y = det_add(e, det_log(e, det_sum_over(e, all, det_over(true, dim))), max);
    return keep ? y : det_squeeze(e, y, dim);
}

/* Of a function that goes along the last dimension. */
static struct det_tensor *go_along(struct det_engine *e, const char *name, struct det_tensor *x,
                                   int dim,
                                   struct det_tensor *fn(struct det_engine *, struct det_tensor *))
{
    dim = function_dim(e, name, x, dim);
    if (dim < 0)
        return NULL;
    struct det_tensor *y = fn(e, det_transpose(e, x, dim, x->ndim - 1));
    return det_transpose(e, y, dim, x->ndim - 1);
}

struct det_tensor *det_softmax_over(struct det_engine *e, struct det_tensor *x, int dim)
{
    return go_along(e, "softmax", x, dim, det_softmax);
}

struct det_tensor *det_log_softmax_over(struct det_engine *e, struct det_tensor *x, int dim)
{
    return go_along(e, "log_softmax", x, dim, det_log_softmax);
}

struct det_tensor *det_cumsum(struct det_engine *e, struct det_tensor *x, int dim)
{
    dim = function_dim(e, "cumsum", x, dim);
    if (dim < 0)
        return NULL;
    struct op_call c = {.op = OP_CUMSUM, .in = {function_fold(e, function_whole(e, x), dim)}};
    return function_unfold(e, op_apply(e, &c), x, dim, x->dims[dim]);
}

/* How often dimension dim is there; of what has no elements a -1 could not be told. */
static int64_t rows_of(const struct det_tensor *x, int dim)
{
    int64_t rows = 1;
    for (int i = 0; i < x->ndim; i++)
        rows *= i == dim ? 1 : x->dims[i];
    return rows;
}

struct det_tensor *det_sort(struct det_engine *e, struct det_tensor *x, int dim, bool descending,
                            struct det_tensor **ret_index)
{
    dim = function_dim(e, "sort", x, dim);
    if (dim < 0)
        return NULL;
    struct det_tensor *last = det_transpose(e, function_whole(e, x), dim, x->ndim - 1);
    const int64_t dims[] = {rows_of(x, dim), x->dims[dim], 1};
    struct op_call c = {.op = OP_SORT, .in = {det_reshape(e, last, 3, dims)}};
    c.a.descending = descending;
    if (!c.in[0])
        return NULL;
    c.out[1] = index_for(e, 3, c.in[0]->dims);
    struct det_tensor *y = c.out[1] ? op_apply(e, &c) : NULL;
    if (!y)
        return NULL;
    if (ret_index)
        *ret_index =
            det_transpose(e, det_reshape(e, c.out[1], last->ndim, last->dims), dim, x->ndim - 1);
    y = det_transpose(e, det_reshape(e, y, last->ndim, last->dims), dim, x->ndim - 1);
    return function_whole_back(e, y, x);
}

struct det_tensor *det_topk(struct det_engine *e, struct det_tensor *x, int64_t k, int dim,
                            bool smallest, struct det_tensor **ret_index)
{
    char text[160];
    struct det_tensor *index = NULL, *y = det_sort(e, x, dim, !smallest, &index);
    if (y && (k < 0 || k > det_tensor_dim(y, dim))) {
        det_engine_fail(e, DET_EINVAL, "topk(%s): there are no %lld in dimension %d",
                        det__tensor_text(x, text, sizeof text), (long long)k, dim);
        y = NULL;
    }
    if (ret_index)
        *ret_index = y ? det_narrow(e, index, dim, 0, k) : NULL;
    return y ? det_narrow(e, y, dim, 0, k) : NULL;
}
