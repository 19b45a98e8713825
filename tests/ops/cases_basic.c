/* Arithmetic, sums, shapes, linear layers, softmax and losses. */
#include "op_case.h"

BUILD(add, det_add(e, in[0], in[1]))
BUILD(add_self, det_add(e, in[0], in[0]))
BUILD(sub, det_sub(e, in[0], in[1]))
BUILD(mul, det_mul(e, in[0], in[1]))
BUILD(square, det_mul(e, in[0], in[0]))
BUILD(affine, det_affine(e, in[0], -2.5, 0.75))
BUILD(sum, det_sum(e, in[0]))
BUILD(mean, det_mean(e, in[0]))
BUILD(relu, det_relu(e, in[0]))
BUILD(linear, det_linear(e, in[0], in[1], in[2]))
BUILD(linear_no_bias, det_linear(e, in[0], in[1], NULL))
BUILD(log_softmax, det_log_softmax(e, in[0]))
BUILD(softmax, det_softmax(e, in[0]))
BUILD(reshape, det_reshape(e, in[0], 3, (int64_t[]){2, -1, 5}))
BUILD(to_integers, det_cast(e, in[0], DET_I64))
BUILD(argmax, det_argmax(e, in[0]))
BUILD(eq_count, det_eq_count(e, det_argmax(e, in[0]), in[1]))

BUILD(softmax_number,
      det_add(e, det_softmax(e, det_sum(e, in[0])), det_log_softmax(e, det_mean(e, in[0]))))

static struct det_tensor *dropout(struct det_engine *e, struct det_tensor **in)
{
    det_engine_set_rng_state(e, (struct det_rng_state){.seed = 77, .calls = 3});
    return det_dropout(e, in[0], 0.3, true);
}

/* clang-format off */
const struct op_case cases_basic[] = {
    {"add", "3x5x7", {IN(3, 5, 7), IN(3, 5, 7)}, add, "x0 + x1"},
    {"add", "twice the same", {IN(3, 5)}, add_self, "x0 + x0"},
    {"add", "large", {IN(129, 517), IN(129, 517)}, add, "x0 + x1"},
    {"add", "empty", {IN(0, 5), IN(0, 5)}, add, "x0 + x1"},
    {"sub", "3x5", {IN(3, 5), IN(3, 5)}, sub, "x0 - x1"},
    {"mul", "3x5", {IN(3, 5), IN(3, 5)}, mul, "x0 * x1"},
    {"mul", "a square", {IN(3, 5)}, square, "x0 * x0"},
    {"affine", "7x11", {IN(7, 11)}, affine, "-2.5 * x0 + 0.75"},
    {"sum", "5x9", {IN(5, 9)}, sum, "x0.sum()"},
    {"sum", "empty", {IN(0, 9)}, sum, "x0.sum()"},
    {"sum", "a mean", {IN(2, 3, 5, 5)}, mean, "x0.mean()"},
    {"sum", "large", {IN(97, 331)}, mean, "x0.mean()"},
    {"relu", "7x13", {IN(7, 13)}, relu, "F.relu(x0)"},
    {"relu", "large", {IN(130, 300)}, relu, "F.relu(x0)"},
    {"linear", "5x7 to 3", {IN(5, 7), IN(3, 7), IN(3)}, linear, "F.linear(x0, x1, x2)"},
    {"linear", "empty", {IN(0, 7), IN(3, 7), IN(3)}, linear, "F.linear(x0, x1, x2)"},
    {"linear", "empty, 3 dimensions", {IN(2, 0, 7), IN(3, 7)}, linear_no_bias, "F.linear(x0, x1)"},
    {"linear", "no features", {IN(2, 3, 0), IN(4, 0), IN(4)}, linear, "F.linear(x0, x1, x2)"},
    {"linear", "no bias", {IN(5, 7), IN(3, 7)}, linear_no_bias, "F.linear(x0, x1)"},
    {"linear", "3 dimensions", {IN(2, 3, 7), IN(4, 7), IN(4)}, linear, "F.linear(x0, x1, x2)"},
    {"linear", "large", {IN(33, 700), IN(65, 700), IN(65)}, linear, "F.linear(x0, x1, x2)"},
    {"linear", "large enough to reorder", {IN(65, 700), IN(97, 700), IN(97)},
     linear, "F.linear(x0, x1, x2)"},
    {"linear", "large, no bias", {IN(65, 700), IN(97, 700)}, linear_no_bias, "F.linear(x0, x1)"},
    {"log_softmax", "5x10", {WIDE(3, 5, 10)}, log_softmax, "F.log_softmax(x0, -1)"},
    {"log_softmax", "no rows", {IN(0, 5)}, log_softmax, "F.log_softmax(x0, -1)"},
    {"softmax", "no columns", {IN(3, 0)}, softmax, "F.softmax(x0, -1)"},
    {"softmax", "a number", {IN(5)}, softmax_number,
     "F.softmax(x0.sum(), -1) + F.log_softmax(x0.mean(), -1)"},
    {"log_softmax", "3 dimensions", {WIDE(3, 2, 3, 4)}, log_softmax, "F.log_softmax(x0, -1)"},
    {"log_softmax", "large", {WIDE(9, 5, 1000)}, log_softmax, "F.log_softmax(x0, -1)"},
    {"log_softmax", "large values", {FAR(5, 37)}, log_softmax, "F.log_softmax(x0, -1)"},
    {"softmax", "large values", {FAR(5, 37)}, softmax, "F.softmax(x0, -1)"},
    {"softmax", "5x10", {WIDE(3, 5, 10)}, softmax, "F.softmax(x0, -1)"},
    {"dropout", "4x33", {IN(4, 33)}, dropout, NULL},
    {"dropout", "bf16", {OF(DET_BF16, 1, 13, 31)}, dropout, NULL},
    {"dropout", "f16", {OF(DET_F16, 1, 13, 31)}, dropout, NULL},
    {"dropout", "large", {IN(131, 301)}, dropout, NULL},
    {"reshape", "6x5", {IN(6, 5)}, reshape, "x0.reshape(2, -1, 5)"},
    {"cast", "to integers", {WIDE(9, 3, 4)}, to_integers, "x0.long()"},
    {"argmax", "rows", {FIXED(7, 9)}, argmax, "x0.argmax(-1)"},
    {"eq_count", "argmax", {FIXED(9, 4), CLASSES(3, 9)},
     eq_count, "(x0.argmax(1) == x1).sum().float()"},
    {0},
};
