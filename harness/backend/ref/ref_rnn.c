/* LSTM and GRU over time, one element after the other, sums in double. */
#include "ref_real.h"

#include <math.h>
#include <string.h>

#include "mem.h"

struct rnn {
    int64_t time, batch, hidden, gates; /* gates: rows of w / hidden */
    bool reverse;
};

/* The time of a step, and where the state before it lies: in y, or h0 at the first. */
static int64_t time_of(const struct rnn *r, int64_t step)
{
    return r->reverse ? r->time - 1 - step : step;
}

static const real *state_before(const struct rnn *r, const real *all, const real *first,
                                int64_t step)
{
    int64_t size = r->batch * r->hidden;
    return step == 0 ? first : all + time_of(r, step - 1) * size;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* (h w^T + b) for row `row` of w. */
static double recurrent_sum(const real *w, const real *b, const real *h, int64_t hidden,
                            int64_t row)
{
    double sum = b ? b[row] : 0;
    for (int64_t k = 0; k < hidden; k++)
        sum += (double)w[row * hidden + k] * h[k];
    return sum;
}

static void lstm_cell(const struct det_call *c, const struct rnn *r, int64_t step, int64_t i)
{
    int64_t n = r->hidden, j = i % n, at = time_of(r, step) * r->batch * n + i, row = i / n;
    const real *gx = in_real(c, 0) + 4 * (at - j) + j, *w = in_real(c, 1), *b = in_real(c, 4);
    const real *h = state_before(r, out_real(c, 0), in_real(c, 2), step) + row * n;
    const real *cells = state_before(r, out_real(c, 2), in_real(c, 3), step);
    double z[4];
    for (int g = 0; g < 4; g++) {
        z[g] = gx[g * n] + recurrent_sum(w, b, h, n, g * n + j);
        z[g] = g == 2 ? tanh(z[g]) : sigmoid(z[g]);
        out_real(c, 1)[4 * (at - j) + g * n + j] = (real)z[g];
    }
    double cell = z[1] * cells[i] + z[0] * z[2];
    out_real(c, 2)[at] = (real)cell;
    out_real(c, 0)[at] = (real)(z[3] * tanh(cell));
}

REF_KERNEL(lstm)
{
    (void)s, (void)err;
    const int64_t *d = c->in[0]->dims;
    struct rnn r = {d[0], d[1], c->in[1]->dims[1], 4, c->a.reverse};
    int64_t size = r.batch * r.hidden;
    for (int64_t step = 0; step < r.time; step++)
        for (int64_t i = 0; i < size; i++)
            lstm_cell(c, &r, step, i);
    memcpy(out_real(c, 0) + r.time * size, state_before(&r, out_real(c, 2), in_real(c, 3), r.time),
           (size_t)size * sizeof(real));
    return 0;
}

/* dh += dg w; dw += dg^T h; db += dg for the rows of one step. */
struct weights {
    const real *w;
    real *dw, *db;
};

static void step_back(const struct rnn *r, const struct weights *v, const real *dg, const real *h,
                      real *dh)
{
    int64_t n = r->hidden, rows = r->gates * n;
    for (int64_t i = 0; i < r->batch * rows; i++) {
        int64_t b = i / rows, row = i % rows;
        for (int64_t k = 0; k < n; k++) {
            dh[b * n + k] += dg[i] * v->w[row * n + k];
            v->dw[row * n + k] += dg[i] * h[b * n + k];
        }
        if (v->db)
            v->db[row] += dg[i];
    }
}

static void lstm_cell_back(const struct det_call *c, const struct rnn *r, int64_t step, int64_t i)
{
    int64_t n = r->hidden, at = time_of(r, step) * r->batch * n + i;
    int64_t first = 4 * (at - i % n) + i % n;
    const real *gates = in_real(c, 2) + first;
    real *dg = out_real(c, 0) + first, *dc = out_real(c, 4) + i;
    double in = gates[0], forget = gates[n], g = gates[2 * n], o = gates[3 * n];
    double dh = (double)out_real(c, 3)[i] + in_real(c, 0)[at], tc = tanh(in_real(c, 3)[at]);
    double d = *dc + dh * o * (1 - tc * tc);
    dg[0] = (real)(d * g * in * (1 - in));
    dg[n] =
        (real)(d * state_before(r, in_real(c, 3), in_real(c, 6), step)[i] * forget * (1 - forget));
    dg[2 * n] = (real)(d * in * (1 - g * g));
    dg[3 * n] = (real)(dh * tc * o * (1 - o));
    *dc = (real)(d * forget);
}

REF_KERNEL(lstm_bwd)
{
    (void)s, (void)err;
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[4]->dims[1], 4, c->a.reverse};
    struct weights v = {in_real(c, 4), out_real(c, 1), out_real(c, 2)};
    size_t size = (size_t)(r.batch * r.hidden);
    memset(v.dw, 0, c->out[1]->numel * sizeof(real));
    if (v.db)
        memset(v.db, 0, c->out[2]->numel * sizeof(real));
    memset(out_real(c, 3), 0, size * sizeof(real));
    memcpy(out_real(c, 4), in_real(c, 0) + r.time * (int64_t)size, size * sizeof(real));
    for (int64_t step = r.time - 1; step >= 0; step--) {
        for (int64_t i = 0; i < (int64_t)size; i++)
            lstm_cell_back(c, &r, step, i);
        memset(out_real(c, 3), 0, size * sizeof(real));
        step_back(&r, &v, out_real(c, 0) + time_of(&r, step) * 4 * (int64_t)size,
                  state_before(&r, in_real(c, 1), in_real(c, 5), step), out_real(c, 3));
    }
    return 0;
}

static void gru_cell(const struct det_call *c, const struct rnn *r, int64_t step, int64_t i)
{
    int64_t n = r->hidden, j = i % n, at = time_of(r, step) * r->batch * n + i;
    const real *gx = in_real(c, 0) + 3 * (at - j) + j, *w = in_real(c, 1), *b = in_real(c, 3);
    const real *h = state_before(r, out_real(c, 0), in_real(c, 2), step);
    real *gates = out_real(c, 1) + 4 * (at - j) + j;
    double reset = sigmoid(gx[0] + recurrent_sum(w, b, h + i - j, n, j));
    double z = sigmoid(gx[n] + recurrent_sum(w, b, h + i - j, n, n + j));
    double hn = recurrent_sum(w, b, h + i - j, n, 2 * n + j), new = tanh(gx[2 * n] + reset * hn);
    gates[0] = (real)reset;
    gates[n] = (real)z;
    gates[2 * n] = (real) new;
    gates[3 * n] = (real)hn;
    out_real(c, 0)[at] = (real)((1 - z) * new + z *h[i]);
}

REF_KERNEL(gru)
{
    (void)s, (void)err;
    const int64_t *d = c->in[0]->dims;
    struct rnn r = {d[0], d[1], c->in[1]->dims[1], 3, c->a.reverse};
    for (int64_t step = 0; step < r.time; step++)
        for (int64_t i = 0; i < r.batch * r.hidden; i++)
            gru_cell(c, &r, step, i);
    return 0;
}

/* dh of the step before starts as what the update gate lets through. */
static void gru_cell_back(const struct det_call *c, const struct rnn *r, int64_t step, int64_t i)
{
    int64_t n = r->hidden, j = i % n, at = time_of(r, step) * r->batch * n + i;
    const real *gates = in_real(c, 2) + 4 * (at - j) + j;
    real *dg = out_real(c, 0) + 3 * (at - j) + j, *carry = out_real(c, 3) + i;
    double reset = gates[0], z = gates[n], new = gates[2 * n];
    double dh = (double)*carry + in_real(c, 0)[at], dn = dh * (1 - z) * (1 - new *new);
    double h = state_before(r, in_real(c, 1), in_real(c, 4), step)[i];
    dg[0] = (real)(dn * gates[3 * n] * reset * (1 - reset));
    dg[n] = (real)(dh * (h - new) * z * (1 - z));
    dg[2 * n] = (real)dn;
    *carry = (real)(dh * z);
}

/* The gradient of n's recurrent part is r times that of its input part: dgx with it, and back. */
static void gru_step_back(const struct det_call *c, const struct rnn *r, const struct weights *v,
                          int64_t step)
{
    int64_t n = r->hidden, t = time_of(r, step), rows = r->batch;
    real *dg = out_real(c, 0) + t * rows * 3 * n;
    const real *gates = in_real(c, 2) + t * rows * 4 * n;
    for (int64_t i = 0; i < rows * n; i++)
        dg[i / n * 3 * n + 2 * n + i % n] *= gates[i / n * 4 * n + i % n];
    step_back(r, v, dg, state_before(r, in_real(c, 1), in_real(c, 4), step), out_real(c, 3));
}

REF_KERNEL(gru_bwd)
{
    (void)s, (void)err;
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[3]->dims[1], 3, c->a.reverse};
    struct weights v = {in_real(c, 3), out_real(c, 1), out_real(c, 2)};
    int64_t n = r.hidden, size = r.batch * n;
    memset(v.dw, 0, c->out[1]->numel * sizeof(real));
    if (v.db)
        memset(v.db, 0, c->out[2]->numel * sizeof(real));
    memset(out_real(c, 3), 0, (size_t)size * sizeof(real));
    for (int64_t step = r.time - 1; step >= 0; step--) {
        real *dg = out_real(c, 0) + time_of(&r, step) * 3 * size;
        for (int64_t i = 0; i < size; i++)
            gru_cell_back(c, &r, step, i);
        det_cleanup(freep) real *input = det_alloc((size_t)(3 * size) * sizeof *input + 1);
        memcpy(input, dg, (size_t)(3 * size) * sizeof *dg);
        gru_step_back(c, &r, &v, step);
        memcpy(dg, input, (size_t)(3 * size) * sizeof *dg);
    }
    return 0;
}
