/* Mixed precision: what is cast, to what, and the dtypes that gradients come back in. */
#include "det/functional.h"
#include "functions.h"
#include "op_case.h"

/* Defines a case whose operations run under autocast. */
#define CAST_TO(dtype, name, ...)                                                                  \
    static struct det_tensor *name(struct det_engine *e, struct det_tensor **in)                   \
    {                                                                                              \
        det_autocast_begin(e, dtype);                                                              \
        struct det_tensor *y = __VA_ARGS__;                                                        \
        det_autocast_end(e);                                                                       \
        return y;                                                                                  \
    }
#define CAST(name, ...) CAST_TO(DET_BF16, name, __VA_ARGS__)
#define CONV(w, b)      det_conv2d(e, in[0], w, b, &(const struct det_conv2d_options){.padding = 1})

CAST(linear, det_linear(e, in[0], in[1], in[2]))
CAST_TO(DET_F16, half, det_linear(e, in[0], in[1], in[2])) /* bf16 on a CPU */
CAST(twice, det_linear(e, det_linear(e, in[0], in[1], NULL), in[1], NULL))
CAST(conv, CONV(in[1], in[2]))
CAST(conv_relu, det_relu(e, CONV(in[1], NULL)))
#define FEW(...) det_conv2d(e, in[0], in[1], NULL, &(const struct det_conv2d_options){__VA_ARGS__})
CAST(few, FEW(.stride = 2, .padding = 3))
CAST(few_ways, FEW(.stride_hw = {3, 1}, .padding_hw = {0, 2}))
CAST(few_same, FEW(.same = true))
CAST(few_dilated, FEW(.stride = 2, .padding = 1, .dilation_hw = {1, 2}))
CAST(few_far, FEW(.stride = 3))
CAST(few_view, det_conv2d(e, det_narrow(e, in[0], 0, 1, 2), in[1], NULL, NULL))
CAST(few_after,
     det_conv2d(e, FEW(.stride = 1), in[2], NULL, &(const struct det_conv2d_options){.same = true}))

/* The norm takes what the convolution gives, its parameters as they are. */
static struct det_tensor *normed(struct det_engine *e, struct det_tensor **in)
{
    const struct batch_norm_attrs a = {.eps = 1e-5, .momentum = 0.1, .relu = true, .train = true};
    struct det_tensor *params[4] = {in[2], in[3], det_scale(e, in[2], 0), det_scale(e, in[2], 1)};
    det_autocast_begin(e, DET_BF16);
    struct det_tensor *y = CONV(in[1], NULL), *z = det__batch_norm(e, y, params, &a);
    z = det__batch_norm_add(e, y, params, z, &a);
    det_autocast_end(e);
    return z;
}
CAST(max_pooled, det_max_pool2d(e, CONV(in[1], NULL), 3, 2, 1))
CAST(avg_pooled, det_avg_pool2d(e, CONV(in[1], NULL), 3, 2, 1))
CAST(matmul, det_matmul(e, in[0], in[1]))
CAST(mixed, det_add(e, in[0], det_linear(e, in[0], in[1], NULL)))
CAST(mixed_sub, det_sub(e, det_linear(e, in[0], in[1], NULL), in[2]))
CAST(mixed_mul, det_mul(e, in[2], det_linear(e, in[0], in[1], NULL)))
CAST(loss, det_cross_entropy(e, det_linear(e, in[0], in[1], NULL), in[2]))
CAST(loss_all, det_cross_entropy(e, det_linear(e, in[0], in[1], NULL), in[2], .weight = in[3],
                                 .label_smoothing = 0.1, .reduction = DET_REDUCE_SUM))
CAST(loss_3d, det_cross_entropy(e,
                                det_reshape(e, det_linear(e, in[0], in[1], NULL), 2,
                                            (int64_t[]){-1, in[1]->dims[0]}),
                                in[2]))
CAST(loss_part,
     det_cross_entropy(e, det_narrow(e, det_linear(e, in[0], in[1], NULL), 1, 2, 7), in[2]))

/* What takes rows that may lie apart, and what does not. */
static struct det_tensor *loss_and_more(struct det_engine *e, struct det_tensor **in)
{
    det_autocast_begin(e, DET_BF16);
    struct det_tensor *y = det_linear(e, in[0], in[1], NULL);
    struct det_tensor *z = det_cross_entropy(e, y, in[2]), *square = det_mul(e, y, y);
    z = det_add(e, z, det_mean(e, det_cast(e, square, DET_F32)));
    z = det_add(e, z, det_cross_entropy(e, det_relu(e, y), in[2]));
    det_autocast_end(e);
    return z;
}
CAST(softmax, det_softmax(e, det_linear(e, in[0], in[1], NULL)))
CAST(attention, det_scaled_dot_product_attention(e, in[0], in[1], in[2], .mask = in[3]))
CAST(given, det_relu(e, in[0]))

#define B(x) x ".bfloat16()"
#define H(x) x ".to(half).float()" /* Debian's PyTorch has no products of f16 on a CPU */

#define NORM(y)   "F.batch_norm((" y ").float(), None, None, x2, x3, True)"
#define NORMED(y) "F.relu(" NORM(y) " + F.relu(" NORM(y) ").bfloat16().float()).bfloat16()"

/* clang-format off */
const struct op_case cases_autocast[] = {
    {"linear", "bf16", {IN(5, 7), IN(3, 7), IN(3)}, linear,
     "F.linear(" B("x0") ", " B("x1") ", " B("x2") ")"},
    {"linear", "f16, which is bf16 on a CPU", {IN(5, 7), IN(3, 7), IN(3)}, half,
     "F.linear(" H("x0") ", " H("x1") ", " H("x2") ").to(half)"},
    {"linear", "large bf16", {IN(65, 300), IN(97, 300), IN(97)}, linear,
     "F.linear(" B("x0") ", " B("x1") ", " B("x2") ")"},
    {"linear", "bf16, by packs", {IN(77, 16), IN(24, 16), IN(24)}, linear,
     "F.linear(" B("x0") ", " B("x1") ", " B("x2") ")"},
    {"linear", "bf16, one weight twice", {IN(5, 7), IN(7, 7)}, twice,
     "F.linear(F.linear(" B("x0") ", " B("x1") "), " B("x1") ")"},
    {"conv2d", "bf16", {IN(2, 3, 6, 5), IN(4, 3, 3, 3), IN(4)}, conv,
     "F.conv2d(" B("x0") ", " B("x1") ", " B("x2") ", padding=1)"},
    {"conv2d", "bf16, relu", {IN(2, 16, 6, 5), IN(32, 16, 3, 3)}, conv_relu,
     "F.conv2d(" B("x0") ", " B("x1") ", padding=1).relu()"},
    {"conv2d", "bf16, 3 channels, 7x7", {IN(2, 3, 17, 15), IN(16, 3, 7, 7)}, few,
     "F.conv2d(" B("x0") ", " B("x1") ", None, 2, 3)"},
    {"conv2d", "bf16, 5 channels, 4x3", {IN(2, 5, 8, 9), IN(6, 5, 4, 3)}, few,
     "F.conv2d(" B("x0") ", " B("x1") ", None, 2, 3)"},
    {"conv2d", "bf16, 2 channels, directions", {IN(2, 2, 10, 7), IN(8, 2, 3, 4)}, few_ways,
     "F.conv2d(" B("x0") ", " B("x1") ", None, (3, 1), (0, 2))"},
    {"conv2d", "bf16, 1 channel, same", {IN(2, 1, 6, 7), IN(3, 1, 2, 4)}, few_same,
     "F.conv2d(" B("x0") ", " B("x1") ", None, 1, 'same')"},
    {"conv2d", "bf16, 12 channels, same", {IN(2, 12, 6, 7), IN(8, 12, 3, 4)}, few_same,
     "F.conv2d(" B("x0") ", " B("x1") ", None, 1, 'same')"},
    {"conv2d", "bf16, 3 channels, dilated", {IN(2, 3, 9, 11), IN(8, 3, 2, 3)}, few_dilated,
     "F.conv2d(" B("x0") ", " B("x1") ", None, 2, 1, (1, 2))"},
    {"conv2d", "bf16, 3 channels, steps that pass pixels", {IN(2, 3, 9, 11), IN(8, 3, 2, 3)}, few_far,
     "F.conv2d(" B("x0") ", " B("x1") ", None, 3)"},
    {"conv2d", "bf16, 3 channels, a view", {IN(3, 3, 5, 5), IN(8, 3, 3, 3)}, few_view,
     "F.conv2d(" B("x0") "[1:], " B("x1") ")"},
    {"conv2d", "bf16, 5 channels, after a convolution",
     {IN(2, 3, 5, 6), IN(5, 3, 3, 3), IN(4, 5, 2, 2)}, few_after,
     "F.conv2d(F.conv2d(" B("x0") ", " B("x1") "), " B("x2") ", None, 1, 'same')"},
    {"batch_norm", "bf16, of f32 parameters", {IN(3, 5, 6, 7), IN(8, 5, 3, 3), IN(8), IN(8)}, normed,
     NORMED("F.conv2d(" B("x0") ", " B("x1") ", padding=1)")},
    {"batch_norm", "bf16, of f32 parameters, 6 channels", {IN(3, 5, 6, 7), IN(6, 5, 3, 3), IN(6), IN(6)},
     normed, NORMED("F.conv2d(" B("x0") ", " B("x1") ", padding=1)")},
    {"max_pool2d", "after bf16", {IN(2, 3, 6, 5), IN(8, 3, 3, 3)}, max_pooled,
     "F.max_pool2d(F.conv2d(" B("x0") ", " B("x1") ", padding=1).float(), 3, 2, 1).bfloat16()"},
    {"avg_pool2d", "after bf16", {IN(2, 3, 6, 5), IN(8, 3, 3, 3)}, avg_pooled,
     "F.avg_pool2d(F.conv2d(" B("x0") ", " B("x1") ", padding=1).float(), 3, 2, 1).bfloat16()"},
    {"matmul", "bf16", {IN(2, 5, 7), IN(7, 4)}, matmul, "torch.matmul(" B("x0") ", " B("x1") ")"},
    {"attention", "bf16", {IN(2, 3, 5, 8), IN(2, 3, 7, 8), IN(2, 3, 7, 8), FIXED(5, 7)}, attention,
     "(torch.softmax(x0.bfloat16().float() @ x1.bfloat16().float().transpose(-1, -2) * 8 ** -0.5 +"
     " x3.bfloat16().float(), -1) @ x2.bfloat16().float()).bfloat16()"},
    {"add", "bf16 and f32", {IN(5, 7), IN(7, 7)}, mixed, "x0 + F.linear(" B("x0") ", " B("x1") ")"},
    {"sub", "bf16 and f32, repeated", {IN(5, 16), IN(8, 16), IN(8)}, mixed_sub,
     "F.linear(" B("x0") ", " B("x1") ") - x2"},
    {"sub", "bf16, repeated, and f32", {IN(1, 16), IN(8, 16), IN(3, 1, 8)}, mixed_sub,
     "F.linear(" B("x0") ", " B("x1") ") - x2"},
    {"mul", "f32 and bf16", {IN(5, 7), IN(9, 7), IN(5, 9)}, mixed_mul,
     "x2 * F.linear(" B("x0") ", " B("x1") ")"},
    {"mul", "f32, repeated, and bf16", {IN(5, 7), IN(9, 7), IN(5, 1)}, mixed_mul,
     "x2 * F.linear(" B("x0") ", " B("x1") ")"},
    {"cross_entropy", "after bf16", {IN(5, 7), IN(9, 7), CLASSES(8, 5)}, loss,
     "F.cross_entropy(F.linear(" B("x0") ", " B("x1") ").float(), x2)"},
    {"cross_entropy", "after bf16, of f32 weights",
     {IN(5, 7), IN(9, 7), CLASSES(8, 5), FIXED(9)}, loss_all,
     "F.cross_entropy(F.linear(" B("x0") ", " B("x1") ").float(), x2, x3, label_smoothing=0.1, "
     "reduction='sum')"},
    {"linear", "bf16, rows apart", {IN(5, 16), IN(21, 16)}, linear,
     "F.linear(" B("x0") ", " B("x1") ")"},
    {"cross_entropy", "after bf16, rows apart", {IN(5, 16), IN(9, 16), CLASSES(8, 5)}, loss,
     "F.cross_entropy(F.linear(" B("x0") ", " B("x1") ").float(), x2)"},
    {"cross_entropy", "after bf16, rows apart, of f32 weights",
     {IN(16, 24), IN(29, 24), CLASSES(28, 16), FIXED(29)}, loss_all,
     "F.cross_entropy(F.linear(" B("x0") ", " B("x1") ").float(), x2, x3, label_smoothing=0.1, "
     "reduction='sum')"},
    {"cross_entropy", "after bf16, rows of 3 dimensions apart",
     {IN(2, 3, 16), IN(9, 16), CLASSES(8, 6)}, loss_3d,
     "F.cross_entropy(F.linear(" B("x0") ", " B("x1") ").float().reshape(6, 9), x2)"},
    {"cross_entropy", "after bf16, a part of rows apart", {IN(5, 16), IN(9, 16), CLASSES(6, 5)},
     loss_part, "F.cross_entropy(F.linear(" B("x0") ", " B("x1") ").float()[:, 2:], x2)"},
    {"cross_entropy", "after bf16, rows apart, and more", {IN(5, 16), IN(9, 16), CLASSES(8, 5)},
     loss_and_more,
     "(lambda y: F.cross_entropy(y.float(), x2) + (y * y).float().mean() + "
     "F.cross_entropy(F.relu(y).float(), x2))(F.linear(" B("x0") ", " B("x1") "))"},
    {"softmax", "after bf16, rows apart", {IN(5, 16), IN(9, 16)}, softmax,
     "F.softmax(F.linear(" B("x0") ", " B("x1") ").float(), -1)"},
    {"mul", "f32 and bf16, rows apart", {IN(5, 16), IN(9, 16), IN(5, 9)}, mixed_mul,
     "x2 * F.linear(" B("x0") ", " B("x1") ")"},
    {"linear", "large bf16, odd", {IN(70, 131), IN(1101, 131), IN(1101)}, linear,
     "F.linear(" B("x0") ", " B("x1") ", " B("x2") ")"},
    {"softmax", "after bf16", {IN(5, 7), IN(9, 7)}, softmax,
     "F.softmax(F.linear(" B("x0") ", " B("x1") ").float(), -1)"},
    {"relu", "as it is given", {IN(5, 7)}, given, "F.relu(x0)"},
    {0},
};
