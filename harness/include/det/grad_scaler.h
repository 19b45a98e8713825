/*
 * The scaler of gradients in mixed precision: torch.cuda.amp.GradScaler, with its semantics and its
 * state. The loss is multiplied by a scale that keeps small gradients from vanishing; before the
 * step they are divided by it again, the step is left out where one is infinite or NaN, and the
 * scale then falls, or rises after a while without such. bf16, which is what mixed precision means
 * on a CPU, needs none: `.disabled = true` makes every function do its plain work only.
 *
 * The order in a step: det_grad_scaler_scale(), backward, if they are looked at or clipped
 * det_grad_scaler_unscale(), det_grad_scaler_step() once for each optimizer, then
 * det_grad_scaler_update() once. The wrong order is DET_ESTATE, kept in the engine too.
 */
#ifndef DET_GRAD_SCALER_H
#define DET_GRAD_SCALER_H

#include "det/optim.h"

struct det_grad_scaler;

/* 0 stands for PyTorch's default. */
struct det_grad_scaler_options {
    double init_scale;       /* 65536 */
    double growth_factor;    /* 2 */
    double backoff_factor;   /* 0.5 */
    int64_t growth_interval; /* 2000: updates without an infinity until the scale grows */
    bool disabled;
};
#define det_grad_scaler(e, ...)                                                                    \
    det_grad_scaler_create(e, &(const struct det_grad_scaler_options){__VA_ARGS__})
/* NULL after an error of the engine. */
struct det_grad_scaler *det_grad_scaler_create(struct det_engine *e,
                                               const struct det_grad_scaler_options *options);
/* Before its engine is destroyed: s may hold a tensor of it. NULL is allowed. */
void det_grad_scaler_destroy(struct det_grad_scaler *s);

/* loss * scale; loss itself where disabled. */
struct det_tensor *det_grad_scaler_scale(struct det_grad_scaler *s, struct det_tensor *loss);
/* Divides the gradients of o's module by the scale and looks for infinities; at most once between
 * two updates. 0 or the engine's error. */
int det_grad_scaler_unscale(struct det_grad_scaler *s, struct det_optim *o);
/* Has it been called for o since the last update? */
bool det_grad_scaler_unscaled(const struct det_grad_scaler *s, const struct det_optim *o);
/* Unscales unless that was done, then steps unless there was an infinity, or is one now. 1:
 * stepped, 0: left out, or a negative code. */
int det_grad_scaler_step(struct det_grad_scaler *s, struct det_optim *o);
/* The scale for the next step. 0 or the engine's error. */
int det_grad_scaler_update(struct det_grad_scaler *s);
/* Sets the scale instead (update(new_scale)). */
int det_grad_scaler_update_to(struct det_grad_scaler *s, double scale);
double det_grad_scaler_get_scale(const struct det_grad_scaler *s); /* 1 where disabled */
bool det_grad_scaler_enabled(const struct det_grad_scaler *s);

/* state_dict() and load_state_dict(): scale, growth_factor, backoff_factor, growth_interval,
 * _growth_tracker; nothing where disabled. Borrowed until the next call on s. */
const struct det_value *det_grad_scaler_state(struct det_grad_scaler *s, size_t *ret_n);
int det_grad_scaler_load_state(struct det_grad_scaler *s, const struct det_value *values, size_t n,
                               struct det_err *err);

#endif
