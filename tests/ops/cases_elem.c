/* Element-wise functions: values and slopes, broadcasting, dtypes, what is empty or has no
 * dimensions, rows long enough for vector code and for several threads. */
#include "det/functional.h"
#include "op_case.h"

#define UNARY(name) BUILD(f_##name, det_##name(e, in[0]))
UNARY(neg)
UNARY(abs)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(rsqrt)
UNARY(reciprocal)
UNARY(sin)
UNARY(cos)
UNARY(tanh)
UNARY(erf)
UNARY(sigmoid)
UNARY(log_sigmoid)
UNARY(gelu)
UNARY(gelu_tanh)
UNARY(silu)
UNARY(mish)
UNARY(relu)
UNARY(relu6)
UNARY(hardswish)
UNARY(hardsigmoid)
UNARY(floor)
UNARY(ceil)
UNARY(round)
UNARY(sign)
static struct det_tensor *rounded_halves(struct det_engine *e, enum det_dtype dtype)
{
    return det_round(e, det_scale(e, det_arange(e, dtype, -2, 3, 1), 0.5));
}
BUILD(halves, det_add(e, rounded_halves(e, det_tensor_dtype(in[0])), det_scale(e, in[0], 0)))
BUILD(hardsigmoid_nan, det_hardsigmoid(e, det_log(e, in[0])))
BUILD(sign_nan, det_sign(e, det_log(e, in[0])))
BUILD(power, det_pow(e, in[0], 2.5))
BUILD(power_0, det_pow(e, in[0], 0))
BUILD(square, det_pow(e, in[0], 2))
BUILD(clamp, det_clamp(e, in[0], -0.4, 0.3))
BUILD(hardtanh, det_hardtanh(e, in[0], -0.4, 0.3))
BUILD(elu, det_elu(e, in[0], 1.3))
BUILD(leaky, det_leaky_relu(e, in[0], 0.02))
BUILD(softplus, det_softplus(e, in[0], 2, 5))
BUILD(affine, det_affine(e, in[0], -2.5, 0.75))

BUILD(add, det_add(e, in[0], in[1]))
BUILD(sub, det_sub(e, in[0], in[1]))
BUILD(mul, det_mul(e, in[0], in[1]))
BUILD(divide, det_div(e, in[0], in[1]))
BUILD(power_of, det_pow_tensor(e, in[0], in[1]))
BUILD(prelu, det_prelu(e, in[0], det_reshape(e, in[1], 3, (int64_t[]){-1, 1, 1})))
BUILD(maximum, det_maximum(e, in[0], in[1]))
BUILD(minimum, det_minimum(e, in[0], in[1]))
BUILD(ties, det_maximum(e, in[0], det_affine(e, in[0], 1, 0)))
BUILD(add_number, det_add(e, in[0], det_scalar(e, DET_F64, 0.1)))
BUILD(number_less, det_lt(e, det_scalar(e, det_tensor_dtype(in[0]), 0.1), in[0]))

#define PAIR(name) BUILD(f_##name, det_##name(e, in[0], in[1]))
PAIR(eq)
PAIR(ne)
PAIR(lt)
PAIR(le)
PAIR(gt)
PAIR(ge)
PAIR(logical_and)
PAIR(logical_or)
PAIR(logical_xor)
BUILD(logical_not, det_logical_not(e, det_gt(e, in[0], in[1])))
BUILD(is_nan, det_isnan(e, det_log(e, in[0])))
BUILD(where, det_where(e, det_gt(e, in[0], in[1]), in[0], in[1]))
BUILD(where_wide, det_where(e, det_gt(e, in[0], NUMBER_AS(in[0], 0)), in[1], in[2]))

BUILD(to_f64, det_cast(e, in[0], DET_F64))
BUILD(to_bf16, det_cast(e, in[0], DET_BF16))
BUILD(to_f16, det_cast(e, in[0], DET_F16))
BUILD(to_i32, det_cast(e, in[0], DET_I32))
BUILD(to_i8, det_cast(e, det_cast(e, in[0], DET_I64), DET_I8))
BUILD(to_u8, det_cast(e, in[0], DET_U8))
BUILD(to_bool, det_cast(e, in[0], DET_BOOL))

BUILD(arange, det_add(e, in[0], det_arange(e, det_tensor_dtype(in[0]), 3, -1.2, -0.5)))
BUILD(linspace, det_add(e, in[0], det_cast(e, det_linspace(e, -1, 2, 7), det_tensor_dtype(in[0]))))
BUILD(ones, det_mul(e, det_add(e, in[0], det_ones_like(e, in[0])), det_full_like(e, in[0], 3)))

#define BN4 IN(2, 3, 4, 5)

/* clang-format off */
const struct op_case cases_elem[] = {
    {"neg", "7x11", {IN(7, 11)}, f_neg, "-x0"},
    {"abs", "7x11", {IN(7, 11)}, f_abs, "x0.abs()"},
    {"exp", "7x11", {WIDE(5, 7, 11)}, f_exp, "x0.exp()"},
    {"exp", "large", {WIDE(80, 300, 301)}, f_exp, "x0.exp()"},
    {"exp", "to the ends", {OF(DET_F32, 200, 300)}, f_exp, "x0.exp()"},
    {"log", "7x11", {POSITIVE(7, 11)}, f_log, "x0.log()"},
    {"log", "not a number", {FIXED(9)}, f_log, "x0.log()"},
    {"sqrt", "7x11", {POSITIVE(7, 11)}, f_sqrt, "x0.sqrt()"},
    {"rsqrt", "7x11", {POSITIVE(7, 11)}, f_rsqrt, "x0.rsqrt()"},
    {"reciprocal", "7x11", {POSITIVE(7, 11)}, f_reciprocal, "x0.reciprocal()"},
    {"pow", "2.5", {POSITIVE(7, 11)}, power, "x0.pow(2.5)"},
    {"pow", "0", {IN(7)}, power_0, "x0.pow(0)"},
    {"pow", "2", {IN(7, 11)}, square, "x0.pow(2)"},
    {"sin", "7x11", {WIDE(4, 7, 11)}, f_sin, "x0.sin()"},
    {"cos", "7x11", {WIDE(4, 7, 11)}, f_cos, "x0.cos()"},
    {"tanh", "7x11", {WIDE(4, 7, 11)}, f_tanh, "x0.tanh()"},
    {"tanh", "large", {WIDE(12, 100, 301)}, f_tanh, "x0.tanh()"},
    {"tanh", "small numbers", {WIDE(1e-3, 40)}, f_tanh, "x0.tanh()"},
    {"erf", "7x11", {WIDE(4, 7, 11)}, f_erf, "x0.erf()"},
    {"sigmoid", "7x11", {WIDE(9, 7, 11)}, f_sigmoid, "x0.sigmoid()"},
    {"sigmoid", "large", {WIDE(120, 130, 301)}, f_sigmoid, "x0.sigmoid()"},
    {"log_sigmoid", "7x11", {WIDE(9, 7, 11)}, f_log_sigmoid, "F.logsigmoid(x0)"},
    {"log_sigmoid", "to the ends", {WIDE(200, 77)}, f_log_sigmoid, "F.logsigmoid(x0)"},
    {"gelu", "7x11", {WIDE(4, 7, 11)}, f_gelu, "F.gelu(x0)"},
    {"gelu", "large", {WIDE(9, 130, 301)}, f_gelu, "F.gelu(x0)"},
    {"gelu", "bf16", {OF(DET_BF16, 4, 7, 11)}, f_gelu, "F.gelu(x0.float()).bfloat16()"},
    {"gelu", "f16", {OF(DET_F16, 4, 7, 11)}, f_gelu, "F.gelu(x0.float()).half()"},
    {"gelu_tanh", "7x11", {WIDE(4, 7, 11)}, f_gelu_tanh, "F.gelu(x0, approximate='tanh')"},
    {"gelu_tanh", "large", {WIDE(9, 130, 301)}, f_gelu_tanh, "F.gelu(x0, approximate='tanh')"},
    {"gelu_tanh", "packs, bf16", {OF(DET_BF16, 9, 7, 8)}, f_gelu_tanh,
     "F.gelu(x0.float(), approximate='tanh').bfloat16()"},
    {"gelu_tanh", "packs, f16", {OF(DET_F16, 9, 130, 304)}, f_gelu_tanh,
     "F.gelu(x0.float(), approximate='tanh').half()"},
    {"relu", "packs, bf16", {OF(DET_BF16, 9, 7, 8)}, f_relu, "x0.relu()"},
    {"silu", "7x11", {WIDE(5, 7, 11)}, f_silu, "F.silu(x0)"},
    {"mish", "7x11", {WIDE(5, 7, 11)}, f_mish, "F.mish(x0)"},
    {"elu", "7x11", {WIDE(3, 7, 11)}, elu, "F.elu(x0, 1.3)"},
    {"leaky_relu", "7x11", {WIDE(3, 7, 11)}, leaky, "F.leaky_relu(x0, 0.02)"},
    {"softplus", "7x11", {WIDE(5, 7, 11)}, softplus, "F.softplus(x0, 2, 5)"},
    {"clamp", "7x11", {IN(7, 11)}, clamp, "x0.clamp(-0.4, 0.3)"},
    {"hardtanh", "7x11", {IN(7, 11)}, hardtanh, "F.hardtanh(x0, -0.4, 0.3)"},
    {"hardtanh", "relu6", {WIDE(9, 7, 11)}, f_relu6, "F.relu6(x0)"},
    {"hardswish", "7x11", {WIDE(5, 7, 11)}, f_hardswish, "F.hardswish(x0)"},
    {"hardsigmoid", "7x11", {WIDE(5, 7, 11)}, f_hardsigmoid, "F.hardsigmoid(x0)"},
    {"floor", "large", {WIDE(5, 70, 11)}, f_floor, "x0.floor()"},
    {"ceil", "large", {WIDE(5, 70, 11)}, f_ceil, "x0.ceil()"},
    {"round", "large", {WIDE(5, 70, 11)}, f_round, "x0.round()"},
    {"round", "halves", {OF(DET_F32, 1, 5)}, halves, "torch.arange(-2.0, 3.0).mul(0.5).round() + 0 * x0"},
    {"silu", "large numbers", {WIDE(1e9, 7, 11)}, f_silu, "F.silu(x0)"},
    {"hardsigmoid", "of NaN", {FIXED(7, 11)}, hardsigmoid_nan, "F.hardsigmoid(x0.log())"},
    {"sign", "of NaN", {FIXED(7, 11)}, sign_nan, "x0.log().sign()"},
    {"sign", "7x11", {IN(7, 11)}, f_sign, "x0.sign()"},

    {"add", "a row", {IN(3, 5), IN(5)}, add, "x0 + x1"},
    {"add", "a column and a row", {IN(3, 1), IN(5)}, add, "x0 + x1"},
    {"add", "both ways", {IN(2, 1, 4), IN(3, 1)}, add, "x0 + x1"},
    {"add", "more dimensions on the right", {IN(4), IN(2, 3, 4)}, add, "x0 + x1"},
    {"add", "large rows", {IN(129, 517), IN(517)}, add, "x0 + x1"},
    {"add", "large columns", {IN(129, 517), IN(129, 1)}, add, "x0 + x1"},
    {"add", "large middle", {IN(17, 33, 65), IN(33, 1)}, add, "x0 + x1"},
    {"add", "empty with a row", {IN(0, 5), IN(5)}, add, "x0 + x1"},
    {"add", "empty with 1", {IN(0, 5), IN(1, 1)}, add, "x0 + x1"},
    {"add", "a number of another dtype", {IN(3, 5)}, add_number, "x0 + 0.1"},
    {"add", "f64", {OF(DET_F64, 1, 3, 5), OF(DET_F64, 1, 5)}, add, "x0 + x1"},
    {"add", "bf16", {OF(DET_BF16, 1, 30, 50), OF(DET_BF16, 1, 50)}, add, "x0 + x1"},
    {"add", "f16", {OF(DET_F16, 1, 3, 700), OF(DET_F16, 1, 3, 1)}, add, "x0 + x1"},
    {"add", "rows of packs", {IN(6, 24), IN(24)}, add, "x0 + x1"},
    {"add", "columns of packs", {IN(3, 2, 16), IN(2, 1)}, add, "x0 + x1"},
    {"add", "rows of packs, bf16", {OF(DET_BF16, 1, 30, 64), OF(DET_BF16, 1, 64)}, add, "x0 + x1"},
    {"add", "rows of packs, f16", {OF(DET_F16, 1, 30, 64), OF(DET_F16, 1, 64)}, add, "x0 + x1"},
    {"add", "i64", {OF(DET_I64, 99, 3, 5), OF(DET_I64, 99, 5)}, add, "x0 + x1"},
    {"add", "i8 wraps", {OF(DET_I8, 120, 3, 50), OF(DET_I8, 120, 50)}, add, "x0 + x1"},
    {"sub", "a column", {IN(3, 5), IN(3, 1)}, sub, "x0 - x1"},
    {"sub", "u8 wraps", {OF(DET_U8, 99, 7), OF(DET_U8, 99, 7)}, sub, "x0 - x1"},
    {"mul", "channels of images", {BN4, IN(3, 1, 1)}, mul, "x0 * x1"},
    {"mul", "bf16", {OF(DET_BF16, 1, 30, 50), OF(DET_BF16, 1, 50)}, mul, "x0 * x1"},
    {"mul", "rows of packs, f16", {OF(DET_F16, 1, 30, 16), OF(DET_F16, 1, 30, 1)}, mul, "x0 * x1"},
    {"mul", "i32", {OF(DET_I32, 99, 3, 5), OF(DET_I32, 99, 5)}, mul, "x0 * x1"},
    {"div", "a row", {IN(3, 5), POSITIVE(5)}, divide, "x0 / x1"},
    {"div", "under a column", {POSITIVE(3, 1), POSITIVE(3, 5)}, divide, "x0 / x1"},
    {"div", "f64", {OF(DET_F64, 1, 3, 5), OF(DET_F64, 1, 3, 5)}, divide, "x0 / x1"},
    {"pow", "a tensor", {POSITIVE(3, 5), IN(5)}, power_of, "x0.pow(x1)"},
    {"prelu", "images", {BN4, IN(3)}, prelu, "F.prelu(x0, x1)"},
    {"maximum", "a row", {IN(3, 5), IN(5)}, maximum, "torch.maximum(x0, x1)"},
    {"maximum", "ties", {IN(3, 5)}, ties, "torch.maximum(x0, x0 * 1)"},
    {"maximum", "i16", {OF(DET_I16, 99, 3, 5), OF(DET_I16, 99, 5)}, maximum,
     "torch.maximum(x0, x1)"},
    {"minimum", "a column", {IN(3, 5), IN(3, 1)}, minimum, "torch.minimum(x0, x1)"},

    {"eq", "classes", {CLASSES(3, 5, 7), CLASSES(3, 7)}, f_eq, "x0 == x1"},
    {"ne", "classes", {CLASSES(3, 5, 7), CLASSES(3, 7)}, f_ne, "x0 != x1"},
    {"lt", "a row", {FIXED(5, 7), FIXED(7)}, f_lt, "x0 < x1"},
    {"le", "i64", {CLASSES(3, 5, 7), CLASSES(3, 7)}, f_le, "x0 <= x1"},
    {"gt", "large", {FIXED(500, 70), FIXED(500, 1)}, f_gt, "x0 > x1"},
    {"ge", "bf16", {OF(DET_BF16, 1, 50, 7), OF(DET_BF16, 1, 7)}, f_ge, "x0 >= x1"},
    {"lt", "a number", {FIXED(5, 7)}, number_less, "0.1 < x0"},
    {"logical_and", "classes", {CLASSES(3, 5, 7), CLASSES(3, 7)}, f_logical_and,
     "torch.logical_and(x0, x1)"},
    {"logical_or", "classes", {CLASSES(3, 5, 7), CLASSES(3, 7)}, f_logical_or,
     "torch.logical_or(x0, x1)"},
    {"logical_xor", "classes", {CLASSES(3, 5, 7), CLASSES(3, 7)}, f_logical_xor,
     "torch.logical_xor(x0, x1)"},
    {"eq", "logical_not", {FIXED(5, 7), FIXED(7)}, logical_not, "torch.logical_not(x0 > x1)"},
    {"ne", "isnan", {FIXED(5, 7)}, is_nan, "x0.log().isnan()"},
    {"where", "3x5", {IN(3, 5), IN(3, 5)}, where, "torch.where(x0 > x1, x0, x1)"},
    {"where", "all broadcast", {FIXED(3, 1), IN(5), IN(2, 1, 1)}, where_wide,
     "torch.where(x0 > 0, x1, x2)"},

    {"cast", "to f64", {IN(3, 4)}, to_f64, "x0.double()"},
    {"cast", "to bf16", {WIDE(1000, 30, 41)}, to_bf16, "x0.bfloat16()"},
    {"cast", "to f16", {WIDE(1000, 30, 41)}, to_f16, "x0.half()"},
    {"cast", "to f16, the smallest", {WIDE(1e-6, 300)}, to_f16, "x0.half()"},
    {"cast", "to f16, infinite", {WIDE(1e6, 300)}, to_f16, "x0.half()"},
    {"cast", "to i32", {WIDE(99, 3, 4)}, to_i32, "x0.int()"},
    {"cast", "i64 to i8", {WIDE(999, 3, 4)}, to_i8, "x0.long().to(torch.int8)"},
    {"cast", "to u8", {POSITIVE(3, 4)}, to_u8, "x0.to(torch.uint8)"},
    {"cast", "to bool", {CLASSES(2, 30)}, to_bool, "x0.bool()"},
    {"affine", "bf16", {OF(DET_BF16, 1, 30, 50)}, affine, "-2.5 * x0 + 0.75"},
    {"affine", "f64", {OF(DET_F64, 1, 30, 50)}, affine, "-2.5 * x0 + 0.75"},
    {"relu", "bf16", {OF(DET_BF16, 1, 30, 50)}, f_relu, "F.relu(x0)"},
    {"gelu", "bf16", {OF(DET_BF16, 3, 30, 50)}, f_gelu, "F.gelu(x0)"},
    {"tanh", "f64", {OF(DET_F64, 3, 30, 50)}, f_tanh, "x0.tanh()"},
    {"exp", "f16", {OF(DET_F16, 3, 30, 50)}, f_exp, "x0.float().exp().half()"},

    {"add", "arange", {IN(9)}, arange, "x0 + torch.arange(3, -1.2, -0.5)"},
    {"add", "linspace", {IN(7)}, linspace, "x0 + torch.linspace(-1, 2, 7)"},
    {"mul", "ones", {IN(7)}, ones, "(x0 + 1) * 3"},
    {"neg", "spoilt", {SPOILT(7, 11)}, f_neg, "-x0"},
    {"abs", "spoilt", {SPOILT(7, 11)}, f_abs, "x0.abs()"},
    {"exp", "spoilt", {SPOILT(7, 11)}, f_exp, "x0.exp()"},
    {"sin", "spoilt", {SPOILT(7, 11)}, f_sin, "x0.sin()"},
    {"tanh", "spoilt", {SPOILT(7, 11)}, f_tanh, "x0.tanh()"},
    {"erf", "spoilt", {SPOILT(7, 11)}, f_erf, "x0.erf()"},
    {"sigmoid", "spoilt", {SPOILT(7, 11)}, f_sigmoid, "x0.sigmoid()"},
    {"log_sigmoid", "spoilt", {SPOILT(7, 11)}, f_log_sigmoid, "F.logsigmoid(x0)"},
    {"gelu", "spoilt", {SPOILT(7, 11)}, f_gelu, "F.gelu(x0)"},
    {"gelu_tanh", "spoilt", {SPOILT(7, 11)}, f_gelu_tanh, "F.gelu(x0, approximate='tanh')"},
    {"silu", "spoilt", {SPOILT(7, 11)}, f_silu, "F.silu(x0)"},
    {"mish", "spoilt", {SPOILT(7, 11)}, f_mish, "F.mish(x0)"},
    {"elu", "spoilt", {SPOILT(7, 11)}, elu, "F.elu(x0, 1.3)"},
    {"leaky_relu", "spoilt", {SPOILT(7, 11)}, leaky, "F.leaky_relu(x0, 0.02)"},
    {"softplus", "spoilt", {SPOILT(7, 11)}, softplus, "F.softplus(x0, 2, 5)"},
    {"clamp", "spoilt", {SPOILT(7, 11)}, clamp, "x0.clamp(-0.4, 0.3)"},
    {"hardtanh", "spoilt", {SPOILT(7, 11)}, hardtanh, "F.hardtanh(x0, -0.4, 0.3)"},
    {"hardswish", "spoilt", {SPOILT(7, 11)}, f_hardswish, "F.hardswish(x0)"},
    {"relu", "spoilt", {SPOILT(7, 11)}, f_relu, "F.relu(x0)"},
    {0},
};
