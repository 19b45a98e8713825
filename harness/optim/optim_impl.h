/*
 * The inside of an optimizer: groups of parameters with numbers, and for each parameter the tensors
 * its algorithm keeps. What is written to and read from a checkpoint is one table of fields a type.
 */
#ifndef OPTIM_IMPL_H
#define OPTIM_IMPL_H

#include "det/optim.h"
#include "engine.h"
#include "vec.h"

#define SLOTS_MAX  2
#define FIELDS_MAX 16

struct group {
    double lr, momentum, dampening, weight_decay, betas[2], eps;
    bool nesterov;
    double initial_lr; /* NaN until a scheduler sets it */
};

/* One parameter of the optimizer. */
struct slot {
    struct det_tensor *param; /* a reference */
    size_t group;
    struct det_tensor *kept[SLOTS_MAX]; /* references; NULL until the first step */
    struct det_tensor *step;            /* a host scalar, of algorithms that count */
    bool stepped;
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
    const char *kept[SLOTS_MAX];           /* names of the kept tensors */
    bool counts;                           /* has `step` */
    int (*step)(struct det_optim *o, struct slot *s, struct det_err *err);
};

struct det_optim {
    struct det_engine *engine;
    const struct optim_type *type;
    struct det_module *module; /* borrowed */
    VEC(struct group) groups;
    VEC(struct slot) slots; /* ordered by group */
    struct det_value values[FIELDS_MAX + 1];
};

/* An optimizer over all parameters of m, in one group with the numbers of *g. */
struct det_optim *optim_new(struct det_module *m, const struct optim_type *type,
                            const struct group *g);
/* Makes kept[i] of zeros where there is none yet. */
int slot_keep(struct det_optim *o, struct slot *s, int i, struct det_err *err);
/* The field's number(s) in g; NULL for a constant. */
void *group_number(struct group *g, const struct group_field *f);
const struct group_field *group_field_find(const struct optim_type *type, const char *name);

#endif
