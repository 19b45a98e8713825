/* Batch normalisation over NHWC images (Ioffe & Szegedy 2015): one mean and variance a channel. */
#include "ref_real.h"

#include <math.h>

/* A channel's values lie `channels` apart. */
struct channel {
    size_t first, step, end;
};

static struct channel channel_of(const struct det_tensor *x, int64_t ch)
{
    return (struct channel){(size_t)ch, (size_t)x->dims[1], x->numel};
}

static double mean_of(const real *x, struct channel ch)
{
    double sum = 0;
    for (size_t i = ch.first; i < ch.end; i += ch.step)
        sum += x[i];
    return sum / (double)(ch.end / ch.step);
}

static double variance_of(const real *x, struct channel ch, double mean)
{
    double sum = 0;
    for (size_t i = ch.first; i < ch.end; i += ch.step)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / (double)(ch.end / ch.step);
}

static void normalise_channel(const struct det_call *c, struct channel ch, double mean,
                              double invstd)
{
    const real *x = in_real(c, 0), *residual = in_real(c, 5);
    real *y = out_real(c, 0);
    double w = in_real(c, 1)[ch.first], b = in_real(c, 2)[ch.first];
    for (size_t i = ch.first; i < ch.end; i += ch.step) {
        double v = (x[i] - mean) * invstd * w + b + (residual ? residual[i] : 0);
        y[i] = c->a.relu && v < 0 ? 0 : (real)v;
    }
}

static void update_running(real *running, double value, double momentum)
{
    *running = (real)((1 - momentum) * *running + momentum * value);
}

REF_KERNEL(batch_norm_train)
{
    (void)s, (void)err;
    const struct det_tensor *x = c->in[0];
    for (int64_t i = 0; i < x->dims[1]; i++) {
        struct channel ch = channel_of(x, i);
        double n = (double)(ch.end / ch.step);
        double mean = mean_of(in_real(c, 0), ch), var = variance_of(in_real(c, 0), ch, mean);
        double invstd = 1 / sqrt(var + c->a.eps);
        normalise_channel(c, ch, mean, invstd);
        out_real(c, 1)[i] = (real)mean;
        out_real(c, 2)[i] = (real)invstd;
        update_running(out_real(c, 3) + i, mean, c->a.momentum);
        update_running(out_real(c, 4) + i, n > 1 ? var * n / (n - 1) : var, c->a.momentum);
    }
    return 0;
}

REF_KERNEL(batch_norm_eval)
{
    (void)s, (void)err;
    const struct det_tensor *x = c->in[0];
    for (int64_t i = 0; i < x->dims[1]; i++) {
        double mean = in_real(c, 3)[i], invstd = 1 / sqrt(in_real(c, 4)[i] + c->a.eps);
        normalise_channel(c, channel_of(x, i), mean, invstd);
        out_real(c, 1)[i] = (real)mean;
        out_real(c, 2)[i] = (real)invstd;
    }
    return 0;
}

static void backward_channel(const struct det_call *c, struct channel ch)
{
    const real *dy = in_real(c, 0), *x = in_real(c, 1), *y = in_real(c, 2);
    double w = in_real(c, 3)[ch.first], mean = in_real(c, 4)[ch.first],
           invstd = in_real(c, 5)[ch.first];
    double n = (double)(ch.end / ch.step), sum = 0, sum_xhat = 0;
    real *dx = out_real(c, 0), *dr = out_real(c, 3);
    for (size_t i = ch.first; i < ch.end; i += ch.step) {
        double g = c->a.relu && !(y[i] > 0) ? 0 : dy[i];
        sum += g;
        sum_xhat += g * (x[i] - mean) * invstd;
    }
    for (size_t i = ch.first; dx && i < ch.end; i += ch.step) {
        double g = c->a.relu && !(y[i] > 0) ? 0 : dy[i], xhat = (x[i] - mean) * invstd;
        dx[i] = (real)(w * invstd * (c->a.train ? g - sum / n - xhat * sum_xhat / n : g));
    }
    for (size_t i = ch.first; dr && i < ch.end; i += ch.step)
        dr[i] = c->a.relu && !(y[i] > 0) ? 0 : dy[i];
    out_real(c, 1)[ch.first] = (real)sum_xhat;
    out_real(c, 2)[ch.first] = (real)sum;
}

REF_KERNEL(batch_norm_bwd)
{
    (void)s, (void)err;
    for (int64_t i = 0; i < c->in[1]->dims[1]; i++)
        backward_channel(c, channel_of(c->in[1], i));
    return 0;
}
