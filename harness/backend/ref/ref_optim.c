/* The steps of the optimizers, element by element, in PyTorch's order of operations. */
#include "ref_real.h"

#include <math.h>

/* The gradient that an optimizer sees. */
static real decayed_gradient(const struct det_optim_attrs *o, real grad, real p)
{
    real g = o->maximize ? -grad : grad, decay = (real)o->weight_decay;
    return decay != 0 && !o->decoupled ? g + decay * p : g;
}

REF_KERNEL(sgd)
{
    (void)s, (void)err;
    const struct det_optim_attrs *o = &c->a.optim;
    const real *grad = in_real(c, 0);
    real *p = out_real(c, 0), *buf = out_real(c, 1);
    real lr = (real)o->lr, momentum = (real)o->momentum, rest = (real)(1 - o->dampening);
    for (size_t i = 0; i < c->out[0]->numel; i++) {
        real g = decayed_gradient(o, grad[i], p[i]);
        if (buf) {
            buf[i] = o->first ? g : momentum * buf[i] + rest * g;
            g = o->nesterov ? g + momentum * buf[i] : buf[i];
        }
        p[i] -= lr * g;
    }
    return 0;
}

REF_KERNEL(adam)
{
    (void)s, (void)err;
    const struct det_optim_attrs *o = &c->a.optim;
    const real *grad = in_real(c, 0);
    real *p = out_real(c, 0), *m = out_real(c, 1), *v = out_real(c, 2), *top = out_real(c, 3);
    real beta1 = (real)o->beta1, beta2 = (real)o->beta2, eps = (real)o->eps;
    real rest1 = (real)(1 - o->beta1), rest2 = (real)(1 - o->beta2);
    real step = (real)(o->lr / (1 - pow(o->beta1, (double)o->step)));
    real root = (real)sqrt(1 - pow(o->beta2, (double)o->step));
    real shrink = o->decoupled ? (real)(1 - o->lr * o->weight_decay) : 1;
    for (size_t i = 0; i < c->out[0]->numel; i++) {
        real g = decayed_gradient(o, grad[i], p[i]);
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
        if (top)
            top[i] = top[i] > v[i] ? top[i] : v[i];
        p[i] = shrink * p[i] - step * (m[i] / (sqrt(top ? top[i] : v[i]) / root + eps));
    }
    return 0;
}

REF_KERNEL(rmsprop)
{
    (void)s, (void)err;
    const struct det_optim_attrs *o = &c->a.optim;
    const real *grad = in_real(c, 0);
    real *p = out_real(c, 0), *avg = out_real(c, 1), *buf = out_real(c, 2), *mean = out_real(c, 3);
    real alpha = (real)o->alpha, rest = (real)(1 - o->alpha), lr = (real)o->lr;
    real momentum = (real)o->momentum, eps = (real)o->eps;
    for (size_t i = 0; i < c->out[0]->numel; i++) {
        real g = decayed_gradient(o, grad[i], p[i]), square = 0;
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
    return 0;
}

REF_KERNEL(adagrad)
{
    (void)s, (void)err;
    const struct det_optim_attrs *o = &c->a.optim;
    const real *grad = in_real(c, 0);
    real *p = out_real(c, 0), *sum = out_real(c, 1), lr = (real)o->lr, eps = (real)o->eps;
    for (size_t i = 0; i < c->out[0]->numel; i++) {
        real g = decayed_gradient(o, grad[i], p[i]);
        sum[i] += g * g;
        p[i] -= lr * (g / (sqrt(sum[i]) + eps));
    }
    return 0;
}
