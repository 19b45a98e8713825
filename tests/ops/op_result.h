/* What a case gave on a device, and how far two devices may lie apart. */
#ifndef OP_RESULT_H
#define OP_RESULT_H

#include "op_case.h"

/* The bytes of a case's output ([0]) and of the gradients of its inputs, NULL where there is none.
 */
struct result {
    enum det_dtype dtype[CASE_INPUTS_MAX + 1];
    size_t n[CASE_INPUTS_MAX + 1];
    void *v[CASE_INPUTS_MAX + 1];
};

void result_finish(struct result *r);
size_t result_bytes(const struct result *r, int i);
/* Element k of part i, as a number. */
double result_at(const struct result *r, int i, size_t k);
/* Reads t as part i. DET_E* of the device. */
int result_take(struct result *r, int i, struct det_tensor *t, struct det_err *err);

/* Runs c on e into r, which is to be finished whatever comes back; ends the step. DET_E* of the
 * engine, with the case's name. */
int result_of(struct det_engine *e, const struct op_case *c, struct result *r, struct det_err *err);

/* Whether b is as near to a as c's operation and dtypes promise; else why not, in err. */
int result_compare(const struct op_case *c, const struct result *a, const struct result *b,
                   struct det_err *err);
/* Whether both hold the same bits. */
int result_same(const struct op_case *c, const struct result *a, const struct result *b,
                struct det_err *err);

#endif
