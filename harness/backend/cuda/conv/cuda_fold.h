/*
 * Convolutions of f16 and bf16 over images of few channels, of 3 say, made ones that tensor cores
 * do well: the pixels that a window's row covers become channels of one, and so do the rows of a
 * step where it moves by more than one; zeros make them a multiple of 8. A 7 x 7 window over 3
 * channels that moves by 2 is a 4 x 1 window over 42 of 48 that moves by 1. (By squares of 2 x 2 it
 * would be 4 x 4 over 12 of 16, but kernels take 32 or 64 channels of a tap at a time.) Padding of
 * any kind becomes part of the image. Sums gain nothing but products with 0: a NaN or an infinity
 * is met by the windows that end within the same step of rows too.
 */
#ifndef CUDA_FOLD_H
#define CUDA_FOLD_H

#include "cuda_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_fold {
    struct det_tensor x, w; /* folded; their data is the caller's business */
    struct det_attrs a;     /* the window's over them */
    int step_h;             /* rows that became one */
    int move_w, span_w;     /* from one pixel to the next; pixels that one covers */
    int pad_h, pad_w;       /* that x begins with */
    int end_h, end_w;       /* where the last window ends, in pixels of x without its padding */
};

/* Whether folding pays for y = x * w, and how it is done. x is NHWC, w plain (O, I, kH, kW). */
bool cuda_fold_init(struct cuda_fold *f, const struct det_attrs *a, const struct det_tensor *x,
                    const struct det_tensor *w, const struct det_tensor *y);
/* To f->x.data, and to f->w.data in the order (O, kH, kW, I). */
DET_MUST int cuda_fold_x(struct det_stream *s, const struct det_call *c, const struct cuda_fold *f,
                         const struct det_tensor *x, struct det_err *err);
DET_MUST int cuda_fold_weights(struct det_stream *s, const struct det_call *c,
                               const struct cuda_fold *f, const struct det_tensor *w,
                               struct det_err *err);
/* f->w.data back to w. */
DET_MUST int cuda_unfold_weights(struct det_stream *s, const struct det_call *c,
                                 const struct cuda_fold *f, const struct det_tensor *w,
                                 struct det_err *err);

#ifdef __cplusplus
}
#endif
#endif
