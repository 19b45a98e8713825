/*
 * Functions of images and other signals, beside those in det/tensor.h: what `torch.nn.functional`
 * has for convolution, pooling, padding and resampling. Images are (N, C, H, W), signals (N, C, L).
 * Ownership and errors as in det/tensor.h.
 */
#ifndef DET_CONV_H
#define DET_CONV_H

#include "det/tensor.h"

/* x (N, in, L), weight (out, in / groups, k); the numbers of the options are those of the one
 * direction. */
struct det_tensor *det_conv1d(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias, const struct det_conv2d_options *options);

/* Transposed: the gradient of a convolution with regard to its input (Dumoulin & Visin 2016).
 * weight (in, out / groups, kH, kW); y has (H - 1) * stride - 2 * padding + dilation * (kH - 1) +
 * output_padding + 1 rows; output_padding is less than the stride or the dilation. No padding_mode,
 * same and relu. */
struct det_tensor *det_conv_transpose2d(struct det_engine *e, struct det_tensor *x,
                                        struct det_tensor *weight, struct det_tensor *bias,
                                        const struct det_conv2d_options *options);
struct det_tensor *det_conv_transpose1d(struct det_engine *e, struct det_tensor *x,
                                        struct det_tensor *weight, struct det_tensor *bias,
                                        const struct det_conv2d_options *options);

/* Of (N, C, H, W), and of (N, C, L), where the numbers are those of the one direction. kernel must
 * be given, stride 0 means kernel; pairs as in det_conv2d_options. At most 256 taps for a maximum.
 */
struct det_pool_options {
    int kernel, stride, padding;
    bool ceil_mode;   /* a last window may begin inside and end outside */
    bool exclude_pad; /* count_include_pad=False: an average counts the pixels of x only */
    int kernel_hw[2], stride_hw[2], padding_hw[2];
};
struct det_tensor *det_max_pool(struct det_engine *e, struct det_tensor *x,
                                const struct det_pool_options *options);
struct det_tensor *det_avg_pool(struct det_engine *e, struct det_tensor *x,
                                const struct det_pool_options *options);

/* To `height` x `width` windows, or `length`, that cover x as evenly as they can; 0 keeps the
 * size. */
struct det_tensor *det_adaptive_avg_pool2d(struct det_engine *e, struct det_tensor *x,
                                           int64_t height, int64_t width);
struct det_tensor *det_adaptive_max_pool2d(struct det_engine *e, struct det_tensor *x,
                                           int64_t height, int64_t width);
struct det_tensor *det_adaptive_avg_pool1d(struct det_engine *e, struct det_tensor *x,
                                           int64_t length);
struct det_tensor *det_adaptive_max_pool1d(struct det_engine *e, struct det_tensor *x,
                                           int64_t length);

/* torch.nn.functional.pad: `pads` has n numbers >= 0, a pair (before, after) for the last
 * dimension, one for the dimension before it, and so on. `value` is what DET_PAD_ZEROS puts there.
 */
struct det_tensor *det_pad(struct det_engine *e, struct det_tensor *x, int n, const int *pads,
                           enum det_pad_mode mode, double value);

enum det_interpolation { DET_NEAREST, DET_BILINEAR };
struct det_interpolate_options {
    int64_t height, width; /* of y, or 0: by scale */
    double scale;          /* of both directions */
    enum det_interpolation mode;
    bool align_corners; /* bilinear: the corner pixels of x and y are the same points */
};
/* x (N, C, H, W). */
struct det_tensor *det_interpolate(struct det_engine *e, struct det_tensor *x,
                                   const struct det_interpolate_options *options);

#endif
