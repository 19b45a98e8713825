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
/* -inf where x is not above 0; or everywhere. */
BUILD(ce_nothing,
      det_cross_entropy(e, det_log(e, det_relu(e, in[0])), in[1], .reduction = DET_REDUCE_NONE))
BUILD(ce_never, det_cross_entropy(e, det_log(e, det_scale(e, det_relu(e, in[0]), 0)), in[1],
                                  .reduction = DET_REDUCE_NONE))
BUILD(ce_rows, det_cross_entropy(e, det_narrow(e, in[0], 0, 1, 6), in[1]))

BUILD(mse, det_mse_loss(e, in[0], in[1]))
BUILD(mse_none, det_mse_loss(e, in[0], in[1], .reduction = DET_REDUCE_NONE))
BUILD(l1, det_l1_loss(e, in[0], in[1]))
BUILD(l1_sum, det_l1_loss(e, in[0], in[1], .reduction = DET_REDUCE_SUM))
BUILD(smooth_l1, det_smooth_l1_loss(e, in[0], in[1], .beta = 0.3))
BUILD(huber, det_huber_loss(e, in[0], in[1], .delta = 0.4))
BUILD(bce, det_bce_loss(e, det_sigmoid(e, in[0]), det_sigmoid(e, in[1]), .weight = in[2]))
BUILD(bce_logits, det_bce_with_logits_loss(e, in[0], in[1], .pos_weight = in[2]))
BUILD(bce_logits_sum,
      det_bce_with_logits_loss(e, in[0], in[1], .weight = in[2], .reduction = DET_REDUCE_SUM))
BUILD(kl, det_kl_div_loss(e, det_log_softmax(e, in[0]), det_softmax(e, in[1])))
BUILD(kl_sum, det_kl_div_loss(e, in[0], det_mul(e, in[1], in[1]), .reduction = DET_REDUCE_SUM))
BUILD(kl_log, det_kl_div_loss(e, det_log_softmax(e, in[0]), det_log_softmax(e, in[1]),
                              .batch_mean = true, .log_target = true))
BUILD(cosine, det_cosine_similarity(e, in[0], in[1], 1, 0))

/* Class weights are positive: 0.1387 is the least that an input of range 1 has above -1. */
#define WEIGHTS(n) FIXED(n)

/* clang-format off */
const struct op_case cases_loss[] = {
    {"nll_loss", "5x10", {IN(5, 10), CLASSES(9, 5)}, nll, "F.nll_loss(x0, x1)"},
    {"nll_loss", "weights, ignored", {IN(9, 5), CLASSES(4, 9), WEIGHTS(5)}, nll_weight,
     "F.nll_loss(x0, x1, x2, ignore_index=2)"},
    {"cross_entropy", "5x10", {IN(5, 10), CLASSES(9, 5)}, cross_entropy, "F.cross_entropy(x0, x1)"},
    {"nll_loss", "empty", {IN(0, 10), CLASSES(9, 0)}, nll, "F.nll_loss(x0, x1)"},
    {"cross_entropy", "empty", {IN(0, 10), CLASSES(9, 0)}, cross_entropy,
     "F.cross_entropy(x0, x1)"},
    {"cross_entropy", "empty sum", {IN(0, 5), CLASSES(4, 0)}, ce_sum,
     "F.cross_entropy(x0, x1, reduction='sum')"},
    {"cross_entropy", "empty planes, none", {IN(0, 5, 3), CLASSES(4, 0, 3)}, ce_none,
     "F.cross_entropy(x0, x1, reduction='none')"},
    {"cross_entropy", "large", {WIDE(8, 65, 1001), CLASSES(1000, 65)}, cross_entropy,
     "F.cross_entropy(x0, x1)"},
    {"cross_entropy", "large values", {FAR(5, 37), CLASSES(36, 5)}, cross_entropy,
     "F.cross_entropy(x0, x1)"},
    {"cross_entropy", "large values, smoothed", {FAR(5, 37), CLASSES(6, 5)}, ce_smooth,
     "F.cross_entropy(x0, x1, label_smoothing=0.1)"},
    {"cross_entropy", "ignored", {WIDE(3, 9, 5), CLASSES(4, 9)}, ce_ignore,
     "F.cross_entropy(x0, x1, ignore_index=3)"},
    {"cross_entropy", "sum", {WIDE(3, 9, 5), CLASSES(4, 9)}, ce_sum,
     "F.cross_entropy(x0, x1, reduction='sum')"},
    {"cross_entropy", "none", {WIDE(3, 9, 5), CLASSES(4, 9)}, ce_none,
     "F.cross_entropy(x0, x1, reduction='none', ignore_index=1)"},
    {"cross_entropy", "planes", {WIDE(3, 2, 5, 3, 4), CLASSES(4, 2, 3, 4)}, cross_entropy,
     "F.cross_entropy(x0, x1)"},
    {"cross_entropy", "planes, none", {WIDE(3, 2, 5, 3), CLASSES(4, 2, 3)}, ce_none,
     "F.cross_entropy(x0, x1, reduction='none', ignore_index=1)"},
    {"cross_entropy", "label smoothing", {WIDE(3, 9, 7), CLASSES(6, 9)}, ce_smooth,
     "F.cross_entropy(x0, x1, label_smoothing=0.1)"},
    {"cross_entropy", "all together", {WIDE(3, 9, 7), CLASSES(6, 9), WEIGHTS(7)}, ce_all,
     "F.cross_entropy(x0, x1, x2, ignore_index=4, label_smoothing=0.2)"},
    {"cross_entropy", "all, none", {WIDE(3, 9, 7), CLASSES(6, 9), WEIGHTS(7)}, ce_all_none,
     "F.cross_entropy(x0, x1, x2, reduction='none', label_smoothing=0.2)"},
    {"cross_entropy", "large, spoilt", {SPOILT(5, 37), CLASSES(36, 5)}, ce_none, NULL},
    {"cross_entropy", "large, -inf", {IN(7, 301), CLASSES(300, 7)}, ce_nothing,
     "F.cross_entropy(torch.log(F.relu(x0)), x1, reduction='none')"},
    {"cross_entropy", "large, all -inf", {IN(3, 19), CLASSES(18, 3)}, ce_never, NULL},
    {"cross_entropy", "one class", {IN(7, 1), CLASSES(0, 7)}, cross_entropy,
     "F.cross_entropy(x0, x1)"},
    {"cross_entropy", "rows from the second on", {WIDE(8, 7, 43), CLASSES(42, 6)}, ce_rows,
     "F.cross_entropy(x0[1:], x1)"},
    {"cross_entropy", "bf16", {OF(DET_BF16, 6, 9, 75), CLASSES(74, 9)}, cross_entropy,
     "F.cross_entropy(x0.float(), x1).bfloat16()"},
    {"cross_entropy", "bf16, none", {OF(DET_BF16, 6, 9, 75), CLASSES(74, 9)}, ce_none,
     "F.cross_entropy(x0.float(), x1, reduction='none', ignore_index=1).bfloat16()"},
    {"cross_entropy", "large bf16", {OF(DET_BF16, 8, 13, 2503), CLASSES(2502, 13)}, ce_sum,
     "F.cross_entropy(x0.float(), x1, reduction='sum').bfloat16()"},
    {"cross_entropy", "bf16, label smoothing",
     {OF(DET_BF16, 3, 9, 17), CLASSES(16, 9)}, ce_smooth,
     "F.cross_entropy(x0.float(), x1, label_smoothing=0.1).bfloat16()"},
    {"cross_entropy", "f16", {OF(DET_F16, 6, 9, 75), CLASSES(74, 9)}, cross_entropy,
     "F.cross_entropy(x0.float(), x1).half()"},
    {"cross_entropy", "f16, rows of packs", {OF(DET_F16, 6, 9, 64), CLASSES(63, 9)}, ce_ignore,
     "F.cross_entropy(x0.float(), x1, ignore_index=3).half()"},
    {"mse_loss", "bf16", {OF(DET_BF16, 2, 9, 75), OF(DET_BF16, 1, 9, 75)}, mse,
     "F.mse_loss(x0.float(), x1.float()).bfloat16()"},
    {"mse_loss", "4x6", {IN(4, 6), IN(4, 6)}, mse, "F.mse_loss(x0, x1)"},
    {"mse_loss", "empty", {IN(0, 6), IN(0, 6)}, mse, "F.mse_loss(x0, x1)"},
    {"point_loss", "l1, empty sum", {IN(4, 0), IN(4, 0)}, l1_sum,
     "F.l1_loss(x0, x1, reduction='sum')"},
    {"point_loss", "kl, empty", {IN(0, 6), FIXED(0, 6)}, kl_log,
     "F.kl_div(x0, x1, reduction='batchmean', log_target=True)"},
    {"point_loss", "mse, none", {IN(4, 6), IN(4, 6)}, mse_none,
     "F.mse_loss(x0, x1, reduction='none')"},
    {"point_loss", "l1", {IN(4, 6), IN(4, 6)}, l1, "F.l1_loss(x0, x1)"},
    {"point_loss", "l1, sum", {IN(4, 6), IN(4, 6)}, l1_sum, "F.l1_loss(x0, x1, reduction='sum')"},
    {"point_loss", "smooth l1", {IN(4, 6), IN(4, 6)}, smooth_l1,
     "F.smooth_l1_loss(x0, x1, beta=0.3)"},
    {"point_loss", "huber", {IN(4, 6), IN(4, 6)}, huber, "F.huber_loss(x0, x1, delta=0.4)"},
    {"point_loss", "large huber", {IN(90, 133), IN(90, 133)}, huber,
     "F.huber_loss(x0, x1, delta=0.4)"},
    {"point_loss", "bce", {IN(4, 6), FIXED(4, 6), FIXED(6)}, bce,
     "F.binary_cross_entropy(torch.sigmoid(x0), torch.sigmoid(x1), weight=x2)"},
    {"point_loss", "bce of logits", {WIDE(9, 4, 6), FIXED(4, 6), FIXED(6)}, bce_logits,
     "F.binary_cross_entropy_with_logits(x0, x1, pos_weight=x2)"},
    {"point_loss", "bce of logits, sum", {WIDE(9, 4, 6), FIXED(4, 6), FIXED(4, 6)}, bce_logits_sum,
     "F.binary_cross_entropy_with_logits(x0, x1, weight=x2, reduction='sum')"},
    {"point_loss", "kl", {IN(4, 6), FIXED(4, 6)}, kl,
     "F.kl_div(F.log_softmax(x0, -1), F.softmax(x1, -1), reduction='mean')"},
    {"point_loss", "kl, log target", {IN(4, 6), FIXED(4, 6)}, kl_log,
     "F.kl_div(F.log_softmax(x0, -1), F.log_softmax(x1, -1), reduction='batchmean', "
     "log_target=True)"},
    {"reduce", "cosine similarity", {IN(3, 5, 2), IN(3, 5, 2)}, cosine,
     "F.cosine_similarity(x0, x1, dim=1)"},
    {"point_loss", "bce, spoilt", {SPOILT(4, 6), FIXED(4, 6), FIXED(6)}, bce, NULL},
    {"point_loss", "kl, spoilt target", {IN(4, 6), SPOILT(4, 6)}, kl_sum,
     "F.kl_div(x0, x1 * x1, reduction='sum')"},
    {0},
};
