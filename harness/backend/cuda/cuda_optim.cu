/* The steps of the optimizers, element by element, in PyTorch's order of operations. */
#include "cuda_kernel.cuh"

/* The gradient that an optimizer sees: sign * grad + decay * p. */
template <typename T>
struct seen {
    T sign, decay;
    __device__ T operator()(T grad, T p) const
    {
        T g = sign * grad;
        return decay != 0 ? g + decay * p : g;
    }
};

template <typename T>
static struct seen<T> seen_by(const struct det_optim_attrs *o)
{
    return {(T)(o->maximize ? -1 : 1), o->decoupled ? 0 : (T)o->weight_decay};
}

template <typename T>
static int sgd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen<T> gradient = seen_by<T>(o);
    const T *grad = in_real<T>(c, 0);
    T *p = out_real<T>(c, 0), *buf = out_real<T>(c, 1);
    T lr = (T)o->lr, momentum = (T)o->momentum, rest = (T)(1 - o->dampening);
    bool first = o->first, nesterov = o->nesterov;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            T g = gradient(grad[i], p[i]);
            if (buf) {
                buf[i] = first ? g : momentum * buf[i] + rest * g;
                g = nesterov ? g + momentum * buf[i] : buf[i];
            }
            p[i] -= lr * g;
        },
        err);
}
CUDA_REAL(sgd)

template <typename T>
static int adam(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen<T> gradient = seen_by<T>(o);
    const T *grad = in_real<T>(c, 0);
    T *p = out_real<T>(c, 0), *top = out_real<T>(c, 3);
    T *m = out_real<T>(c, 1), *v = out_real<T>(c, 2);
    T beta1 = (T)o->beta1, beta2 = (T)o->beta2, eps = (T)o->eps;
    T rest1 = (T)(1 - o->beta1), rest2 = (T)(1 - o->beta2);
    T step = (T)(o->lr / (1 - pow(o->beta1, (double)o->step)));
    T root = (T)sqrt(1 - pow(o->beta2, (double)o->step));
    T shrink = o->decoupled ? (T)(1 - o->lr * o->weight_decay) : 1;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            T g = gradient(grad[i], p[i]);
            m[i] = beta1 * m[i] + rest1 * g;
            v[i] = beta2 * v[i] + rest2 * g * g;
            if (top)
                top[i] = top[i] > v[i] ? top[i] : v[i];
            p[i] = shrink * p[i] - step * (m[i] / (sqrt(top ? top[i] : v[i]) / root + eps));
        },
        err);
}
CUDA_REAL(adam)

template <typename T>
static int rmsprop(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen<T> gradient = seen_by<T>(o);
    const T *grad = in_real<T>(c, 0);
    T *p = out_real<T>(c, 0), *avg = out_real<T>(c, 1);
    T *buf = out_real<T>(c, 2), *mean = out_real<T>(c, 3);
    T alpha = (T)o->alpha, rest = (T)(1 - o->alpha), lr = (T)o->lr;
    T momentum = (T)o->momentum, eps = (T)o->eps;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            T g = gradient(grad[i], p[i]), square = 0;
            avg[i] = alpha * avg[i] + rest * g * g;
            if (mean) {
                mean[i] = alpha * mean[i] + rest * g;
                square = mean[i] * mean[i];
            }
            g /= sqrt(avg[i] - square) + eps;
            if (buf)
                g = buf[i] = momentum * buf[i] + g;
            p[i] -= lr * g;
        },
        err);
}
CUDA_REAL(rmsprop)

template <typename T>
static int adagrad(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_optim_attrs *o = &c->a.optim;
    struct seen<T> gradient = seen_by<T>(o);
    const T *grad = in_real<T>(c, 0);
    T *p = out_real<T>(c, 0), *sum = out_real<T>(c, 1), lr = (T)o->lr, eps = (T)o->eps;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            T g = gradient(grad[i], p[i]);
            sum[i] += g * g;
            p[i] -= lr * (g / (sqrt(sum[i]) + eps));
        },
        err);
}
CUDA_REAL(adagrad)
