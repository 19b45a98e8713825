/*
 * A backend: one kind of device with memory, streams, asynchronous copies and kernels, behind one
 * table. `ref` is plain C and defines what each kernel means; `cpu` is oneDNN and threads; others
 * are modules `det_backend_<name>.so` beside the program, loaded when a device of theirs is asked
 * for, which export `det_backend_get` (a det_backend_get_fn).
 *
 * Rules for kernels
 * - Asynchronous: a kernel may return before its work is done; work of one stream is done in order.
 *   Memory given back while work on it is still queued will only be used again on the same stream.
 * - All tensors of a call are on the device, allocated by the caller, with the shapes stated below;
 *   the caller (autograd/op.c) has checked shapes, dtypes and layouts. Floating tensors are f32, in
 *   the table of f64 kernels f64, and dense unless said otherwise.
 * - 4-D activations of convolution, batch norm and pooling are NHWC in memory (tensor_impl.h; where
 * both orders are the same bytes the layout may say PLAIN). Weights are plain (O, I, kH, kW).
 * - The kernels marked * see any dtype (one for all tensors of a call unless said) and any strides;
 *   all their inputs have the output's dims, repeated by strides of 0 where the call broadcasts.
 *   Other element-wise kernels see one layout on all their tensors and may treat them as flat
 *   vectors.
 * - The kernels marked + see f32, f64 or i64, one for all values of a call (their gradients f32 or
 *   f64): floating numbers are summed in double but by the additions at an index, whole ones modulo
 *   2^64.
 * - An output is overwritten, never added to. Outputs do not overlap inputs, except where "may be"
 *   says so.
 * - Sums over many elements have a fixed partition: equal bits at every run with equal threads.
 * - 0 or a negative DET_E* with the vendor's text. A NULL entry means the backend lacks the kernel.
 * - One thread uses a device at a time; but another one may copy to the host and wait on a stream
 *   that nobody else uses.
 */
#ifndef BACKEND_H
#define BACKEND_H

#include "det/functional.h"
#include "elem.h"
#include "tensor_impl.h"

#define DET_BACKEND_VERSION 7

struct det_device; /* the backend's own */
struct det_stream;
struct det_event;

/* clang-format off */
/*
 * X(NAME, name). in and out are det_call's arrays, a is its attributes. M, N, K as in GEMM.
 *
 * FILL          out: y, any dtype               y = a.scale
 * COPY *        in: x  out: y                   same dims: y = x, converted (tensor/dtype.h)
 * ADD SUB MUL * in: x1 x2  out: y               y may be x1 or x2; f32, f16 and bf16 may mix
 * UNARY *       in: x  out: y                   y = f(x), a.fn of enum det_unary (elem.h);
 *                                               floating; y may be x
 * UNARY_BWD *   in: dy x y  out: dx             dx may be dy
 * BINARY *      in: x1 x2  out: y               a.fn of enum det_binary; y may be x1 or x2
 * BINARY_BWD *  in: dy x1 x2  out: dx           the slope of a.fn by x1, or by x2 where a.side;
 *                                               dx may be dy
 * COMPARE *     in: x1 x2  out: y bool          a.fn of enum det_compare
 * WHERE *       in: cond bool, x1 x2  out: y    y = cond ? x1 : x2
 * SUM_TO        in: x  out: y, dense            y, of no more dims than x, each 1 or x's: the sums
 *                    of x over what y lacks; floating, f16 and bf16 summed in f32 or better
 * AFFINE        in: x  out: y                   y = a.scale * x + a.offset; any floating dtype;
 *                                               y may be x
 * CLAMP         in: x  out: y                   y = min(max(x, a.lo), a.hi); y may be x
 * RELU          in: x  out: y                   any floating dtype; y may be x
 * RELU_BWD      in: dy y  out: dx               dx = y <= 0 ? 0 : dy; dx may be dy
 * NORMAL        out: y                          y = offset + scale * n; elements i and i + 1 (i
 *                    even) are the Box-Muller pair r cos, r sin of the uniforms u, v that words i %
 *                    4 and i % 4 + 1 give: r = sqrt(-2 ln(1 - u)), angle 2 pi v
 * UNIFORM       out: y                          y = lo + (hi - lo) * u, u = (draw >> 8) * 2^-24 in
 *                    f32; element i takes word i % 4 of philox4x32(a.seed, a.call, i / 4), where i
 *                    counts in plain (C) order
 * DROPOUT       in: x  out: y, mask u8 flat     mask = u >= a.p (u as above, i in memory order),
 *                                               y = mask ? x * a.scale : 0
 * DROPOUT_BWD   in: dy mask  out: dx            dx = mask ? dy * a.scale : 0; dx may be dy
 * LINEAR        in: x [M,K], w [N,K], b [N]|NULL  out: y [M,N]          y = x w^T + b
 * LINEAR_BWD_DATA    in: dy w  out: dx                                  dx = dy w
 * LINEAR_BWD_WEIGHT  in: x dy  out: dw, db|NULL     dw = dy^T x, db = column sums of dy
 *                    of these two gradients the outputs may be f32 where the inputs are not, if
 *                    computes() says so
 * CONV2D        in: x w b|NULL  out: y          the window's attributes; w is (O, I / a.groups, kH,
 *                    kW), output channel o sees the input channels of group o / (O / a.groups);
 *                    a.relu: y = max(0, y)
 * CONV2D_BWD_DATA    in: dy w  out: dx
 * CONV2D_BWD_WEIGHT  in: x dy  out: dw, db|NULL     a.same_dy: the last CONV2D_BWD_DATA had this
 *                    dy, unchanged since, so what was made of it may serve again
 * BATCH_NORM_TRAIN   in: x w b  out: y, mean [C], invstd [C], running_mean, running_var (both in
 *                    and out); the biased variance normalises; running = (1 - a.momentum) * running
 *                    + a.momentum * new, with the unbiased variance; a.eps; in[5], where given, is
 *                    added to y; then a.relu: y = max(0, y)
 * BATCH_NORM_EVAL    in: x w b running_mean running_var  out: y, mean, invstd (what was used);
 *                    a.eps, in[5], a.relu as above
 * BATCH_NORM_BWD     in: dy x y w mean invstd b|NULL  out: dx|NULL, dw, db, dr|NULL; a.relu: dy
 *                    counts where y > 0; b is given where nothing was added to y, so that the norm
 *                    of x says so too; a.train: through the batch's statistics, else they are
 *                    constants; dr is the gradient of in[5]. dr may be dy; without dr, dx may be dy
 * MAX_POOL2D    in: x  out: y, index u8         the window's attributes, up to 256 taps, no
 *                    dilation; index has the dims and layout of y: kh * kernel_w + kw of the
 *                    greatest, the first of equals. a.adaptive: kernel_* is that of the largest
 *                    window, kh and kw count from the window's start
 * MAX_POOL2D_BWD     in: dy index  out: dx
 * AVG_POOL2D    in: x  out: y                   divides by the pixels under the window: with
 *                    a.include_pad those of the padding too (zeros), up to pad_* after the image
 * AVG_POOL2D_BWD     in: dy  out: dx
 * PAD           in: x  out: y                   y[i] = x[i - a.before], outside of x by a.pad_mode
 *                    (enum det_pad_mode; DET_PAD_ZEROS: a.scale); any layout, the same on both
 * PAD_BWD       in: dy  out: dx
 * UPSAMPLE      in: x  out: y                   resamples rows and columns; a.linear,
 *                    a.align_corners, a.step_h a.step_w: pixels of x for one of y
 * UPSAMPLE_BWD  in: dy  out: dx
 * LOG_SOFTMAX SOFTMAX          in: x [M,N]  out: y
 * LOG_SOFTMAX_BWD SOFTMAX_BWD  in: dy y  out: dx
 * NLL           in: x [M,N], target i64 [M]  out: y scalar   -mean(x[i, target[i]]); a target
 *                    outside 0..N-1 is DET_EINVAL, at the latest from stream_sync
 * NLL_BWD       in: dy scalar, target  out: dx [M,N]
 * MSE           in: x target  out: y scalar     mean((x - target)^2)
 * MSE_BWD       in: dy scalar, x, target  out: dx
 * SUM           in: x  out: y scalar            a.scale * sum(x)
 * SUM_BWD       in: dy scalar  out: dx          dx = a.scale * dy everywhere
 * SQNORM        in: x  out: y scalar            sum of squares
 * ABSMAX        in: x  out: y scalar            the greatest |x|; NaN where one is NaN
 * LIMIT         in: norm scalar  out: x, dense  in and out; x *= a.hi / (norm + a.eps), where that
 *                    is not 1 or more (a norm that is NaN makes all of x NaN)
 * ARGMAX        in: x [M,N]  out: y i64 [M]     the first of equals
 * EQ_COUNT      in: x1 x2 (same dtype)  out: y scalar f32
 * LAYER_NORM    in: x [M,N], w [N]|NULL, b [N]|NULL  out: y, mean [M], invstd [M]
 *                    y = (x - mean) * invstd * w + b, by the row's biased variance and a.eps;
 *                    a.rms: the mean counts as 0. Backward: dx += g where given; dx may be g
 * LAYER_NORM_BWD     in: dy x w|NULL mean invstd g|NULL  out: dx|NULL, dw|NULL, db|NULL; a.rms
 * INDEX_SELECT  in: x [A,N,B] (or [N,B], A = 1; so below), any dtype, index i64 [K]  out: y
 *                    [A,K,B]; an index outside 0..N-1 is DET_EINVAL
 * INDEX_ADD +   in: x [A,N,B]|NULL, index i64, src [A,K,B]  out: y [A,N,B]   y = x (zeros where
 *                    NULL; y may be x), then y[a, index[k], b] += src[a, k, b] in the order of k;
 *                    an index that is a.skip adds nothing
 * GATHER        in: x [A,N,B] of any dtype, index i64 [A,K,B]  out: y [A,K,B]
 * SCATTER_ADD + in: x [A,N,B]|NULL, index i64 [A,K,B], src [A,K,B]  out: y   as INDEX_ADD
 * MATMUL        in: x1 [..,M,K] x2 [..,K,N]  out: y [..,M,N]   equal ndim; each batch dimension is
 *                    equal or 1 (used for all); where y has 1 and an operand more, the products are
 *                    summed in order; a.trans_a: x1 is [..,K,M], a.trans_b: x2 is [..,N,K]
 * CROSS_ENTROPY in: x [M,N] logits, target i64 [M], w [N]|NULL  out: y, sums [2,M], count, a scalar
 *                    row loss = sum_c q_c w_c (max + sum - x_c), max the row's greatest and sum the
 *                    logarithm of sum_c exp(x_c - max); sums has the max of all rows, then the sum
 *                    of all, which within a large max would lose its digits; q = (1 - a.smoothing)
 *                    onehot(target) + a.smoothing / N; 0 where target is a.skip; count = sum of
 *                    w[target] over the rest; a.mode (enum det_reduction): y [M], or the sum, or
 *                    sum over count; a.log_probs: x is log-probabilities already, max and sum are 0
 * CROSS_ENTROPY_BWD  in: dy x target w|NULL sums count  out: dx
 * LSTM          in: gx [T,B,4H], w [4H,H], h0 [B,H], c0 [B,H], b [4H]|NULL  out: y [T+1,B,H],
 *                    gates [T,B,4H], cells [T,B,H]
 *                    Hochreiter & Schmidhuber 1997 with forget gates, order i f g o: z = gx[t] +
 *                    h w^T + b; c = sigmoid(f) c + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c);
 *                    y[t] = h, y[T] = the last c; gates and cells are kept for the gradient (gates
 *                    after their functions); a.reverse: from t = T-1 to 0
 * LSTM_BWD      in: dy y gates cells w h0 c0  out: dgx, dw, db|NULL, dh0, dc0; a.reverse
 * GRU           in: gx [T,B,3H], w [3H,H], h0 [B,H], b [3H]|NULL  out: y [T,B,H], gates [T,B,4H]
 *                    Cho et al. 2014 as cuDNN has it, order r z n: n = tanh(gx_n + r (h w_n^T +
 *                    b_n)), h = (1 - z) n + z h; gates: r z n and h w_n^T + b_n; a.reverse
 * GRU_BWD       in: dy y gates w h0  out: dgx, dw, db|NULL, dh0; a.reverse
 * ATTENTION     in: q [B,H,T,D], k v [B,H,S,D], mask [B|1,H|1,T,S]|NULL; or x [B,T,3,H,D] of all
 *                    three (then T = S), NULL, NULL, mask  out: y as q, or [B,T,H,D]; lse
 *                    [2,B,H,T]
 *                    P = softmax(a.scale q k^T + mask) with a.causal only of s <= t; a.p > 0: P is
 *                    0 where u < a.p, else P / (1 - a.p), u being element ((b H + h) T + t) S + s
 *                    of UNIFORM's draws; y = P v; lse: what the gradient needs of a row, its
 *                    greatest score, or one near it, and the logarithm of the sum about it, apart:
 *                    beside a mask of very large numbers the latter would be lost. In a row whose
 *                    scores are all one such number P is 1 / S, both ways; all -inf: NaN
 * ATTENTION_BWD in: dy, q k v or x NULL NULL, mask, lse, y  out: dq dk dv, or dx
 * ROTARY        in: x [M,T,D]  out: y   pairs turned by the angle (a.offset + t) a.scale^(-2i / D)
 *                    for pair i (Su et al. 2021): elements 2i and 2i + 1, or i and i + D/2 where
 *                    a.halves; a.reverse: backwards
 * REDUCE +      in: x [A,N,B]  out: y [A,B], index i64 [A,B]|NULL   a.mode (enum det_reduce_dim):
 *                    the sum times a.scale, the product, or the greatest or least and its index,
 *                    the first of equals; of nothing 0 and 1
 * REDUCE_BWD +  in: dy x index|NULL  out: dx; a.mode a.scale
 * CUMSUM +      in: x [A,N,B]  out: y           along N; a.reverse: from the end
 * CAT           in: up to 8 x [A,N_i,B], any dtype  out: y [A,sum N_i,B]
 * CUT           in: x [A,N,B]  out: y [A,K,B]   rows a.skip to a.skip + K of N
 * SORT +        in: x [A,N,1]  out: y, index i64  along N; equals stay in order, NaN is the
 *                    greatest; a.descending
 * TRIANGLE      in: x [A,M,N], any dtype  out: y    y = j - i <= a.skip ? x : 0; a.upper: >=
 * ONE_HOT       in: x i64 [M]  out: y i64 [M,N] 1 at x[i], else 0; x outside 0..N-1 is DET_EINVAL
 * POINT_LOSS    in: x target w|NULL, all of one shape  out: y    the loss of each element, a.mode
 *                    (enum det_point_loss), a.scale: beta or delta; w: of a positive BCE_LOGITS
 *                    target
 * POINT_LOSS_BWD     in: dy x target w|NULL  out: dx
 * The optimizers' steps are PyTorch's; in: grad, the outputs are in and out, o = a.optim. All begin
 * with g = o.maximize ? -grad : grad and, but for o.decoupled, g += o.weight_decay * p.
 * SGD           out: p, buf|NULL                buf = o.first ? g : o.momentum * buf +
 *                    (1 - o.dampening) * g;  g = o.nesterov ? g + o.momentum * buf : buf;
 *                    p -= o.lr * g
 * ADAM          out: p, m, v, top|NULL          o.decoupled: p -= o.lr * o.weight_decay * p first;
 *                    m, v by o.beta1, o.beta2; top = max(top, v) counts for v where given;
 *                    p -= o.lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + o.eps),
 *                    t = o.step (from 1)
 * RMSPROP       out: p, avg, buf|NULL, mean|NULL     avg = o.alpha * avg + (1 - o.alpha) * g^2;
 *                    mean likewise of g;  d = sqrt(avg - mean^2) + o.eps;
 *                    buf = o.momentum * buf + g / d;  p -= o.lr * (buf given ? buf : g / d)
 * ADAGRAD       out: p, sum                     sum += g^2;  p -= o.lr * g / (sqrt(sum) + o.eps)
 */
/* clang-format on */
/* Kernels over one floating dtype: a table has one for f32 and one for f64. */
#define DET_KERNELS_REAL(X)                                                                        \
    X(NORMAL, normal)                                                                              \
    X(UNIFORM, uniform)                                                                            \
    X(DROPOUT, dropout)                                                                            \
    X(DROPOUT_BWD, dropout_bwd)                                                                    \
    X(LINEAR, linear)                                                                              \
    X(LINEAR_BWD_DATA, linear_bwd_data)                                                            \
    X(LINEAR_BWD_WEIGHT, linear_bwd_weight)                                                        \
    X(CONV2D, conv2d)                                                                              \
    X(CONV2D_BWD_DATA, conv2d_bwd_data)                                                            \
    X(CONV2D_BWD_WEIGHT, conv2d_bwd_weight)                                                        \
    X(BATCH_NORM_TRAIN, batch_norm_train)                                                          \
    X(BATCH_NORM_EVAL, batch_norm_eval)                                                            \
    X(BATCH_NORM_BWD, batch_norm_bwd)                                                              \
    X(MAX_POOL2D, max_pool2d)                                                                      \
    X(MAX_POOL2D_BWD, max_pool2d_bwd)                                                              \
    X(AVG_POOL2D, avg_pool2d)                                                                      \
    X(AVG_POOL2D_BWD, avg_pool2d_bwd)                                                              \
    X(PAD, pad)                                                                                    \
    X(PAD_BWD, pad_bwd)                                                                            \
    X(UPSAMPLE, upsample)                                                                          \
    X(UPSAMPLE_BWD, upsample_bwd)                                                                  \
    X(LOG_SOFTMAX, log_softmax)                                                                    \
    X(LOG_SOFTMAX_BWD, log_softmax_bwd)                                                            \
    X(SOFTMAX, softmax)                                                                            \
    X(SOFTMAX_BWD, softmax_bwd)                                                                    \
    X(NLL, nll)                                                                                    \
    X(NLL_BWD, nll_bwd)                                                                            \
    X(MSE, mse)                                                                                    \
    X(MSE_BWD, mse_bwd)                                                                            \
    X(SUM, sum)                                                                                    \
    X(SUM_BWD, sum_bwd)                                                                            \
    X(SQNORM, sqnorm)                                                                              \
    X(ABSMAX, absmax)                                                                              \
    X(LIMIT, limit)                                                                                \
    X(ARGMAX, argmax)                                                                              \
    X(LAYER_NORM, layer_norm)                                                                      \
    X(LAYER_NORM_BWD, layer_norm_bwd)                                                              \
    X(MATMUL, matmul)                                                                              \
    X(CROSS_ENTROPY, cross_entropy)                                                                \
    X(CROSS_ENTROPY_BWD, cross_entropy_bwd)                                                        \
    X(LSTM, lstm)                                                                                  \
    X(LSTM_BWD, lstm_bwd)                                                                          \
    X(GRU, gru)                                                                                    \
    X(GRU_BWD, gru_bwd)                                                                            \
    X(ATTENTION, attention)                                                                        \
    X(ATTENTION_BWD, attention_bwd)                                                                \
    X(ROTARY, rotary)                                                                              \
    X(POINT_LOSS, point_loss)                                                                      \
    X(POINT_LOSS_BWD, point_loss_bwd)                                                              \
    X(SGD, sgd)                                                                                    \
    X(ADAM, adam)                                                                                  \
    X(RMSPROP, rmsprop)                                                                            \
    X(ADAGRAD, adagrad)
/* Those that see for themselves of which dtype their tensors are. */
#define DET_KERNELS_ANY(X)                                                                         \
    X(FILL, fill)                                                                                  \
    X(COPY, copy)                                                                                  \
    X(ADD, add)                                                                                    \
    X(SUB, sub)                                                                                    \
    X(MUL, mul)                                                                                    \
    X(UNARY, unary)                                                                                \
    X(UNARY_BWD, unary_bwd)                                                                        \
    X(BINARY, binary)                                                                              \
    X(BINARY_BWD, binary_bwd)                                                                      \
    X(COMPARE, compare)                                                                            \
    X(WHERE, where)                                                                                \
    X(SUM_TO, sum_to)                                                                              \
    X(AFFINE, affine)                                                                              \
    X(CLAMP, clamp)                                                                                \
    X(RELU, relu)                                                                                  \
    X(RELU_BWD, relu_bwd)                                                                          \
    X(EQ_COUNT, eq_count)                                                                          \
    X(INDEX_SELECT, index_select)                                                                  \
    X(INDEX_ADD, index_add)                                                                        \
    X(GATHER, gather)                                                                              \
    X(SCATTER_ADD, scatter_add)                                                                    \
    X(REDUCE, reduce)                                                                              \
    X(REDUCE_BWD, reduce_bwd)                                                                      \
    X(CUMSUM, cumsum)                                                                              \
    X(CAT, cat)                                                                                    \
    X(CUT, cut)                                                                                    \
    X(SORT, sort)                                                                                  \
    X(TRIANGLE, triangle)                                                                          \
    X(ONE_HOT, one_hot)
#define DET_KERNELS(X) DET_KERNELS_REAL(X) DET_KERNELS_ANY(X)

enum det_kernel {
#define X(NAME, name) DET_KERNEL_##NAME,
    DET_KERNELS_REAL(X) DET_KERNEL_REAL_COUNT,
    DET_KERNEL_REAL_LAST = DET_KERNEL_REAL_COUNT - 1, /* so that the next one continues */
    DET_KERNELS_ANY(X) DET_KERNEL_COUNT
#undef X
};

/* The numbers of an optimizer's step. */
struct det_optim_attrs {
    double lr, momentum, dampening, weight_decay, beta1, beta2, alpha, eps;
    int64_t step; /* of this parameter, from 1 */
    bool nesterov, maximize, decoupled, first;
};

/* What REDUCE computes. */
enum det_reduce_dim {
    DET_REDUCE_DIM_SUM,
    DET_REDUCE_DIM_PROD,
    DET_REDUCE_DIM_MAX,
    DET_REDUCE_DIM_MIN
};

/* The numbers of a call; a kernel reads those its line above names. */
struct det_attrs {
    double scale, offset, lo, hi;
    /* Windows over images: kernel_h x kernel_w taps, dilation apart; pad_* rows and columns of
     * zeros before the image, end_* after it. */
    int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int pad_h, pad_w, end_h, end_w;
    int groups;
    bool adaptive; /* pooling: window i of n covers [floor(i * size / n), ceil((i + 1) * size / n))
                    */
    bool include_pad; /* average pooling: the padding counts */
    int pad_mode, before[DET_DIMS_MAX];
    bool linear, align_corners;
    double step_h, step_w;
    int dim; /* of views, as the next two */
    int64_t start, every;
    int8_t order[DET_DIMS_MAX];
    int fn;    /* of elem.h */
    bool side; /* false: the first input */
    bool relu, train, same_dy;
    double eps, momentum;
    double p;
    uint64_t seed, call;
    bool rms, trans_a, trans_b, log_probs, reverse, causal, halves, descending, upper;
    int mode;
    int64_t skip;
    double smoothing;
    struct det_optim_attrs optim;
};

#define DET_CALL_IN_MAX  8
#define DET_CALL_OUT_MAX 5

struct det_call {
    enum det_kernel kernel;
    const struct det_tensor *in[DET_CALL_IN_MAX];
    struct det_tensor *out[DET_CALL_OUT_MAX];
    struct det_attrs a;
};

typedef int det_kernel_fn(struct det_stream *s, const struct det_call *c, struct det_err *err);

struct det_device_options {
    int threads; /* for a CPU: how many; at least 1 */
};

enum det_copy_kind {
    DET_COPY_TO_DEVICE, /* src is ordinary memory; it may be reused when copy() returns */
    DET_COPY_TO_HOST,   /* dst is ordinary memory; complete after stream_sync */
    DET_COPY_ON_DEVICE,
};

struct det_backend {
    uint32_t version; /* DET_BACKEND_VERSION */
    const char *name; /* "cpu" */
    bool host_memory; /* alloc() gives ordinary memory and kernels are done when they return */

    /* How many devices there are; 0 where there are none or the driver is missing (not an error).
     */
    int (*device_count)(int *ret, struct det_err *err);
    int (*device_open)(int index, const struct det_device_options *o, struct det_device **ret,
                       struct det_err *err);
    void (*device_close)(struct det_device *d);

    /* At least 64-byte aligned, not cleared; DET_ENOMEM. The engine keeps a pool above this. */
    int (*mem_alloc)(struct det_device *d, size_t bytes, void **ret, struct det_err *err);
    void (*mem_free)(struct det_device *d, void *p, size_t bytes);
    /* Gives back what it keeps for itself and can do without, when memory has run out; how many
     * bytes that were. NULL: it keeps nothing. */
    size_t (*mem_trim)(struct det_device *d);

    int (*stream_create)(struct det_device *d, struct det_stream **ret, struct det_err *err);
    void (*stream_destroy)(struct det_stream *s);
    /* Waits for everything queued; reports what failed since the last sync. */
    int (*stream_sync)(struct det_stream *s, struct det_err *err);
    int (*copy)(struct det_stream *s, void *dst, const void *src, size_t bytes,
                enum det_copy_kind kind, struct det_err *err);

    /* Orders work between streams: what is queued on `s` after event_wait starts when the work
     * queued before event_record (on the stream given there) is done. */
    int (*event_create)(struct det_device *d, struct det_event **ret, struct det_err *err);
    void (*event_destroy)(struct det_event *ev);
    int (*event_record)(struct det_event *ev, struct det_stream *s, struct det_err *err);
    int (*event_wait)(struct det_stream *s, struct det_event *ev, struct det_err *err);

    /* The stream's native handle (a cudaStream_t) for collectives; NULL where there is none. */
    void *(*stream_native)(struct det_stream *s);

    /* True where a kernel without * takes this call as it is: with tensors of this narrow dtype
     * (bf16, f16); others are only given f32. NULL: none does. */
    bool (*computes)(struct det_device *d, const struct det_call *c, enum det_dtype dtype);

    /* How many elements apart the rows of y should lie for a LINEAR with these inputs: as many as
     * it has, or more, which makes it and what takes it faster: rows may then be apart, by any
     * number (det__row_step()), in the y of LINEAR, the dy of its gradients, and the x of
     * CROSS_ENTROPY and of its gradient, whose dx lies as x does. NULL: all of these are dense. */
    int64_t (*row_step)(const struct det_call *c);

    /* n > 0 calls of one optimizer's kernel on different parameters, none empty, all f32 or all
     * f64, or of COPY from dense f32 to f16 or bf16, in as few launches as it likes. DET_ENOMEM:
     * none was done. NULL: the kernel is called for each. */
    int (*steps)(struct det_stream *s, const struct det_call *c, size_t n, struct det_err *err);

    det_kernel_fn *kernels[DET_KERNEL_COUNT];
    /* The same for calls whose floating tensors are all f64. */
    det_kernel_fn *kernels_f64[DET_KERNEL_REAL_COUNT];
};

/* What a module exports under this name. NULL where it does not speak `version`. */
typedef const struct det_backend *det_backend_get_fn(uint32_t version);
#define DET_BACKEND_SYMBOL "det_backend_get"

/* The table for a device's name ("cpu", "ref", "cuda", "cuda:1"); its index in *ret_index. Modules
 * are looked for in DET_BACKEND_DIR, beside the program and in ../lib/det. DET_ENOENT: no such. */
DET_MUST int det_backend_find(const char *device, const struct det_backend **ret, int *ret_index,
                              struct det_err *err);
/* "conv2d_bwd_data"; borrowed. */
const char *det_kernel_name(enum det_kernel k);

#endif
