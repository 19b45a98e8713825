/*
 * Optimizers and learning rate schedulers: what `torch.optim` is in Python, with its arithmetic,
 * its defaults and the layout of its state_dict.
 *
 * An optimizer borrows the module it was made for, a scheduler its optimizer. Constructors follow
 * the engine's sticky error (det/tensor.h).
 */
#ifndef DET_OPTIM_H
#define DET_OPTIM_H

#include "det/nn.h"

struct det_optim;
struct det_lr;

/* ---- Named values: how state goes to a checkpoint and comes back ---- */

enum det_value_kind {
    DET_VALUE_NONE,   /* Python's None */
    DET_VALUE_BOOL,   /* i */
    DET_VALUE_INT,    /* i */
    DET_VALUE_FLOAT,  /* f */
    DET_VALUE_PAIR,   /* pair: a tuple of two floats */
    DET_VALUE_FLOATS, /* floats, n: a list */
    DET_VALUE_TENSOR, /* tensor */
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
};

/* ---- Optimizers ---- */

struct det_sgd_options {
    double lr; /* must be given, >= 0 */
    double momentum, dampening, weight_decay;
    bool nesterov;
};
#define det_sgd(m, ...) det_sgd_create(m, &(const struct det_sgd_options){__VA_ARGS__})
struct det_optim *det_sgd_create(struct det_module *m, const struct det_sgd_options *options);

struct det_adam_options {
    double lr;           /* 0: 1e-3 */
    double beta1, beta2; /* 0: 0.9 and 0.999 */
    double eps;          /* 0: 1e-8 */
    double weight_decay;
};
#define det_adam(m, ...) det_adam_create(m, &(const struct det_adam_options){__VA_ARGS__})
struct det_optim *det_adam_create(struct det_module *m, const struct det_adam_options *options);

/* The constructors put all parameters of m into one group. This takes those of `m` (a module
 * inside) out into a group of their own, whose settings start as a copy of the first group's.
 * Returns the group's index, or a negative code (kept in the engine too); only before the first
 * step. */
int det_optim_add_group(struct det_optim *o, struct det_module *m);
/* Sets one of a group's numbers ("lr", "momentum", "weight_decay", ...). */
int det_optim_set(struct det_optim *o, size_t group, const char *name, double value);

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

/* ---- Learning rate schedulers (torch.optim.lr_scheduler) ---- */

/* Each records the groups' present rates as initial ones. */
struct det_lr *det_step_lr(struct det_optim *o, int64_t step_size, double gamma);
struct det_lr *det_exponential_lr(struct det_optim *o, double gamma);
struct det_lr *det_cosine_annealing_lr(struct det_optim *o, int64_t t_max, double eta_min);
/* rate = initial rate * fn(epoch, arg); `arg` is borrowed. */
struct det_lr *det_lambda_lr(struct det_optim *o, double (*fn)(int64_t epoch, void *arg),
                             void *arg);
void det_lr_destroy(struct det_lr *lr); /* NULL is allowed */

void det_lr_step(struct det_lr *lr);
/* The rate last set for a group (get_last_lr). */
double det_lr_last(const struct det_lr *lr, size_t group);
struct det_optim *det_lr_optim(const struct det_lr *lr);

/* state_dict() and load_state_dict(); arrays borrowed until the next call on `lr`. Loading does not
 * touch the optimizer: its own state carries the rates. */
const struct det_value *det_lr_state(struct det_lr *lr, size_t *ret_n);
int det_lr_load_state(struct det_lr *lr, const struct det_value *values, size_t n,
                      struct det_err *err);

#endif
