/*
 * LSTM and GRU: one product for each step, h w^T, then one kernel that is the cell. Gradients: the
 * cell backwards and dh = dg w for each step, then dw and db of all steps at once.
 */
#include "cuda_kernel.cuh"

struct rnn {
    int64_t time, batch, hidden, gates; /* gates: rows of w / hidden */
    bool reverse;

    __host__ __device__ int64_t size() const { return batch * hidden; }
    __host__ __device__ int64_t at(int64_t step) const
    {
        return reverse ? time - 1 - step : step;
    }
    /* The state before a step: in `all`, or the first one. */
    __host__ __device__ const float *before(const float *all, const float *first,
                                            int64_t step) const
    {
        return step == 0 ? first : all + at(step - 1) * size();
    }
};

__device__ static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* out [batch, gates * hidden], rows `ld` apart, = h w^T */
static int recur(struct det_stream *s, const struct rnn &r, const float *h, const float *w,
                 float *out, int64_t ld, struct det_err *err)
{
    int64_t n = r.hidden;
    struct cuda_gemm g = {.dtype = DET_F32, .ta = false, .tb = true, .m = r.batch,
                          .n = r.gates * n, .k = n, .lda = n, .ldb = n, .ldc = ld, .a = h, .b = w,
                          .c = out};
    return cuda_gemm(s, &g, err);
}

/* What a step does between the products: `c`'s outputs of that step from its gates. */
typedef int cell_fn(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                    int64_t step, struct det_err *err);

static int forward(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                   cell_fn *cell, struct det_err *err)
{
    int rc = 0;
    for (int64_t step = 0; rc == 0 && step < r.time; step++) {
        const float *h = r.before(out_f32(c, 0), in_f32(c, 2), step);
        rc = recur(s, r, h, in_f32(c, 1), out_f32(c, 1) + r.at(step) * 4 * r.size(), 4 * r.hidden,
                   err);
        if (rc == 0)
            rc = cell(s, c, r, step, err);
    }
    return rc;
}

static int lstm_cell(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                     int64_t step, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const float *gx = in_f32(c, 0) + t * 4 * r.size(), *b = in_f32(c, 4);
    const float *cell = r.before(out_f32(c, 2), in_f32(c, 3), step);
    float *y = out_f32(c, 0) + t * r.size(), *gates = out_f32(c, 1) + t * 4 * r.size();
    float *next = out_f32(c, 2) + t * r.size();
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), j = i - row * n, first = row * 4 * n + j;
            float z[4];
            for (int g = 0; g < 4; g++) {
                int64_t at = first + g * n;
                z[g] = gates[at] + gx[at] + (b ? b[g * n + j] : 0);
                z[g] = g == 2 ? tanhf(z[g]) : sigmoid(z[g]);
                gates[at] = z[g];
            }
            next[i] = z[1] * cell[i] + z[0] * z[2];
            y[i] = z[3] * tanhf(next[i]);
        },
        err);
}

int cuda_lstm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[0]->dims;
    struct rnn r = {d[0], d[1], c->in[1]->dims[1], 4, c->a.reverse};
    int rc = forward(s, c, r, lstm_cell, err);
    if (rc < 0 || r.size() == 0)
        return rc;
    return cuda_check(cudaMemcpyAsync(out_f32(c, 0) + r.time * r.size(),
                                      r.before(out_f32(c, 2), in_f32(c, 3), r.time),
                                      (size_t)r.size() * sizeof(float), cudaMemcpyDeviceToDevice,
                                      s->native),
                      "lstm", err);
}

/* dw [gates * hidden, hidden] = beta dw + dg^T h over `rows` rows */
static int weights_back(struct det_stream *s, const struct rnn &r, int64_t rows, const float *dg,
                        const float *h, float *dw, float beta, struct det_err *err)
{
    int64_t n = r.hidden, wide = r.gates * n;
    struct cuda_gemm g = {.dtype = DET_F32, .ta = true, .tb = false, .m = wide, .n = n, .k = rows,
                          .lda = wide, .ldb = n, .ldc = n, .a = dg, .b = h, .c = dw,
                          .beta = beta};
    return cuda_gemm(s, &g, err);
}

/* What the gradients are made of. */
struct back {
    float *dg; /* of the products h w^T, all steps */
    const float *w, *y, *h0;
    float beta; /* 1: the cell leaves a part of dh, 0: none */
};

/* dw and db of all steps: the first with h0, the others with the y before them. */
static int all_weights(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                       const struct back &b, struct det_err *err)
{
    int64_t wide = r.gates * r.size(), rest = r.time - 1;
    float *dw = out_f32(c, 1);
    if (r.time == 0)
        return cuda_check(cudaMemsetAsync(dw, 0, det_tensor_bytes(c->out[1]), s->native), "rnn",
                          err);
    int rc = weights_back(s, r, r.batch, b.dg + r.at(0) * wide, b.h0, dw, 0, err);
    if (rc == 0 && rest > 0)
        rc = weights_back(s, r, rest * r.batch, b.dg + (r.reverse ? 0 : wide),
                          b.y + (r.reverse ? r.size() : 0), dw, 1, err);
    if (rc < 0 || !c->out[2])
        return rc;
    struct det_tensor all = *c->out[0]; /* [time * batch, gates * hidden] of f32 */
    all.data = (char *)b.dg;
    all.numel = (size_t)(r.time * wide);
    return cuda_sum_rows(s, c, &all, c->out[2], r.gates * r.hidden, err);
}

/* dh = beta dh + dg w for one step */
static int state_back(struct det_stream *s, const struct rnn &r, const float *dg, const float *w,
                      float *dh, float beta, struct det_err *err)
{
    int64_t n = r.hidden, wide = r.gates * n;
    struct cuda_gemm g = {.dtype = DET_F32, .ta = false, .tb = false, .m = r.batch, .n = n,
                          .k = wide, .lda = wide, .ldb = n, .ldc = n, .a = dg, .b = w, .c = dh,
                          .beta = beta};
    return cuda_gemm(s, &g, err);
}

/* dg of one step, and in dh and dc what goes around its product. */
typedef int cell_back_fn(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                         int64_t step, float *dg, struct det_err *err);

static int backward(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                    const struct back &b, cell_back_fn *cell, struct det_err *err)
{
    float *dh = out_f32(c, 3);
    int rc = cuda_check(cudaMemsetAsync(dh, 0, (size_t)r.size() * sizeof(float), s->native), "rnn",
                        err);
    for (int64_t step = r.time - 1; rc == 0 && step >= 0; step--) {
        float *dg = b.dg + r.at(step) * r.gates * r.size();
        rc = cell(s, c, r, step, dg, err);
        if (rc == 0)
            rc = state_back(s, r, dg, b.w, dh, b.beta, err);
    }
    return rc < 0 ? rc : all_weights(s, c, r, b, err);
}

static int lstm_cell_back(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                          int64_t step, float *dg, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const float *dy = in_f32(c, 0) + t * r.size(), *gates = in_f32(c, 2) + t * 4 * r.size();
    const float *now = in_f32(c, 3) + t * r.size();
    const float *cell = r.before(in_f32(c, 3), in_f32(c, 6), step);
    float *dh = out_f32(c, 3), *dc = out_f32(c, 4);
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), at = row * 4 * n + (i - row * n);
            float in = gates[at], forget = gates[at + n], g = gates[at + 2 * n];
            float o = gates[at + 3 * n], h = dh[i] + dy[i], tc = tanhf(now[i]);
            float d = dc[i] + h * o * (1 - tc * tc);
            dg[at] = d * g * in * (1 - in);
            dg[at + n] = d * cell[i] * forget * (1 - forget);
            dg[at + 2 * n] = d * in * (1 - g * g);
            dg[at + 3 * n] = h * tc * o * (1 - o);
            dc[i] = d * forget;
        },
        err);
}

int cuda_lstm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[4]->dims[1], 4, c->a.reverse};
    struct back b = {out_f32(c, 0), in_f32(c, 4), in_f32(c, 1), in_f32(c, 5), 0};
    size_t bytes = (size_t)r.size() * sizeof(float);
    int rc = 0;
    if (bytes > 0) /* the last row of dy is the gradient of the last cell */
        rc = cuda_check(cudaMemcpyAsync(out_f32(c, 4), in_f32(c, 0) + r.time * r.size(), bytes,
                                        cudaMemcpyDeviceToDevice, s->native),
                        "lstm", err);
    return rc < 0 ? rc : backward(s, c, r, b, lstm_cell_back, err);
}

static int gru_cell(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                    int64_t step, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const float *gx = in_f32(c, 0) + t * 3 * r.size(), *b = in_f32(c, 3);
    const float *h = r.before(out_f32(c, 0), in_f32(c, 2), step);
    float *y = out_f32(c, 0) + t * r.size(), *gates = out_f32(c, 1) + t * 4 * r.size();
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), j = i - row * n;
            const float *x = gx + row * 3 * n + j;
            float *g = gates + row * 4 * n + j;
            float reset = sigmoid(x[0] + g[0] + (b ? b[j] : 0));
            float z = sigmoid(x[n] + g[n] + (b ? b[n + j] : 0));
            float hn = g[2 * n] + (b ? b[2 * n + j] : 0), fresh = tanhf(x[2 * n] + reset * hn);
            g[0] = reset;
            g[n] = z;
            g[2 * n] = fresh;
            g[3 * n] = hn;
            y[i] = (1 - z) * fresh + z * h[i];
        },
        err);
}

int cuda_gru(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[0]->dims;
    struct rnn r = {d[0], d[1], c->in[1]->dims[1], 3, c->a.reverse};
    return forward(s, c, r, gru_cell, err);
}

/* dgx, and its recurrent twin: the same but for n, whose recurrent part is behind the reset gate.
 * dh of the step before starts as what the update gate lets through. */
static int gru_cell_back(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                         int64_t step, float *twin, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const float *dy = in_f32(c, 0) + t * r.size(), *all = in_f32(c, 2) + t * 4 * r.size();
    const float *h = r.before(in_f32(c, 1), in_f32(c, 4), step);
    float *dgx = out_f32(c, 0) + t * 3 * r.size(), *dh = out_f32(c, 3);
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), j = i - row * n, at = row * 3 * n + j;
            const float *g = all + row * 4 * n + j;
            float reset = g[0], z = g[n], fresh = g[2 * n], d = dh[i] + dy[i];
            float dn = d * (1 - z) * (1 - fresh * fresh);
            dgx[at] = twin[at] = dn * g[3 * n] * reset * (1 - reset);
            dgx[at + n] = twin[at + n] = d * (h[i] - fresh) * z * (1 - z);
            dgx[at + 2 * n] = dn;
            twin[at + 2 * n] = dn * reset;
            dh[i] = d * z;
        },
        err);
}

int cuda_gru_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[3]->dims[1], 3, c->a.reverse};
    void *twin = NULL;
    size_t bytes = (size_t)(r.time * 3 * r.size()) * sizeof(float);
    int rc = cuda_workspace(s->device, bytes + 8, &twin, err);
    struct back b = {(float *)twin, in_f32(c, 3), in_f32(c, 1), in_f32(c, 4), 1};
    return rc < 0 ? rc : backward(s, c, r, b, gru_cell_back, err);
}
