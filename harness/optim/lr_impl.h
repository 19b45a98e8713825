/*
 * The inside of a learning rate scheduler. A kind is a table: its numbers under PyTorch's names,
 * and how the next rate follows.
 */
#ifndef LR_IMPL_H
#define LR_IMPL_H

#include "det/lr.h"
#include "optim_impl.h"

#define LR_FIELDS_MAX 16
#define LR_PHASES_MAX 3

/* A number of a scheduler: int64_t for INT, double for FLOAT, bool for BOOL, const char * for STR,
 * a double * of as many as there are groups for FLOATS; offset -1: a constant. */
struct lr_field {
    const char *name;
    enum det_value_kind kind;
    ptrdiff_t offset;
};

struct lr_type {
    const char *name;
    struct lr_field fields[LR_FIELDS_MAX]; /* written first, in this order; ends with name NULL */
    bool own_state;                        /* has no base_lrs, last_epoch, ... of the common
                                            * class */
    bool relative;                         /* a restart goes on from the present rate, not the
                                            * base */
    /* The rate of a group at lr->last_epoch, from its present one. */
    double (*rate)(const struct det_lr *lr, size_t group, double rate);
    double (*momentum)(const struct det_lr *lr, size_t group); /* NULL: it is left alone */
    /* One step, where it is more than last_epoch + 1 and the rates. */
    void (*step)(struct det_lr *lr);
    void (*restart)(struct det_lr *lr); /* to epoch 0, likewise */
};

/* OneCycleLR: up to end_step, from one number of the group to another. */
struct lr_phase {
    double end_step;
    const char *start_lr, *end_lr, *start_momentum, *end_momentum;
};

struct det_lr {
    struct det_optim *optim; /* borrowed */
    const struct lr_type *type;
    int64_t last_epoch, step_count;
    size_t n;            /* groups */
    double *base, *last; /* initial and present rates of the groups; owned */
    /* Numbers of the kinds; each reads those of its table. */
    int64_t step_size, t_max, t_0, t_i, t_mult, t_cur, total_iters, total_steps;
    int64_t patience, cooldown, cooldown_counter, num_bad_epochs;
    double gamma, eta_min, factor, start_factor, end_factor, power;
    double total_size, step_ratio, threshold, eps, best, mode_worse;
    double *max_lrs, *min_lrs, *base_momentums, *max_momentums; /* of each group; owned */
    double *milestones;                                         /* rising; owned */
    size_t milestones_n;
    const char *mode, *threshold_mode, *scale_mode;
    bool cycle_momentum, use_beta1, linear;
    double (*fn)(int64_t epoch, void *arg);
    void *arg;
    struct lr_phase phases[LR_PHASES_MAX];
    size_t phases_n;
    struct det_lr **parts; /* of a sequence; owned */
    size_t parts_n;
    /* What the last det_lr_state() gave out. */
    struct det_value values[LR_FIELDS_MAX + 8];
    struct det_values *dicts;
    struct det_value phase_values[LR_PHASES_MAX][5];
};

/* A scheduler with the numbers of *like, whose arrays are taken; it has made its step to epoch 0.
 * NULL after an error. */
struct det_lr *lr_new(struct det_optim *o, const struct det_lr *like);
/* The same, without that step. */
struct det_lr *lr_alloc(struct det_optim *o, const struct det_lr *like);
/* Sets the rates (and momenta) of lr->last_epoch. */
void lr_set_rates(struct det_lr *lr);
/* PyTorch's step(0): epoch 0 once more, from the base rates. */
void lr_restart(struct det_lr *lr);
/* n copies of v, owned by the caller. */
double *lr_filled(size_t n, double v);
/* NULL, with the engine's error "<kind>: <text>". */
struct det_lr *lr_refuse(struct det_optim *o, const char *kind, const char *text);

#endif
