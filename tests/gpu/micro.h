/* What micro times, and how. */
#ifndef MICRO_H
#define MICRO_H

#include "det/functional.h"

struct operation {
    const char *name;
    struct det_tensor *(*call)(struct det_engine *e, struct det_tensor *x);
    double moved; /* bytes, as a multiple of x's */
};

/* Microseconds of a call: the fastest of some rounds, the first of which loads code. */
double time_us(struct det_engine *e, const struct operation *o, struct det_tensor *x);

/* Attention as GPT-2 has it, 8 x 12 heads of 1024 x 64; small where no GPU is to be timed. */
void time_attention(struct det_engine *e, bool is_full);

/* Convolutions of f32 as networks have them, each way; small where no GPU is to be timed. */
void time_convolutions(struct det_engine *e, bool is_full);

/* A line of it. */
void report(const char *name, double us, double bytes);

/* Norms, softmax, cross entropy and sums of columns as networks have them; small where no GPU is to
 * be timed. */
void time_norms(struct det_engine *e, bool is_full);

#endif
