/* The inside of a learning rate scheduler. */
#ifndef LR_IMPL_H
#define LR_IMPL_H

#include "optim_impl.h"

#define LR_VALUES_MAX 10

enum lr_kind { LR_STEP, LR_EXPONENTIAL, LR_COSINE, LR_LAMBDA };

struct det_lr {
    struct det_optim *optim; /* borrowed */
    enum lr_kind kind;
    int64_t step_size; /* step: step_size; cosine: T_max */
    double gamma;      /* step, exponential: gamma; cosine: eta_min */
    double (*fn)(int64_t epoch, void *arg);
    void *arg;
    int64_t last_epoch, step_count;
    size_t n;            /* groups */
    double *base, *last; /* initial and present rates of the groups; owned */
    struct det_value values[LR_VALUES_MAX];
};

#endif
