/* Initial values whose elements are drawn one by one. */
#include "det/init.h"

#include <math.h>
#include <string.h>

#include "autocast.h"
#include "init_draw.h"
#include "mem.h"
#include "rng.h"

/* ---- draws ---- */

struct init_draw init_draw_new(struct det_engine *e)
{
    struct det_attrs a = {0};
    det__draw(e, &a);
    return (struct init_draw){.seed = a.seed, .call = a.call};
}

double init_uniform(struct init_draw *d)
{
    if (d->at % 4 == 0)
        philox4x32(d->seed, d->call, d->at / 4, d->words);
    return ((double)d->words[d->at++ % 4] + 0.5) * 0x1p-32;
}

/* Box & Muller 1958. */
double init_normal(struct init_draw *d)
{
    double radius = sqrt(-2 * log(init_uniform(d)));
    return radius * cos(2 * M_PI * init_uniform(d));
}

struct det_tensor *init_begin(struct det_engine *e, struct det_tensor *t, double **ret)
{
    struct det_err err;
    if (!e || e->err.code < 0 || !t)
        return NULL;
    struct det_tensor *host =
        det_host_tensor(DET_F64, det_tensor_ndim(t), det_tensor_dims(t), &err);
    if (host)
        *ret = det_tensor_data(host);
    else
        det__keep_error(e, &err);
    return host;
}

void init_end(struct det_engine *e, struct det_tensor *t, struct det_tensor *host)
{
    struct det_err err;
    TENSOR_OWN device = NULL;
    int rc = det__on_device(e, host, &device, &err);
    if (rc == 0)
        rc = det__copy(e, device, t, &err);
    if (rc < 0)
        det__keep_error(e, &err);
    det_tensor_unref(host);
}

/* Where a distribution's number comes from: two parameters, and two bounds. */
struct range {
    double a, b, from, to;
};
typedef double draw_fn(struct init_draw *d, const struct range *r);

static double draw_uniform(struct init_draw *d, const struct range *r)
{
    return r->a + (r->b - r->a) * init_uniform(d);
}

static double draw_normal(struct init_draw *d, const struct range *r)
{
    return r->a + r->b * init_normal(d);
}

/* The inverse of erf: Winitzki's approximation, then two of Newton's steps. */
static double inverse_erf(double x)
{
    double l = log1p(-x * x), k = 2 / (M_PI * 0.147) + l / 2;
    double y = copysign(sqrt(sqrt(k * k - l / 0.147) - k), x);
    for (int i = 0; i < 2; i++)
        y -= (erf(y) - x) / (M_2_SQRTPI * exp(-y * y));
    return y;
}

/* By the inverse of the distribution, between the bounds' places in it. */
static double trunc_normal(struct init_draw *d, const struct range *r)
{
    double low = erf((r->from - r->a) / r->b * M_SQRT1_2);
    double high = erf((r->to - r->a) / r->b * M_SQRT1_2);
    double x = inverse_erf(low + (high - low) * init_uniform(d));
    return fmin(fmax(r->a + r->b * M_SQRT2 * x, r->from), r->to);
}

static void fill_tensor(struct det_engine *e, struct det_tensor *t, draw_fn *draw,
                        const struct range *r)
{
    double *v = NULL;
    struct det_tensor *host = init_begin(e, t, &v);
    if (!host)
        return;
    struct init_draw d = init_draw_new(e);
    for (size_t i = 0; i < det_tensor_numel(t); i++)
        v[i] = draw(&d, r);
    init_end(e, t, host);
}

void det_init_uniform(struct det_engine *e, struct det_tensor *t, double from, double to)
{
    fill_tensor(e, t, draw_uniform, &(struct range){.a = from, .b = to});
}

void det_init_normal(struct det_engine *e, struct det_tensor *t, double mean, double std)
{
    fill_tensor(e, t, draw_normal, &(struct range){.a = mean, .b = std});
}

void det_init_trunc_normal(struct det_engine *e, struct det_tensor *t, double mean, double std,
                           double from, double to)
{
    if (e && t && !(std > 0 && from < to)) {
        det_engine_fail(e, DET_EINVAL, "init_trunc_normal: std %g in %g..%g", std, from, to);
        return;
    }
    fill_tensor(e, t, trunc_normal, &(struct range){mean, std, from, to});
}

void det_init_constant(struct det_engine *e, struct det_tensor *t, double value)
{
    struct det_err err;
    struct det_call c = {.kernel = DET_KERNEL_FILL, .out = {t}, .a.scale = value};
    if (!e || !t || e->err.code < 0)
        return;
    autocast_wrote(e, t->storage);
    if (det__run(e, &c, &err) < 0)
        det__keep_error(e, &err);
}

void det_init_ones(struct det_engine *e, struct det_tensor *t)
{
    det_init_constant(e, t, 1);
}

void det_init_zeros(struct det_engine *e, struct det_tensor *t)
{
    det_init_constant(e, t, 0);
}

/* ---- by the number of inputs and outputs ---- */

struct fans {
    double in, out;
};

static bool fans_of(struct det_engine *e, const struct det_tensor *t, struct fans *ret)
{
    const int64_t *d = t ? det_tensor_dims(t) : NULL;
    double kernel = 1;
    if (!e || !t || e->err.code < 0)
        return false;
    if (det_tensor_ndim(t) < 2) {
        det_engine_fail(e, DET_EINVAL,
                        "init: inputs and outputs need a tensor of two dimensions or more");
        return false;
    }
    for (int i = 2; i < det_tensor_ndim(t); i++)
        kernel *= (double)d[i];
    *ret = (struct fans){(double)d[1] * kernel, (double)d[0] * kernel};
    return true;
}

static double xavier_std(struct det_engine *e, const struct det_tensor *t, double gain)
{
    struct fans f;
    return fans_of(e, t, &f) ? gain * sqrt(2.0 / (f.in + f.out)) : NAN;
}

void det_init_xavier_uniform(struct det_engine *e, struct det_tensor *t, double gain)
{
    double bound = sqrt(3.0) * xavier_std(e, t, gain);
    if (!isnan(bound))
        det_init_uniform(e, t, -bound, bound);
}

void det_init_xavier_normal(struct det_engine *e, struct det_tensor *t, double gain)
{
    double std = xavier_std(e, t, gain);
    if (!isnan(std))
        det_init_normal(e, t, 0, std);
}

double det_init_gain(const char *nonlinearity, double param)
{
    const struct {
        const char *name;
        double gain;
    } gains[] = {
        {"linear", 1},       {"conv1d", 1},  {"conv2d", 1},
        {"conv3d", 1},       {"sigmoid", 1}, {"tanh", 5.0 / 3},
        {"relu", sqrt(2.0)}, {"selu", 0.75}, {"leaky_relu", sqrt(2.0 / (1 + param * param))}};
    for (size_t i = 0; nonlinearity && i < DET_ARRAY_LEN(gains); i++)
        if (strcmp(gains[i].name, nonlinearity) == 0)
            return gains[i].gain;
    return NAN;
}

static double kaiming_std(struct det_engine *e, const struct det_tensor *t,
                          const struct det_kaiming_options *o)
{
    struct fans f;
    double gain = det_init_gain(o->nonlinearity ? o->nonlinearity : "leaky_relu", o->a);
    if (!fans_of(e, t, &f))
        return NAN;
    if (isnan(gain))
        det_engine_fail(e, DET_EINVAL, "init_kaiming: \"%s\" is no known nonlinearity",
                        o->nonlinearity);
    return gain / sqrt(o->fan_out ? f.out : f.in);
}

void det_init_kaiming_uniform_of(struct det_engine *e, struct det_tensor *t,
                                 const struct det_kaiming_options *options)
{
    double bound = sqrt(3.0) * kaiming_std(e, t, options);
    if (!isnan(bound))
        det_init_uniform(e, t, -bound, bound);
}

void det_init_kaiming_normal_of(struct det_engine *e, struct det_tensor *t,
                                const struct det_kaiming_options *options)
{
    double std = kaiming_std(e, t, options);
    if (!isnan(std))
        det_init_normal(e, t, 0, std);
}
