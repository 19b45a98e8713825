/*
 * What LSTM and GRU share on the CPU.
 *
 * One time step is a small product (batch x hidden by hidden x gates) and a cell function. The
 * hidden units are cut into panels of RNN_LANES; the weights are packed once for each call, so that
 * a panel's weights lie in the order in which they are used; and the threads divide the panels: a
 * panel's sums stay in registers until its cells are computed. The bits do not depend on threads.
 */
#ifndef CPU_RNN_H
#define CPU_RNN_H

#include "cpu_real.h"

/* Of a panel: a vector of 512 bits. */
#define RNN_LANES ((int)(64 / sizeof(real)))
#define RNN_GATES 4 /* at most */
#define RNN_ROWS  4 /* of the batch at once */

struct rnn_step;

/* The cells of one panel for one row of the batch: hidden units j to j + width. sums[g] is the
 * product's part of gate g. */
typedef void rnn_cell_fn(const struct rnn_step *r, int64_t row, int64_t j, int64_t width,
                         const real (*sums)[RNN_LANES]);

struct rnn_step {
    const struct det_call *c;
    rnn_cell_fn *cell;
    int64_t batch, hidden;
    int64_t depth;    /* of the product: hidden forward, gates * hidden backward */
    int gates;        /* columns of the product in units of hidden: 1 backward */
    const real *left; /* [batch, depth]; NULL: the sums are zeros */
    const real *packed;
    int64_t t;                       /* the time of this step */
    const real *h_before, *c_before; /* [batch, hidden] */
};

/* The weights [gates * hidden, depth] (or, where `transposed`, [depth, hidden] with gates 1) as
 * panels [panel][depth][gates][RNN_LANES], zeros beyond hidden. Owned by the caller; DET_ENOMEM. */
DET_MUST int CPU(rnn_pack)(const struct rnn_step *r, const real *w, bool transposed, real **ret,
                           struct det_err *err);
/* All panels of one step, on all threads. */
void CPU(rnn_run_step)(int threads, const struct rnn_step *r);

/* dw = dg^T h and db = column sums of dg over all steps; h before a step is y of the step before,
 * h0 at the first. dg [T, B, rows]. db may be NULL. */
struct rnn_grads {
    const real *dg, *y, *h0;
    real *dw, *db;
    int64_t time, batch, hidden, rows;
    bool reverse;
};
DET_MUST int CPU(rnn_weight_grads)(const struct rnn_grads *g, struct det_err *err); /* dnnl_rnn.c */

static inline int64_t rnn_time(bool reverse, int64_t time, int64_t step)
{
    return reverse ? time - 1 - step : step;
}

#endif
