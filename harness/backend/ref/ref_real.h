/*
 * What the kernels over one floating dtype are written in: `real`. Their files are compiled twice,
 * for float, and with REF_F64 for double; REF(linear) is ref_linear() or ref_linear_f64(). All
 * floating tensors of a call are of that dtype.
 */
#ifndef REF_REAL_H
#define REF_REAL_H

#include "ref.h"

#ifdef REF_F64
typedef double real;
#define REF(name) ref_##name##_f64
#else
typedef float real;
#define REF(name) ref_##name
#endif
#define REF_KERNEL(name)                                                                           \
    int REF(name)(struct det_stream * s, const struct det_call *c, struct det_err *err)

static inline const real *in_real(const struct det_call *c, int i)
{
    return c->in[i] ? (const real *)(const void *)c->in[i]->data : NULL;
}

static inline real *out_real(const struct det_call *c, int i)
{
    return c->out[i] ? (real *)(void *)c->out[i]->data : NULL;
}

#endif
