/*
 * LSTM and GRU: one product for each step, h w^T, then one kernel that is the cell. Gradients: the
 * cell backwards and dh = dg w for each step, then dw and db of all steps at once.
 */
#include "cuda_kernel.cuh"

struct rnn {
    int64_t time, batch, hidden, gates; /* gates: rows of w / hidden */
    bool reverse;

    int64_t size() const { return batch * hidden; }
    int64_t at(int64_t step) const { return reverse ? time - 1 - step : step; }
    /* The state before a step: in `all`, or the first one. */
    template <typename T> const T *before(const T *all, const T *first, int64_t step) const
    {
        return step == 0 ? first : all + at(step - 1) * size();
    }
};

template <typename T> __device__ static T sigmoid(T x)
{
    return 1 / (1 + exp(-x));
}

/* out [batch, gates * hidden], rows `ld` apart, = h w^T */
template <typename T>
static int recur(struct det_stream *s, const struct rnn &r, const T *h, const T *w, T *out,
                 int64_t ld, struct det_err *err)
{
    int64_t n = r.hidden;
    struct cuda_gemm g = {.dtype = cuda_dtype<T>,
                          .ta = false,
                          .tb = true,
                          .m = r.batch,
                          .n = r.gates * n,
                          .k = n,
                          .lda = n,
                          .ldb = n,
                          .ldc = ld,
                          .a = h,
                          .b = w,
                          .c = out};
    return cuda_gemm(s, &g, err);
}

/* What a step does between the products: `c`'s outputs of that step from its gates. */
typedef int cell_fn(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                    int64_t step, struct det_err *err);

template <typename T>
static int forward(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                   cell_fn *cell, struct det_err *err)
{
    int rc = 0;
    for (int64_t step = 0; rc == 0 && step < r.time; step++) {
        const T *h = r.before(out_real<T>(c, 0), in_real<T>(c, 2), step);
        T *gates = out_real<T>(c, 1) + r.at(step) * 4 * r.size();
        rc = recur(s, r, h, in_real<T>(c, 1), gates, 4 * r.hidden, err);
        if (rc == 0)
            rc = cell(s, c, r, step, err);
    }
    return rc;
}

template <typename T>
static int lstm_cell(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                     int64_t step, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const T *gx = in_real<T>(c, 0) + t * 4 * r.size(), *b = in_real<T>(c, 4);
    const T *cell = r.before(out_real<T>(c, 2), in_real<T>(c, 3), step);
    T *y = out_real<T>(c, 0) + t * r.size(), *gates = out_real<T>(c, 1) + t * 4 * r.size();
    T *next = out_real<T>(c, 2) + t * r.size();
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), j = i - row * n, first = row * 4 * n + j;
            T z[4];
            for (int g = 0; g < 4; g++) {
                int64_t at = first + g * n;
                z[g] = gates[at] + gx[at] + (b ? b[g * n + j] : 0);
                z[g] = g == 2 ? tanh(z[g]) : sigmoid(z[g]);
                gates[at] = z[g];
            }
            next[i] = z[1] * cell[i] + z[0] * z[2];
            y[i] = z[3] * tanh(next[i]);
        },
        err);
}

template <typename T>
static int lstm(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[0]->dims;
    struct rnn r = {d[0], d[1], c->in[1]->dims[1], 4, c->a.reverse};
    int rc = forward<T>(s, c, r, lstm_cell<T>, err);
    if (rc < 0 || r.size() == 0)
        return rc;
    return cuda_check(cudaMemcpyAsync(out_real<T>(c, 0) + r.time * r.size(),
                                      r.before(out_real<T>(c, 2), in_real<T>(c, 3), r.time),
                                      (size_t)r.size() * sizeof(T), cudaMemcpyDeviceToDevice,
                                      s->native),
                      "lstm", err);
}
CUDA_REAL(lstm)

/* dw [gates * hidden, hidden] = beta dw + dg^T h over `rows` rows */
template <typename T>
static int weights_back(struct det_stream *s, const struct rnn &r, int64_t rows, const T *dg,
                        const T *h, T *dw, double beta, struct det_err *err)
{
    int64_t n = r.hidden, wide = r.gates * n;
    struct cuda_gemm g = {.dtype = cuda_dtype<T>,
                          .ta = true,
                          .tb = false,
                          .m = wide,
                          .n = n,
                          .k = rows,
                          .lda = wide,
                          .ldb = n,
                          .ldc = n,
                          .a = dg,
                          .b = h,
                          .c = dw,
                          .beta = beta};
    return cuda_gemm(s, &g, err);
}

/* What the gradients are made of. */
template <typename T> struct back {
    T *dg; /* of the products h w^T, all steps */
    const T *w, *y, *h0;
    double beta; /* 1: the cell leaves a part of dh, 0: none */
};

/* dw and db of all steps: the first with h0, the others with the y before them. */
template <typename T>
static int all_weights(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                       const back<T> &b, struct det_err *err)
{
    int64_t wide = r.gates * r.size(), rest = r.time - 1;
    T *dw = out_real<T>(c, 1);
    if (r.time == 0)
        return cuda_check(cudaMemsetAsync(dw, 0, det_tensor_bytes(c->out[1]), s->native), "rnn",
                          err);
    int rc = weights_back(s, r, r.batch, b.dg + r.at(0) * wide, b.h0, dw, 0, err);
    if (rc == 0 && rest > 0)
        rc = weights_back(s, r, rest * r.batch, b.dg + (r.reverse ? 0 : wide),
                          b.y + (r.reverse ? r.size() : 0), dw, 1, err);
    if (rc < 0 || !c->out[2])
        return rc;
    struct det_tensor all = *c->out[0]; /* [time * batch, gates * hidden] */
    all.data = (char *)b.dg;
    all.numel = (size_t)(r.time * wide);
    return cuda_sum_columns(s, c, &all, c->out[2], 1, err);
}

/* dh = beta dh + dg w for one step */
template <typename T>
static int state_back(struct det_stream *s, const struct rnn &r, const T *dg, const T *w, T *dh,
                      double beta, struct det_err *err)
{
    int64_t n = r.hidden, wide = r.gates * n;
    struct cuda_gemm g = {.dtype = cuda_dtype<T>,
                          .ta = false,
                          .tb = false,
                          .m = r.batch,
                          .n = n,
                          .k = wide,
                          .lda = wide,
                          .ldb = n,
                          .ldc = n,
                          .a = dg,
                          .b = w,
                          .c = dh,
                          .beta = beta};
    return cuda_gemm(s, &g, err);
}

/* dg of one step, and in dh and dc what goes around its product. */
template <typename T>
using cell_back_fn = int(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                         int64_t step, T *dg, struct det_err *err);

template <typename T>
static int backward(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                    const back<T> &b, cell_back_fn<T> *cell, struct det_err *err)
{
    T *dh = out_real<T>(c, 3);
    int rc =
        cuda_check(cudaMemsetAsync(dh, 0, (size_t)r.size() * sizeof(T), s->native), "rnn", err);
    for (int64_t step = r.time - 1; rc == 0 && step >= 0; step--) {
        T *dg = b.dg + r.at(step) * r.gates * r.size();
        rc = cell(s, c, r, step, dg, err);
        if (rc == 0)
            rc = state_back(s, r, dg, b.w, dh, b.beta, err);
    }
    return rc < 0 ? rc : all_weights(s, c, r, b, err);
}

template <typename T>
static int lstm_cell_back(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                          int64_t step, T *dg, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const T *dy = in_real<T>(c, 0) + t * r.size(), *gates = in_real<T>(c, 2) + t * 4 * r.size();
    const T *now = in_real<T>(c, 3) + t * r.size();
    const T *cell = r.before(in_real<T>(c, 3), in_real<T>(c, 6), step);
    T *dh = out_real<T>(c, 3), *dc = out_real<T>(c, 4);
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), at = row * 4 * n + (i - row * n);
            T in = gates[at], forget = gates[at + n], g = gates[at + 2 * n];
            T o = gates[at + 3 * n], h = dh[i] + dy[i], tc = tanh(now[i]);
            T d = dc[i] + h * o * (1 - tc * tc);
            dg[at] = d * g * in * (1 - in);
            dg[at + n] = d * cell[i] * forget * (1 - forget);
            dg[at + 2 * n] = d * in * (1 - g * g);
            dg[at + 3 * n] = h * tc * o * (1 - o);
            dc[i] = d * forget;
        },
        err);
}

template <typename T>
static int lstm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[4]->dims[1], 4, c->a.reverse};
    back<T> b = {out_real<T>(c, 0), in_real<T>(c, 4), in_real<T>(c, 1), in_real<T>(c, 5), 0};
    size_t bytes = (size_t)r.size() * sizeof(T);
    int rc = 0;
    if (bytes > 0) /* the last row of dy is the gradient of the last cell */
        rc = cuda_check(cudaMemcpyAsync(out_real<T>(c, 4), in_real<T>(c, 0) + r.time * r.size(),
                                        bytes, cudaMemcpyDeviceToDevice, s->native),
                        "lstm", err);
    return rc < 0 ? rc : backward<T>(s, c, r, b, lstm_cell_back<T>, err);
}
CUDA_REAL(lstm_bwd)

template <typename T>
static int gru_cell(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                    int64_t step, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const T *gx = in_real<T>(c, 0) + t * 3 * r.size(), *b = in_real<T>(c, 3);
    const T *h = r.before(out_real<T>(c, 0), in_real<T>(c, 2), step);
    T *y = out_real<T>(c, 0) + t * r.size(), *gates = out_real<T>(c, 1) + t * 4 * r.size();
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), j = i - row * n;
            const T *x = gx + row * 3 * n + j;
            T *g = gates + row * 4 * n + j;
            T reset = sigmoid(x[0] + g[0] + (b ? b[j] : 0));
            T z = sigmoid(x[n] + g[n] + (b ? b[n + j] : 0));
            T hn = g[2 * n] + (b ? b[2 * n + j] : 0), fresh = tanh(x[2 * n] + reset * hn);
            g[0] = reset;
            g[n] = z;
            g[2 * n] = fresh;
            g[3 * n] = hn;
            y[i] = (1 - z) * fresh + z * h[i];
        },
        err);
}

template <typename T>
static int gru(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[0]->dims;
    struct rnn r = {d[0], d[1], c->in[1]->dims[1], 3, c->a.reverse};
    return forward<T>(s, c, r, gru_cell<T>, err);
}
CUDA_REAL(gru)

/* dgx, and its recurrent twin: the same but for n, whose recurrent part is behind the reset gate.
 * dh of the step before starts as what the update gate lets through. */
template <typename T>
static int gru_cell_back(struct det_stream *s, const struct det_call *c, const struct rnn &r,
                         int64_t step, T *twin, struct det_err *err)
{
    int64_t n = r.hidden, t = r.at(step);
    const T *dy = in_real<T>(c, 0) + t * r.size(), *all = in_real<T>(c, 2) + t * 4 * r.size();
    const T *h = r.before(in_real<T>(c, 1), in_real<T>(c, 4), step);
    T *dgx = out_real<T>(c, 0) + t * 3 * r.size(), *dh = out_real<T>(c, 3);
    return cuda_each(
        s, c, r.size(),
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n), j = i - row * n, at = row * 3 * n + j;
            const T *g = all + row * 4 * n + j;
            T reset = g[0], z = g[n], fresh = g[2 * n], d = dh[i] + dy[i];
            T dn = d * (1 - z) * (1 - fresh * fresh);
            dgx[at] = twin[at] = dn * g[3 * n] * reset * (1 - reset);
            dgx[at + n] = twin[at + n] = d * (h[i] - fresh) * z * (1 - z);
            dgx[at + 2 * n] = dn;
            twin[at + 2 * n] = dn * reset;
            dh[i] = d * z;
        },
        err);
}

template <typename T>
static int gru_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const int64_t *d = c->in[2]->dims;
    struct rnn r = {d[0], d[1], c->in[3]->dims[1], 3, c->a.reverse};
    void *twin = NULL;
    size_t bytes = (size_t)(r.time * 3 * r.size()) * sizeof(T);
    int rc = cuda_workspace(s->device, bytes + 8, &twin, err);
    back<T> b = {(T *)twin, in_real<T>(c, 3), in_real<T>(c, 1), in_real<T>(c, 4), 1};
    return rc < 0 ? rc : backward<T>(s, c, r, b, gru_cell_back<T>, err);
}
CUDA_REAL(gru_bwd)
