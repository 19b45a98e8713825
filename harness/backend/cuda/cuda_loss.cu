/* Losses of classes and of whole tensors, and their gradients. A class out of range sets *bad,
 * which the stream's next synchronisation reports. */
#include "cuda_row.cuh"
#include "cuda_total.cuh"

int cuda_nll(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const float *x = in_f32(c, 0);
    const int64_t *target = in_i64(c, 1);
    int *bad = s->bad;
    auto loss = DEVICE(int64_t i) {
        int64_t t = target[i];
        if (t >= 0 && t < n)
            return -(double)x[i * n + t];
        *bad = 1;
        return 0.0;
    };
    return cuda_sum_of(s, c, m, loss, 1 / (double)m, out_f32(c, 0), err);
}

int cuda_nll_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->out[0]->dims[0], n = c->out[0]->dims[1];
    const float *dy = in_f32(c, 0);
    const int64_t *target = in_i64(c, 1);
    float *dx = out_f32(c, 0);
    return cuda_each(
        s, c, m * n,
        DEVICE(int64_t i) {
            int64_t row = cuda_div(i, n);
            dx[i] = i - row * n == target[row] ? -*dy / (float)m : 0;
        },
        err);
}

int cuda_mse(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const float *x = in_f32(c, 0), *t = in_f32(c, 1);
    int64_t n = (int64_t)c->in[0]->numel;
    return cuda_sum_of(
        s, c, n, DEVICE(int64_t i) { return ((double)x[i] - t[i]) * ((double)x[i] - t[i]); },
        1 / (double)n, out_f32(c, 0), err);
}

int cuda_mse_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const float *dy = in_f32(c, 0), *x = in_f32(c, 1), *t = in_f32(c, 2);
    int64_t n = (int64_t)c->out[0]->numel;
    float *dx = out_f32(c, 0);
    return cuda_each(
        s, c, n, DEVICE(int64_t i) { dx[i] = 2 * *dy / (float)n * (x[i] - t[i]); }, err);
}

/* The loss of a row, and what it counts. */
struct cross {
    int64_t n, skip;
    double smoothing;
    bool log_probs;
    const float *x, *w;
    const int64_t *target;
    int *bad;
};

static struct cross cross_of(struct det_stream *s, const struct det_call *c, int first)
{
    return {c->in[first]->dims[1], c->a.skip,           c->a.smoothing,        c->a.log_probs,
            in_f32(c, first),      in_f32(c, first + 2), in_i64(c, first + 1), s->bad};
}

__device__ static float weight(const struct cross &k, int64_t j)
{
    return k.w ? k.w[j] : 1;
}

/* The row's class, or -1 where it is left out. */
__device__ static int64_t class_of(const struct cross &k, int64_t row)
{
    int64_t t = k.target[row];
    if (t == k.skip)
        return -1;
    if (t >= 0 && t < k.n)
        return t;
    *k.bad = 1;
    return -1;
}

/* The sum over classes of w (lse - x), by the whole block; 0 where nothing is smoothed. */
__device__ static double smoothed(const struct cross &k, const float *x, double lse)
{
    double all = 0;
    if (k.smoothing == 0)
        return 0;
    for (int64_t j = threadIdx.x; j < k.n; j += blockDim.x)
        all += weight(k, j) * (lse - x[j]);
    return cuda_combine(all, cuda_plus());
}

/* Row losses go to rows[0..m), what they count to rows[m..2m). */
static int row_losses(struct det_stream *s, const struct det_call *c, double *rows,
                      struct det_err *err)
{
    struct cross k = cross_of(s, c, 0);
    int64_t m = c->in[0]->dims[0];
    float *lse_of = out_f32(c, 1);
    return cuda_blocks(
        s, c, m,
        DEVICE(int64_t row) {
            const float *x = k.x + row * k.n;
            double lse = k.log_probs ? 0 : cuda_row_log_sum(x, k.n), all = smoothed(k, x, lse);
            if (threadIdx.x != 0)
                return;
            int64_t t = class_of(k, row);
            double w = t < 0 ? 0 : weight(k, t);
            double loss = t < 0 ? 0 : (1 - k.smoothing) * w * (lse - x[t]);
            rows[row] = t < 0 ? 0 : loss + k.smoothing / (double)k.n * all;
            rows[m + row] = w;
            lse_of[row] = (float)lse;
        },
        err);
}

int cuda_cross_entropy(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int64_t m = c->in[0]->dims[0];
    int mode = c->a.mode;
    float *y = out_f32(c, 0), *count = out_f32(c, 2);
    void *work = NULL;
    int rc = cuda_workspace(s->device, 2 * (size_t)m * sizeof(double) + 8, &work, err);
    double *rows = (double *)work;
    if (rc == 0)
        rc = row_losses(s, c, rows, err);
    if (rc < 0)
        return rc;
    return cuda_blocks(
        s, c, 1,
        DEVICE(int64_t) {
            double total = 0, counted = 0;
            for (int64_t i = threadIdx.x; i < m; i += blockDim.x) {
                total += rows[i];
                counted += rows[m + i];
                if (mode == DET_REDUCE_NONE)
                    y[i] = (float)rows[i];
            }
            total = cuda_combine(total, cuda_plus());
            counted = cuda_combine(counted, cuda_plus());
            if (threadIdx.x != 0)
                return;
            *count = (float)counted;
            if (mode != DET_REDUCE_NONE)
                *y = (float)(mode == DET_REDUCE_MEAN ? total / counted : total);
        },
        err);
}

/* d loss / dx_j = sum_c q_c w_c (p_j - [c = j]). */
int cuda_cross_entropy_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cross k = cross_of(s, c, 1);
    const float *dys = in_f32(c, 0), *lses = in_f32(c, 4), *count = in_f32(c, 5);
    float *dx = out_f32(c, 0);
    int mode = c->a.mode;
    return cuda_blocks(
        s, c, c->in[1]->dims[0],
        DEVICE(int64_t row) {
            int64_t t = class_of(k, row);
            double smooth = k.smoothing / (double)k.n, sum_w = 0;
            for (int64_t j = threadIdx.x; smooth > 0 && j < k.n; j += blockDim.x)
                sum_w += weight(k, j);
            sum_w = cuda_combine(sum_w, cuda_plus());
            double dy = dys[mode == DET_REDUCE_NONE ? row : 0], lse = lses[row];
            double hit = t < 0 ? 0 : (1 - k.smoothing) * weight(k, t);
            dy = mode == DET_REDUCE_MEAN ? dy / *count : dy;
            for (int64_t j = threadIdx.x; j < k.n; j += blockDim.x) {
                double p = k.log_probs ? 0 : expf((float)(k.x[row * k.n + j] - lse));
                double g = p * (hit + smooth * sum_w) - smooth * weight(k, j) - (j == t ? hit : 0);
                dx[row * k.n + j] = t < 0 ? 0 : (float)(dy * g);
            }
        },
        err);
}
