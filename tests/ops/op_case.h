/* The cases that every operation is tested with: odd sizes, padding, strides, one and many
 * channels. */
#ifndef OP_CASE_H
#define OP_CASE_H

#include "det/tensor.h"

#define CASE_INPUTS_MAX 5

struct case_input {
    int ndim;
    int64_t dims[4];
    bool constant; /* no gradient is asked for */
    bool classes;  /* i64, each in 0..range */
    double range;  /* values are in +-range (0: 1) and distinct */
};

struct op_case {
    const char *op; /* its name in op_table */
    const char *what;
    struct case_input in[CASE_INPUTS_MAX]; /* ends with the first of ndim 0 and dims[0] 0 */
    struct det_tensor *(*build)(struct det_engine *e, struct det_tensor **in);
};

extern const struct op_case op_cases[];
extern const int op_cases_n;

#endif
