/* Element-wise kernels and the optimizers' steps, over flat vectors, on all threads. */
#include "cpu.h"

#include <math.h>
#include <string.h>

#include "ref.h"

/* Below this many elements a second thread costs more than it gives. */
#define GRAIN 16384

static int over_elements(struct det_stream *s, const struct det_call *c, cpu_range_fn *fn)
{
    cpu_parallel(cpu_device(s)->threads, (int64_t)c->out[0]->numel, GRAIN, fn, c);
    return 0;
}

/* One image at a time from one order to the other, in tiles that stay in the cache. */
#define TILE 16
static void transpose_f32(int64_t a, int64_t b, const float *restrict src, float *restrict dst)
{
    for (int64_t i0 = 0; i0 < a; i0 += TILE)
        for (int64_t j0 = 0; j0 < b; j0 += TILE)
            for (int64_t j = j0; j < b && j < j0 + TILE; j++)
                for (int64_t i = i0; i < a && i < i0 + TILE; i++)
                    dst[j * a + i] = src[i * b + j];
}

static void reorder_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const int64_t *d = c->in[0]->dims;
    int64_t plane = d[2] * d[3], image = d[1] * plane;
    bool to_plain = c->out[0]->layout == DET_LAYOUT_PLAIN;
    for (int64_t n = from; n < to; n++)
        transpose_f32(to_plain ? plane : d[1], to_plain ? d[1] : plane, in_f32(c, 0) + n * image,
                      out_f32(c, 0) + n * image);
}

int cpu_copy(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *y = c->out[0];
    if (x->layout == y->layout || x->dtype != DET_F32 || y->dtype != DET_F32)
        return ref_copy(s, c, err);
    cpu_parallel(cpu_device(s)->threads, x->dims[0], 4, reorder_range, c);
    return 0;
}

/* Defines cpu_<name>() as a loop whose body sets y[i] from a[i] and b[i] (in 0 and 1). */
#define BINARY(name, expression)                                                                   \
    CPU_CLONES static void name##_range(const void *arg, int64_t from, int64_t to)                 \
    {                                                                                              \
        const struct det_call *c = arg;                                                            \
        const float *a = in_f32(c, 0), *b = in_f32(c, 1);                                          \
        float *y = out_f32(c, 0);                                                                  \
        CPU_IN_PLACE                                                                               \
        for (int64_t i = from; i < to; i++)                                                        \
            y[i] = (expression);                                                                   \
    }                                                                                              \
    int cpu_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)            \
    {                                                                                              \
        (void)err;                                                                                 \
        return over_elements(s, c, name##_range);                                                  \
    }

BINARY(add, a[i] + b[i])
BINARY(mul, a[i] * b[i])
BINARY(relu_bwd, b[i] > 0 ? a[i] : 0)

CPU_CLONES static void affine_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0), scale = (float)c->a.scale, offset = (float)c->a.offset;
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++)
        y[i] = scale * x[i] + offset;
}

int cpu_affine(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, affine_range);
}

CPU_CLONES static void relu_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0);
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

int cpu_relu(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, relu_range);
}

/* The three forms of SGD, so that each loop is straight. */
CPU_CLONES static void sgd_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *buf = out_f32(c, 1), lr = (float)c->a.lr;
    float decay = (float)c->a.weight_decay, momentum = (float)c->a.momentum;
    float rest = c->a.first ? 1 : (float)(1 - c->a.dampening), keep = c->a.first ? 0 : momentum;
    float mix = c->a.nesterov ? momentum : 0;
    if (!buf) {
        CPU_IN_PLACE
        for (int64_t i = from; i < to; i++)
            p[i] -= lr * (grad[i] + decay * p[i]);
    } else if (c->a.nesterov) {
        CPU_IN_PLACE
        for (int64_t i = from; i < to; i++) {
            float g = grad[i] + decay * p[i];
            buf[i] = keep * buf[i] + rest * g;
            p[i] -= lr * (g + mix * buf[i]);
        }
    } else {
        CPU_IN_PLACE
        for (int64_t i = from; i < to; i++) {
            buf[i] = keep * buf[i] + rest * (grad[i] + decay * p[i]);
            p[i] -= lr * buf[i];
        }
    }
}

int cpu_sgd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    if (c->out[1] && c->a.first) /* what is multiplied by 0 must be a number */
        memset(c->out[1]->data, 0, c->out[1]->numel * sizeof(float));
    return over_elements(s, c, sgd_range);
}

CPU_CLONES static void adam_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const float *grad = in_f32(c, 0);
    float *p = out_f32(c, 0), *m = out_f32(c, 1), *v = out_f32(c, 2);
    float beta1 = (float)c->a.beta1, beta2 = (float)c->a.beta2, decay = (float)c->a.weight_decay;
    float rest1 = (float)(1 - c->a.beta1), rest2 = (float)(1 - c->a.beta2);
    float step = (float)(c->a.lr / (1 - pow(c->a.beta1, (double)c->a.step)));
    float root = (float)sqrt(1 - pow(c->a.beta2, (double)c->a.step)), eps = (float)c->a.eps;
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++) {
        float g = grad[i] + decay * p[i];
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
        p[i] -= step * (m[i] / (sqrtf(v[i]) / root + eps));
    }
}

int cpu_adam(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, adam_range);
}
