#ifndef RUN_NARROW_H
#define RUN_NARROW_H

#include "engine.h"

/* True where c has f16 or bf16 tensors and the backend's kernel takes f32 only. */
bool run_needs_f32(struct det_engine *e, const struct det_call *c);
/* Runs c by way of f32 copies. */
int run_in_f32(struct det_engine *e, const struct det_call *c, struct det_err *err);

#endif
