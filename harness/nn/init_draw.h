/* Random numbers of an initialiser: one random call of the engine, drawn on the host. */
#ifndef INIT_DRAW_H
#define INIT_DRAW_H

#include "engine.h"

struct init_draw {
    uint64_t seed, call;
    uint64_t at; /* numbers drawn */
    uint32_t words[4];
};

struct init_draw init_draw_new(struct det_engine *e);
double init_uniform(struct init_draw *d); /* in 0..1, never 0 or 1 */
double init_normal(struct init_draw *d);

/* A host tensor of t's shape to be filled, f64, owned by the caller; its numbers in *ret. NULL
 * after an error, or where t is NULL. */
struct det_tensor *init_begin(struct det_engine *e, struct det_tensor *t, double **ret);
/* Copies it to t, in t's type, and drops it. */
void init_end(struct det_engine *e, struct det_tensor *t, struct det_tensor *host);

#endif
