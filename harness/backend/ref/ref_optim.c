/* The steps of the optimizers, element by element, in PyTorch's order of operations. */
#include "ref.h"

#include <math.h>

int ref_sgd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *buf = out_f32(c, 1);
    float lr = (float)c->a.lr, decay = (float)c->a.weight_decay, momentum = (float)c->a.momentum;
    float rest = (float)(1 - c->a.dampening);
    for (size_t i = 0; i < c->out[0]->numel; i++) {
        float g = decay != 0 ? grad[i] + decay * p[i] : grad[i];
        if (buf) {
            buf[i] = c->a.first ? g : momentum * buf[i] + rest * g;
            g = c->a.nesterov ? g + momentum * buf[i] : buf[i];
        }
        p[i] -= lr * g;
    }
    return 0;
}

int ref_adam(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *m = out_f32(c, 1), *v = out_f32(c, 2);
    float beta1 = (float)c->a.beta1, beta2 = (float)c->a.beta2, decay = (float)c->a.weight_decay;
    float rest1 = (float)(1 - c->a.beta1), rest2 = (float)(1 - c->a.beta2);
    float step = (float)(c->a.lr / (1 - pow(c->a.beta1, (double)c->a.step)));
    float root = (float)sqrt(1 - pow(c->a.beta2, (double)c->a.step)), eps = (float)c->a.eps;
    for (size_t i = 0; i < c->out[0]->numel; i++) {
        float g = decay != 0 ? grad[i] + decay * p[i] : grad[i];
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
        p[i] -= step * (m[i] / (sqrtf(v[i]) / root + eps));
    }
    return 0;
}
