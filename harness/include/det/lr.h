/*
 * Schedulers of the learning rate: what `torch.optim.lr_scheduler` is in Python. The rates are
 * PyTorch's to the last steps of hundreds, in its recursive forms: a rate that somebody else set in
 * between is carried on from; so is the state_dict, nested for sequences.
 *
 * A scheduler borrows its optimizer, sets the rates of epoch 0 when it is made, and then moves one
 * "epoch" (whatever that is for its user) with each det_lr_step(). Constructors follow the engine's
 * sticky error (det/tensor.h). An option left out, or 0, is PyTorch's default.
 */
#ifndef DET_LR_H
#define DET_LR_H

#include "det/optim.h"

struct det_lr;

void det_lr_destroy(struct det_lr *lr); /* NULL is allowed */

/* One step on. An error (the engine's) for what needs a metric. */
void det_lr_step(struct det_lr *lr);
/* ReduceLROnPlateau's step; the others ignore the metric. */
void det_lr_step_metric(struct det_lr *lr, double metric);
bool det_lr_needs_metric(const struct det_lr *lr);
/* The rate last set for a group (get_last_lr). */
double det_lr_last(const struct det_lr *lr, size_t group);
struct det_optim *det_lr_optim(const struct det_lr *lr);

/* ---- Simple ones. rate: the present one, base: the group's first ---- */

/* Every step_size steps: rate *= gamma. */
struct det_lr *det_step_lr(struct det_optim *o, int64_t step_size, double gamma);
/* At each of the milestones, given last: det_multi_step_lr(o, 0.1, 30, 60, 90). */
#define det_multi_step_lr(o, gamma, ...)                                                           \
    det_multi_step_lr_create(o, gamma, (const int64_t[]){__VA_ARGS__},                             \
                             sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
struct det_lr *det_multi_step_lr_create(struct det_optim *o, double gamma,
                                        const int64_t *milestones, size_t n);
/* Every step: rate *= gamma. */
struct det_lr *det_exponential_lr(struct det_optim *o, double gamma);
/* base * factor until step total_iters, then base (PyTorch: 1/3, 5). */
struct det_lr *det_constant_lr(struct det_optim *o, double factor, int64_t total_iters);
/* From base * start_factor to base * end_factor in total_iters steps (PyTorch: 1/3, 1, 5). */
struct det_lr *det_linear_lr(struct det_optim *o, double start_factor, double end_factor,
                             int64_t total_iters);
/* base * (1 - step / total_iters) ^ power, then 0 (PyTorch: 5, 1). */
struct det_lr *det_polynomial_lr(struct det_optim *o, int64_t total_iters, double power);
/* From base to eta_min in t_max steps along a cosine, and back up. */
struct det_lr *det_cosine_annealing_lr(struct det_optim *o, int64_t t_max, double eta_min);
/* Along a cosine in t_0 steps, then at once up again, in t_0 * t_mult, ... (Loshchilov & Hutter
 * 2017; PyTorch: t_mult 1, eta_min 0). */
struct det_lr *det_cosine_annealing_warm_restarts(struct det_optim *o, int64_t t_0, int64_t t_mult,
                                                  double eta_min);
/* rate = base * fn(epoch, arg), and rate *= fn(epoch, arg); `arg` is borrowed. */
struct det_lr *det_lambda_lr(struct det_optim *o, double (*fn)(int64_t epoch, void *arg),
                             void *arg);
struct det_lr *det_multiplicative_lr(struct det_optim *o, double (*fn)(int64_t epoch, void *arg),
                                     void *arg);

/* ---- Cycles; they move the momentum (or Adam's beta1) against the rate ---- */

/* One cycle (Smith & Topin 2018): up to max_lr and down again in total_steps. */
struct det_one_cycle_options {
    double pct_start;        /* 0.3 */
    bool linear;             /* anneal_strategy="linear" instead of "cos" */
    bool no_momentum;        /* cycle_momentum=False */
    double base_momentum;    /* 0.85 */
    double max_momentum;     /* 0.95 */
    double div_factor;       /* 25: the first rate is max_lr / div_factor */
    double final_div_factor; /* 1e4: the last one is the first / final_div_factor */
    bool three_phase;
    const double *max_lrs; /* one for each group, instead of max_lr; copied */
};
#define det_one_cycle_lr(o, max_lr, total_steps, ...)                                              \
    det_one_cycle_lr_create(o, max_lr, total_steps,                                                \
                            &(const struct det_one_cycle_options){__VA_ARGS__})
struct det_lr *det_one_cycle_lr_create(struct det_optim *o, double max_lr, int64_t total_steps,
                                       const struct det_one_cycle_options *options);

/* Triangles between base_lr and max_lr (Smith 2017). */
enum det_cyclic_mode { DET_CYCLIC_TRIANGULAR, DET_CYCLIC_TRIANGULAR2, DET_CYCLIC_EXP_RANGE };
struct det_cyclic_options {
    int64_t step_size_up;   /* 2000 */
    int64_t step_size_down; /* as step_size_up */
    enum det_cyclic_mode mode;
    double gamma;         /* 1; of exp_range */
    bool no_momentum;     /* cycle_momentum=False; else the optimizer must have a momentum */
    double base_momentum; /* 0.8 */
    double max_momentum;  /* 0.9 */
};
#define det_cyclic_lr(o, base_lr, max_lr, ...)                                                     \
    det_cyclic_lr_create(o, base_lr, max_lr, &(const struct det_cyclic_options){__VA_ARGS__})
struct det_lr *det_cyclic_lr_create(struct det_optim *o, double base_lr, double max_lr,
                                    const struct det_cyclic_options *options);

/* ---- By a metric ---- */

/* Multiplies the rates by `factor` when the metric was not better for more than `patience` steps
 * (PyTorch: 10). Its steps are det_lr_step_metric(), once for each value: wrap it with
 * DET_MANUAL_STEP. */
struct det_plateau_options {
    bool maximize;    /* mode="max": greater is better */
    double factor;    /* 0.1 */
    double threshold; /* 1e-4: of the best value */
    bool absolute;    /* threshold_mode="abs": added to it */
    int64_t cooldown; /* steps after a reduction in which none is bad */
    double min_lr;    /* for all groups */
    double eps;       /* 1e-8: smaller changes are left out */
};
#define det_reduce_lr_on_plateau(o, patience, ...)                                                 \
    det_reduce_lr_on_plateau_create(o, patience, &(const struct det_plateau_options){__VA_ARGS__})
struct det_lr *det_reduce_lr_on_plateau_create(struct det_optim *o, int64_t patience,
                                               const struct det_plateau_options *options);

/* ---- Of several schedulers; they are taken. Neither may hold a sequence or ReduceLROnPlateau */

/* One after the other: each until its step, where the next one starts anew; that of the last is not
 * read. A warm-up: det_sequential_lr(o, {det_linear_lr(o, 0.1, 1, 5), 5}, {cosine}). */
struct det_lr_stage {
    struct det_lr *lr;
    int64_t until;
};
#define det_sequential_lr(o, ...)                                                                  \
    det_sequential_lr_create(o, (const struct det_lr_stage[]){__VA_ARGS__},                        \
                             sizeof((const struct det_lr_stage[]){__VA_ARGS__}) /                  \
                                 sizeof(struct det_lr_stage))
struct det_lr *det_sequential_lr_create(struct det_optim *o, const struct det_lr_stage *stages,
                                        size_t n);
/* All of them at every step, in order: det_chained_lr(o, warmup, decay). */
#define det_chained_lr(o, ...)                                                                     \
    det_chained_lr_create(o, (struct det_lr *[]){__VA_ARGS__},                                     \
                          sizeof((struct det_lr *[]){__VA_ARGS__}) / sizeof(struct det_lr *))
struct det_lr *det_chained_lr_create(struct det_optim *o, struct det_lr **parts, size_t n);

/* ---- State ---- */

/* state_dict() and load_state_dict(); arrays borrowed until the next call on `lr`. Loading does not
 * touch the optimizer: its own state carries the rates. Unknown names are ignored; a wrong kind or
 * length is DET_EINVAL. */
const struct det_value *det_lr_state(struct det_lr *lr, size_t *ret_n);
int det_lr_load_state(struct det_lr *lr, const struct det_value *values, size_t n,
                      struct det_err *err);

#endif
