/*
 * The schedulers whose next rate follows from the present one, the group's first one and the number
 * of the step, in the recursive forms of torch.optim.lr_scheduler.
 */
#include "lr_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mem.h"

#define AT(member) offsetof(struct det_lr, member)

/* ---- powers of gamma ---- */

static double step_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)group;
    bool falls = lr->last_epoch > 0 && lr->last_epoch % lr->step_size == 0;
    return falls ? rate * lr->gamma : rate;
}

static const struct lr_type step_type = {
    .name = "StepLR",
    .fields = {{"step_size", DET_VALUE_INT, AT(step_size)}, {"gamma", DET_VALUE_FLOAT, AT(gamma)}},
    .rate = step_rate,
};

struct det_lr *det_step_lr(struct det_optim *o, int64_t step_size, double gamma)
{
    if (step_size < 1)
        return lr_refuse(o, "StepLR", "step_size must be at least 1");
    return lr_new(o, &(struct det_lr){.type = &step_type, .step_size = step_size, .gamma = gamma});
}

static double multi_step_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)group;
    int times = 0;
    for (size_t i = 0; i < lr->milestones_n; i++)
        times += lr->milestones[i] == (double)lr->last_epoch;
    return times ? rate * pow(lr->gamma, times) : rate;
}

static const struct lr_type multi_step_type = {
    .name = "MultiStepLR",
    .fields = {{"milestones", DET_VALUE_COUNTS, AT(milestones)},
               {"gamma", DET_VALUE_FLOAT, AT(gamma)}},
    .rate = multi_step_rate,
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct det_lr *det_multi_step_lr_create(struct det_optim *o, double gamma,
                                        const int64_t *milestones, size_t n)
{
    struct det_lr like = {.type = &multi_step_type, .gamma = gamma, .milestones_n = n};
    like.milestones = lr_filled(n, 0);
    for (size_t i = 0; i < n; i++)
        like.milestones[i] = (double)milestones[i];
    qsort(like.milestones, n, sizeof *like.milestones, by_size);
    return lr_new(o, &like);
}

static double exponential_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)group;
    return lr->last_epoch > 0 ? rate * lr->gamma : rate;
}

static const struct lr_type exponential_type = {
    .name = "ExponentialLR",
    .fields = {{"gamma", DET_VALUE_FLOAT, AT(gamma)}},
    .rate = exponential_rate,
};

struct det_lr *det_exponential_lr(struct det_optim *o, double gamma)
{
    return lr_new(o, &(struct det_lr){.type = &exponential_type, .gamma = gamma});
}

/* ---- a number of iterations, then no more ---- */

static double constant_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)group;
    if (lr->last_epoch == 0)
        return rate * lr->factor;
    return lr->last_epoch == lr->total_iters ? rate * (1.0 / lr->factor) : rate;
}

static const struct lr_type constant_type = {
    .name = "ConstantLR",
    .fields = {{"factor", DET_VALUE_FLOAT, AT(factor)},
               {"total_iters", DET_VALUE_INT, AT(total_iters)}},
    .rate = constant_rate,
};

struct det_lr *det_constant_lr(struct det_optim *o, double factor, int64_t total_iters)
{
    if (!(factor > 0 && factor <= 1) || total_iters < 0)
        return lr_refuse(o, "ConstantLR", "factor must be above 0 and at most 1, total_iters >= 0");
    return lr_new(
        o, &(struct det_lr){.type = &constant_type, .factor = factor, .total_iters = total_iters});
}

static double linear_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)group;
    double rise = lr->end_factor - lr->start_factor, done = (double)lr->last_epoch - 1;
    if (lr->last_epoch == 0)
        return rate * lr->start_factor;
    if (lr->last_epoch > lr->total_iters)
        return rate;
    return rate * (1. + rise / ((double)lr->total_iters * lr->start_factor + done * rise));
}

static const struct lr_type linear_type = {
    .name = "LinearLR",
    .fields = {{"start_factor", DET_VALUE_FLOAT, AT(start_factor)},
               {"end_factor", DET_VALUE_FLOAT, AT(end_factor)},
               {"total_iters", DET_VALUE_INT, AT(total_iters)}},
    .rate = linear_rate,
};

struct det_lr *det_linear_lr(struct det_optim *o, double start_factor, double end_factor,
                             int64_t total_iters)
{
    if (!(start_factor > 0 && start_factor <= 1 && end_factor >= 0 && end_factor <= 1) ||
        total_iters < 1)
        return lr_refuse(o, "LinearLR",
                         "start_factor must be above 0, both factors at most 1, and "
                         "total_iters at least 1");
    return lr_new(o, &(struct det_lr){.type = &linear_type,
                                      .start_factor = start_factor,
                                      .end_factor = end_factor,
                                      .total_iters = total_iters});
}

static double polynomial_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)group;
    double k = (double)lr->last_epoch, all = (double)lr->total_iters;
    if (lr->last_epoch == 0 || lr->last_epoch > lr->total_iters)
        return rate;
    return rate * pow((1.0 - k / all) / (1.0 - (k - 1) / all), lr->power);
}

static const struct lr_type polynomial_type = {
    .name = "PolynomialLR",
    .fields = {{"total_iters", DET_VALUE_INT, AT(total_iters)},
               {"power", DET_VALUE_FLOAT, AT(power)}},
    .rate = polynomial_rate,
};

struct det_lr *det_polynomial_lr(struct det_optim *o, int64_t total_iters, double power)
{
    if (total_iters < 1)
        return lr_refuse(o, "PolynomialLR", "total_iters must be at least 1");
    return lr_new(
        o, &(struct det_lr){.type = &polynomial_type, .total_iters = total_iters, .power = power});
}

/* ---- cosines ---- */

static double cosine_rate(const struct det_lr *lr, size_t group, double rate)
{
    double t = (double)lr->t_max, k = (double)lr->last_epoch, min = lr->eta_min;
    if (lr->last_epoch == 0)
        return rate;
    if ((lr->last_epoch - 1 - lr->t_max) % (2 * lr->t_max) == 0)
        return rate + (lr->base[group] - min) * (1 - cos(M_PI / t)) / 2;
    return (1 + cos(M_PI * k / t)) / (1 + cos(M_PI * (k - 1) / t)) * (rate - min) + min;
}

static const struct lr_type cosine_type = {
    .name = "CosineAnnealingLR",
    .fields = {{"T_max", DET_VALUE_INT, AT(t_max)}, {"eta_min", DET_VALUE_FLOAT, AT(eta_min)}},
    .rate = cosine_rate,
};

struct det_lr *det_cosine_annealing_lr(struct det_optim *o, int64_t t_max, double eta_min)
{
    if (t_max < 1)
        return lr_refuse(o, "CosineAnnealingLR", "t_max must be at least 1");
    return lr_new(o, &(struct det_lr){.type = &cosine_type, .t_max = t_max, .eta_min = eta_min});
}

static double warm_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)rate;
    double part = M_PI * (double)lr->t_cur / (double)lr->t_i;
    return lr->eta_min + (lr->base[group] - lr->eta_min) * (1 + cos(part)) / 2;
}

static void warm_restart(struct det_lr *lr)
{
    lr->last_epoch = lr->t_cur = 0;
    lr->t_i = lr->t_0;
    lr_set_rates(lr);
}

/* PyTorch's own step() here does not count _step_count. */
static void warm_step(struct det_lr *lr)
{
    lr->last_epoch++;
    if (lr->last_epoch > 0 && ++lr->t_cur >= lr->t_i) {
        lr->t_cur -= lr->t_i;
        lr->t_i *= lr->t_mult;
    }
    lr_set_rates(lr);
}

static const struct lr_type warm_type = {
    .name = "CosineAnnealingWarmRestarts",
    .fields = {{"T_0", DET_VALUE_INT, AT(t_0)},
               {"T_i", DET_VALUE_INT, AT(t_i)},
               {"T_mult", DET_VALUE_INT, AT(t_mult)},
               {"eta_min", DET_VALUE_FLOAT, AT(eta_min)},
               {"T_cur", DET_VALUE_INT, AT(t_cur)}},
    .rate = warm_rate,
    .step = warm_step,
    .restart = warm_restart,
};

struct det_lr *det_cosine_annealing_warm_restarts(struct det_optim *o, int64_t t_0, int64_t t_mult,
                                                  double eta_min)
{
    if (t_0 < 1 || t_mult < 1)
        return lr_refuse(o, warm_type.name, "t_0 and t_mult must be at least 1");
    return lr_new(
        o, &(struct det_lr){
               .type = &warm_type, .t_0 = t_0, .t_i = t_0, .t_mult = t_mult, .eta_min = eta_min});
}

/* ---- a function of the user's ---- */

static double lambda_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)rate;
    return lr->base[group] * lr->fn(lr->last_epoch, lr->arg);
}

static double multiplicative_rate(const struct det_lr *lr, size_t group, double rate)
{
    (void)group;
    return lr->last_epoch > 0 ? rate * lr->fn(lr->last_epoch, lr->arg) : rate;
}

static const struct lr_type lambda_type = {
    .name = "LambdaLR",
    .fields = {{"lr_lambdas", DET_VALUE_NONES, -1}},
    .rate = lambda_rate,
};

static const struct lr_type multiplicative_type = {
    .name = "MultiplicativeLR",
    .fields = {{"lr_lambdas", DET_VALUE_NONES, -1}},
    .relative = true,
    .rate = multiplicative_rate,
};

struct det_lr *det_lambda_lr(struct det_optim *o, double (*fn)(int64_t epoch, void *arg), void *arg)
{
    return lr_new(o, &(struct det_lr){.type = &lambda_type, .fn = fn, .arg = arg});
}

struct det_lr *det_multiplicative_lr(struct det_optim *o, double (*fn)(int64_t epoch, void *arg),
                                     void *arg)
{
    return lr_new(o, &(struct det_lr){.type = &multiplicative_type, .fn = fn, .arg = arg});
}
