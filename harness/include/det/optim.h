/*
 * Optimizers: what `torch.optim` is in Python, with its arithmetic, its defaults and the layout of
 * its state_dict. Schedulers of the learning rate are in det/lr.h.
 *
 * An optimizer borrows the module it was made for. Constructors follow the engine's sticky error
 * (det/tensor.h). An option left out, or 0, is PyTorch's default.
 */
#ifndef DET_OPTIM_H
#define DET_OPTIM_H

#include "det/nn.h"

struct det_optim;

/* ---- Named values: how state goes to a checkpoint and comes back ---- */

enum det_value_kind {
    DET_VALUE_NONE,   /* Python's None */
    DET_VALUE_BOOL,   /* i */
    DET_VALUE_INT,    /* i */
    DET_VALUE_FLOAT,  /* f */
    DET_VALUE_PAIR,   /* pair: a tuple of two floats */
    DET_VALUE_FLOATS, /* floats, n: a list */
    DET_VALUE_TENSOR, /* tensor */
    DET_VALUE_STR,    /* str */
    DET_VALUE_INTS,   /* floats, n: a list of these integers */
    DET_VALUE_NONES,  /* n: a list of None */
    DET_VALUE_COUNTS, /* floats, n: a collections.Counter of these integers, in rising order */
    DET_VALUE_DICTS,  /* dicts, n: a list of dicts */
};

struct det_value {
    const char *name;
    enum det_value_kind kind;
    int64_t i;
    double f;
    double pair[2];
    const double *floats;
    size_t n;
    struct det_tensor *tensor;
    const char *str;
    const struct det_values *dicts;
};

struct det_values {
    const struct det_value *v;
    size_t n;
};

/* ---- Optimizers ---- */

struct det_sgd_options {
    double lr; /* must be given, >= 0 */
    double momentum, dampening, weight_decay;
    bool nesterov;
    bool maximize; /* in all of them: climb, do not descend */
};
#define det_sgd(m, ...) det_sgd_create(m, &(const struct det_sgd_options){__VA_ARGS__})
struct det_optim *det_sgd_create(struct det_module *m, const struct det_sgd_options *options);

/* Adam (Kingma & Ba 2015), weight decay as an L2 term; AMSGrad (Reddi et al. 2018). AdamW
 * (Loshchilov & Hutter 2019) shrinks the weights apart from the gradient. A beta1 of 0 is set after
 * the construction: det_optim_set(o, 0, "beta1", 0). */
struct det_adam_options {
    double lr;           /* 1e-3 */
    double beta1, beta2; /* 0.9 and 0.999 */
    double eps;          /* 1e-8 */
    double weight_decay; /* Adam: 0; AdamW: 0.01 (with none, AdamW is Adam) */
    bool amsgrad;
    bool maximize;
};
#define det_adam(m, ...)  det_adam_create(m, &(const struct det_adam_options){__VA_ARGS__})
#define det_adamw(m, ...) det_adamw_create(m, &(const struct det_adam_options){__VA_ARGS__})
struct det_optim *det_adam_create(struct det_module *m, const struct det_adam_options *options);
struct det_optim *det_adamw_create(struct det_module *m, const struct det_adam_options *options);

/* RMSprop (Hinton's lecture 6e); centered as in Graves 2013. */
struct det_rmsprop_options {
    double lr;    /* 1e-2 */
    double alpha; /* 0.99 */
    double eps;   /* 1e-8 */
    double weight_decay, momentum;
    bool centered;
    bool maximize;
};
#define det_rmsprop(m, ...) det_rmsprop_create(m, &(const struct det_rmsprop_options){__VA_ARGS__})
struct det_optim *det_rmsprop_create(struct det_module *m,
                                     const struct det_rmsprop_options *options);

/* Adagrad (Duchi et al. 2011). */
struct det_adagrad_options {
    double lr; /* 1e-2 */
    double lr_decay, weight_decay, initial_accumulator_value;
    double eps; /* 1e-10 */
    bool maximize;
};
#define det_adagrad(m, ...) det_adagrad_create(m, &(const struct det_adagrad_options){__VA_ARGS__})
struct det_optim *det_adagrad_create(struct det_module *m,
                                     const struct det_adagrad_options *options);

/* ---- Groups of parameters ---- */

/* One number of a group under PyTorch's name: {"weight_decay", 0}. "beta1" and "beta2" name the two
 * of "betas"; a flag is 0 or 1. */
struct det_setting {
    const char *name;
    double value;
};

/* The constructors put all parameters of m into one group. This takes those of `m` (a module
 * inside) out of their groups into one of their own, whose numbers start as a copy of the first
 * group's and are then set as given:
 *
 *     det_optim_add_group(o, net->head, {"lr", 0.01}, {"weight_decay", 0});
 *
 * Returns the group's index, or a negative code (kept in the engine too); only before the first
 * step. */
#define det_optim_add_group(o, m, ...)                                                             \
    det_optim_add_group_of(o, m, NULL, NULL, DET__SETTINGS(__VA_ARGS__))
/* The same for those parameters of m of which want(arg, name, parameter) is true; m NULL: of the
 * whole model. */
#define det_optim_add_group_if(o, m, want, arg, ...)                                               \
    det_optim_add_group_of(o, m, want, arg, DET__SETTINGS(__VA_ARGS__))
#define DET__SETTINGS(...)                                                                         \
    &(const struct det_settings)                                                                   \
    {                                                                                              \
        (const struct det_setting[]){{0}, __VA_ARGS__} + 1,                                        \
            sizeof((const struct det_setting[]){{0}, __VA_ARGS__}) / sizeof(struct det_setting) -  \
                1                                                                                  \
    }
struct det_settings {
    const struct det_setting *v;
    size_t n;
};
typedef bool det_param_test(void *arg, const char *name, const struct det_tensor *param);
int det_optim_add_group_of(struct det_optim *o, struct det_module *m, det_param_test *want,
                           void *arg, const struct det_settings *settings);
/* Sets one of a group's numbers. DET_EINVAL for an unknown name and for what is not >= 0. */
int det_optim_set(struct det_optim *o, size_t group, const char *name, double value);
/* One of a group's numbers, "initial_lr" and the like too; NaN where there is none. */
double det_optim_get(const struct det_optim *o, size_t group, const char *name);

void det_optim_destroy(struct det_optim *o); /* NULL is allowed */

void det_optim_zero_grad(struct det_optim *o);
/* Applies the gradients; parameters without one are left alone. 0 or the engine's error. */
int det_optim_step(struct det_optim *o);

size_t det_optim_groups(const struct det_optim *o);
double det_optim_lr(const struct det_optim *o, size_t group);
void det_optim_set_lr(struct det_optim *o, size_t group, double lr);
struct det_engine *det_optim_engine(const struct det_optim *o);

/* State, in the shape of PyTorch's {'state': {0: {...}}, 'param_groups': [{..., 'params': [0]}]}.
 * Arrays are borrowed until the next call on `o`. Parameters are numbered group after group. */
size_t det_optim_param_count(const struct det_optim *o);
const struct det_value *det_optim_group_values(struct det_optim *o, size_t group, size_t *ret_n);
/* The parameters of a group are the numbers *ret_first .. *ret_first + count - 1; returns count. */
size_t det_optim_group_params(const struct det_optim *o, size_t group, size_t *ret_first);
/* Empty (*ret_n = 0) for a parameter that was never stepped. */
const struct det_value *det_optim_param_state(struct det_optim *o, size_t param, size_t *ret_n);
/* The way back. Unknown names are ignored (other versions of PyTorch write more of them); a wrong
 * kind, shape or index is DET_EINVAL. */
int det_optim_load_group_value(struct det_optim *o, size_t group, const struct det_value *v,
                               struct det_err *err);
int det_optim_load_param_state(struct det_optim *o, size_t param, const struct det_value *v,
                               struct det_err *err);

#endif
