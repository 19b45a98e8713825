/* Losses. */
#include "det/functional.h"

#include "op_case.h"

BUILD(nll, det_nll_loss(e, in[0], in[1]))
BUILD(nll_weight, det_nll_loss(e, in[0], in[1], .weight = in[2], .ignore = true, .ignore_index = 2))
BUILD(cross_entropy, det_cross_entropy(e, in[0], in[1]))
BUILD(ce_ignore, det_cross_entropy(e, in[0], in[1], .ignore = true, .ignore_index = 3))
BUILD(ce_sum, det_cross_entropy(e, in[0], in[1], .reduction = DET_REDUCE_SUM))
BUILD(ce_none, det_cross_entropy(e, in[0], in[1], .reduction = DET_REDUCE_NONE, .ignore = true,
                                 .ignore_index = 1))
BUILD(ce_smooth, det_cross_entropy(e, in[0], in[1], .label_smoothing = 0.1))
BUILD(ce_all, det_cross_entropy(e, in[0], in[1], .label_smoothing = 0.2, .weight = in[2],
                                .ignore = true, .ignore_index = 4))
BUILD(ce_all_none, det_cross_entropy(e, in[0], in[1], .label_smoothing = 0.2, .weight = in[2],
                                     .reduction = DET_REDUCE_NONE))

/* Class weights are positive: 0.1387 is the least that an input of range 1 has above -1. */
#define WEIGHTS(n) FIXED(n)

/* clang-format off */
const struct op_case cases_loss[] = {
    {"nll_loss", "5x10", {IN(5, 10), CLASSES(9, 5)}, nll, "F.nll_loss(x0, x1)"},
    {"nll_loss", "weights, ignored", {IN(9, 5), CLASSES(4, 9), WEIGHTS(5)}, nll_weight,
     "F.nll_loss(x0, x1, x2, ignore_index=2)"},
    {"cross_entropy", "5x10", {IN(5, 10), CLASSES(9, 5)}, cross_entropy, "F.cross_entropy(x0, x1)"},
    {"cross_entropy", "large", {WIDE(8, 65, 1001), CLASSES(1000, 65)}, cross_entropy,
     "F.cross_entropy(x0, x1)"},
    {"cross_entropy", "ignored", {WIDE(3, 9, 5), CLASSES(4, 9)}, ce_ignore,
     "F.cross_entropy(x0, x1, ignore_index=3)"},
    {"cross_entropy", "sum", {WIDE(3, 9, 5), CLASSES(4, 9)}, ce_sum,
     "F.cross_entropy(x0, x1, reduction='sum')"},
    {"cross_entropy", "none", {WIDE(3, 9, 5), CLASSES(4, 9)}, ce_none,
     "F.cross_entropy(x0, x1, reduction='none', ignore_index=1)"},
    {"cross_entropy", "label smoothing", {WIDE(3, 9, 7), CLASSES(6, 9)}, ce_smooth,
     "F.cross_entropy(x0, x1, label_smoothing=0.1)"},
    {"cross_entropy", "all together", {WIDE(3, 9, 7), CLASSES(6, 9), WEIGHTS(7)}, ce_all,
     "F.cross_entropy(x0, x1, x2, ignore_index=4, label_smoothing=0.2)"},
    {"cross_entropy", "all, none", {WIDE(3, 9, 7), CLASSES(6, 9), WEIGHTS(7)}, ce_all_none,
     "F.cross_entropy(x0, x1, x2, reduction='none', label_smoothing=0.2)"},
    {0},
};
