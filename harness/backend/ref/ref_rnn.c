/* LSTM and GRU over time, one element after the other, sums in double. */
#include "ref.h"

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

static const float *before(const struct rnn *r, const float *all, const float *first, int64_t step)
{
    int64_t size = r->batch * r->hidden;
    return step == 0 ? first : all + time_of(r, step - 1) * size;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* (h w^T + b) for row `row` of w. */
static double recurrent(const float *w, const float *b, const float *h, int64_t hidden, int64_t row)
{
    double sum = b ? b[row] : 0;
    for (int64_t k = 0; k < hidden; k++)
        sum += (double)w[row * hidden + k] * h[k];
    return sum;
}

static void lstm_cell(const struct det_call *c, const struct rnn *r, int64_t step, int64_t i)
{
    int64_t n = r->hidden, j = i % n, at = time_of(r, step) * r->batch * n + i, row = i / n;
    const float *gx = in_f32(c, 0) + 4 * (at - j) + j, *w = in_f32(c, 1), *b = in_f32(c, 4);
    const float *h = before(r, out_f32(c, 0), in_f32(c, 2), step) + row * n;
    const float *cells = before(r, out_f32(c, 2), in_f32(c, 3), step);
    double z[4];
    for (int g = 0; g < 4; g++) {
        z[g] = gx[g * n] + recurrent(w, b, h, n, g * n + j);
        z[g] = g == 2 ? tanh(z[g]) : sigmoid(z[g]);
        out_f32(c, 1)[4 * (at - j) + g * n + j] = (float)z[g];
    }
    double cell = z[1] * cells[i] + z[0] * z[2];
    out_f32(c, 2)[at] = (float)cell;
    out_f32(c, 0)[at] = (float)(z[3] * tanh(cell));
}

int ref_lstm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const int64_t *d = c->in[0]->dims;
    struct rnn r = {d[0], d[1], c->in[1]->dims[1], 4, c->a.reverse};
    int64_t size = r.batch * r.hidden;
    for (int64_t step = 0; step < r.time; step++)
        for (int64_t i = 0; i < size; i++)
            lstm_cell(c, &r, step, i);
    memcpy(out_f32(c, 0) + r.time * size, before(&r, out_f32(c, 2), in_f32(c, 3), r.time),
           (size_t)size * sizeof(float));
    return 0;
}

/* dh += dg w; dw += dg^T h; db += dg for the rows of one step. */
struct weights {
    const float *w;
    float *dw, *db;
};

static void step_back(const struct rnn *r, const struct weights *v, const float *dg, const float *h,
                      float *dh)
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
    const float *gates = in_f32(c, 2) + first;
    float *dg = out_f32(c, 0) + first, *dc = out_f32(c, 4) + i;
    double in = gates[0], forget = gates[n], g = gates[2 * n], o = gates[3 * n];
    double dh = (double)out_f32(c, 3)[i] + in_f32(c, 0)[at], tc = tanh(in_f32(c, 3)[at]);
    double d = *dc + dh * o * (1 - tc * tc);
    dg[0] = (float)(d * g * in * (1 - in));
    dg[n] = (float)(d * before(r, in_f32(c, 3), in_f32(c, 6), step)[i] * forget * (1 - forget));
    dg[2 * n] = (float)(d * in * (1 - g * g));
    dg[3 * n] = (float)(dh * tc * o * (1 - o));
    *dc = (float)(d * forget);
}

int ref_lstm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[4]->dims[1], 4, c->a.reverse};
    struct weights v = {in_f32(c, 4), out_f32(c, 1), out_f32(c, 2)};
    size_t size = (size_t)(r.batch * r.hidden);
    memset(v.dw, 0, c->out[1]->numel * sizeof(float));
    if (v.db)
        memset(v.db, 0, c->out[2]->numel * sizeof(float));
    memset(out_f32(c, 3), 0, size * sizeof(float));
    memcpy(out_f32(c, 4), in_f32(c, 0) + r.time * (int64_t)size, size * sizeof(float));
    for (int64_t step = r.time - 1; step >= 0; step--) {
        for (int64_t i = 0; i < (int64_t)size; i++)
            lstm_cell_back(c, &r, step, i);
        memset(out_f32(c, 3), 0, size * sizeof(float));
        step_back(&r, &v, out_f32(c, 0) + time_of(&r, step) * 4 * (int64_t)size,
                  before(&r, in_f32(c, 1), in_f32(c, 5), step), out_f32(c, 3));
    }
    return 0;
}

static void gru_cell(const struct det_call *c, const struct rnn *r, int64_t step, int64_t i)
{
    int64_t n = r->hidden, j = i % n, at = time_of(r, step) * r->batch * n + i;
    const float *gx = in_f32(c, 0) + 3 * (at - j) + j, *w = in_f32(c, 1), *b = in_f32(c, 3);
    const float *h = before(r, out_f32(c, 0), in_f32(c, 2), step);
    float *gates = out_f32(c, 1) + 4 * (at - j) + j;
    double reset = sigmoid(gx[0] + recurrent(w, b, h + i - j, n, j));
    double z = sigmoid(gx[n] + recurrent(w, b, h + i - j, n, n + j));
    double hn = recurrent(w, b, h + i - j, n, 2 * n + j), new = tanh(gx[2 * n] + reset * hn);
    gates[0] = (float)reset;
    gates[n] = (float)z;
    gates[2 * n] = (float)new;
    gates[3 * n] = (float)hn;
    out_f32(c, 0)[at] = (float)((1 - z) * new + z *h[i]);
}

int ref_gru(struct det_stream *s, const struct det_call *c, struct det_err *err)
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
    const float *gates = in_f32(c, 2) + 4 * (at - j) + j;
    float *dg = out_f32(c, 0) + 3 * (at - j) + j, *carry = out_f32(c, 3) + i;
    double reset = gates[0], z = gates[n], new = gates[2 * n];
    double dh = (double)*carry + in_f32(c, 0)[at], dn = dh * (1 - z) * (1 - new *new);
    double h = before(r, in_f32(c, 1), in_f32(c, 4), step)[i];
    dg[0] = (float)(dn * gates[3 * n] * reset * (1 - reset));
    dg[n] = (float)(dh * (h - new) * z * (1 - z));
    dg[2 * n] = (float)dn;
    *carry = (float)(dh * z);
}

/* The gradient of n's recurrent part is r times that of its input part: dgx with it, and back. */
static void gru_step_back(const struct det_call *c, const struct rnn *r, const struct weights *v,
                          int64_t step)
{
    int64_t n = r->hidden, t = time_of(r, step), rows = r->batch;
    float *dg = out_f32(c, 0) + t * rows * 3 * n;
    const float *gates = in_f32(c, 2) + t * rows * 4 * n;
    for (int64_t i = 0; i < rows * n; i++)
        dg[i / n * 3 * n + 2 * n + i % n] *= gates[i / n * 4 * n + i % n];
    step_back(r, v, dg, before(r, in_f32(c, 1), in_f32(c, 4), step), out_f32(c, 3));
}

int ref_gru_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[3]->dims[1], 3, c->a.reverse};
    struct weights v = {in_f32(c, 3), out_f32(c, 1), out_f32(c, 2)};
    int64_t n = r.hidden, size = r.batch * n;
    memset(v.dw, 0, c->out[1]->numel * sizeof(float));
    if (v.db)
        memset(v.db, 0, c->out[2]->numel * sizeof(float));
    memset(out_f32(c, 3), 0, (size_t)size * sizeof(float));
    for (int64_t step = r.time - 1; step >= 0; step--) {
        float *dg = out_f32(c, 0) + time_of(&r, step) * 3 * size;
        for (int64_t i = 0; i < size; i++)
            gru_cell_back(c, &r, step, i);
        det_cleanup(freep) float *input = det_alloc((size_t)(3 * size) * sizeof *input + 1);
        memcpy(input, dg, (size_t)(3 * size) * sizeof *dg);
        gru_step_back(c, &r, &v, step);
        memcpy(dg, input, (size_t)(3 * size) * sizeof *dg);
    }
    return 0;
}
