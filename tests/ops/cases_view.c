/* Views, alone and under operations that take strides or need dense inputs. */
#include "det/functional.h"
#include "op_case.h"

#define ORDER(...) ((const int[]){__VA_ARGS__})
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define CONV det_conv2d(e, in[0], in[1], in[2], NULL)

BUILD(permute, det_permute(e, in[0], ORDER(2, 0, 1)))
BUILD(to_nhwc, det_contiguous(e, det_permute(e, in[0], ORDER(0, 2, 3, 1))))
BUILD(heads, det_contiguous(e, det_permute(e, in[0], ORDER(0, 2, 1, 3))))
BUILD(permute_scaled, det_scale(e, det_permute(e, in[0], ORDER(2, 0, 1)), 3))
BUILD(transpose_linear, det_linear(e, det_transpose(e, in[0], 0, -1), in[1], NULL))
BUILD(add_transposed, det_add(e, in[0], det_transpose(e, in[1], 0, 1)))
BUILD(nhwc_out, det_permute(e, CONV, ORDER(0, 2, 3, 1)))
BUILD(nhwc_in, det_conv2d(e, det_permute(e, in[0], ORDER(0, 3, 1, 2)), in[1], in[2], NULL))
BUILD(nhwc_part, det_narrow(e, CONV, 1, 1, 2))
BUILD(nhwc_add, det_add(e, CONV, in[3]))
BUILD(nhwc_channels, det_mul(e, CONV, det_reshape(e, in[2], 3, (int64_t[]){-1, 1, 1})))
BUILD(narrow, det_narrow(e, in[0], 1, 2, 3))
BUILD(narrow_none, det_narrow(e, in[0], 1, 2, 0))
BUILD(narrow_softmax, det_softmax(e, det_narrow(e, in[0], 1, 2, 3)))
BUILD(every_second, det_slice(e, in[0], -1, &(struct det_slice){.start = -5, .step = 2}))
BUILD(select, det_select(e, in[0], 1, -2))
BUILD(select_last, det_exp(e, det_select(e, in[0], 2, 1)))
BUILD(expand, det_expand(e, in[0], DIMS(4, 3, -1)))
BUILD(expand_dense, det_reshape(e, det_expand(e, in[0], DIMS(4, 3, 5)), DIMS(-1)))
BUILD(unsqueeze, det_mul(e, det_unsqueeze(e, in[0], 1), det_unsqueeze(e, in[1], 0)))
BUILD(squeeze, det_squeeze(e, det_permute(e, in[0], ORDER(1, 2, 0)), 0))
BUILD(reshape_view, det_reshape(e, det_transpose(e, in[0], 0, 1), DIMS(-1)))
BUILD(chain, det_narrow(e, det_transpose(e, det_narrow(e, in[0], 0, 1, 3), 0, 2), 1, 1, 2))
BUILD(flatten_last, det_flatten(e, in[0], -2))
BUILD(contiguous, det_contiguous(e, det_transpose(e, in[0], 0, 1)))
BUILD(clone, det_clone(e, in[0]))
BUILD(clone_view, det_clone(e, det_transpose(e, in[0], 0, 1)))
BUILD(clone_images, det_clone(e, CONV))
BUILD(sum_part, det_sum(e, det_select(e, in[0], 1, 0)))
BUILD(cast_view, det_cast(e, det_transpose(e, in[0], 0, 1), DET_BF16))
BUILD(ints, det_add(e, det_transpose(e, in[0], 0, 1), in[1]))
BUILD(layout, det_flatten(e, det_relu(e, CONV), 1))

/* The three parts of one product, as attention takes them, one of them twice. */
static struct det_tensor *parts(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *y = det_scale(e, in[0], 2), *a = det_narrow(e, y, 1, 0, 2);
    struct det_tensor *b = det_narrow(e, y, 1, 2, 2), *c = det_narrow(e, y, 1, 4, 2);
    return det_add(e, det_mul(e, a, b), det_mul(e, a, c));
}

/* Steps of a sequence: slices whose gradients meet in one tensor. */
static struct det_tensor *steps(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *x = det_affine(e, in[0], 1, 0.5), *h = det_select(e, x, 1, 0);
    for (int64_t t = 1; t < det_tensor_dim(x, 1); t++)
        h = det_mul(e, h, det_select(e, x, 1, t));
    return det_add(e, h, det_select(e, x, 1, 0));
}

#define TORCH_CONV "F.conv2d(x0, x1, x2)"

/* clang-format off */
const struct op_case cases_view[] = {
    {"permute", "3 dimensions", {IN(2, 3, 5)}, permute, "x0.permute(2, 0, 1)"},
    {"permute", "then scale", {IN(2, 3, 5)}, permute_scaled, "x0.permute(2, 0, 1) * 3"},
    {"reshape", "flatten from the end", {IN(2, 3, 4)}, flatten_last, "x0.flatten(-2)"},
    {"permute", "transpose, then linear", {IN(7, 5), IN(3, 7)}, transpose_linear, "F.linear(x0.t(), x1)"},
    {"permute", "add the transposed", {IN(3, 5), IN(5, 3)}, add_transposed, "x0 + x1.t()"},
    {"permute", "large", {IN(130, 200), IN(200, 130)}, add_transposed, "x0 + x1.t()"},
    {"permute", "out of NHWC", {IN(2, 3, 5, 4), IN(4, 3, 2, 2), IN(4)}, nhwc_out, TORCH_CONV ".permute(0, 2, 3, 1)"},
    {"permute", "into NHWC", {IN(2, 5, 4, 3), IN(4, 3, 2, 2), IN(4)}, nhwc_in,
     "F.conv2d(x0.permute(0, 3, 1, 2), x1, x2)"},
    {"permute", "bf16", {OF(DET_BF16, 1, 2, 3, 5)}, permute, "x0.permute(2, 0, 1)"},
    {"permute", "squares", {IN(10, 9, 70)}, permute, "x0.permute(2, 0, 1)"},
    {"permute", "squares of images", {IN(2, 9, 5, 13)}, to_nhwc, "x0.permute(0, 2, 3, 1).contiguous()"},
    {"permute", "squares, bf16", {OF(DET_BF16, 1, 2, 9, 5, 13)}, to_nhwc, "x0.permute(0, 2, 3, 1).contiguous()"},
    {"permute", "squares, f64", {OF(DET_F64, 1, 37, 35)}, contiguous, "x0.t().contiguous()"},
    {"permute", "squares, u8", {OF(DET_U8, 200, 70, 65)}, contiguous, "x0.t().contiguous()"},
    {"permute", "heads", {IN(2, 5, 3, 8)}, heads, "x0.permute(0, 2, 1, 3).contiguous()"},
    {"permute", "empty", {IN(2, 0, 5)}, permute, "x0.permute(2, 0, 1)"},
    {"permute", "integers", {CLASSES(9, 3, 5), CLASSES(9, 5, 3)}, ints, "x0.t() + x1"},
    {"slice", "narrow", {IN(2, 7, 3)}, narrow, "x0.narrow(1, 2, 3)"},
    {"slice", "none", {IN(2, 7, 3)}, narrow_none, "x0.narrow(1, 2, 0)"},
    {"slice", "softmax of a part", {WIDE(3, 5, 7)}, narrow_softmax, "x0.narrow(1, 2, 3).softmax(-1)"},
    {"slice", "every second", {IN(3, 7)}, every_second, "x0[:, -5::2]"},
    {"slice", "select", {IN(2, 7, 3)}, select, "x0.select(1, -2)"},
    {"slice", "select of the last", {IN(2, 7, 3)}, select_last, "x0[:, :, 1].exp()"},
    {"slice", "parts used twice", {IN(3, 6)}, parts, "4 * x0[:, :2] * (x0[:, 2:4] + x0[:, 4:])"},
    {"slice", "steps", {IN(4, 5, 3)}, steps, "(x0 + 0.5).prod(1) + x0[:, 0] + 0.5"},
    {"slice", "of NHWC", {IN(2, 3, 5, 4), IN(4, 3, 2, 2), IN(4)}, nhwc_part, TORCH_CONV "[:, 1:3]"},
    {"slice", "sum of a part", {IN(4, 5, 3)}, sum_part, "x0[:, 0].sum()"},
    {"slice", "chain", {IN(5, 4, 3)}, chain, "x0[1:4].transpose(0, 2)[:, 1:3]"},
    {"expand", "new dimensions", {IN(1, 5)}, expand, "x0.expand(4, 3, -1)"},
    {"expand", "made dense", {IN(3, 1)}, expand_dense, "x0.expand(4, 3, 5).reshape(-1)"},
    {"reshape", "unsqueeze", {IN(3), IN(5)}, unsqueeze, "x0.unsqueeze(1) * x1.unsqueeze(0)"},
    {"reshape", "squeeze", {IN(3, 1, 5)}, squeeze, "x0.permute(1, 2, 0).squeeze(0)"},
    {"reshape", "of a view", {IN(3, 5)}, reshape_view, "x0.t().reshape(-1)"},
    {"layout", "contiguous", {IN(3, 5)}, contiguous, "x0.t().contiguous()"},
    {"layout", "clone", {IN(3, 5)}, clone, "x0.clone()"},
    {"layout", "clone of a view", {IN(3, 5)}, clone_view, "x0.t().clone()"},
    {"layout", "clone of NHWC", {IN(2, 3, 5, 4), IN(4, 3, 2, 2), IN(4)}, clone_images, TORCH_CONV},
    {"layout", "flatten", {IN(2, 3, 5, 4), IN(5, 3, 2, 2), IN(5)}, layout, TORCH_CONV ".relu().flatten(1)"},
    {"add", "NHWC and plain", {IN(2, 3, 5, 4), IN(4, 3, 2, 2), IN(4), IN(2, 4, 4, 3)}, nhwc_add, TORCH_CONV " + x3"},
    {"mul", "NHWC and channels", {IN(2, 3, 5, 4), IN(4, 3, 2, 2), IN(4)}, nhwc_channels,
     TORCH_CONV " * x2.view(-1, 1, 1)"},
    {"cast", "a view", {IN(3, 5)}, cast_view, "x0.t().bfloat16()"},
    {0},
};
