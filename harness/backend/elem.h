/*
 * The element-wise functions and losses: each one line that says its value and its slope. `ref`
 * compiles them in double, `cpu` and `cuda` in the dtype's own precision (f16 and bf16 in f32);
 * <tgmath.h>, or C++, picks the right sqrt(). Adding one is a line here and a line in a list of
 * autograd/op.h, and all backends have it.
 *
 * Sources of the formulas: PyTorch's documentation of torch.* and torch.nn.*; GELU: Hendrycks and
 * Gimpel 2016, SiLU: Elfwing et al. 2017, ELU: Clevert et al. 2015, Mish: Misra 2019.
 */
#ifndef ELEM_H
#define ELEM_H

#define ELEM_SIGMOID(x)  (1 / (1 + exp(-(x))))
#define ELEM_SOFTPLUS(x) (fmax(x, (ELEM_T)0) + log1p(exp(-fabs(x))))
/* GELU's tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) */
#define ELEM_GELU_TANH(x)                                                                          \
    tanh((ELEM_T)0.7978845608028654 * ((x) + (ELEM_T)0.044715 * (x) * (x) * (x)))
#define ELEM_HALF      ((ELEM_T)0.5)
#define ELEM_2_SQRT_PI 1.1283791670955126 /* 2 / sqrt(pi) */

/* clang-format off */
/* X(NAME, value, slope): y = value of x; dx = slope of dy, x and y. p and q are a.lo and a.hi. */
#define DET_UNARY(X)                                                                               \
    X(AFFINE,      p * x + q,                        p * dy)                                       \
    X(RELU,        x < 0 ? 0 : x,                    y <= 0 ? 0 : dy)                              \
    X(NEG,         -x,                               -dy)                                          \
    X(ABS,         fabs(x),                          x > 0 ? dy : x < 0 ? -dy : 0)                 \
    X(EXP,         exp(x),                           dy * y)                                       \
    X(LOG,         log(x),                           dy / x)                                       \
    X(SQRT,        sqrt(x),                          dy / (2 * y))                                 \
    X(RSQRT,       1 / sqrt(x),                      -ELEM_HALF * dy * y * y * y)                  \
    X(POW,         pow(x, p),                        p == 0 ? 0 : dy * p * pow(x, p - 1))          \
    X(RECIPROCAL,  1 / x,                            -dy * y * y)                                  \
    X(SIN,         sin(x),                           dy * cos(x))                                  \
    X(COS,         cos(x),                           -dy * sin(x))                                 \
    X(TANH,        tanh(x),                          dy * (1 - y * y))                             \
    X(ERF,         erf(x),                           dy * (ELEM_T)ELEM_2_SQRT_PI * exp(-x * x))    \
    X(SIGMOID,     ELEM_SIGMOID(x),                  dy * y * (1 - y))                             \
    X(LOG_SIGMOID, -ELEM_SOFTPLUS(-x),               dy * ELEM_SIGMOID(-x))                        \
    X(GELU,        ELEM_HALF * x * (1 + erf(x * (ELEM_T)0.7071067811865476)),                      \
                   dy * (ELEM_HALF * (1 + erf(x * (ELEM_T)0.7071067811865476)) +                   \
                         x * (ELEM_T)0.3989422804014327 * exp(-ELEM_HALF * x * x)))                \
    X(GELU_TANH,   ELEM_HALF * x * (1 + ELEM_GELU_TANH(x)),                                        \
                   dy * ELEM_HALF * (1 + ELEM_GELU_TANH(x) + x *                                   \
                         (1 - ELEM_GELU_TANH(x) * ELEM_GELU_TANH(x)) *                             \
                         ((ELEM_T)0.7978845608028654 + (ELEM_T)0.1070322244089004 * x * x)))       \
    X(SILU,        x * ELEM_SIGMOID(x),              dy * ELEM_SIGMOID(x) * (1 + (x - y)))         \
    X(MISH,        x * tanh(ELEM_SOFTPLUS(x)),                                                     \
                   dy * (tanh(ELEM_SOFTPLUS(x)) + x * ELEM_SIGMOID(x) *                            \
                         (1 - tanh(ELEM_SOFTPLUS(x)) * tanh(ELEM_SOFTPLUS(x)))))                   \
    X(ELU,         x > 0 ? x : p * expm1(x),         x > 0 ? dy : dy * (y + p))                    \
    X(LEAKY_RELU,  x > 0 ? x : p * x,                x > 0 ? dy : dy * p)                          \
    X(SOFTPLUS,    p * x > q ? x : log1p(exp(p * x)) / p,                                          \
                   p * x > q ? dy : dy * ELEM_SIGMOID(p * x))                                      \
    X(CLAMP,       x < p ? p : x > q ? q : x,        x >= p && x <= q ? dy : 0)                    \
    X(HARDTANH,    x < p ? p : x > q ? q : x,        x <= p || x >= q ? 0 : dy)                    \
    X(HARDSWISH,   x * fmin(fmax(x + 3, (ELEM_T)0), (ELEM_T)6) / 6,                                \
                   x < -3 ? 0 : x <= 3 ? dy * (x / 3 + ELEM_HALF) : dy)                            \
    X(HARDSIGMOID, x <= -3 ? 0 : x >= 3 ? 1 : x / 6 + ELEM_HALF,                                   \
                   x > -3 && x < 3 ? dy / 6 : 0)                                                   \
    X(FLOOR,       floor(x),                         0)                                            \
    X(CEIL,        ceil(x),                          0)                                            \
    X(ROUND,       rint(x),                          0) /* ties to even */                         \
    X(SIGN,        x > 0 ? 1 : x < 0 ? -1 : 0,       0)

/* X(NAME, value, slope of a, slope of b): y = value of a and b; the slopes of dy. */
#define DET_BINARY(X)                                                                              \
    X(ADD,      a + b,                          dy,                 dy)                            \
    X(SUB,      a - b,                          dy,                 -dy)                           \
    X(MUL,      a * b,                          dy * b,             dy * a)                        \
    X(DIV,      a / b,                          dy / b,             -dy * a / (b * b))             \
    X(POW2,     pow(a, b),                      b == 0 ? 0 : dy * b * pow(a, b - 1),               \
                                                a == 0 && b >= 0 ? 0 : dy * pow(a, b) * log(a))    \
    X(MAXIMUM,  a > b || a != a ? a : b,        a > b ? dy : a == b ? ELEM_HALF * dy : 0,          \
                                                b > a ? dy : a == b ? ELEM_HALF * dy : 0)          \
    X(MINIMUM,  a < b || a != a ? a : b,        a < b ? dy : a == b ? ELEM_HALF * dy : 0,          \
                                                b < a ? dy : a == b ? ELEM_HALF * dy : 0)          \
    X(PRELU,    a > 0 ? a : b * a,              a > 0 ? dy : b * dy, a > 0 ? 0 : a * dy)           \
    X(RELU_BWD, b <= 0 ? 0 : a,                 0,                  0) /* a kernel only */

/* The ones of these that whole numbers have too; they wrap. */
#define DET_BINARY_WHOLE(X)                                                                        \
    X(ADD,     (int64_t)((uint64_t)a + (uint64_t)b))                                               \
    X(SUB,     (int64_t)((uint64_t)a - (uint64_t)b))                                               \
    X(MUL,     (int64_t)((uint64_t)a * (uint64_t)b))                                               \
    X(MAXIMUM, a > b ? a : b)                                                                      \
    X(MINIMUM, a < b ? a : b)

/* X(NAME, truth of a and b) */
#define DET_COMPARE(X)                                                                             \
    X(EQ,  a == b)                                                                                 \
    X(NE,  a != b)                                                                                 \
    X(LT,  a < b)                                                                                  \
    X(LE,  a <= b)                                                                                 \
    X(GT,  a > b)                                                                                  \
    X(GE,  a >= b)                                                                                 \
    X(AND, a != 0 && b != 0)                                                                       \
    X(OR,  a != 0 || b != 0)                                                                       \
    X(XOR, (a != 0) != (b != 0))

#define ELEM_SIGN(x)  ((x) > 0 ? (ELEM_T)1 : (x) < 0 ? (ELEM_T)-1 : (ELEM_T)0)
/* As PyTorch's: the loss of a certain error stays finite; NaN stays. */
#define ELEM_LOG(x)   (log(x) < -100 ? (ELEM_T)-100 : log(x))

/* X(NAME, value, slope by x): the loss of x for the target t; d = x - t, far = |d|, p: a.scale
 * (beta or delta), w: the weight of a positive BCE_LOGITS target. Those up to HUBER are even in
 * d. */
#define DET_POINT_LOSS(X)                                                                          \
    X(SQUARE,     d * d,                                     2 * d)                                \
    X(ABS,        far,                                       ELEM_SIGN(d))                         \
    X(SMOOTH,     far < p ? ELEM_HALF * d * d / p : far - ELEM_HALF * p,                           \
                  far < p ? d / p : ELEM_SIGN(d))                                                  \
    X(HUBER,      far <= p ? ELEM_HALF * d * d : p * (far - ELEM_HALF * p),                        \
                  far <= p ? d : p * ELEM_SIGN(d))                                                 \
    X(BCE,        -(t * ELEM_LOG(x) + (1 - t) * ELEM_LOG(1 - x)),                                  \
                  d / fmax(x * (1 - x), (ELEM_T)1e-12))                                            \
    X(BCE_LOGITS, (1 - t) * x + (1 + (w - 1) * t) * ELEM_SOFTPLUS(-x),                             \
                  (1 - t) - (1 + (w - 1) * t) * (1 - ELEM_SIGMOID(x)))                             \
    X(KL,         t == 0 ? 0 : t * (log(t) - x),             -t)                                   \
    X(KL_LOG,     exp(t) * (t - x),                          -exp(t)) /* t is a logarithm */
/* clang-format on */

#define X(NAME, ...) DET_UNARY_##NAME,
enum det_unary { DET_UNARY(X) DET_UNARY_COUNT };
#undef X
#define X(NAME, ...) DET_BINARY_##NAME,
enum det_binary { DET_BINARY(X) DET_BINARY_COUNT };
#undef X
#define X(NAME, ...) DET_COMPARE_##NAME,
enum det_compare { DET_COMPARE(X) DET_COMPARE_COUNT };
#undef X
#define X(NAME, ...) DET_POINT_##NAME,
enum det_point_loss { DET_POINT_LOSS(X) DET_POINT_COUNT };
#undef X

#endif
