/*
 * Modules: what `torch.nn` is in Python.
 *
 * A module owns its parameters, buffers and children. A model is a container with named children
 * and an ordinary C function that calls them:
 *
 *     net->root  = det_nn_module(e);
 *     net->conv1 = det_module_add(net->root, "conv1", det_nn_conv2d(e, 1, 32, 3, .padding = 1));
 *     net->fc    = det_module_add(net->root, "fc", det_nn_linear(e, 32 * 14 * 14, 10));
 *     ...
 *     x = det_relu(e, det_forward(net->conv1, x));
 *
 * or a det_nn_sequential(). Names and order are those of PyTorch's state_dict ("conv1.weight",
 * "bn1.running_mean", "bn1.num_batches_tracked"), so a checkpoint can be exchanged with it.
 * Constructors follow the sticky error of the engine (det/tensor.h): NULL on failure, and
 * det_module_add(parent, name, NULL) is NULL again.
 *
 * Initial values have PyTorch's distributions; the draws come from the engine's generator.
 */
#ifndef DET_NN_H
#define DET_NN_H

#include "det/functional.h"
#include "det/conv.h"
#include "det/tensor.h"

struct det_module;

/* y = module(x) for one-in one-out modules: layers, sequentials, and containers that were given a
 * forward function. DET_ESTATE for a container without one. */
struct det_tensor *det_forward(struct det_module *m, struct det_tensor *x);

/* ---- Layers. The part after the fixed arguments is any of the options' fields, by name. ---- */

/* weight (out, in / groups, kernel, kernel), bias (out). */
#define det_nn_conv2d(e, in_channels, out_channels, kernel, ...)                                   \
    det_nn_conv2d_create(e, in_channels, out_channels, kernel,                                     \
                         &(const struct det_conv2d_options){__VA_ARGS__})
struct det_module *det_nn_conv2d_create(struct det_engine *e, int64_t in_channels,
                                        int64_t out_channels, int kernel,
                                        const struct det_conv2d_options *options);

/* weight (out, in / groups, kernel), bias (out). */
#define det_nn_conv1d(e, in_channels, out_channels, kernel, ...)                                   \
    det_nn_conv1d_create(e, in_channels, out_channels, kernel,                                     \
                         &(const struct det_conv2d_options){__VA_ARGS__})
struct det_module *det_nn_conv1d_create(struct det_engine *e, int64_t in_channels,
                                        int64_t out_channels, int kernel,
                                        const struct det_conv2d_options *options);
/* weight (in, out / groups, kernel, kernel), bias (out); and of signals. */
#define det_nn_conv_transpose2d(e, in_channels, out_channels, kernel, ...)                         \
    det_nn_conv_transpose2d_create(e, in_channels, out_channels, kernel,                           \
                                   &(const struct det_conv2d_options){__VA_ARGS__})
struct det_module *det_nn_conv_transpose2d_create(struct det_engine *e, int64_t in_channels,
                                                  int64_t out_channels, int kernel,
                                                  const struct det_conv2d_options *options);
#define det_nn_conv_transpose1d(e, in_channels, out_channels, kernel, ...)                         \
    det_nn_conv_transpose1d_create(e, in_channels, out_channels, kernel,                           \
                                   &(const struct det_conv2d_options){__VA_ARGS__})
struct det_module *det_nn_conv_transpose1d_create(struct det_engine *e, int64_t in_channels,
                                                  int64_t out_channels, int kernel,
                                                  const struct det_conv2d_options *options);

struct det_linear_options {
    bool no_bias;
};
/* weight (out, in), bias (out). */
#define det_nn_linear(e, in_features, out_features, ...)                                           \
    det_nn_linear_create(e, in_features, out_features,                                             \
                         &(const struct det_linear_options){__VA_ARGS__})
struct det_module *det_nn_linear_create(struct det_engine *e, int64_t in_features,
                                        int64_t out_features,
                                        const struct det_linear_options *options);

struct det_batch_norm_options {
    double eps;      /* 0: 1e-5 */
    double momentum; /* 0: 0.1 */
    bool relu;       /* y = max(0, bn(x)), in one kernel */
    bool cumulative; /* momentum=None: the running values are plain means of all batches */
    bool no_affine;  /* affine=False: no weight and bias */
    bool no_track;   /* track_running_stats=False: no running values, the batch's own in eval too */
};
/* weight, bias, running_mean, running_var (C); num_batches_tracked, an i64 scalar. */
#define det_nn_batch_norm2d(e, channels, ...)                                                      \
    det_nn_batch_norm2d_create(e, channels, &(const struct det_batch_norm_options){__VA_ARGS__})
struct det_module *det_nn_batch_norm2d_create(struct det_engine *e, int64_t channels,
                                              const struct det_batch_norm_options *options);

/* Of (N, C) and (N, C, L). */
#define det_nn_batch_norm1d(e, channels, ...)                                                      \
    det_nn_batch_norm1d_create(e, channels, &(const struct det_batch_norm_options){__VA_ARGS__})
struct det_module *det_nn_batch_norm1d_create(struct det_engine *e, int64_t channels,
                                              const struct det_batch_norm_options *options);

struct det_module *det_nn_relu(struct det_engine *e);
struct det_module *det_nn_max_pool2d(struct det_engine *e, int kernel, int stride, int padding);
struct det_module *det_nn_avg_pool2d(struct det_engine *e, int kernel, int stride, int padding);
struct det_module *det_nn_global_avg_pool2d(struct det_engine *e);
struct det_module *det_nn_max_pool1d(struct det_engine *e, int kernel, int stride, int padding);
struct det_module *det_nn_avg_pool1d(struct det_engine *e, int kernel, int stride, int padding);
/* Every option, of images and signals: det_nn_max_pool(e, 3, .stride = 2, .ceil_mode = true). */
#define det_nn_max_pool(e, kernel_size, ...)                                                       \
    det_nn_max_pool_create(e, kernel_size, &(const struct det_pool_options){__VA_ARGS__})
struct det_module *det_nn_max_pool_create(struct det_engine *e, int kernel,
                                          const struct det_pool_options *options);
#define det_nn_avg_pool(e, kernel_size, ...)                                                       \
    det_nn_avg_pool_create(e, kernel_size, &(const struct det_pool_options){__VA_ARGS__})
struct det_module *det_nn_avg_pool_create(struct det_engine *e, int kernel,
                                          const struct det_pool_options *options);
/* Sizes of 0 are kept. */
struct det_module *det_nn_adaptive_avg_pool2d(struct det_engine *e, int64_t height, int64_t width);
struct det_module *det_nn_adaptive_max_pool2d(struct det_engine *e, int64_t height, int64_t width);
struct det_module *det_nn_adaptive_avg_pool1d(struct det_engine *e, int64_t length);
struct det_module *det_nn_adaptive_max_pool1d(struct det_engine *e, int64_t length);
/* ZeroPad2d, ReflectionPad2d, ... and their relatives of signals: n numbers as det_pad() takes
 * them, at most 6. */
struct det_module *det_nn_pad(struct det_engine *e, enum det_pad_mode mode, int n, const int *pads);
/* det_nn_upsample(e, .scale = 2, .mode = DET_BILINEAR) */
#define det_nn_upsample(e, ...)                                                                    \
    det_nn_upsample_create(e, &(const struct det_interpolate_options){__VA_ARGS__})
struct det_module *det_nn_upsample_create(struct det_engine *e,
                                          const struct det_interpolate_options *options);
/* Activations: the functions of det/functional.h. */
struct det_module *det_nn_tanh(struct det_engine *e);
struct det_module *det_nn_sigmoid(struct det_engine *e);
struct det_module *det_nn_log_sigmoid(struct det_engine *e);
struct det_module *det_nn_gelu(struct det_engine *e);
struct det_module *det_nn_gelu_tanh(struct det_engine *e);
struct det_module *det_nn_silu(struct det_engine *e);
struct det_module *det_nn_mish(struct det_engine *e);
struct det_module *det_nn_relu6(struct det_engine *e);
struct det_module *det_nn_hardswish(struct det_engine *e);
struct det_module *det_nn_hardsigmoid(struct det_engine *e);
struct det_module *det_nn_elu(struct det_engine *e, double alpha);
struct det_module *det_nn_leaky_relu(struct det_engine *e, double slope);
struct det_module *det_nn_hardtanh(struct det_engine *e, double lo, double hi);
struct det_module *det_nn_softplus(struct det_engine *e, double beta, double threshold);
/* weight (channels), each `slope` at first (PyTorch's defaults: 1 and 0.25). */
struct det_module *det_nn_prelu(struct det_engine *e, int64_t channels, double slope);
struct det_module *det_nn_identity(struct det_engine *e);
struct det_module *det_nn_dropout(struct det_engine *e, double p);
struct det_module *det_nn_flatten(struct det_engine *e); /* from dimension 1 on */
/* (N, x) -> (N, dims...); n at most DET_DIMS_MAX - 1, one of them may be -1. */
struct det_module *det_nn_unflatten(struct det_engine *e, int n, const int64_t *dims);
struct det_module *det_nn_softmax(struct det_engine *e); /* over the last dimension */
struct det_module *det_nn_log_softmax(struct det_engine *e);

/* Children "0", "1", ... applied in order; takes them. A ReLU after a convolution or a batch norm
 * is computed by that layer's kernel. */
#define det_nn_sequential(e, ...)                                                                  \
    det_nn_sequential_create(e, (struct det_module *[]){__VA_ARGS__},                              \
                             sizeof((struct det_module *[]){__VA_ARGS__}) /                        \
                                 sizeof(struct det_module *))
struct det_module *det_nn_sequential_create(struct det_engine *e, struct det_module **children,
                                            size_t n);

/* ---- Composition ---- */

/* An empty container. */
struct det_module *det_nn_module(struct det_engine *e);
/* Takes `child` and returns it. The name is copied: no dot, not empty, not used in `parent` yet. */
struct det_module *det_module_add(struct det_module *parent, const char *name,
                                  struct det_module *child);
/* The same under the next number, "0", "1", ...: ModuleList.append() of a det_nn_module(), and one
 * more layer of a det_nn_sequential(). */
struct det_module *det_module_append(struct det_module *parent, struct det_module *child);
/* Own parameters and buffers of a module written outside: device memory, the dtype and the values
 * of `value` (copied; it may be a host tensor). Returns the tensor, owned by m. */
struct det_tensor *det_module_add_param(struct det_module *m, const char *name,
                                        struct det_tensor *value);
struct det_tensor *det_module_add_buffer(struct det_module *m, const char *name,
                                         struct det_tensor *value);
/* Makes m's parameter `name` the same tensor as owner's `owner_name`, of the same shape: an output
 * layer that is the embedding. The state has both names, the parameters count it once, with one
 * gradient and one state in an optimizer. Before the optimizer is made. Returns the tensor. */
struct det_tensor *det_module_share_param(struct det_module *m, const char *name,
                                          struct det_module *owner, const char *owner_name);
/* Makes det_forward(m, x) call fn(m, x, arg). `arg` is borrowed for the module's life. */
void det_module_set_forward(struct det_module *m,
                            struct det_tensor *(*fn)(struct det_module *m, struct det_tensor *x,
                                                     void *arg),
                            void *arg);
/* Ends the module and all beneath it; not one that was added to a parent. NULL is allowed. */
void det_module_destroy(struct det_module *m);

struct det_engine *det_module_engine(const struct det_module *m);

/* Train or eval mode, for m and all beneath it. A new module is in train mode. */
void det_module_train(struct det_module *m, bool on);
bool det_module_training(const struct det_module *m);
/* Makes the floating parameters and buffers of m and of all beneath it `dtype`, in place, as
 * module.to(dtype) does: DET_F64 is module.double(), DET_F32 .float(), DET_BF16 .bfloat16().
 * Gradients are forgotten. Inputs must be of that dtype too: det_cast(). Before the first step of
 * an optimizer. 0, or the engine's error: DET_EINVAL where dtype is no floating one, DET_ENOMEM. */
int det_module_to(struct det_module *m, enum det_dtype dtype);

/* ---- Parameters and state ---- */

struct det_named_tensor {
    const char *name; /* dotted, from the module asked: "layer1.0.conv1.weight" */
    struct det_tensor *tensor;
};

/* Everything in state_dict order (each module's parameters, its buffers, then its children); only
 * the parameters; only the buffers. The arrays and names are borrowed until a child, parameter or
 * buffer is added anywhere beneath m, or m is destroyed. m NULL: NULL and *ret_n = 0. */
const struct det_named_tensor *det_module_state(struct det_module *m, size_t *ret_n);
const struct det_named_tensor *det_module_params(struct det_module *m, size_t *ret_n);
const struct det_named_tensor *det_module_buffers(struct det_module *m, size_t *ret_n);

/* The parameter or buffer under a dotted name, owned by m; NULL, and the engine's error, where
 * there is none. */
struct det_tensor *det_module_tensor(struct det_module *m, const char *name);

/* Copies values by name. With `strict` the names must be the same set; without, extra and missing
 * ones are left alone. A wrong shape or dtype is always an error. Checks everything first: on
 * failure (DET_EINVAL, naming the keys) nothing was changed. */
int det_module_load_state(struct det_module *m, const struct det_named_tensor *state, size_t n,
                          bool strict, struct det_err *err);

/* All gradients of m's parameters as ONE vector on the device, f64 where a parameter is, else f32,
 * in the order of the parameters, each padded to 16 elements with zeros; a parameter without a
 * gradient is zeros. What a data-parallel mean is taken over, in place: det_tensor_data() of it.
 * Owned by m; the same tensor at every call until a parameter is added. NULL (and the engine's
 * error) on failure. */
struct det_tensor *det_module_grads(struct det_module *m);
/* The greatest element of the gradients without its sign; NaN where one is NaN. */
double det_module_grads_max(struct det_module *m);
/* Multiplies the gradients. */
void det_module_scale_grads(struct det_module *m, double factor);
/* Forgets the gradients of m's parameters. */
void det_module_zero_grad(struct det_module *m);
/* Scales the gradients so that their joint 2-norm is at most max_norm; the norm before, a scalar of
 * the step's, or NULL. As torch.nn.utils.clip_grad_norm_: factor min(1, max_norm / (norm + 1e-6)).
 * A device is not waited for, but by det_item() of the norm. */
struct det_tensor *det_clip_grad_norm(struct det_module *m, double max_norm);
/* The same with the greatest element for the norm (norm_type=inf). */
struct det_tensor *det_clip_grad_norm_inf(struct det_module *m, double max_norm);
/* Clamps each element of the gradients to [-max, max]. */
void det_clip_grad_value(struct det_module *m, double max);

#endif
