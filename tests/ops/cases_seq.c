/* Layer norm and recurrent layers. */
#include "det/functional.h"

#include "functions_seq.h"
#include "op_case.h"

BUILD(layer_norm, det_layer_norm(e, in[0], 1, in[1], in[2], 0))
BUILD(layer_norm_plain, det_layer_norm(e, in[0], 1, NULL, NULL, 1e-3))
BUILD(layer_norm_2, det_layer_norm(e, in[0], 2, in[1], in[2], 0))
BUILD(rms_norm, det_rms_norm(e, in[0], 1, in[1], 1e-5))
BUILD(rms_norm_plain, det_rms_norm(e, in[0], 1, NULL, 1e-5))
BUILD(group_norm, det_group_norm(e, in[0], 2, in[1], in[2], 0))
BUILD(lstm, det__lstm(e, in, false))
BUILD(lstm_reverse, det__lstm(e, in, true))
BUILD(gru, det__gru(e, in, false))
BUILD(gru_reverse, det__gru(e, in, true))

static struct det_tensor *lstm_no_bias(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *all[5] = {in[0], in[1], in[2], in[3], NULL};
    return det__lstm(e, all, false);
}

/* The norm is of what has a gradient already when its own comes: the sum's, or another's. */
static struct det_tensor *layer_norm_added(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *h = det_neg(e, in[0]);
    return det_add(e, h, det_layer_norm(e, h, 1, in[1], in[2], 0));
}

static struct det_tensor *layer_norm_times(struct det_engine *e, struct det_tensor **in)
{
    struct det_tensor *h = det_neg(e, in[0]);
    return det_mul(e, h, det_layer_norm(e, h, 1, in[1], in[2], 0));
}

#define RMS "x0 * torch.rsqrt((x0 * x0).mean(-1, keepdim=True) + 1e-5)"
/* PyTorch's layer with an identity for the input's weights, as the kernels begin after those. */
#define LSTM(x, w)                                                                                 \
    "(lambda x, w: torch.lstm(x, (x2[None], x3[None]), [torch.eye(len(w)), w, "                    \
    "torch.zeros(len(w)), x4], True, 1, 0.0, True, False, False))(" x ", " w ")"
#define GRU(x, w)                                                                                  \
    "(lambda x, w: torch.gru(x, x2[None], [torch.eye(len(w)), w, torch.zeros(len(w)), x3], True, " \
    "1, 0.0, True, False, False))(" x ", " w ")[0]"

/* clang-format off */
const struct op_case cases_seq[] = {
    {"layer_norm", "3x5x7", {IN(3, 5, 7), IN(7), IN(7)}, layer_norm,
     "F.layer_norm(x0, (7,), x1, x2)"},
    {"layer_norm", "plain", {IN(5, 9)}, layer_norm_plain, "F.layer_norm(x0, (9,), eps=1e-3)"},
    {"layer_norm", "two dimensions", {IN(3, 4, 5), IN(4, 5), IN(4, 5)}, layer_norm_2,
     "F.layer_norm(x0, (4, 5), x1, x2)"},
    {"layer_norm", "large", {IN(65, 777), IN(777), IN(777)}, layer_norm,
     "F.layer_norm(x0, (777,), x1, x2)"},
    {"layer_norm", "empty", {IN(0, 7), IN(7), IN(7)}, layer_norm,
     "F.layer_norm(x0, (7,), x1, x2)"},
    {"layer_norm", "in packs", {IN(37, 8), IN(8), IN(8)}, layer_norm,
     "F.layer_norm(x0, (8,), x1, x2)"},
    {"layer_norm", "added to its input", {IN(5, 37, 16), IN(16), IN(16)}, layer_norm_added,
     "(lambda h: h + F.layer_norm(h, (16,), x1, x2))(-x0)"},
    {"layer_norm", "times its input", {IN(5, 37, 16), IN(16), IN(16)}, layer_norm_times,
     "(lambda h: h * F.layer_norm(h, (16,), x1, x2))(-x0)"},
    {"layer_norm", "large, times its input", {IN(65, 777), IN(777), IN(777)}, layer_norm_times,
     "(lambda h: h * F.layer_norm(h, (777,), x1, x2))(-x0)"},
    {"layer_norm", "rms", {IN(3, 5, 7), IN(7)}, rms_norm, RMS " * x1"},
    {"layer_norm", "rms, plain", {IN(5, 9)}, rms_norm_plain, RMS},
    {"layer_norm", "large rms", {IN(65, 777), IN(777)}, rms_norm, RMS " * x1"},
    {"layer_norm", "groups", {IN(3, 6, 4, 5), IN(6), IN(6)}, group_norm,
     "F.group_norm(x0, 2, x1, x2)"},
    {"layer_norm", "groups of rows", {IN(3, 10), IN(10), IN(10)}, group_norm,
     "F.group_norm(x0, 2, x1, x2)"},
    {"lstm", "4 steps", {IN(4, 3, 20), IN(20, 5), IN(3, 5), IN(3, 5), IN(20)}, lstm,
     "(lambda r: torch.cat([r[0], r[2]]))(" LSTM("x0", "x1") ")"},
    {"lstm", "backwards", {IN(4, 3, 20), IN(20, 5), IN(3, 5), IN(3, 5), IN(20)}, lstm_reverse,
     "(lambda r: torch.cat([r[0].flip(0), r[2]]))(" LSTM("x0.flip(0)", "x1") ")"},
    {"lstm", "1 step", {IN(1, 2, 8), IN(8, 2), IN(2, 2), IN(2, 2), IN(8)}, lstm,
     "(lambda r: torch.cat([r[0], r[2]]))(" LSTM("x0", "x1") ")"},
    {"lstm", "no bias", {IN(3, 2, 12), IN(12, 3), IN(2, 3), IN(2, 3)}, lstm_no_bias, NULL},
    {"lstm", "large", {IN(6, 9, 140), IN(140, 35), IN(9, 35), IN(9, 35), IN(140)}, lstm,
     "(lambda r: torch.cat([r[0], r[2]]))(" LSTM("x0", "x1") ")"},
    {"gru", "4 steps", {IN(4, 3, 15), IN(15, 5), IN(3, 5), IN(15)}, gru, GRU("x0", "x1")},
    {"gru", "backwards", {IN(4, 3, 15), IN(15, 5), IN(3, 5), IN(15)}, gru_reverse,
     GRU("x0.flip(0)", "x1") ".flip(0)"},
    {"gru", "large", {IN(6, 9, 105), IN(105, 35), IN(9, 35), IN(105)}, gru, GRU("x0", "x1")},
    {"layer_norm", "groups, no images", {IN(0, 6, 4, 5), IN(6), IN(6)}, group_norm,
     "F.group_norm(x0, 2, x1, x2)"},
    {"lstm", "no batch", {IN(4, 0, 20), IN(20, 5), IN(0, 5), IN(0, 5), IN(20)}, lstm,
     "torch.zeros(5, 0, 5, dtype=x0.dtype) + 0 * (x0.sum() + x1.sum() + x2.sum() + x3.sum() + x4.sum())"},
    {"gru", "no batch", {IN(4, 0, 15), IN(15, 5), IN(0, 5), IN(15)}, gru, GRU("x0", "x1")},
    {0},
};
