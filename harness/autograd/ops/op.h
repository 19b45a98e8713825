/*
 * Operations: what a public function is to the tape. One constant table (op_table.c) says for each
 * its name, how it wants its inputs to lie, its shape rule, its kernel, its gradient rule and the
 * tolerance that tests allow between backends.
 *
 * op_apply() is the only way through: inputs to the device and into the wanted order, shape rule,
 * outputs from the pool, kernel, tape.
 */
#ifndef OP_H
#define OP_H

#include "engine.h"

/* X(NAME, name): the operations that are one element-wise function of backend/elem.h. */
#define OP_UNARIES(X)                                                                              \
    X(NEG, "neg")                                                                                  \
    X(ABS, "abs")                                                                                  \
    X(EXP, "exp")                                                                                  \
    X(LOG, "log")                                                                                  \
    X(SQRT, "sqrt")                                                                                \
    X(RSQRT, "rsqrt")                                                                              \
    X(POW, "pow")                                                                                  \
    X(RECIPROCAL, "reciprocal")                                                                    \
    X(SIN, "sin")                                                                                  \
    X(COS, "cos")                                                                                  \
    X(TANH, "tanh")                                                                                \
    X(ERF, "erf")                                                                                  \
    X(SIGMOID, "sigmoid")                                                                          \
    X(LOG_SIGMOID, "log_sigmoid")                                                                  \
    X(GELU, "gelu")                                                                                \
    X(GELU_TANH, "gelu_tanh")                                                                      \
    X(SILU, "silu")                                                                                \
    X(MISH, "mish")                                                                                \
    X(ELU, "elu")                                                                                  \
    X(LEAKY_RELU, "leaky_relu")                                                                    \
    X(SOFTPLUS, "softplus")                                                                        \
    X(CLAMP, "clamp")                                                                              \
    X(HARDTANH, "hardtanh")                                                                        \
    X(HARDSWISH, "hardswish")                                                                      \
    X(HARDSIGMOID, "hardsigmoid")                                                                  \
    X(FLOOR, "floor")                                                                              \
    X(CEIL, "ceil")                                                                                \
    X(ROUND, "round")                                                                              \
    X(SIGN, "sign")
/* With PRELU: input 1 is the slope. MAXIMUM and MINIMUM take whole numbers too. */
#define OP_BINARIES(X)                                                                             \
    X(DIV, "div", shape_floats)                                                                    \
    X(POW2, "pow", shape_floats)                                                                   \
    X(PRELU, "prelu", shape_floats)                                                                \
    X(MAXIMUM, "maximum", shape_numbers)                                                           \
    X(MINIMUM, "minimum", shape_numbers)
#define OP_COMPARES(X)                                                                             \
    X(EQ, "eq")                                                                                    \
    X(NE, "ne")                                                                                    \
    X(LT, "lt")                                                                                    \
    X(LE, "le")                                                                                    \
    X(GT, "gt")                                                                                    \
    X(GE, "ge")                                                                                    \
    X(AND, "logical_and")                                                                          \
    X(OR, "logical_or")                                                                            \
    X(XOR, "logical_xor")

enum op_id {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_AFFINE,
    OP_SUM,
    OP_CAST,
    OP_LAYOUT, /* to another memory order; dense */
    OP_RESHAPE,
    OP_PERMUTE, /* these three are views, as OP_RESHAPE */
    OP_SLICE,
    OP_EXPAND,
    OP_WHERE,
#define X(NAME, ...) OP_##NAME,
    OP_UNARIES(X) OP_BINARIES(X) OP_COMPARES(X)
#undef X
        OP_RELU,
    OP_DROPOUT,
    OP_LINEAR,
    OP_CONV2D,
    OP_CONV_TRANSPOSE2D,
    OP_BATCH_NORM,
    OP_MAX_POOL2D,
    OP_AVG_POOL2D,
    OP_PAD,
    OP_UPSAMPLE,
    OP_LOG_SOFTMAX,
    OP_SOFTMAX,
    OP_NLL_LOSS,
    OP_MSE_LOSS,
    OP_ARGMAX,
    OP_EQ_COUNT,
    OP_LAYER_NORM,
    OP_INDEX_SELECT,
    OP_GATHER,
    OP_SCATTER_ADD,
    OP_MATMUL,
    OP_CROSS_ENTROPY,
    OP_LSTM,
    OP_GRU,
    OP_ATTENTION,
    OP_ROTARY,
    OP_REDUCE,
    OP_CUMSUM,
    OP_CAT,
    OP_SORT,
    OP_TRIANGLE,
    OP_ONE_HOT,
    OP_POINT_LOSS,
    OP_COUNT
};

/* How an operation wants its inputs to lie in memory. */
enum op_order {
    OP_ANY,     /* dense; the output as input 0 */
    OP_ALIKE,   /* all as the first one; the output too */
    OP_PLAIN,   /* C order; the output too */
    OP_ROWS,    /* the same, but rows of input 0 may be apart where the device knows such */
    OP_IMAGES,  /* input 0 NHWC, and what a batch norm adds; the rest plain; the output NHWC */
    OP_STRIDED, /* as they lie, views too, repeated to the output's shape; the output dense */
};

/* What autocast (det_autocast_begin()) does to floating inputs. */
enum op_amp {
    OP_AMP_FULL, /* f32: norms, softmax, losses, reductions */
    OP_AMP_LOW,  /* the low dtype: matrix products, convolutions, attention */
    OP_AMP_AS_IS,
    OP_AMP_FIRST,  /* those of the first one's shape as it is, the others f32: batch norm */
    OP_AMP_LOSS,   /* likewise, and the result f32: cross-entropy */
    OP_AMP_WIDEST, /* all as the widest of them; f32 where they differ and none is f64 */
    OP_AMP_MIXED,  /* as they are; the result f32 where they differ and none is f64 */
};

struct op_out {
    enum det_dtype dtype;
    int ndim;
    int64_t dims[DET_DIMS_MAX];
};

/* One call on its way: the shape rule reads in and a, and fills kernel, spec, outs, and the rest of
 * a. */
struct op_call {
    enum op_id op;
    struct det_tensor *in[DET_CALL_IN_MAX];
    struct det_attrs a;
    enum det_dtype dtype;   /* of OP_CAST */
    bool wide;              /* an OP_AMP_LOSS of halves gives f32: autocast is on */
    bool mixed;             /* an OP_AMP_MIXED of different dtypes: the result is f32 */
    enum det_layout layout; /* of OP_LAYOUT */
    enum det_kernel kernel;
    struct op_out spec[DET_CALL_OUT_MAX];
    int outs;                                 /* how many are to be made */
    struct det_tensor *out[DET_CALL_OUT_MAX]; /* those; the caller may give further ones */
};

struct det_node {
    enum op_id op;
    struct det_tensor *in[DET_CALL_IN_MAX]; /* references */
    struct det_tensor *out[DET_CALL_OUT_MAX];
    struct det_attrs a;
    struct det_tensor *grad; /* of out[0]; a reference */
    bool done;               /* a backward went through here */
    bool passed;             /* the one that goes on went through here early */
};

typedef int op_shape_fn(struct op_call *c, struct det_err *err);
/* Adds to the gradients of n->in what dy, the gradient of n->out[0] (borrowed), gives them. */
typedef int op_grad_fn(struct det_engine *e, struct det_node *n, struct det_tensor *dy,
                       struct det_err *err);

struct op_def {
    const char *name;
    int inputs;     /* that must be given */
    int inputs_max; /* with the optional ones after them */
    enum op_order order;
    op_shape_fn *shape;
    enum det_kernel kernel; /* unless the shape rule sets another */
    op_grad_fn *grad;       /* NULL: no gradient passes */
    double tolerance;       /* relative, between two backends */
    int fn;                 /* a.fn of the kernel, of elem.h */
    enum op_amp amp;
};

extern const struct op_def op_table[OP_COUNT];

/* Runs c (its op, in and a set; in borrowed). Returns out[0], which belongs to the step, or NULL
 * with the engine's error set. */
struct det_tensor *op_apply(struct det_engine *e, struct op_call *c);
/* The same for two operands; one without dimensions takes the other's dtype. */
struct det_tensor *op_binary(struct det_engine *e, enum op_id op, struct det_tensor *a,
                             struct det_tensor *b);
/* True where a gradient is to flow to t. */
bool op_wants_grad(const struct det_tensor *t);

/* Shape rules. */
op_shape_fn shape_numbers, shape_floats, shape_compare, shape_where, shape_float;
op_shape_fn shape_number_rows, shape_scalar, shape_cast, shape_layout, shape_dropout;
op_shape_fn shape_linear, shape_rows, shape_nll, shape_mse, shape_argmax, shape_eq;
op_shape_fn shape_conv2d, shape_conv_transpose2d, shape_batch_norm;
op_shape_fn shape_max_pool2d, shape_avg_pool2d, shape_resample;

op_shape_fn shape_layer_norm, shape_lstm, shape_gru, shape_attention, shape_rotary;
op_shape_fn shape_reduce, shape_cat, shape_one_hot, shape_point_loss;
op_shape_fn shape_index_select, shape_gather, shape_scatter_add, shape_matmul, shape_cross_entropy;

/* Gradient rules. */
op_grad_fn grad_add, grad_sub, grad_mul, grad_affine, grad_sum, grad_relu;
op_grad_fn grad_unary, grad_binary, grad_where, grad_copy;
op_grad_fn grad_reshape, grad_permute, grad_slice, grad_expand;
op_grad_fn grad_dropout, grad_linear, grad_log_softmax, grad_softmax, grad_nll, grad_mse;
op_grad_fn grad_layer_norm, grad_lstm, grad_gru, grad_attention, grad_rotary;
op_grad_fn grad_reduce, grad_cumsum, grad_cat, grad_sort, grad_triangle, grad_point_loss;
op_grad_fn grad_index_select, grad_gather, grad_scatter_add, grad_matmul, grad_cross_entropy;
op_grad_fn grad_conv2d, grad_conv_transpose2d, grad_batch_norm;
op_grad_fn grad_max_pool2d, grad_avg_pool2d, grad_pad, grad_upsample;

#endif
