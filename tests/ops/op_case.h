/*
 * The cases that every operation is tested with: odd sizes, padding, strides, one and many
 * channels, views, dtypes, empty tensors. A family of operations has its own cases_<family>.c; each
 * case says how the engine computes it (build) and the PyTorch expression that means the same.
 *
 * test_ops.c compares the device under test with plain C, and gradients with differences;
 * test_torch_ops.py compares all cases with PyTorch, values and gradients, through the functions
 * below.
 */
#ifndef OP_CASE_H
#define OP_CASE_H

#include "det/tensor.h"

#define CASE_INPUTS_MAX 5
#define CASE_DIMS_MAX   5

/* One input. Its elements are distinct values of about +-range in a scrambled order, none 0. */
struct case_input {
    int ndim;
    int64_t dims[CASE_DIMS_MAX];
    bool constant;        /* no gradient is asked for */
    bool classes;         /* i64, each in 0..range */
    bool spoilt;          /* the element in the middle is NaN */
    double range;         /* 0: 1 */
    double shift;         /* added to every value */
    enum det_dtype dtype; /* no gradient unless it is a floating one */
};

/* {IN(2, 3), OF(DET_I64, 4)} and so on, for the tables. */
#define CASE_DIMS(...)                                                                             \
    .ndim = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}
/* In a case's function: a number of t's type. */
#define NUMBER_AS(t, v) det_scalar(e, det_tensor_dtype(t), v)
/* clang-format off */
#define IN(...) {CASE_DIMS(__VA_ARGS__)}
#define WIDE(most, ...) {CASE_DIMS(__VA_ARGS__), .range = most}
#define POSITIVE(...) {CASE_DIMS(__VA_ARGS__), .range = 1, .shift = 1}
#define FAR(...) {CASE_DIMS(__VA_ARGS__), .range = 3, .shift = 30000}
#define SPOILT(...) {CASE_DIMS(__VA_ARGS__), .spoilt = true, .constant = true}
#define FIXED(...) {CASE_DIMS(__VA_ARGS__), .constant = true}
#define CLASSES(most, ...)                                                                         \
    {CASE_DIMS(__VA_ARGS__), .classes = true, .range = most, .dtype = DET_I64}
#define OF(type, most, ...) {CASE_DIMS(__VA_ARGS__), .range = most, .dtype = type}
/* clang-format on */

struct op_case {
    const char *op;                        /* its name in op_table; NULL ends a family */
    const char *what;                      /* "large...": no gradients by differences */
    struct case_input in[CASE_INPUTS_MAX]; /* ends with the first of ndim 0 */
    struct det_tensor *(*build)(struct det_engine *e, struct det_tensor **in);
    const char *torch; /* of x0, x1, ..., torch and F; NULL where PyTorch has no such numbers */
};

/* BUILD(add, det_add(e, in[0], in[1])) defines what a case calls. */
#define BUILD(name, ...)                                                                           \
    static struct det_tensor *name(struct det_engine *e, struct det_tensor **in)                   \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }

/* All families, one after the other, then all cases of f32 tensors once more with f64 ones; NULL
 * after the last. */
const struct op_case *op_case_at(int i);

/* ---- Running one ---- */

/* A case on its way: its tensors belong to the step, which case_run_end() ends. */
struct case_run {
    struct det_tensor *in[CASE_INPUTS_MAX];
    int inputs;
    struct det_tensor *y;
    struct det_tensor *weights; /* what the backward pass was given: of y's shape, f64 as it or
                                 * f32 */
};

/* Makes the inputs, calls build and, where a gradient flows, backward of sum(weights * y). The
 * engine's error says what failed. */
void case_run(struct det_engine *e, const struct op_case *c, struct case_run *r);
/* The same without gradients, with `nudge` added to element `at` of input `which`. */
void case_run_nudged(struct det_engine *e, const struct op_case *c, struct case_run *r, int which,
                     int64_t at, double nudge);

/* ---- For Python ---- */

const char *case_op(int i); /* NULL after the last */
const char *case_what(int i);
const char *case_torch(int i);
struct case_run *case_start(struct det_engine *e, int i);
/* Input i, the value, the weights; NULL where there is none. Borrowed. */
struct det_tensor *case_in(struct case_run *r, int i);
struct det_tensor *case_value(struct case_run *r);
struct det_tensor *case_weights(struct case_run *r);
bool case_wants_grad(struct det_tensor *t);
void case_end(struct det_engine *e, struct case_run *r);

#endif
