/*
 * The mean over ranks of a module's gradients, while the backward pass still computes others. Their
 * vector goes in parts, from its end to its beginning, since the last layers' gradients come first.
 * A part goes on a stream of its own as soon as it and all before it are complete, so that the
 * order is the same on all ranks, whatever each rank's graph was. What is left, and the marks of
 * module_grads_ranks.c, go at the step.
 */
#ifndef GRADS_OVERLAP_H
#define GRADS_OVERLAP_H

#include "module.h"

struct grads_overlap_options {
    size_t part_bytes; /* at least, but for the last part; no gradient is divided */
    /* v = mean over ranks, n floats of the device, asked for on s. */
    int (*mean)(void *arg, float *v, size_t n, struct det_stream *s, struct det_err *err);
    void *arg;
};

struct grads_overlap;

/* m is borrowed; its device has streams. DET_EUNAVAIL: not all gradients are f32. */
DET_MUST int grads_overlap_create(struct det_module *m, const struct grads_overlap_options *o,
                                  struct grads_overlap **ret, struct det_err *err);
/* Before the backward pass whose gradients the step takes; DET_ESTATE: there was one already. */
DET_MUST int grads_overlap_begin(struct grads_overlap *g, struct det_err *err);
/* The rest, with or without a begin. What the engine is asked for from now on sees the means. *ret:
 * the stream on which they come, for whoever has to wait. */
DET_MUST int grads_overlap_finish(struct grads_overlap *g, struct det_stream **ret,
                                  struct det_err *err);
bool grads_overlap_is_open(const struct grads_overlap *g); /* between begin and finish */
void grads_overlap_destroy(struct grads_overlap *g);       /* NULL ok */

#endif
