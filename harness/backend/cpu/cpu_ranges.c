/* Kernels whose loops are those of the reference, divided among the threads. */
#include "cpu.h"
#include "ref_reduce.h"

#define GRAIN 4096 /* elements */

static int64_t columns_grain(const struct det_tensor *x)
{
    return 1 + GRAIN / (x->dims[1] > 0 ? x->dims[1] : 1);
}

int cpu_reduce(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, (int64_t)c->out[0]->numel, columns_grain(c->in[0]),
                 ref_reduce_range, c);
    return 0;
}

int cpu_reduce_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, (int64_t)c->in[0]->numel, columns_grain(c->out[0]),
                 ref_reduce_bwd_range, c);
    return 0;
}

int cpu_cumsum(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, c->in[0]->dims[0] * c->in[0]->dims[2],
                 columns_grain(c->in[0]), ref_cumsum_range, c);
    return 0;
}
