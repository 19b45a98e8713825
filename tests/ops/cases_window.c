/* What slides over images and signals in every way that PyTorch has: groups, dilation, directions
 * of their own, kinds of padding, transposed, ceil mode, adaptive windows, resampling. */
#include "det/conv.h"
#include "op_case.h"

#define CONV(...)                                                                                  \
    det_conv2d(e, in[0], in[1], in[2], &(const struct det_conv2d_options){__VA_ARGS__})
#define CONV1(...)                                                                                 \
    det_conv1d(e, in[0], in[1], in[2], &(const struct det_conv2d_options){__VA_ARGS__})
#define BACK(...)                                                                                  \
    det_conv_transpose2d(e, in[0], in[1], NULL, &(const struct det_conv2d_options){__VA_ARGS__})
#define BACK1(...)                                                                                 \
    det_conv_transpose1d(e, in[0], in[1], NULL, &(const struct det_conv2d_options){__VA_ARGS__})
#define MAX(...) det_max_pool(e, in[0], &(const struct det_pool_options){__VA_ARGS__})
#define AVG(...) det_avg_pool(e, in[0], &(const struct det_pool_options){__VA_ARGS__})
#define PAD(mode, ...)                                                                             \
    det_pad(e, in[0], sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__}, mode, 0.5)
#define RESIZE(...) det_interpolate(e, in[0], &(const struct det_interpolate_options){__VA_ARGS__})

BUILD(conv_groups, CONV(.groups = 2, .padding = 1))
BUILD(conv_depthwise, CONV(.groups = 6, .padding = 1, .stride = 2))
BUILD(conv_atrous, CONV(.groups = 32, .dilation = 2, .padding = 2))
BUILD(conv_dilated, CONV(.dilation = 2, .padding = 2))
BUILD(conv_ways, CONV(.stride_hw = {2, 1}, .padding_hw = {0, 2}, .dilation_hw = {1, 3}))
BUILD(conv_same, CONV(.same = true, .dilation_hw = {1, 3}))
BUILD(conv_reflect, CONV(.padding = 2, .padding_mode = DET_PAD_REFLECT))
BUILD(conv_replicate, CONV(.padding_hw = {0, 1}, .padding_mode = DET_PAD_REPLICATE, .stride = 2))
BUILD(conv_circular, CONV(.same = true, .padding_mode = DET_PAD_CIRCULAR))
BUILD(conv1d, CONV1(.stride = 2, .padding = 1))
BUILD(conv1d_groups, CONV1(.groups = 3, .dilation = 2))
BUILD(conv1d_same, CONV1(.same = true, .padding_mode = DET_PAD_REFLECT))
BUILD(back, BACK(0))
BUILD(back_stride, BACK(.stride = 2, .padding = 1, .output_padding = 1))
BUILD(back_groups,
      BACK(.groups = 2, .stride_hw = {3, 2}, .output_padding_hw = {2, 0}, .dilation = 2))
BUILD(back_far, BACK(.dilation = 3, .output_padding = 2))
BUILD(back_far_cut,
      BACK(.stride_hw = {2, 1}, .dilation = 4, .padding_hw = {1, 2}, .output_padding_hw = {3, 2}))
BUILD(back_far_groups,
      BACK(.groups = 2, .stride = 2, .dilation_hw = {5, 4}, .output_padding_hw = {4, 3}))
BUILD(back1d_far, BACK1(.dilation = 4, .padding = 2, .output_padding = 3))
BUILD(back1d, BACK1(.stride = 3, .padding = 1, .output_padding = 1))
BUILD(max_ceil, MAX(.kernel = 3, .stride = 2, .ceil_mode = true))
BUILD(max_ways, MAX(.kernel_hw = {2, 3}, .stride_hw = {2, 1}, .padding_hw = {1, 0}))
BUILD(max_ceil_pad, MAX(.kernel = 2, .stride = 3, .padding = 1, .ceil_mode = true))
BUILD(max_ceil_small, MAX(.kernel_hw = {3, 4}, .stride = 2, .ceil_mode = true))
BUILD(max_long, MAX(.kernel_hw = {1, 40}, .stride_hw = {1, 3}))
BUILD(max_signal, MAX(.kernel = 3, .stride = 2, .padding = 1))
BUILD(max_deep, MAX(.kernel = 5, .stride = 2, .padding = 2))
BUILD(max_pad, MAX(.kernel = 4, .stride = 2, .padding = 2, .ceil_mode = true))
BUILD(max_gaps, MAX(.kernel_hw = {2, 1}, .stride_hw = {3, 2}))
BUILD(max_wide, MAX(.kernel = 9, .stride = 9))
BUILD(avg_deep, AVG(.kernel_hw = {5, 3}, .stride = 2, .padding = 1))
BUILD(avg_pad, AVG(.kernel = 4, .stride = 2, .padding = 2, .ceil_mode = true))
BUILD(avg_gaps, AVG(.kernel = 2, .stride = 3, .padding = 1))
BUILD(avg_ceil, AVG(.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true))
BUILD(avg_ceil_small, AVG(.kernel_hw = {5, 4}, .stride = 3, .padding = 1, .ceil_mode = true))
BUILD(avg_exclude, AVG(.kernel = 3, .stride = 2, .padding = 1, .exclude_pad = true))
BUILD(avg_both,
      AVG(.kernel_hw = {3, 2}, .padding_hw = {1, 1}, .ceil_mode = true, .exclude_pad = true))
BUILD(avg_signal, AVG(.kernel = 3, .padding = 1))
BUILD(adaptive_avg, det_adaptive_avg_pool2d(e, in[0], 3, 4))
BUILD(adaptive_wide, det_adaptive_avg_pool2d(e, in[0], 9, 2))
BUILD(adaptive_max, det_adaptive_max_pool2d(e, in[0], 3, 0))
BUILD(adaptive_avg_even, det_adaptive_avg_pool2d(e, in[0], 3, 2))
BUILD(adaptive_max_even, det_adaptive_max_pool2d(e, in[0], 3, 2))
BUILD(adaptive_avg1, det_adaptive_avg_pool1d(e, in[0], 4))
BUILD(adaptive_max1, det_adaptive_max_pool1d(e, in[0], 3))
BUILD(pad_constant, PAD(DET_PAD_ZEROS, 1, 2, 0, 3, 1, 0))
BUILD(pad_last, PAD(DET_PAD_ZEROS, 2, 0))
BUILD(pad_reflect, PAD(DET_PAD_REFLECT, 2, 1, 1, 3))
BUILD(pad_replicate, PAD(DET_PAD_REPLICATE, 2, 4, 1, 0))
BUILD(pad_circular, PAD(DET_PAD_CIRCULAR, 1, 4, 2, 0))
BUILD(resize_nearest, RESIZE(.height = 7, .width = 3))
BUILD(resize_twice, RESIZE(.scale = 2))
BUILD(resize_bilinear, RESIZE(.scale = 1.7, .mode = DET_BILINEAR))
BUILD(resize_down, RESIZE(.height = 3, .width = 4, .mode = DET_BILINEAR))
BUILD(resize_corners, RESIZE(.height = 9, .width = 1, .mode = DET_BILINEAR, .align_corners = true))

/* Images in the order that a convolution leaves them in. */
#define AFTER_CONV(name, ...)                                                                      \
    static struct det_tensor *name(struct det_engine *e, struct det_tensor **images)               \
    {                                                                                              \
        struct det_tensor *in[] = {det_conv2d(e, images[0], images[1], NULL, NULL)};               \
        return __VA_ARGS__;                                                                        \
    }
AFTER_CONV(pad_after_conv, PAD(DET_PAD_REFLECT, 1, 2, 2, 0))
#define C "F.conv2d(x0, x1)"

/* clang-format off */
const struct op_case cases_window[] = {
    {"conv2d", "groups", {IN(2, 6, 5, 7), IN(4, 3, 3, 3), IN(4)},
     conv_groups, "F.conv2d(x0, x1, x2, padding=1, groups=2)"},
    {"conv2d", "depthwise", {IN(2, 6, 7, 6), IN(12, 1, 3, 3), IN(12)},
     conv_depthwise, "F.conv2d(x0, x1, x2, padding=1, stride=2, groups=6)"},
    {"conv2d", "large, depthwise", {IN(4, 32, 17, 15), IN(32, 1, 3, 3), IN(32)},
     conv_atrous, "F.conv2d(x0, x1, x2, padding=2, dilation=2, groups=32)"},
    {"conv2d", "dilated", {IN(2, 3, 9, 8), IN(5, 3, 3, 3), IN(5)},
     conv_dilated, "F.conv2d(x0, x1, x2, padding=2, dilation=2)"},
    {"conv2d", "directions", {IN(2, 3, 9, 8), IN(5, 3, 2, 3), IN(5)},
     conv_ways, "F.conv2d(x0, x1, x2, (2, 1), (0, 2), (1, 3))"},
    {"conv2d", "same", {IN(2, 3, 6, 7), IN(5, 3, 3, 4), IN(5)},
     conv_same, "F.conv2d(x0, x1, x2, 1, 'same', (1, 3))"},
    {"conv2d", "reflect", {IN(2, 3, 6, 7), IN(4, 3, 3, 3), IN(4)},
     conv_reflect, "F.conv2d(F.pad(x0, (2, 2, 2, 2), 'reflect'), x1, x2)"},
    {"conv2d", "replicate", {IN(2, 3, 6, 7), IN(4, 3, 3, 3), IN(4)},
     conv_replicate, "F.conv2d(F.pad(x0, (1, 1, 0, 0), 'replicate'), x1, x2, 2)"},
    {"conv2d", "circular", {IN(2, 3, 6, 7), IN(4, 3, 3, 2), IN(4)},
     conv_circular, "F.conv2d(F.pad(x0, (0, 1, 1, 1), 'circular'), x1, x2)"},
    {"conv2d", "signal", {IN(2, 3, 11), IN(4, 3, 3), IN(4)},
     conv1d, "F.conv1d(x0, x1, x2, 2, 1)"},
    {"conv2d", "signal in groups", {IN(2, 6, 11), IN(9, 2, 3), IN(9)},
     conv1d_groups, "F.conv1d(x0, x1, x2, groups=3, dilation=2)"},
    {"conv2d", "signal, same", {IN(2, 3, 11), IN(4, 3, 4), IN(4)},
     conv1d_same, "F.conv1d(F.pad(x0, (1, 2), 'reflect'), x1, x2)"},
    {"conv_transpose2d", "plain", {IN(2, 3, 4, 5), IN(3, 4, 3, 2)},
     back, "F.conv_transpose2d(x0, x1)"},
    {"conv_transpose2d", "stride", {IN(2, 3, 4, 5), IN(3, 4, 3, 3)},
     back_stride, "F.conv_transpose2d(x0, x1, None, 2, 1, 1)"},
    {"conv_transpose2d", "groups", {IN(2, 4, 4, 3), IN(4, 3, 3, 3)},
     back_groups, "F.conv_transpose2d(x0, x1, None, (3, 2), 0, (2, 0), 2, 2)"},
    {"conv_transpose2d", "signal", {IN(2, 3, 5), IN(3, 4, 4)},
     back1d, "F.conv_transpose1d(x0, x1, None, 3, 1, 1)"},
    {"conv_transpose2d", "more than the stride", {IN(2, 3, 4, 5), IN(3, 4, 3, 2)},
     back_far, "F.conv_transpose2d(x0, x1, None, 1, 0, 2, 1, 3)"},
    {"conv_transpose2d", "more than the stride, of what was cut off", {IN(2, 3, 4, 5), IN(3, 4, 3, 2)},
     back_far_cut, "F.conv_transpose2d(x0, x1, None, (2, 1), (1, 2), (3, 2), 1, 4)"},
    {"conv_transpose2d", "more than the stride, in groups", {IN(2, 4, 4, 3), IN(4, 3, 2, 3)},
     back_far_groups, "F.conv_transpose2d(x0, x1, None, 2, 0, (4, 3), 2, (5, 4))"},
    {"conv_transpose2d", "signal, more than the stride", {IN(2, 3, 5), IN(3, 4, 4)},
     back1d_far, "F.conv_transpose1d(x0, x1, None, 1, 2, 3, 1, 4)"},
    {"max_pool2d", "ceil", {IN(2, 3, 6, 8)}, max_ceil, "F.max_pool2d(x0, 3, 2, ceil_mode=True)"},
    {"max_pool2d", "directions", {IN(2, 3, 6, 8)},
     max_ways, "F.max_pool2d(x0, (2, 3), (2, 1), (1, 0))"},
    {"max_pool2d", "ceil, no window in the padding", {IN(2, 3, 6, 8)},
     max_ceil_pad, "F.max_pool2d(x0, 2, 3, 1, ceil_mode=True)"},
    {"max_pool2d", "ceil, larger than the image", {IN(2, 3, 2, 3)},
     max_ceil_small, "F.max_pool2d(x0, (3, 4), 2, ceil_mode=True)"},
    {"max_pool2d", "long", {IN(1, 2, 2, 50)}, max_long, "F.max_pool2d(x0, (1, 40), (1, 3))"},
    {"max_pool2d", "signal", {IN(2, 3, 10)}, max_signal, "F.max_pool1d(x0, 3, 2, 1)"},
    {"max_pool2d", "adaptive", {IN(2, 3, 7, 5)},
     adaptive_max, "F.adaptive_max_pool2d(x0, (3, None))"},
    {"max_pool2d", "adaptive signal", {IN(2, 3, 7)}, adaptive_max1, "F.adaptive_max_pool1d(x0, 3)"},
    {"max_pool2d", "windows three deep", {IN(2, 8, 7, 8)}, max_deep, "F.max_pool2d(x0, 5, 2, 2)"},
    {"max_pool2d", "padding as wide as a step", {IN(2, 8, 6, 7)},
     max_pad, "F.max_pool2d(x0, 4, 2, 2, ceil_mode=True)"},
    {"max_pool2d", "gaps, by packs", {IN(2, 8, 7, 8)}, max_gaps, "F.max_pool2d(x0, (2, 1), (3, 2))"},
    {"max_pool2d", "81 taps, by packs", {IN(1, 8, 9, 18)}, max_wide, "F.max_pool2d(x0, 9)"},
    {"max_pool2d", "adaptive, even", {IN(2, 8, 6, 4)},
     adaptive_max_even, "F.adaptive_max_pool2d(x0, (3, 2))"},
    {"avg_pool2d", "windows three deep", {IN(2, 8, 7, 8)},
     avg_deep, "F.avg_pool2d(x0, (5, 3), 2, 1)"},
    {"avg_pool2d", "padding as wide as a step", {IN(2, 8, 6, 7)},
     avg_pad, "F.avg_pool2d(x0, 4, 2, 2, ceil_mode=True)"},
    {"avg_pool2d", "gaps, by packs", {IN(2, 8, 7, 8)}, avg_gaps, "F.avg_pool2d(x0, 2, 3, 1)"},
    {"avg_pool2d", "adaptive, even", {IN(2, 8, 6, 4)},
     adaptive_avg_even, "F.adaptive_avg_pool2d(x0, (3, 2))"},
    {"avg_pool2d", "ceil", {IN(2, 3, 6, 8)},
     avg_ceil, "F.avg_pool2d(x0, 3, 2, 1, ceil_mode=True)"},
    {"avg_pool2d", "ceil, larger than the image", {IN(2, 3, 2, 1)},
     avg_ceil_small, "F.avg_pool2d(x0, (5, 4), 3, 1, ceil_mode=True)"},
    {"avg_pool2d", "without padding", {IN(2, 3, 6, 7)},
     avg_exclude, "F.avg_pool2d(x0, 3, 2, 1, count_include_pad=False)"},
    {"avg_pool2d", "ceil, without padding", {IN(2, 3, 7, 6)},
     avg_both, "F.avg_pool2d(x0, (3, 2), None, 1, ceil_mode=True, count_include_pad=False)"},
    {"avg_pool2d", "signal", {IN(2, 3, 10)}, avg_signal, "F.avg_pool1d(x0, 3, 3, 1)"},
    {"avg_pool2d", "adaptive", {IN(2, 3, 7, 9)},
     adaptive_avg, "F.adaptive_avg_pool2d(x0, (3, 4))"},
    {"avg_pool2d", "adaptive, more than there are", {IN(2, 3, 7, 5)},
     adaptive_wide, "F.adaptive_avg_pool2d(x0, (9, 2))"},
    {"avg_pool2d", "adaptive signal", {IN(2, 3, 7)}, adaptive_avg1, "F.adaptive_avg_pool1d(x0, 4)"},
    {"pad", "constant", {IN(2, 3, 4, 5)}, pad_constant, "F.pad(x0, (1, 2, 0, 3, 1, 0), value=0.5)"},
    {"pad", "one dimension", {IN(7)}, pad_last, "F.pad(x0, (2, 0), value=0.5)"},
    {"pad", "nothing", {IN(2, 0)}, pad_last, "F.pad(x0, (2, 0), value=0.5)"},
    {"pad", "reflect", {IN(2, 3, 4, 5)}, pad_reflect, "F.pad(x0, (2, 1, 1, 3), 'reflect')"},
    {"pad", "replicate", {IN(2, 3, 4, 3)}, pad_replicate, "F.pad(x0, (2, 4, 1, 0), 'replicate')"},
    {"pad", "circular", {IN(2, 3, 4, 5)}, pad_circular, "F.pad(x0, (1, 4, 2, 0), 'circular')"},
    {"pad", "after a convolution", {IN(2, 3, 5, 6), IN(4, 3, 2, 2)},
     pad_after_conv, "F.pad(" C ", (1, 2, 2, 0), 'reflect')"},
    {"interpolate", "nearest", {IN(2, 3, 5, 4)},
     resize_nearest, "F.interpolate(x0, (7, 3))"},
    {"interpolate", "twice", {IN(2, 3, 3, 4)}, resize_twice, "F.interpolate(x0, scale_factor=2)"},
    {"interpolate", "bilinear", {IN(2, 3, 5, 4)},
     resize_bilinear, "F.interpolate(x0, scale_factor=1.7, mode='bilinear')"},
    {"interpolate", "bilinear, smaller", {IN(2, 3, 7, 9)},
     resize_down, "F.interpolate(x0, (3, 4), mode='bilinear')"},
    {"interpolate", "corners", {IN(2, 3, 5, 4)},
     resize_corners, "F.interpolate(x0, (9, 1), mode='bilinear', align_corners=True)"},
    {"conv2d", "reflect, no images", {IN(0, 3, 6, 7), IN(4, 3, 3, 3), IN(4)},
     conv_reflect, "F.conv2d(F.pad(x0, (2, 2, 2, 2), 'reflect'), x1, x2)"},
    {"conv2d", "depthwise, no images", {IN(0, 6, 7, 6), IN(12, 1, 3, 3), IN(12)},
     conv_depthwise, "F.conv2d(x0, x1, x2, padding=1, stride=2, groups=6)"},
    {"conv2d", "no signals", {IN(0, 3, 11), IN(4, 3, 3), IN(4)},
     conv1d, "F.conv1d(x0, x1, x2, 2, 1)"},
    {"conv_transpose2d", "no images", {IN(0, 3, 4, 5), IN(3, 4, 3, 3)},
     back_stride, "F.conv_transpose2d(x0, x1, None, 2, 1, 1)"},
    {"conv_transpose2d", "more than the stride, no images", {IN(0, 3, 4, 5), IN(3, 4, 3, 2)},
     back_far, "F.conv_transpose2d(x0, x1, None, 1, 0, 2, 1, 3)"},
    {"max_pool2d", "no signals", {IN(0, 3, 10)}, max_signal, "F.max_pool1d(x0, 3, 2, 1)"},
    {"avg_pool2d", "adaptive, no images", {IN(0, 3, 7, 5)},
     adaptive_wide, "F.adaptive_avg_pool2d(x0, (9, 2))"},
    {"interpolate", "no images", {IN(0, 3, 5, 4)},
     resize_bilinear, "F.interpolate(x0, scale_factor=1.7, mode='bilinear')"},
    {0},
};
