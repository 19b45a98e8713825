/* Where the windows of pooling lie, for every backend; on a GPU too, where WINDOW_FN says so. */
#ifndef WINDOW_H
#define WINDOW_H

#include "backend.h"

#ifndef WINDOW_FN
#define WINDOW_FN static inline
#endif

/* Window `out` along one direction: taps [from, to) lie on the image, tap 0 at pixel `origin`.
 * `size` counts the pixels that an average divides by. */
struct window {
    int64_t origin, from, to, size;
};

struct window_line {
    int64_t in, out; /* pixels of the image, windows */
    int kernel, stride, pad;
    bool adaptive, include_pad;
};

WINDOW_FN struct window window_at(struct window_line l, int64_t out)
{
    struct window v = {out * l.stride - l.pad, 0, l.kernel, 0};
    if (l.adaptive) {
        v.origin = out * l.in / l.out;
        v.to = ((out + 1) * l.in + l.out - 1) / l.out - v.origin;
    }
    int64_t room = l.in + l.pad - v.origin; /* in ceil mode a window may pass the padding's end */
    v.size = v.to < room ? v.to : room;
    if (v.origin < 0)
        v.from = -v.origin;
    if (v.origin + v.to > l.in)
        v.to = l.in - v.origin;
    if (!l.include_pad)
        v.size = v.to - v.from;
    return v;
}

static inline struct window_line window_rows(const struct det_attrs *a, const struct det_tensor *x,
                                             const struct det_tensor *y)
{
    struct window_line l = {x->dims[2], y->dims[2],  a->kernel_h,   a->stride_h,
                            a->pad_h,   a->adaptive, a->include_pad};
    return l;
}

static inline struct window_line
window_columns(const struct det_attrs *a, const struct det_tensor *x, const struct det_tensor *y)
{
    struct window_line l = {x->dims[3], y->dims[3],  a->kernel_w,   a->stride_w,
                            a->pad_w,   a->adaptive, a->include_pad};
    return l;
}

#endif
