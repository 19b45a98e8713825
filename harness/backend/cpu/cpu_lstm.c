/* LSTM: the cells, and the loop over time. See cpu_rnn.h. */
#include <string.h>

#include "cpu_rnn.h"
#include "mem.h"

static void load_lanes(real to[RNN_LANES], const real *from, int64_t width)
{
    memcpy(to, from, (size_t)width * sizeof *to);
}

static void store_lanes(real *to, const real from[RNN_LANES], int64_t width)
{
    memcpy(to, from, (size_t)width * sizeof *to);
}

/* z: the gates before their functions, i f g o; after it, the gates. */
CPU_CLONES static void compute_cell(real z[4][RNN_LANES], real cells[RNN_LANES], real h[RNN_LANES])
{
    for (int l = 0; l < RNN_LANES; l++) {
        z[0][l] = vm_sigmoid(z[0][l]);
        z[1][l] = vm_sigmoid(z[1][l]);
        z[2][l] = vm_tanh(z[2][l]);
        z[3][l] = vm_sigmoid(z[3][l]);
        cells[l] = z[1][l] * cells[l] + z[0][l] * z[2][l];
        h[l] = z[3][l] * vm_tanh(cells[l]);
    }
}

static void forward_cell(const struct rnn_step *r, int64_t row, int64_t j, int64_t width,
                         const real (*sums)[RNN_LANES])
{
    const struct det_call *c = r->c;
    int64_t n = r->hidden, at = (r->t * r->batch + row) * n + j, gate = 4 * (at - j) + j;
    const real *gx = in_real(c, 0) + gate, *b = in_real(c, 4);
    real z[4][RNN_LANES] = {0}, cells[RNN_LANES] = {0}, h[RNN_LANES];
    for (int g = 0; g < 4; g++)
        for (int64_t l = 0; l < width; l++)
            z[g][l] = sums[g][l] + gx[g * n + l] + (b ? b[g * n + j + l] : 0);
    load_lanes(cells, r->c_before + row * n + j, width);
    compute_cell(z, cells, h);
    for (int g = 0; g < 4; g++)
        store_lanes(out_real(c, 1) + gate + g * n, z[g], width);
    store_lanes(out_real(c, 2) + at, cells, width);
    store_lanes(out_real(c, 0) + at, h, width);
}

int CPU(lstm)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[0]->dims;
    det_cleanup(freep) real *packed = NULL;
    struct rnn_step r = {.c = c, .cell = forward_cell, .batch = d[1], .gates = 4};
    r.hidden = r.depth = c->in[1]->dims[1];
    int64_t size = r.batch * r.hidden;
    int rc = CPU(rnn_pack)(&r, in_real(c, 1), false, &packed, err);
    if (rc < 0)
        return rc;
    r.packed = packed;
    r.h_before = in_real(c, 2);
    r.c_before = in_real(c, 3);
    for (int64_t step = 0; step < d[0]; step++) {
        r.t = rnn_time(c->a.reverse, d[0], step);
        r.left = r.h_before;
        CPU(rnn_run_step)(cpu_device(s)->threads, &r);
        r.h_before = out_real(c, 0) + r.t * size;
        r.c_before = out_real(c, 2) + r.t * size;
    }
    memcpy(out_real(c, 0) + d[0] * size, r.c_before, (size_t)size * sizeof(real));
    return 0;
}

/* z: the gates; after it, the gradients before their functions. */
CPU_CLONES static void cell_back(real z[4][RNN_LANES], const real cells[RNN_LANES],
                                 const real before[RNN_LANES], const real dh[RNN_LANES],
                                 real dc[RNN_LANES])
{
    for (int l = 0; l < RNN_LANES; l++) {
        real i = z[0][l], f = z[1][l], g = z[2][l], o = z[3][l], tc = vm_tanh(cells[l]);
        real d = dc[l] + dh[l] * o * (1 - tc * tc);
        z[0][l] = d * g * i * (1 - i);
        z[1][l] = d * before[l] * f * (1 - f);
        z[2][l] = d * i * (1 - g * g);
        z[3][l] = dh[l] * tc * o * (1 - o);
        dc[l] = d * f;
    }
}

static void backward_cell(const struct rnn_step *r, int64_t row, int64_t j, int64_t width,
                          const real (*sums)[RNN_LANES])
{
    const struct det_call *c = r->c;
    int64_t n = r->hidden, at = (r->t * r->batch + row) * n + j, gate = 4 * (at - j) + j;
    real z[4][RNN_LANES] = {0}, cells[RNN_LANES] = {0}, before[RNN_LANES] = {0};
    real dh[RNN_LANES] = {0}, dc[RNN_LANES] = {0}, *carry = out_real(c, 4) + row * n + j;
    for (int g = 0; g < 4; g++)
        load_lanes(z[g], in_real(c, 2) + gate + g * n, width);
    load_lanes(cells, in_real(c, 3) + at, width);
    load_lanes(before, r->c_before + row * n + j, width);
    load_lanes(dh, in_real(c, 0) + at, width);
    load_lanes(dc, carry, width);
    for (int l = 0; l < RNN_LANES; l++)
        dh[l] += sums[0][l];
    cell_back(z, cells, before, dh, dc);
    for (int g = 0; g < 4; g++)
        store_lanes(out_real(c, 0) + gate + g * n, z[g], width);
    store_lanes(carry, dc, width);
}

/* The last product: what comes out at the initial state. */
static void first_cell(const struct rnn_step *r, int64_t row, int64_t j, int64_t width,
                       const real (*sums)[RNN_LANES])
{
    store_lanes(out_real(r->c, 3) + row * r->hidden + j, sums[0], width);
}

static void back_through_time(struct rnn_step *r, int threads, int64_t time)
{
    const struct det_call *c = r->c;
    int64_t size = r->batch * r->hidden;
    for (int64_t step = time - 1; step >= 0; step--) {
        r->t = rnn_time(c->a.reverse, time, step);
        int64_t before = rnn_time(c->a.reverse, time, step - 1);
        r->c_before = step == 0 ? in_real(c, 6) : in_real(c, 3) + before * size;
        CPU(rnn_run_step)(threads, r);
        r->left = out_real(c, 0) + r->t * 4 * size;
    }
    r->cell = first_cell;
    CPU(rnn_run_step)(threads, r);
}

int CPU(lstm_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[2]->dims;
    det_cleanup(freep) real *packed = NULL;
    struct rnn_step r = {.c = c, .cell = backward_cell, .batch = d[1], .gates = 1};
    r.hidden = c->in[4]->dims[1];
    r.depth = 4 * r.hidden;
    int64_t size = r.batch * r.hidden;
    int rc = CPU(rnn_pack)(&r, in_real(c, 4), true, &packed, err);
    if (rc < 0)
        return rc;
    r.packed = packed;
    memcpy(out_real(c, 4), in_real(c, 0) + d[0] * size, (size_t)size * sizeof(real));
    back_through_time(&r, cpu_device(s)->threads, d[0]);
    const struct rnn_grads g = {
        .dg = out_real(c, 0),
        .y = in_real(c, 1),
        .h0 = in_real(c, 5),
        .dw = out_real(c, 1),
        .db = out_real(c, 2),
        .time = d[0],
        .batch = d[1],
        .hidden = r.hidden,
        .rows = r.depth,
        .reverse = c->a.reverse,
    };
    return CPU(rnn_weight_grads)(&g, err);
}
