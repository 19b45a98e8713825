/*
 * The optimizers' steps: one pass over each parameter, on all threads. What a setting leaves out
 * (no momentum, no maximum) is decided outside the loops, so that each of them is straight.
 */
#include "cpu_real.h"

#include <string.h>

/* Below this many elements a second thread costs more than it gives. */
#define GRAIN 16384

static int over_elements(struct det_stream *s, const struct det_call *c, cpu_range_fn *fn)
{
    cpu_parallel(cpu_device(s)->threads, (int64_t)c->out[0]->numel, GRAIN, fn, c);
    return 0;
}

/* The gradient is sign * grad + decay * p. */
struct gradient {
    const real *grad;
    real sign, decay;
};

static struct gradient gradient_of(const struct det_call *c)
{
    const struct det_optim_attrs *o = &c->a.optim;
    return (struct gradient){in_real(c, 0), o->maximize ? -1 : 1,
                             o->decoupled ? 0 : (real)o->weight_decay};
}

CPU_CLONES static void sgd_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const struct det_optim_attrs *o = &c->a.optim;
    const struct gradient d = gradient_of(c);
    real *p = out_real(c, 0), *buf = out_real(c, 1), lr = (real)o->lr;
    real momentum = (real)o->momentum, mix = o->nesterov ? momentum : 0;
    real rest = o->first ? 1 : (real)(1 - o->dampening), keep = o->first ? 0 : momentum;
    if (!buf) {
        CPU_IN_PLACE
        for (int64_t i = from; i < to; i++)
            p[i] -= lr * (d.sign * d.grad[i] + d.decay * p[i]);
    } else if (o->nesterov) {
        CPU_IN_PLACE
        for (int64_t i = from; i < to; i++) {
            real g = d.sign * d.grad[i] + d.decay * p[i];
            buf[i] = keep * buf[i] + rest * g;
            p[i] -= lr * (g + mix * buf[i]);
        }
    } else {
        CPU_IN_PLACE
        for (int64_t i = from; i < to; i++) {
            buf[i] = keep * buf[i] + rest * (d.sign * d.grad[i] + d.decay * p[i]);
            p[i] -= lr * buf[i];
        }
    }
}

int CPU(sgd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    if (c->out[1] && c->a.optim.first) /* what is multiplied by 0 must be a number */
        memset(c->out[1]->data, 0, c->out[1]->numel * sizeof(real));
    return over_elements(s, c, sgd_range);
}

CPU_CLONES static void adam_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const struct det_optim_attrs *o = &c->a.optim;
    const struct gradient d = gradient_of(c);
    real *p = out_real(c, 0), *m = out_real(c, 1), *v = out_real(c, 2), *top = out_real(c, 3);
    real beta1 = (real)o->beta1, beta2 = (real)o->beta2, eps = (real)o->eps;
    real rest1 = (real)(1 - o->beta1), rest2 = (real)(1 - o->beta2);
    real step = (real)(o->lr / (1 - pow(o->beta1, (double)o->step)));
    real root = (real)sqrt(1 - pow(o->beta2, (double)o->step));
    real shrink = o->decoupled ? (real)(1 - o->lr * o->weight_decay) : 1;
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++) {
        real g = d.sign * d.grad[i] + d.decay * p[i], most;
        m[i] = beta1 * m[i] + rest1 * g;
        most = v[i] = beta2 * v[i] + rest2 * g * g;
        if (top)
            most = top[i] = top[i] > most ? top[i] : most;
        p[i] = shrink * p[i] - step * (m[i] / (sqrt(most) / root + eps));
    }
}

int CPU(adam)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, adam_range);
}

CPU_CLONES static void rmsprop_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const struct det_optim_attrs *o = &c->a.optim;
    const struct gradient d = gradient_of(c);
    real *p = out_real(c, 0), *avg = out_real(c, 1), *buf = out_real(c, 2), *mean = out_real(c, 3);
    real alpha = (real)o->alpha, rest = (real)(1 - o->alpha), lr = (real)o->lr;
    real momentum = (real)o->momentum, eps = (real)o->eps;
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++) {
        real g = d.sign * d.grad[i] + d.decay * p[i], square = 0;
        avg[i] = alpha * avg[i] + rest * g * g;
        if (mean) {
            mean[i] = alpha * mean[i] + rest * g;
            square = mean[i] * mean[i];
        }
        g /= sqrt(avg[i] - square) + eps;
        if (buf)
            g = buf[i] = momentum * buf[i] + g;
        p[i] -= lr * g;
    }
}

int CPU(rmsprop)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, rmsprop_range);
}

CPU_CLONES static void adagrad_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const struct gradient d = gradient_of(c);
    real *p = out_real(c, 0), *sum = out_real(c, 1);
    real lr = (real)c->a.optim.lr, eps = (real)c->a.optim.eps;
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++) {
        real g = d.sign * d.grad[i] + d.decay * p[i];
        sum[i] += g * g;
        p[i] -= lr * (g / (sqrt(sum[i]) + eps));
    }
}

int CPU(adagrad)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, adagrad_range);
}
