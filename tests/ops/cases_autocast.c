/* Mixed precision: what is cast, to what, and the dtypes that gradients come back in. */
#include "det/functional.h"
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
CAST(matmul, det_matmul(e, in[0], in[1]))
CAST(mixed, det_add(e, in[0], det_linear(e, in[0], in[1], NULL)))
CAST(loss, det_cross_entropy(e, det_linear(e, in[0], in[1], NULL), in[2]))
CAST(softmax, det_softmax(e, det_linear(e, in[0], in[1], NULL)))
CAST(attention, det_scaled_dot_product_attention(e, in[0], in[1], in[2], .mask = in[3]))
CAST(given, det_relu(e, in[0]))

#define B(x) x ".bfloat16()"
#define H(x) x ".to(half).float()" /* Debian's PyTorch has no products of f16 on a CPU */

/* clang-format off */
const struct op_case cases_autocast[] = {
    {"linear", "bf16", {IN(5, 7), IN(3, 7), IN(3)}, linear,
     "F.linear(" B("x0") ", " B("x1") ", " B("x2") ")"},
    {"linear", "f16, which is bf16 on a CPU", {IN(5, 7), IN(3, 7), IN(3)}, half,
     "F.linear(" H("x0") ", " H("x1") ", " H("x2") ").to(half)"},
    {"linear", "large bf16", {IN(65, 300), IN(97, 300), IN(97)}, linear,
     "F.linear(" B("x0") ", " B("x1") ", " B("x2") ")"},
    {"linear", "bf16, one weight twice", {IN(5, 7), IN(7, 7)}, twice,
     "F.linear(F.linear(" B("x0") ", " B("x1") "), " B("x1") ")"},
    {"conv2d", "bf16", {IN(2, 3, 6, 5), IN(4, 3, 3, 3), IN(4)}, conv,
     "F.conv2d(" B("x0") ", " B("x1") ", " B("x2") ", padding=1)"},
    {"conv2d", "bf16, relu", {IN(2, 16, 6, 5), IN(32, 16, 3, 3)}, conv_relu,
     "F.conv2d(" B("x0") ", " B("x1") ", padding=1).relu()"},
    {"matmul", "bf16", {IN(2, 5, 7), IN(7, 4)}, matmul, "torch.matmul(" B("x0") ", " B("x1") ")"},
    {"attention", "bf16", {IN(2, 3, 5, 8), IN(2, 3, 7, 8), IN(2, 3, 7, 8), FIXED(5, 7)}, attention,
     "(torch.softmax(x0.bfloat16().float() @ x1.bfloat16().float().transpose(-1, -2) * 8 ** -0.5 +"
     " x3.bfloat16().float(), -1) @ x2.bfloat16().float()).bfloat16()"},
    {"add", "bf16 and f32", {IN(5, 7), IN(7, 7)}, mixed, "x0 + F.linear(" B("x0") ", " B("x1") ")"},
    {"cross_entropy", "after bf16", {IN(5, 7), IN(9, 7), CLASSES(8, 5)}, loss,
     "F.cross_entropy(F.linear(" B("x0") ", " B("x1") ").float(), x2)"},
    {"softmax", "after bf16", {IN(5, 7), IN(9, 7)}, softmax,
     "F.softmax(F.linear(" B("x0") ", " B("x1") ").float(), -1)"},
    {"relu", "as it is given", {IN(5, 7)}, given, "F.relu(x0)"},
    {0},
};
