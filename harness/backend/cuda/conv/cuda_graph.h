/*
 * Convolution by cuDNN's graph API, whose engines are faster than the algorithms of its v7 API and
 * whose plans cost the host less to run. An engine is taken by what cuDNN says of it, never by
 * measuring: the first of its list that gives the same bits at every run, works in the arithmetic
 * of the tensors (f32 without TF32, unless that is allowed) and needs no more memory than a bound.
 */
#ifndef CUDA_GRAPH_H
#define CUDA_GRAPH_H

#include "cuda_plan.h"

struct cuda_graph;

/* NULL where there is no such engine; or, where it says starved, nobody knows for lack of memory:
 * the choice must not depend on what is free. */
struct cuda_graph *cuda_graph_create(cudnnHandle_t dnn, const struct cuda_plan_key *k,
                                     size_t most_bytes, bool *ret_starved);
void cuda_graph_destroy(struct cuda_graph *g);
/* Of the workspace that it needs. */
size_t cuda_graph_bytes(const struct cuda_graph *g);
cudnnStatus_t cuda_graph_run(const struct cuda_graph *g, cudnnHandle_t dnn, void *x, void *w,
                             void *y, void *work);

#endif
