/*
 * Models of images: what `torchvision.models` is in Python.
 *
 * Names, shapes and order of the state are torchvision's ("layer1.0.conv1.weight",
 * "layer2.0.downsample.1.running_var", "fc.bias"), so its state dictionaries load here and ours
 * there.
 */
#ifndef DET_VISION_H
#define DET_VISION_H

#include "det/nn.h"

struct det_resnet_options {
    int64_t classes;   /* 0: 1000 */
    int64_t channels;  /* of the images; 0: 3 */
    bool small_images; /* 32x32: a 3x3 stem without stride and pooling (He et al. 2015, 4.2) */
    bool zero_init_residual; /* the last batch norm of each block starts at 0 (Goyal et al. 2017) */
};

/*
 * A residual network (He et al. 2015; the stride of a bottleneck is in its 3x3 convolution, as in
 * torchvision): depth 18 or 34 of basic blocks, 50, 101 or 152 of bottlenecks. DET_EINVAL for
 * another depth. det_forward() takes (N, channels, H, W) and gives logits (N, classes).
 *
 *     struct det_module *net = det_nn_resnet(e, 18, .classes = 10, .small_images = true);
 *
 * Initial values: convolutions kaiming_normal (fan_out, relu), the rest as the layers have them.
 */
#define det_nn_resnet(e, depth, ...)                                                               \
    det_nn_resnet_create(e, depth, &(const struct det_resnet_options){__VA_ARGS__})
struct det_module *det_nn_resnet_create(struct det_engine *e, int depth,
                                        const struct det_resnet_options *options);

#endif
