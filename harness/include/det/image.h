/*
 * Steps on images, as torchvision.transforms has them, with its semantics and default parameters:
 *
 *     static const struct det_image_step train[] = {
 *         {DET_RANDOM_RESIZED_CROP, .size = 224},
 *         {.op = DET_RANDOM_HORIZONTAL_FLIP},
 *         {DET_NORMALIZE, .mean = DET_IMAGENET_MEAN, .std = DET_IMAGENET_STD},
 *         {0},
 *     };
 *
 * An image is 8-bit RGB while its shape and colours change; behind the last step it becomes f32
 * (3, height, width), x / 255 (ToTensor), then (x - mean) / std. Sizes are (height, width) of
 * pixels.
 *
 * Resizing is bilinear with antialiasing, in Pillow's fixed-point arithmetic: the pixels are those
 * that torchvision gets from Pillow. A crop that comes first is decoded alone, to the pixels that
 * the whole image would have had there.
 *
 * What is random is a function of (trial seed, epoch, record): neither workers nor a resume change
 * it.
 */
#ifndef DET_IMAGE_H
#define DET_IMAGE_H

#include "det/data.h"

enum det_image_op {
    DET_IMAGE_END, /* {0} ends the steps */
    /* .size: the shorter side becomes size, the other follows; or .height and .width. */
    DET_RESIZE,
    /* The middle of .size x .size, or .height x .width; zeros around an image that is smaller. */
    DET_CENTER_CROP,
    /* Any place of .size x .size, or .height x .width, after .padding zeros on every side. An
     * image that is smaller even so is DET_EINVAL. */
    DET_RANDOM_CROP,
    /* A place of .scale (0.08 to 1) of the area and .ratio (3/4 to 4/3) of width over height,
     * resized to .size x .size or .height x .width; the middle where ten draws do not fit. */
    DET_RANDOM_RESIZED_CROP,
    DET_RANDOM_HORIZONTAL_FLIP, /* with probability .p (0.5) */
    /* Factors from [max(0, 1 - v), 1 + v] of .brightness, .contrast and .saturation, in a random
     * order. There is no hue. */
    DET_COLOR_JITTER,
    DET_NORMALIZE, /* .mean and .std, of each colour; must be the last step */
    DET_IMAGE_OP_COUNT
};

struct det_image_step {
    enum det_image_op op;
    int size, height, width, padding;
    double p;                  /* 0: the default */
    double scale[2], ratio[2]; /* {0, 0}: the default */
    double brightness, contrast, saturation;
    double mean[3], std[3];
};

/* clang-format off */
#define DET_IMAGENET_MEAN {0.485, 0.456, 0.406}
#define DET_IMAGENET_STD  {0.229, 0.224, 0.225}
/* clang-format on */

/* ds with its field `image`, u8 (3, height, width) or (1, height, width), taken through the steps
 * to f32 (3, height, width); its other fields as they are. TAKES ds, also on failure; the steps are
 * copied. A grey image becomes three equal colours. */
struct det_dataset *det_dataset_images(struct det_dataset *ds, const char *image,
                                       const struct det_image_step *steps, struct det_err *err);

/* The classes of an image folder and CIFAR's files are in det/data_files.h. */

#endif
