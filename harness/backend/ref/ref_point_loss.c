/* Losses of single elements and their derivatives by the input; in double. */
#include <math.h>

#include "ref_reduce.h"

static double clamped_log(double x)
{
    return fmax(log(x), -100); /* as PyTorch: the loss of a certain error stays finite */
}

/* log(1 + exp(-|x|)) + max(-x, 0), which is -log sigmoid(x) */
static double soft_plus_of_minus(double x)
{
    return log1p(exp(-fabs(x))) + fmax(-x, 0);
}

static double loss(const struct det_attrs *a, double x, double t, double weight)
{
    double d = x - t, far = fabs(d);
    switch ((enum det_point_loss)a->mode) {
    case DET_POINT_SQUARE:
        return d * d;
    case DET_POINT_ABS:
        return far;
    case DET_POINT_SMOOTH:
        return far < a->scale ? 0.5 * d * d / a->scale : far - 0.5 * a->scale;
    case DET_POINT_HUBER:
        return far <= a->scale ? 0.5 * d * d : a->scale * (far - 0.5 * a->scale);
    case DET_POINT_BCE:
        return -(t * clamped_log(x) + (1 - t) * clamped_log(1 - x));
    case DET_POINT_BCE_LOGITS:
        return (1 - t) * x + (1 + (weight - 1) * t) * soft_plus_of_minus(x);
    case DET_POINT_KL:
        return t > 0 ? t * (log(t) - x) : 0;
    case DET_POINT_KL_LOG:
        return exp(t) * (t - x);
    }
    return NAN;
}

static double sign(double x)
{
    return (x > 0) - (x < 0);
}

static double slope(const struct det_attrs *a, double x, double t, double weight)
{
    double d = x - t;
    switch ((enum det_point_loss)a->mode) {
    case DET_POINT_SQUARE:
        return 2 * d;
    case DET_POINT_ABS:
        return sign(d);
    case DET_POINT_SMOOTH:
        return fabs(d) < a->scale ? d / a->scale : sign(d);
    case DET_POINT_HUBER:
        return fabs(d) <= a->scale ? d : a->scale * sign(d);
    case DET_POINT_BCE:
        return d / fmax(x * (1 - x), 1e-12);
    case DET_POINT_BCE_LOGITS:
        return (1 - t) - (1 + (weight - 1) * t) * (1 - 1 / (1 + exp(-x)));
    case DET_POINT_KL:
        return t > 0 ? -t : 0;
    case DET_POINT_KL_LOG:
        return -exp(t);
    }
    return NAN;
}

void ref_point_loss_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    const float *x = in_f32(c, 0), *t = in_f32(c, 1), *w = in_f32(c, 2);
    for (int64_t i = from; i < to; i++)
        out_f32(c, 0)[i] = (float)loss(&c->a, x[i], t[i], w ? w[i] : 1);
}

int ref_point_loss(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_point_loss_range(c, 0, (int64_t)c->out[0]->numel);
    return 0;
}

void ref_point_loss_bwd_range(const void *call, int64_t from, int64_t to)
{
    const struct det_call *c = call;
    const float *dy = in_f32(c, 0), *x = in_f32(c, 1), *t = in_f32(c, 2), *w = in_f32(c, 3);
    for (int64_t i = from; i < to; i++)
        out_f32(c, 0)[i] = (float)(dy[i] * slope(&c->a, x[i], t[i], w ? w[i] : 1));
}

int ref_point_loss_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)s, (void)err;
    ref_point_loss_bwd_range(c, 0, (int64_t)c->out[0]->numel);
    return 0;
}
