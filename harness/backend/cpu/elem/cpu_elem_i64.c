/* The element-wise functions that whole numbers have, in i64. */
#include "cpu_rows.h"

#define PAIR(fn, out_t, value)                                                                     \
    static void fn(const struct det_attrs *attrs, int64_t n, const void *const *in,                \
                   const int64_t *step, void *y)                                                   \
    {                                                                                              \
        const int64_t *v = in[0], *u = in[1];                                                      \
        out_t *out = y;                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t a = v[i * step[0]], b = u[i * step[1]];                                        \
            out[i] = (out_t)(value);                                                               \
        }                                                                                          \
    }
#define X(NAME, value) PAIR(whole_##NAME, int64_t, value)
DET_BINARY_WHOLE(X)
#undef X
#define X(NAME, truth) PAIR(is_##NAME, uint8_t, truth)
DET_COMPARE(X)
#undef X

cpu_row_fn *const cpu_whole[DET_BINARY_COUNT] = {
#define X(NAME, ...) [DET_BINARY_##NAME] = whole_##NAME,
    DET_BINARY_WHOLE(X)
#undef X
};
cpu_row_fn *const cpu_whole_compare[DET_COMPARE_COUNT] = {
#define X(NAME, ...) is_##NAME,
    DET_COMPARE(X)
#undef X
};
