/*
 * The functions of elem.h as loops over ELEM_T, collected in the table ELEM_TABLE. Included by
 * cpu_elem_f32.c and cpu_elem_f64.c, which say what these two are and how the loops are compiled
 * (ELEM_CLONES). Inputs are dense, or one element repeated, or anything: each has its own loop, so
 * that the usual ones are vector code.
 */
#include <tgmath.h>

#include "cpu_rows.h"

#ifdef ELEM_VECTOR /* the functions that vector code can be made of */
#include "cpu_vmath.h"
#undef exp
#undef tanh
#undef erf
#undef log1p
#undef fmax
#undef fmin
#define exp(x)     vm_exp(x)
#define tanh(x)    vm_tanh(x)
#define erf(x)     vm_erf(x)
#define log1p(x)   vm_log1p(x) /* of exp(): not negative */
#define fmax(a, b) ((a) > (b) ? (a) : (b))
#define fmin(a, b) ((a) < (b) ? (a) : (b))
#endif

#define X(NAME, value, slope)                                                                      \
    ELEM_CLONES static void unary_##NAME(const struct det_attrs *a, int64_t n,                     \
                                         const void *const *in, const int64_t *step, void *y)      \
    {                                                                                              \
        const ELEM_T *v = in[0], p = (ELEM_T)a->lo, q = (ELEM_T)a->hi;                             \
        ELEM_T *out = y;                                                                           \
        int64_t s = step[0];                                                                       \
        if (s == 1) {                                                                              \
            CPU_IN_PLACE                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ELEM_T x = v[i];                                                                   \
                out[i] = (value);                                                                  \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ELEM_T x = v[i * s];                                                               \
                out[i] = (value);                                                                  \
            }                                                                                      \
        }                                                                                          \
        (void)p, (void)q;                                                                          \
    }                                                                                              \
    ELEM_CLONES static void slope_##NAME(const struct det_attrs *a, int64_t n,                     \
                                         const void *const *in, const int64_t *step, void *dx)     \
    {                                                                                              \
        const ELEM_T *g = in[0], *v = in[1], *u = in[2], p = (ELEM_T)a->lo, q = (ELEM_T)a->hi;     \
        ELEM_T *out = dx;                                                                          \
        if (step[0] == 1 && step[1] == 1 && step[2] == 1) {                                        \
            CPU_IN_PLACE                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ELEM_T dy = g[i], x = v[i], y = u[i];                                              \
                out[i] = (slope);                                                                  \
                (void)dy, (void)x, (void)y;                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ELEM_T dy = g[i * step[0]], x = v[i * step[1]], y = u[i * step[2]];                \
                out[i] = (slope);                                                                  \
                (void)dy, (void)x, (void)y;                                                        \
            }                                                                                      \
        }                                                                                          \
        (void)p, (void)q;                                                                          \
    }
DET_UNARY(X)
#undef X

/* Defines fn(a, b) -> out over `out_t`, with a loop for each of the usual strides. */
#define ELEM_PAIR(fn, out_t, value)                                                                \
    ELEM_CLONES static void fn(const struct det_attrs *attrs, int64_t n, const void *const *in,    \
                               const int64_t *step, void *y)                                       \
    {                                                                                              \
        const ELEM_T *v = in[0], *u = in[1];                                                       \
        out_t *out = y;                                                                            \
        int64_t s = step[0], t = step[1];                                                          \
        if (s == 1 && t == 1) {                                                                    \
            CPU_IN_PLACE                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ELEM_T a = v[i], b = u[i];                                                         \
                out[i] = (out_t)(value);                                                           \
            }                                                                                      \
        } else if (s == 1 && t == 0) {                                                             \
            ELEM_T b = *u;                                                                         \
            CPU_IN_PLACE                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ELEM_T a = v[i];                                                                   \
                out[i] = (out_t)(value);                                                           \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                ELEM_T a = v[i * s], b = u[i * t];                                                 \
                out[i] = (out_t)(value);                                                           \
            }                                                                                      \
        }                                                                                          \
    }

#define ELEM_PAIR_SLOPE(fn, slope)                                                                 \
    ELEM_CLONES static void fn(const struct det_attrs *attrs, int64_t n, const void *const *in,    \
                               const int64_t *step, void *dx)                                      \
    {                                                                                              \
        const ELEM_T *g = in[0], *v = in[1], *u = in[2];                                           \
        ELEM_T *out = dx;                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            ELEM_T dy = g[i * step[0]], a = v[i * step[1]], b = u[i * step[2]];                    \
            out[i] = (slope);                                                                      \
            (void)dy, (void)a, (void)b;                                                            \
        }                                                                                          \
    }

#define X(NAME, value, slope_a, slope_b)                                                           \
    ELEM_PAIR(binary_##NAME, ELEM_T, value)                                                        \
    ELEM_PAIR_SLOPE(slope_a_##NAME, slope_a)                                                       \
    ELEM_PAIR_SLOPE(slope_b_##NAME, slope_b)
DET_BINARY(X)
#undef X

#define X(NAME, truth) ELEM_PAIR(is_##NAME, uint8_t, truth)
DET_COMPARE(X)
#undef X

const struct cpu_elem ELEM_TABLE = {
    .unary =
        {
#define X(NAME, ...) unary_##NAME,
            DET_UNARY(X)
#undef X
        },
    .unary_bwd =
        {
#define X(NAME, ...) slope_##NAME,
            DET_UNARY(X)
#undef X
        },
    .binary =
        {
#define X(NAME, ...) binary_##NAME,
            DET_BINARY(X)
#undef X
        },
    .binary_bwd =
        {
#define X(NAME, ...) slope_a_##NAME, slope_b_##NAME,
            DET_BINARY(X)
#undef X
        },
    .compare =
        {
#define X(NAME, ...) is_##NAME,
            DET_COMPARE(X)
#undef X
        },
};
