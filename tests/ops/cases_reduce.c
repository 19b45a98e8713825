/* Reductions, running sums, order, joining and marking. */
#include <math.h>

#include "det/functional.h"

#include "op_case.h"

#define T struct det_tensor *

BUILD(sum_last, det_sum_over(e, in[0], det_over(false, -1)))
BUILD(sum_first, det_sum_over(e, in[0], det_over(true, 0)))
BUILD(add_row, det_add(e, in[0], in[1]))
/* From an address that is no multiple of 16 bytes. */
static struct det_tensor *sum_odd(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *x = det_narrow(e, det_scale(e, in[0], 1), 0, 1, 37 * 8);
    return det_sum_over(e, det_reshape(e, x, 2, (int64_t[]){37, 8}), det_over(false, 0));
}
/* Large numbers, small ones, and the large ones' opposites: only double keeps the small ones. */
static T sum_opposites(struct det_engine *e, T *in)
{
    T rows[] = {det_scale(e, in[0], 0x1p16), in[0], det_scale(e, in[0], -0x1p26)};
    return det_sum_over(e, det_cat(e, rows, 3, 0), det_over(false, 0));
}
BUILD(sum_two, det_sum_over(e, in[0], det_over(false, 0, 2)))
BUILD(sum_all, det_sum_over(e, in[0], &(const struct det_dims){0}))
BUILD(mean_two, det_mean_over(e, in[0], det_over(true, 1, -1)))
BUILD(var, det_var_over(e, in[0], 1, det_over(false, 1)))
BUILD(var_biased, det_var_over(e, in[0], 0, det_over(true, 0, 2)))
BUILD(std_last, det_std_over(e, in[0], 1, det_over(false, -1)))
BUILD(norm_2, det_norm_over(e, in[0], 2, det_over(false, 1)))
BUILD(std_none, det_std_over(e, det_scale(e, in[0], 0), 0, det_over(false, -1)))
BUILD(norm_none, det_norm_over(e, det_scale(e, in[0], 0), 2, det_over(false, -1)))
BUILD(norm_inf, det_norm_over(e, in[0], INFINITY, det_over(false, 0, -1)))
BUILD(norm_least, det_norm_over(e, in[0], -INFINITY, det_over(true, 1)))
BUILD(norm_inf_all, det_norm_over(e, in[0], INFINITY, &(const struct det_dims){0}))
BUILD(norm_0, det_norm_over(e, det_relu(e, in[0]), 0, det_over(false, 1)))
BUILD(norm_1, det_norm_over(e, in[0], 1, det_over(true, -1)))
BUILD(norm_3, det_norm_over(e, in[0], 3, det_over(false, 0)))
BUILD(max, det_max_over(e, in[0], 1, false, NULL))
BUILD(min, det_min_over(e, in[0], 0, true, NULL))
BUILD(argmax, det_argmax_over(e, in[0], 1, true))
BUILD(argmin, det_argmin_over(e, in[0], -1, false))
BUILD(prod, det_prod_over(e, in[0], 1, false))
BUILD(prod_zeros, det_prod_over(e, det_mul(e, in[0], det_relu(e, in[1])), 1, false))
BUILD(logsumexp, det_logsumexp(e, in[0], 1, false))
BUILD(logsumexp_keep, det_logsumexp(e, in[0], 0, true))
BUILD(any, det_any_over(e, det_relu(e, in[0]), det_over(false, 1)))
BUILD(all, det_all_over(e, det_relu(e, in[0]), det_over(true, 0)))
BUILD(cumsum, det_cumsum(e, in[0], 1))
BUILD(cumsum_view, det_cumsum(e, det_transpose(e, in[0], 0, 1), 0))
BUILD(sort, det_sort(e, in[0], -1, false, NULL))
BUILD(sort_first, det_sort(e, in[0], 0, true, NULL))
BUILD(topk, det_topk(e, in[0], 3, 1, false, NULL))
BUILD(bottomk, det_topk(e, in[0], 2, 0, true, NULL))
BUILD(cat_first, det_cat(e, in, 3, 0))
BUILD(cat_middle, det_cat(e, in, 2, 1))
BUILD(stack, det_stack(e, in, 3, 1))
BUILD(masked, det_masked_fill(e, in[0], det_gt(e, in[1], NUMBER_AS(in[0], 0)), -2))
BUILD(one_hot, det_one_hot(e, in[0], 5))
BUILD(tril, det_tril(e, in[0], 0))
BUILD(triu, det_triu(e, in[0], 1))
BUILD(softmax_of_view, det_softmax(e, det_transpose(e, in[0], 0, 1)))
BUILD(softmax_0, det_softmax_over(e, in[0], 0))
BUILD(log_softmax_1, det_log_softmax_over(e, in[0], 1))
BUILD(matmul_views, det_matmul(e, det_transpose(e, in[0], 0, 1), det_transpose(e, in[1], -1, -2)))

static T sort_index(struct det_engine *e, T *in)
{
    T index = NULL;
    det_sort(e, in[0], 0, false, &index);
    return index;
}

static T cat_many(struct det_engine *e, T *in)
{
    T all[20];
    for (int i = 0; i < 20; i++)
        all[i] = in[i % 3];
    return det_cat(e, all, 20, 1);
}

/* clang-format off */
const struct op_case cases_reduce[] = {
    {"reduce", "sums of columns", {IN(77, 24)}, sum_first, "x0.sum(0, keepdim=True)"},
    {"reduce", "sums of columns, an odd address", {IN(1 + 37 * 8)}, sum_odd, "x0[1:].reshape(37, 8).sum(0)"},
    {"reduce", "sums of columns, opposites", {FIXED(37, 24)}, sum_opposites, NULL},
    {"add", "a row to each", {IN(77, 24), IN(24)}, add_row, "x0 + x1"},
    {"add", "a row to each, bf16", {OF(DET_BF16, 1, 77, 24), OF(DET_BF16, 1, 24)}, add_row, "x0 + x1"},
    {"add", "a row to each, f16", {OF(DET_F16, 1, 77, 24), OF(DET_F16, 1, 24)}, add_row, "x0 + x1"},
    {"reduce", "sum, last", {IN(3, 5, 7)}, sum_last, "x0.sum(-1)"},
    {"reduce", "sum, first", {IN(3, 5, 7)}, sum_first, "x0.sum(0, keepdim=True)"},
    {"reduce", "sum, two", {IN(3, 5, 7)}, sum_two, "x0.sum((0, 2))"},
    {"reduce", "sum, all", {IN(3, 5)}, sum_all, "x0.sum()"},
    {"reduce", "sum, empty", {IN(3, 0)}, sum_last, "x0.sum(-1)"},
    {"reduce", "large sum", {IN(70, 5, 90)}, sum_last, "x0.sum(-1)"},
    {"reduce", "mean, two", {IN(3, 5, 7)}, mean_two, "x0.mean((1, 2), keepdim=True)"},
    {"reduce", "var", {IN(3, 5, 2)}, var, "x0.var(1)"},
    {"reduce", "var, biased", {IN(3, 5, 2)}, var_biased, "x0.var((0, 2), unbiased=False, keepdim=True)"},
    {"reduce", "std", {IN(3, 5)}, std_last, "x0.std(-1)"},
    {"reduce", "norm", {IN(3, 5)}, norm_2, "x0.norm(2, 1)"},
    {"reduce", "std of equals", {IN(3, 5)}, std_none, "(x0 * 0).std(-1, unbiased=False)"},
    {"reduce", "norm of nothing", {IN(3, 5)}, norm_none, "(x0 * 0).norm(2, -1)"},
    {"reduce", "norm inf", {IN(3, 4, 5)}, norm_inf, "torch.linalg.vector_norm(x0, float('inf'), (0, 2))"},
    {"reduce", "norm -inf", {IN(3, 4, 5)},
     norm_least, "torch.linalg.vector_norm(x0, -float('inf'), 1, True)"},
    {"reduce", "norm inf of all", {IN(3, 4)}, norm_inf_all, "x0.norm(float('inf'))"},
    {"reduce", "norm 0", {FIXED(3, 7)}, norm_0, "x0.relu().norm(0, 1)"},
    {"reduce", "norm 1", {IN(3, 5)}, norm_1, "x0.norm(1, -1, keepdim=True)"},
    {"reduce", "norm 3", {IN(3, 5)}, norm_3, "x0.norm(3, 0)"},
    {"reduce", "max", {IN(3, 5, 2)}, max, "x0.max(1)[0]"},
    {"reduce", "min", {IN(3, 5, 2)}, min, "x0.min(0, keepdim=True)[0]"},
    {"reduce", "argmax", {FIXED(3, 5, 2)}, argmax, "x0.argmax(1, keepdim=True)"},
    {"reduce", "argmin", {FIXED(3, 5, 2)}, argmin, "x0.argmin(-1)"},
    {"reduce", "prod", {IN(3, 5, 2)}, prod, "x0.prod(1)"},
    {"reduce", "prod, zeros", {IN(4, 3), FIXED(4, 3)}, prod_zeros,
     "(x0 * F.relu(x1)).prod(1)"},
    {"reduce", "logsumexp", {WIDE(3, 3, 5, 2)}, logsumexp, "x0.logsumexp(1)"},
    {"reduce", "logsumexp, kept", {WIDE(3, 3, 5)}, logsumexp_keep, "x0.logsumexp(0, keepdim=True)"},
    {"reduce", "any", {FIXED(7, 3)}, any, "x0.relu().bool().any(1)"},
    {"reduce", "all", {FIXED(3, 7)}, all, "x0.relu().bool().all(0, keepdim=True)"},
    {"cumsum", "3x5x2", {IN(3, 5, 2)}, cumsum, "x0.cumsum(1)"},
    {"cumsum", "view", {IN(3, 5)}, cumsum_view, "x0.t().cumsum(0)"},
    {"sort", "last", {IN(3, 5)}, sort, "x0.sort(-1)[0]"},
    {"sort", "first, descending", {IN(5, 3, 2)}, sort_first, "x0.sort(0, descending=True)[0]"},
    {"sort", "no rows", {IN(0, 5)}, sort, "x0.sort(-1)[0]"},
    {"sort", "nothing in a row", {IN(3, 0)}, sort, "x0.sort(-1)[0]"},
    {"sort", "index", {FIXED(5, 3)}, sort_index, "x0.sort(0)[1]"},
    {"sort", "topk", {IN(3, 7)}, topk, "x0.topk(3, 1)[0]"},
    {"sort", "smallest", {IN(7, 3)}, bottomk, "x0.topk(2, 0, largest=False)[0]"},
    {"cat", "first", {IN(2, 3), IN(1, 3), IN(4, 3)}, cat_first, "torch.cat([x0, x1, x2])"},
    {"cat", "middle", {IN(2, 3, 2), IN(2, 5, 2)}, cat_middle, "torch.cat([x0, x1], 1)"},
    {"cat", "empty", {IN(2, 0, 2), IN(2, 5, 2)}, cat_middle, "torch.cat([x0, x1], 1)"},
    {"cat", "integers", {CLASSES(9, 2, 3), CLASSES(9, 2, 1)}, cat_middle, "torch.cat([x0, x1], 1)"},
    {"cat", "twenty", {IN(2, 3), IN(2, 1), IN(2, 2)}, cat_many,
     "torch.cat([[x0, x1, x2][i % 3] for i in range(20)], 1)"},
    {"cat", "stack", {IN(2, 3), IN(2, 3), IN(2, 3)}, stack, "torch.stack([x0, x1, x2], 1)"},
    {"where", "masked fill", {IN(4, 5), FIXED(5)}, masked, "x0.masked_fill(x1 > 0, -2)"},
    {"one_hot", "3x4", {CLASSES(4, 3, 4)}, one_hot, "F.one_hot(x0, 5)"},
    {"triangle", "empty", {IN(2, 0, 5)}, tril, "x0.tril()"},
    {"triangle", "lower", {IN(2, 4, 5)}, tril, "x0.tril()"},
    {"triangle", "upper", {IN(5, 4)}, triu, "x0.triu(1)"},
    {"softmax", "of a view", {IN(5, 4)}, softmax_of_view, "x0.t().softmax(-1)"},
    {"softmax", "dim 0", {IN(5, 4, 2)}, softmax_0, "x0.softmax(0)"},
    {"log_softmax", "dim 1", {IN(5, 4, 2)}, log_softmax_1, "x0.log_softmax(1)"},
    {"matmul", "views", {IN(5, 3), IN(4, 5)}, matmul_views, "x0.t() @ x1.t()"},
    {0},
};
