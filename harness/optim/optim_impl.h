/*
 * The inside of an optimizer: groups of parameters with numbers, and for each parameter the tensors
 * its algorithm keeps. An algorithm is a table: its numbers, what it keeps, and one kernel. What is
 * written to and read from a checkpoint follows from the table.
 */
#ifndef OPTIM_IMPL_H
#define OPTIM_IMPL_H

#include "backend.h"
#include "det/optim.h"
#include "engine.h"
#include "vec.h"

#define SLOTS_MAX  3
#define FIELDS_MAX 20

struct group {
    double lr, momentum, dampening, weight_decay, betas[2], eps, alpha, lr_decay, initial_sum;
    bool nesterov, maximize, amsgrad, centered;
    /* Numbers of schedulers; NaN until one sets them. */
    double initial_lr, max_lr, min_lr, max_momentum, base_momentum;
};

/* One parameter of the optimizer. */
struct slot {
    struct det_tensor *param; /* a reference */
    size_t group;
    struct det_tensor *kept[SLOTS_MAX]; /* references; NULL until the first step */
    int64_t steps;
    struct det_tensor *step_tensor; /* a host scalar with the steps, as PyTorch keeps them */
    bool has_state;
    bool fresh; /* kept[0] was made for the step that comes */
};

/* A number of a group under its name in PyTorch; offset -1: a constant that PyTorch writes too. */
struct group_field {
    const char *name;
    enum det_value_kind kind;
    ptrdiff_t offset;
};

struct optim_type {
    const char *name;
    struct group_field fields[FIELDS_MAX]; /* ends with name NULL */
    enum det_kernel kernel;                /* in: gradient; out: parameter, kept ones */
    const char *kept[SLOTS_MAX];           /* names of the kept tensors */
    enum det_value_kind step_kind;         /* how `step` is written: TENSOR, INT; NONE: it is not */
    bool decoupled;                        /* weight decay is not part of the gradient */
    bool writes_none;                      /* a kept tensor that is absent is written as None */
    bool has_state_from_start;             /* kept[0] is initial_sum before the first step */
    /* Whether kept[i] is needed with these numbers; NULL: always. */
    bool (*keeps)(const struct group *g, int i);
};

/* What PyTorch's schedulers add to the groups of any optimizer. */
extern const struct group_field scheduler_fields[];

struct det_optim {
    struct det_engine *engine;
    const struct optim_type *type;
    struct det_module *module; /* borrowed */
    bool stepped;              /* or its state was loaded: groups are fixed */
    VEC(struct group) groups;
    VEC(struct slot) slots; /* ordered by group */
    struct det_value values[FIELDS_MAX + 5];
};

/* An optimizer over all parameters of m, in one group with the numbers of *g. */
struct det_optim *optim_new(struct det_module *m, const struct optim_type *type,
                            const struct group *g);
/* True where all are finite and >= 0, else the engine's error that lists them. */
bool optim_numbers_ok(struct det_module *m, const char *type, const double *v, size_t n);
/* Makes kept[i], filled with `value`, where there is none yet. */
DET_MUST int slot_keep(struct det_optim *o, struct slot *s, int i, double value,
                       struct det_err *err);
/* The field's number(s) in g; NULL for a constant. */
void *group_number(struct group *g, const struct group_field *f);
/* Of the type's fields, then the schedulers'. */
const struct group_field *group_field_find(const struct optim_type *type, const char *name);
/* The number that a scheduler cycles: momentum, else beta1; NULL where there is neither. */
double *group_momentum(struct det_optim *o, size_t group);

#endif
