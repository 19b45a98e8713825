/* The loop's arithmetic: boundaries, steps of LR schedulers, averages. Pure functions. */
#ifndef LOOP_MATH_H
#define LOOP_MATH_H

#include "loop.h"

/* Is the unit due after batch b (0-based) of epochs of epoch_len? A batch unit when b+1 is a
 * multiple; an epoch unit when b ends its epoch and epochs done are a multiple. n < 1: never. */
bool loop_due(struct loop_unit u, int64_t b, int64_t epoch_len);
/* How often a scheduler is stepped after batch b; aggregation and frequency >= 1. */
int64_t loop_lr_steps(const struct loop_lr *lr, int64_t aggregation, int64_t b, int64_t epoch_len);

/* The same names in both; otherwise DET_EINVAL with `what` and the first name that differs. */
DET_MUST int loop_same_names(const struct loop_metrics *a, const struct loop_metrics *b,
                             const char *what, struct det_err *err);

/* avg[name] = mean over all elements of all rows but none; not numeric or of different lengths:
 * none; none everywhere: NaN. The rows must have the same names. */
DET_MUST int loop_average(const struct loop_metrics *rows, size_t n, struct loop_metrics *avg,
                          struct det_err *err);
/* out[i] = for each name, the mean over the ranks' row i of what is not none; NaN if all are. Each
 * ranks[r] has n rows. */
DET_MUST int loop_average_ranks(const struct loop_metrics *const *ranks, size_t n_ranks, size_t n,
                                struct loop_metrics *out, struct det_err *err);

/* A value of a batch that is no finite number. */
struct loop_infinite {
    const char *name; /* borrowed; NULL: all are finite */
    size_t row;
    int rank;     /* whose it is; -1: only the mean is */
    double value; /* its */
};
/* The first one in the order of batches and names; where the mean avg[i] is one, it is looked for
 * in the same metric of the ranks. */
struct loop_infinite loop_find_infinite(const struct loop_metrics *const *ranks, size_t n_ranks,
                                        const struct loop_metrics *avg, size_t n);

/* One rank's validation: all elements of all rows of a name reduced to one number. */
DET_MUST int loop_reduce_rows(const struct loop_metrics *rows, size_t n,
                              const enum loop_reduction *how, struct loop_metrics *out,
                              struct det_err *err);
struct loop_partial { /* a rank's share of a validation */
    struct loop_metrics metrics;
    int64_t batches, records;
};
/* Across ranks: AVG weighted by batches, else the reduction itself; ranks without batches are
 * left out. */
DET_MUST int loop_reduce_ranks(const struct loop_partial *ranks, size_t n,
                               const enum loop_reduction *how, struct loop_metrics *out,
                               struct det_err *err);

#endif
