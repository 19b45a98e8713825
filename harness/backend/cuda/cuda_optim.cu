/* The steps of the optimizers, element by element, in PyTorch's order of operations. */
#include "cuda_kernel.cuh"

/* The gradient that an optimizer sees: sign * grad + decay * p. */
struct seen {
    float sign, decay;
    __device__ float operator()(float grad, float p) const
    {
        float g = sign * grad;
        return decay != 0 ? g + decay * p : g;
    }
};

static struct seen seen_by(const struct det_optim_attrs *o)
{
    return {o->maximize ? -1.0f : 1.0f, o->decoupled ? 0.0f : (float)o->weight_decay};
}

int cuda_sgd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen gradient = seen_by(o);
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *buf = out_f32(c, 1);
    float lr = (float)o->lr, momentum = (float)o->momentum, rest = (float)(1 - o->dampening);
    bool first = o->first, nesterov = o->nesterov;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            float g = gradient(grad[i], p[i]);
            if (buf) {
                buf[i] = first ? g : momentum * buf[i] + rest * g;
                g = nesterov ? g + momentum * buf[i] : buf[i];
            }
            p[i] -= lr * g;
        },
        err);
}

int cuda_adam(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen gradient = seen_by(o);
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *m = out_f32(c, 1), *v = out_f32(c, 2), *top = out_f32(c, 3);
    float beta1 = (float)o->beta1, beta2 = (float)o->beta2, eps = (float)o->eps;
    float rest1 = (float)(1 - o->beta1), rest2 = (float)(1 - o->beta2);
    float step = (float)(o->lr / (1 - pow(o->beta1, (double)o->step)));
    float root = (float)sqrt(1 - pow(o->beta2, (double)o->step));
    float shrink = o->decoupled ? (float)(1 - o->lr * o->weight_decay) : 1;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            float g = gradient(grad[i], p[i]);
            m[i] = beta1 * m[i] + rest1 * g;
            v[i] = beta2 * v[i] + rest2 * g * g;
            if (top)
                top[i] = top[i] > v[i] ? top[i] : v[i];
            p[i] = shrink * p[i] - step * (m[i] / (sqrtf(top ? top[i] : v[i]) / root + eps));
        },
        err);
}

int cuda_rmsprop(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen gradient = seen_by(o);
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *avg = out_f32(c, 1), *buf = out_f32(c, 2), *mean = out_f32(c, 3);
    float alpha = (float)o->alpha, rest = (float)(1 - o->alpha), lr = (float)o->lr;
    float momentum = (float)o->momentum, eps = (float)o->eps;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            float g = gradient(grad[i], p[i]), square = 0;
            avg[i] = alpha * avg[i] + rest * g * g;
            if (mean) {
                mean[i] = alpha * mean[i] + rest * g;
                square = mean[i] * mean[i];
            }
            g /= sqrtf(avg[i] - square) + eps;
            if (buf)
                g = buf[i] = momentum * buf[i] + g;
            p[i] -= lr * g;
        },
        err);
}

int cuda_adagrad(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen gradient = seen_by(o);
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *sum = out_f32(c, 1), lr = (float)o->lr, eps = (float)o->eps;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            float g = gradient(grad[i], p[i]);
            sum[i] += g * g;
            p[i] -= lr * (g / (sqrtf(sum[i]) + eps));
        },
        err);
}
