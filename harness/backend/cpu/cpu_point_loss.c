/* Losses of elements: the loops of the reference, divided among the threads. */
#include "cpu_real.h"
#include "ref_reduce.h"

#define GRAIN 4096 /* elements */

int CPU(point_loss)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    int64_t n = (int64_t)c->out[0]->numel;
    cpu_parallel(cpu_device(s)->threads, n, GRAIN, REF(point_loss_range), c);
    return 0;
}

int CPU(point_loss_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    int64_t n = (int64_t)c->out[0]->numel;
    cpu_parallel(cpu_device(s)->threads, n, GRAIN, REF(point_loss_bwd_range), c);
    return 0;
}
