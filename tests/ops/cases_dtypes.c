/* Every dtype through the operations that take all of them: reductions, order, indexing, joining,
 * comparing and views. Those that compute in f32 alone have their cases elsewhere. */
#include "det/functional.h"

#include "op_case.h"

#define T struct det_tensor *

BUILD(sum, det_sum_over(e, in[0], det_over(false, 0, 2)))
BUILD(sum_all, det_sum(e, in[0]))
BUILD(mean, det_mean(e, in[0]))
BUILD(max, det_max_over(e, in[0], 1, false, NULL))
BUILD(min, det_min_over(e, in[0], 0, true, NULL))
BUILD(argmin, det_argmin_over(e, in[0], 0, false))
BUILD(argmax, det_argmax(e, in[0]))
BUILD(prod, det_prod_over(e, in[0], 1, false))
BUILD(cumsum, det_cumsum(e, in[0], 1))
BUILD(sort, det_sort(e, in[0], 0, true, NULL))
BUILD(topk, det_topk(e, in[0], 3, -1, false, NULL))
BUILD(lower, det_tril(e, in[0], 0))
BUILD(gather, det_gather(e, in[0], 1, in[1]))
BUILD(select, det_index_select(e, in[0], 1, in[1]))
BUILD(scatter_add, det_scatter_add(e, in[0], 1, in[1], in[2]))
BUILD(cat, det_cat(e, in, 2, 1))
BUILD(where, det_where(e, det_gt(e, in[0], in[1]), in[0], in[1]))
BUILD(le, det_le(e, in[0], in[1]))
BUILD(permute, det_contiguous(e, det_transpose(e, in[0], 0, 1)))
BUILD(sum_of_view, det_sum_over(e, det_transpose(e, in[0], 0, 1), det_over(false, -1)))
BUILD(any, det_any_over(e, in[0], det_over(false, 1)))
BUILD(scale, det_scale(e, in[0], -3))
BUILD(affine, det_affine(e, in[0], 30, 7))
BUILD(softmax, det_softmax(e, in[0]))
BUILD(log_softmax, det_log_softmax(e, in[0]))
BUILD(logsumexp, det_logsumexp(e, in[0], 0, false))
BUILD(var, det_var_over(e, in[0], 1, det_over(false, 1)))
BUILD(norm, det_norm_over(e, in[0], 2, det_over(false, 1)))

static T sort_index(struct det_engine *e, T *in)
{
    T index = NULL;
    det_sort(e, in[0], 0, false, &index);
    return index;
}

/* 0 and 1 of whole numbers from 0 on. */
#define OF_BOOL(name)                                                                              \
    static T bool_##name(struct det_engine *e, T *in)                                              \
    {                                                                                              \
        return name(e, (T[]){det_cast(e, in[0], DET_BOOL), in[1]});                                \
    }
OF_BOOL(sum)
OF_BOOL(sum_all)
OF_BOOL(max)
OF_BOOL(argmax)
OF_BOOL(cumsum)
OF_BOOL(sort)
OF_BOOL(sort_index)
OF_BOOL(lower)
OF_BOOL(gather)
OF_BOOL(permute)

/* clang-format off */
/* `as` and `back` are what PyTorch needs around a call: it lacks most of f16 on CPUs. */
#define EACH(name, type, as, back)                                                                 \
    {"reduce", "sum, " name, {OF(type, 9, 3, 5, 7)}, sum, "x0" as ".sum((0, 2))" back},            \
    {"reduce", "sum, empty, " name, {OF(type, 9, 0, 5, 7)}, sum, "x0" as ".sum((0, 2))" back},     \
    {"reduce", "sum of a view, " name, {OF(type, 9, 3, 5)}, sum_of_view, "x0" as ".t().sum(-1)" back}, \
    {"reduce", "max, " name, {OF(type, 9, 3, 5, 7)}, max, "x0" as ".max(1)[0]" back},              \
    {"reduce", "min, " name, {OF(type, 99, 3, 5)}, min, "x0" as ".min(0, keepdim=True)[0]" back},  \
    {"reduce", "argmin, " name, {OF(type, 99, 7, 5)}, argmin, "x0" as ".sort(dim=0, stable=True)[1][0]"}, \
    {"reduce", "argmax, " name, {OF(type, 99, 7, 5)}, argmax,                                      \
     "x0" as ".double().sort(dim=-1, descending=True, stable=True)[1][:, 0]"},                         \
    {"reduce", "prod, " name, {OF(type, 3, 3, 5, 2)}, prod, "x0" as ".prod(1)" back},              \
    {"reduce", "any, " name, {OF(type, 1, 9, 2)}, any, "x0.bool().any(1)"},                        \
    {"cumsum", name, {OF(type, 9, 3, 5, 2)}, cumsum, "x0" as ".cumsum(1)" back},                   \
    {"sort", name, {OF(type, 9, 7, 3)}, sort, "x0" as ".sort(0, descending=True)[0]" back},        \
    {"sort", "index, " name, {OF(type, 3, 17, 3)}, sort_index, "x0" as ".sort(dim=0, stable=True)[1]"}, \
    {"sort", "topk, " name, {OF(type, 9, 2, 7)}, topk, "x0" as ".topk(3)[0]" back},                \
    {"triangle", name, {OF(type, 9, 2, 4, 5)}, lower, "x0" as ".tril()" back},                     \
    {"gather", name, {OF(type, 9, 3, 5, 2), CLASSES(4, 3, 4, 2)}, gather, "x0" as ".gather(1, x1)" back}, \
    {"index_select", name, {OF(type, 9, 3, 5, 2), CLASSES(4, 8)}, select,                          \
     "x0" as ".index_select(1, x1)" back},                                                         \
    {"scatter_add", name, {OF(type, 9, 3, 5), CLASSES(4, 3, 9), OF(type, 9, 3, 9)}, scatter_add,   \
     "x0" as ".scatter_add(1, x1, x2" as ")" back},                                                \
    {"cat", name, {OF(type, 9, 2, 3), OF(type, 9, 2, 1)}, cat, "torch.cat([x0, x1], 1)"},          \
    {"where", name, {OF(type, 9, 3, 5), OF(type, 9, 3, 5)}, where, "torch.where(x0 > x1, x0, x1)"}, \
    {"le", name, {OF(type, 9, 3, 5), OF(type, 9, 5)}, le, "x0 <= x1"},                             \
    {"permute", name, {OF(type, 9, 3, 5)}, permute, "x0.t()"}

#define FLOATING(name, type, as, back)                                                             \
    {"sum", name, {OF(type, 9, 30, 5)}, sum_all, "x0" as ".sum()" back},                           \
    {"sum", "mean, " name, {OF(type, 9, 30, 5)}, mean, "x0" as ".mean()" back},                    \
    {"reduce", "var, " name, {OF(type, 1, 3, 5)}, var, "x0" as ".var(1)" back},                    \
    {"reduce", "norm, " name, {OF(type, 1, 3, 5)}, norm, "x0" as ".norm(2, 1)" back},              \
    {"reduce", "logsumexp, " name, {OF(type, 3, 5, 3)}, logsumexp, "x0" as ".logsumexp(0)" back},  \
    {"softmax", name, {OF(type, 3, 3, 5)}, softmax, "x0" as ".softmax(-1)" back},                  \
    {"log_softmax", name, {OF(type, 3, 2, 3, 5)}, log_softmax, "x0" as ".log_softmax(-1)" back}

#define BITS(call, name, expression)                                                               \
    {call, "bool, " #name, {OF(DET_U8, 2, 3, 5), CLASSES(4, 3, 9)}, bool_##name, "x0.bool()." expression}

const struct op_case cases_dtypes[] = {
    EACH("f64", DET_F64, "", ""),
    EACH("bf16", DET_BF16, ".float()", ".bfloat16()"),
    EACH("f16", DET_F16, ".float()", ".half()"),
    EACH("i64", DET_I64, "", ""),
    EACH("i32", DET_I32, "", ""),
    EACH("i16", DET_I16, "", ""),
    EACH("i8", DET_I8, "", ""),
    EACH("u8", DET_U8, "", ""),
    FLOATING("f64", DET_F64, "", ""),
    FLOATING("bf16", DET_BF16, ".float()", ".bfloat16()"),
    FLOATING("f16", DET_F16, ".float()", ".half()"),
    {"reduce", "sum of all, i32", {OF(DET_I32, 99, 30, 5)}, sum_all, "x0.sum()"},
    {"reduce", "max beyond f64's, i64", {OF(DET_I64, 9e18, 3, 5, 2)}, max, "x0.max(1)[0]"},
    {"sort", "beyond f64's, i64", {OF(DET_I64, 9e18, 5, 2)}, sort, "x0.sort(0, descending=True)[0]"},
    {"mul", "scale, i64", {OF(DET_I64, 99, 3, 5)}, scale, "x0 * -3"},
    {"mul", "scale beyond f64's, i64", {OF(DET_I64, 2e18, 3, 5)}, scale, "x0 * -3"},
    {"mul", "affine, i16", {OF(DET_I16, 99, 3, 5)}, affine, "x0 * 30 + 7"},
    {"mul", "affine, wraps, i8", {OF(DET_I8, 99, 3, 5)}, affine, "x0 * 30 + 7"},
    {"mul", "affine, u8", {OF(DET_U8, 99, 3, 5)}, affine, "x0 * 30 + 7"},
    {"reduce", "bool, sum", {OF(DET_U8, 2, 3, 5, 7)}, bool_sum, "x0.bool().sum((0, 2))"},
    {"cumsum", "bool", {OF(DET_U8, 2, 3, 5, 2)}, bool_cumsum, "x0.bool().cumsum(1)"},
    BITS("reduce", sum_all, "sum()"),
    BITS("reduce", max, "max(1)[0]"),
    BITS("reduce", argmax, "double().sort(dim=-1, descending=True, stable=True)[1][:, 0]"),
    BITS("sort", sort, "sort(0, descending=True)[0]"),
    BITS("sort", sort_index, "sort(dim=0, stable=True)[1]"),
    BITS("triangle", lower, "tril()"),
    BITS("gather", gather, "gather(1, x1)"),
    BITS("permute", permute, "t()"),
    {0},
};
