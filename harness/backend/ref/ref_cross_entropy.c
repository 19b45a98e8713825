/* Cross-entropy of logits or log-probabilities, with class weights, a class to skip and label
 * smoothing (Szegedy et al. 2016), and its gradient. */
#include "ref_real.h"

#include <math.h>

static double row_max(const real *x, int64_t n)
{
    double max = x[0];
    for (int64_t j = 1; j < n; j++)
        max = x[j] > max ? x[j] : max;
    return max;
}

static double row_log_sum(const real *x, int64_t n, double max)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += exp(x[j] - max);
    return log(sum);
}

static double row_loss(const struct det_call *c, int64_t i, double lse)
{
    int64_t n = c->in[0]->dims[1], t = in_i64(c, 1)[i];
    const real *x = in_real(c, 0) + i * n, *w = in_real(c, 2);
    double smooth = c->a.smoothing, loss = (1 - smooth) * (w ? w[t] : 1) * (lse - x[t]), all = 0;
    for (int64_t j = 0; smooth > 0 && j < n; j++)
        all += (w ? w[j] : 1) * (lse - x[j]);
    return loss + smooth / (double)n * all;
}

REF_KERNEL(cross_entropy)
{
    (void)s;
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1];
    const real *w = in_real(c, 2);
    double total = 0, count = 0;
    int rc = ref_check_targets(c, n, err);
    if (rc < 0)
        return rc;
    for (int64_t i = 0; i < m; i++) {
        int64_t t = in_i64(c, 1)[i];
        const real *x = in_real(c, 0) + i * n;
        double max = c->a.log_probs ? 0 : row_max(x, n);
        double sum = c->a.log_probs ? 0 : row_log_sum(x, n, max);
        double loss = t == c->a.skip ? 0 : row_loss(c, i, max + sum);
        count += t == c->a.skip ? 0 : w ? w[t] : 1;
        total += loss;
        out_real(c, 1)[i] = (real)max;
        out_real(c, 1)[m + i] = (real)sum;
        if (c->a.mode == DET_REDUCE_NONE)
            out_real(c, 0)[i] = (real)loss;
    }
    out_real(c, 2)[0] = (real)count;
    if (c->a.mode != DET_REDUCE_NONE)
        out_real(c, 0)[0] = (real)(c->a.mode == DET_REDUCE_MEAN ? total / count : total);
    return 0;
}

/* d loss / dx_j = sum_c q_c w_c (p_j - [c = j]). */
REF_KERNEL(cross_entropy_bwd)
{
    (void)s, (void)err;
    int64_t m = c->in[1]->dims[0], n = c->in[1]->dims[1];
    const real *w = in_real(c, 3);
    double smooth = c->a.smoothing / (double)n, sum_w = 0;
    for (int64_t j = 0; j < n; j++)
        sum_w += w ? w[j] : 1;
    for (int64_t i = 0; i < m; i++) {
        const real *x = in_real(c, 1) + i * n;
        int64_t t = ((const int64_t *)(const void *)c->in[2]->data)[i];
        bool skip = t == c->a.skip;
        double dy = in_real(c, 0)[c->a.mode == DET_REDUCE_NONE ? i : 0];
        double lse = in_real(c, 4)[i] + (double)in_real(c, 4)[m + i];
        double hit = skip ? 0 : (1 - c->a.smoothing) * (w ? w[t] : 1);
        dy = c->a.mode == DET_REDUCE_MEAN ? dy / in_real(c, 5)[0] : dy;
        for (int64_t j = 0; j < n; j++) {
            double p = c->a.log_probs ? 0 : exp(x[j] - lse);
            double g = p * (hit + smooth * sum_w) - smooth * (w ? w[j] : 1) - (j == t ? hit : 0);
            out_real(c, 0)[i * n + j] = skip ? 0 : (real)(dy * g);
        }
    }
    return 0;
}
