/* GRU: the cells, and the loop over time. See cpu_rnn.h. */
#include <string.h>

#include "cpu_rnn.h"
#include "mem.h"

/* z: r, z and the input's part of n before their functions; hn the recurrent part of n. After it
 * the gates; h: before, then after. */
CPU_CLONES static void compute_cell(real z[3][RNN_LANES], const real hn[RNN_LANES],
                                    real h[RNN_LANES])
{
    for (int l = 0; l < RNN_LANES; l++) {
        z[0][l] = vm_sigmoid(z[0][l]);
        z[1][l] = vm_sigmoid(z[1][l]);
        z[2][l] = vm_tanh(z[2][l] + z[0][l] * hn[l]);
        h[l] = (1 - z[1][l]) * z[2][l] + z[1][l] * h[l];
    }
}

static void forward_cell(const struct rnn_step *r, int64_t row, int64_t j, int64_t width,
                         const real (*sums)[RNN_LANES])
{
    const struct det_call *c = r->c;
    int64_t n = r->hidden, line = r->t * r->batch + row;
    const real *gx = in_real(c, 0) + line * 3 * n + j, *b = in_real(c, 3);
    real z[3][RNN_LANES] = {0}, hn[RNN_LANES] = {0}, h[RNN_LANES] = {0};
    real *gates = out_real(c, 1) + line * 4 * n + j;
    size_t bytes = (size_t)width * sizeof(real);
    for (int64_t l = 0; l < width; l++) {
        z[0][l] = sums[0][l] + gx[l] + (b ? b[j + l] : 0);
        z[1][l] = sums[1][l] + gx[n + l] + (b ? b[n + j + l] : 0);
        z[2][l] = gx[2 * n + l];
        hn[l] = sums[2][l] + (b ? b[2 * n + j + l] : 0);
        h[l] = r->h_before[row * n + j + l];
    }
    compute_cell(z, hn, h);
    for (int g = 0; g < 3; g++)
        memcpy(gates + g * n, z[g], bytes);
    memcpy(gates + 3 * n, hn, bytes);
    memcpy(out_real(c, 0) + line * n + j, h, bytes);
}

int CPU(gru)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[0]->dims;
    det_cleanup(freep) real *packed = NULL;
    struct rnn_step r = {.c = c, .cell = forward_cell, .batch = d[1], .gates = 3};
    r.hidden = r.depth = c->in[1]->dims[1];
    int rc = CPU(rnn_pack)(&r, in_real(c, 1), false, &packed, err);
    if (rc < 0)
        return rc;
    r.packed = packed;
    r.h_before = in_real(c, 2);
    for (int64_t step = 0; step < d[0]; step++) {
        r.t = rnn_time(c->a.reverse, d[0], step);
        r.left = r.h_before;
        CPU(rnn_run_step)(cpu_device(s)->threads, &r);
        r.h_before = out_real(c, 0) + r.t * r.batch * r.hidden;
    }
    return 0;
}

/* The way back keeps the gradients of the recurrent part beside the call's own. */
struct back {
    struct rnn_step step;
    real *dgh; /* [T, B, 3H]: dgx with n's part times r */
};

static void backward_cell(const struct rnn_step *r, int64_t row, int64_t j, int64_t width,
                          const real (*sums)[RNN_LANES])
{
    const struct back *k = (const struct back *)r;
    const struct det_call *c = r->c;
    int64_t n = r->hidden, line = r->t * r->batch + row;
    const real *gates = in_real(c, 2) + line * 4 * n + j, *dy = in_real(c, 0) + line * n + j;
    real *dgx = out_real(c, 0) + line * 3 * n + j, *dgh = k->dgh + line * 3 * n + j;
    real *carry = out_real(c, 3) + row * n + j;
    for (int64_t l = 0; l < width; l++) {
        real reset = gates[l], z = gates[n + l], new = gates[2 * n + l];
        real dh = carry[l] + sums[0][l] + dy[l], dn = dh * (1 - z) * (1 - new *new);
        dgx[l] = dgh[l] = dn * gates[3 * n + l] * reset * (1 - reset);
        dgx[n + l] = dgh[n + l] = dh * (r->h_before[row * n + j + l] - new) * z * (1 - z);
        dgx[2 * n + l] = dn;
        dgh[2 * n + l] = dn * reset;
        carry[l] = dh * z;
    }
}

/* The last product: what comes out at the initial state. */
static void first_cell(const struct rnn_step *r, int64_t row, int64_t j, int64_t width,
                       const real (*sums)[RNN_LANES])
{
    for (int64_t l = 0; l < width; l++)
        out_real(r->c, 3)[row * r->hidden + j + l] += sums[0][l];
}

static void back_through_time(struct back *k, int threads, int64_t time)
{
    struct rnn_step *r = &k->step;
    const struct det_call *c = r->c;
    int64_t size = r->batch * r->hidden;
    memset(out_real(c, 3), 0, (size_t)size * sizeof(real));
    for (int64_t step = time - 1; step >= 0; step--) {
        r->t = rnn_time(c->a.reverse, time, step);
        int64_t before = rnn_time(c->a.reverse, time, step - 1);
        r->h_before = step == 0 ? in_real(c, 4) : in_real(c, 1) + before * size;
        CPU(rnn_run_step)(threads, r);
        r->left = k->dgh + r->t * 3 * size;
    }
    r->cell = first_cell;
    CPU(rnn_run_step)(threads, r);
}

int CPU(gru_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[2]->dims;
    size_t n = c->out[0]->numel;
    det_cleanup(freep) real *packed = NULL;
    det_cleanup(freep) real *dgh = det_try_alloc((n ? n : 1) * sizeof *dgh);
    struct back k = {.step = {.c = c, .cell = backward_cell, .batch = d[1], .gates = 1}};
    k.step.hidden = c->in[3]->dims[1];
    k.step.depth = 3 * k.step.hidden;
    if (!dgh)
        return det_fail(err, DET_ENOMEM, "no memory for %zu gradients", n);
    int rc = CPU(rnn_pack)(&k.step, in_real(c, 3), true, &packed, err);
    if (rc < 0)
        return rc;
    k.step.packed = packed;
    k.dgh = dgh;
    back_through_time(&k, cpu_device(s)->threads, d[0]);
    const struct rnn_grads g = {
        .dg = dgh,
        .y = in_real(c, 1),
        .h0 = in_real(c, 4),
        .dw = out_real(c, 1),
        .db = out_real(c, 2),
        .time = d[0],
        .batch = d[1],
        .hidden = k.step.hidden,
        .rows = k.step.depth,
        .reverse = c->a.reverse,
    };
    return CPU(rnn_weight_grads)(&g, err);
}
