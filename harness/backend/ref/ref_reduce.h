/* Ranges of outputs of the kernels over one dimension: the cpu backend divides them among its
 * threads. Each output is summed on its own, so the bits do not depend on how. */
#ifndef REF_REDUCE_H
#define REF_REDUCE_H

#include "ref.h"

void ref_reduce_range(const void *call, int64_t from, int64_t to);
void ref_reduce_bwd_range(const void *call, int64_t from, int64_t to);
void ref_cumsum_range(const void *call, int64_t from, int64_t to);
/* Over elements. */
void ref_point_loss_range(const void *call, int64_t from, int64_t to);
void ref_point_loss_range_f64(const void *call, int64_t from, int64_t to);
void ref_point_loss_bwd_range(const void *call, int64_t from, int64_t to);
void ref_point_loss_bwd_range_f64(const void *call, int64_t from, int64_t to);

#endif
