/* What the figures of bench-train are made of. */
#ifndef BENCH_TRAIN_H
#define BENCH_TRAIN_H

#include "det/optim.h"
#include "det/vision.h"

struct run {
    struct det_engine *e;
    struct det_module *net;
    struct det_optim *optim;
    struct det_tensor *x, *y;
    int64_t items; /* of a step */
    void *parts;   /* a figure's own; freed with free() */
};

struct figure {
    const char *name;
    void (*make)(struct run *r); /* fills net, x, y, items */
    struct det_tensor *(*loss)(struct run *r);
    struct det_optim *(*optim)(struct run *r); /* NULL: SGD with momentum */
    double clip_norm;                          /* 0: no clipping */
    bool draws; /* dropout: the steps whose losses are compared are without */
};

/* train_text.c */
extern const struct figure figure_lstm, figure_gpt2_small, figure_gpt2_1024;

/* n times what BENCH_BATCH says. */
int64_t batch(int64_t n);
/* n classes, a fixed sequence. */
struct det_tensor *labels(int64_t n, int64_t classes);

#endif
