/*
 * Tensors, the engine and the differentiable functions: what `torch` and `torch.nn.functional` are
 * in Python.
 *
 * A `struct det_engine` is one device with its kernels, the tape of gradients, the random generator
 * and ONE STICKY ERROR. Calls chain without checks:
 *
 *     x = det_relu(e, det_forward(net->conv1, x));
 *     loss = det_cross_entropy(e, det_forward(net->fc, det_flatten(e, x, 1)), labels);
 *
 * because a function that is given NULL returns NULL and does nothing, and the first failure is
 * kept in the engine with the function's name, the shapes and the remedy. Whoever runs the step
 * asks det_engine_error() once. In a trial that is the training loop; no model code needs to.
 *
 * Ownership. A tensor that a function returns belongs to the step: it dies at det_engine_step_end()
 * unless det_tensor_ref() was called on it. Parameters and buffers belong to their module. Host
 * tensors (det_host_tensor) belong to whoever made them.
 *
 * Shapes are PyTorch's: images are (N, C, H, W), convolution weights (out, in, kH, kW), linear
 * weights (out, in). Inside, activations may lie in another order (NHWC); det_tensor_read() and
 * det_tensor_data() never show that.
 *
 * Threads: an engine and its tensors belong to one thread. A host tensor may be made in another
 * thread and handed over.
 */
#ifndef DET_TENSOR_H
#define DET_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "det/err.h"

#define DET_DIMS_MAX 8

struct det_engine;
struct det_tensor;

/* Only floating dtypes have gradients. On a CPU, f16 is for storage (it is computed in f32), and
 * mixed precision means bf16. */
enum det_dtype {
    DET_F32, /* parameters, activations */
    DET_F64,
    DET_BF16,
    DET_F16,
    DET_I64, /* labels, counters */
    DET_I32,
    DET_I16,
    DET_I8,
    DET_U8,   /* images as they come from a file */
    DET_BOOL, /* one byte, 0 or 1: comparisons, masks */
    DET_DTYPE_COUNT
};

/* Bytes of one element. */
size_t det_dtype_size(enum det_dtype dtype);
/* "float32", "bfloat16", "int64", "bool": NumPy's and PyTorch's names. */
const char *det_dtype_name(enum det_dtype dtype);

/* ---- The engine ---- */

struct det_engine_options {
    const char *device; /* "cpu" (NULL means it), "ref" (plain C, for tests), "cuda", "cuda:1" */
    uint64_t seed;      /* key of the random generator */
    int threads;        /* 0: DET_THREADS_PER_SLOT, else OMP_NUM_THREADS, else one per core */
    size_t mem_limit_bytes; /* of tensors in use; 0: DET_MEM_LIMIT (bytes), else what there is */
};

/* DET_ENOENT where the device or its module is missing, DET_EDEVICE where it fails, DET_EINVAL. */
int det_engine_create(const struct det_engine_options *options, struct det_engine **ret,
                      struct det_err *err);
/* Ends every tensor of the step; modules, optimizers and gradient scalers must be destroyed before.
 * NULL is allowed. */
void det_engine_destroy(struct det_engine *e);

/* 0, or the code of the first failure since the last clear, its text in *err. */
int det_engine_error(const struct det_engine *e, struct det_err *err);
void det_engine_clear_error(struct det_engine *e);
/* Records a failure of the caller's own (kept only if it is the first); returns `code`. */
int det_engine_fail(struct det_engine *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Ends the step: the tape and all tensors of the step that nobody referenced. Errors stay. */
void det_engine_step_end(struct det_engine *e);
/* Waits until the device has done all that was asked; 0 or DET_EDEVICE (also kept as the error). */
int det_engine_sync(struct det_engine *e);
/* "cpu", "cuda:0"; borrowed, lives as long as the engine. */
const char *det_engine_device(const struct det_engine *e);
/* The threads that CPU kernels use (recorded with a trial: equal bits need equal threads). */
int det_engine_threads(const struct det_engine *e);
/* Bytes of tensor memory in use now and at most so far. */
size_t det_engine_mem_bytes(const struct det_engine *e);
size_t det_engine_mem_peak_bytes(const struct det_engine *e);

/* The random generator is counter-based: this is all of its state. A draw is a function of (seed,
 * which random call since the seeding, which element). */
struct det_rng_state {
    uint64_t seed;
    uint64_t calls; /* random calls made so far */
};
struct det_rng_state det_engine_rng_state(const struct det_engine *e);
void det_engine_set_rng_state(struct det_engine *e, struct det_rng_state state);

/* Nothing between the two is recorded for gradients; calls nest. */
void det_no_grad_begin(struct det_engine *e);
void det_no_grad_end(struct det_engine *e);
bool det_grad_enabled(const struct det_engine *e);

/* Mixed precision (torch.autocast) for the operations between the two; calls nest. Matrix products,
 * convolutions and attention take their inputs in `dtype` (DET_BF16 or DET_F16; on a CPU both mean
 * bf16; DET_F32 switches it off inside), an additive mask too, which is rounded by it; norms,
 * softmax, losses and reductions in f32, the rest in what they are given, the wider of two; a batch
 * norm keeps its input's dtype, with f32 sums and parameters. Weights are cast once; their
 * gradients stay f32. f64 tensors stay as they are. Do the backward pass and the optimizer's step
 * outside. 0 or the engine's error: DET_EUNIMPL where the device has none. */
int det_autocast_begin(struct det_engine *e, enum det_dtype dtype);
void det_autocast_end(struct det_engine *e);
/* The dtype that is on now; DET_F32 where none is. */
enum det_dtype det_autocast_dtype(const struct det_engine *e);

/* ---- Tensors ---- */

/* A tensor in ordinary memory, zeros, of no engine: batches, checkpoints. The caller owns one
 * reference. NULL (text in *err) where a dimension is negative or the memory is not there. ndim 0
 * is a scalar. Every function below takes it where it takes a tensor; it is moved to the device
 * then. */
struct det_tensor *det_host_tensor(enum det_dtype dtype, int ndim, const int64_t *dims,
                                   struct det_err *err);
/* The same over the caller's memory, C order, which must outlive the tensor; nothing is copied. */
struct det_tensor *det_host_tensor_view(enum det_dtype dtype, int ndim, const int64_t *dims,
                                        void *data, struct det_err *err);

/* On the engine's device; they belong to the step. `dims` is copied. */
struct det_tensor *det_zeros(struct det_engine *e, enum det_dtype dtype, int ndim,
                             const int64_t *dims);
struct det_tensor *det_full(struct det_engine *e, enum det_dtype dtype, int ndim,
                            const int64_t *dims, double value);
/* Copies `host` (C order) to the device. */
struct det_tensor *det_from_host(struct det_engine *e, enum det_dtype dtype, int ndim,
                                 const int64_t *dims, const void *host);
/* x itself where it lies on the device already (or the device uses ordinary memory), else a copy.
 */
struct det_tensor *det_to_device(struct det_engine *e, struct det_tensor *x);

/* One more reference; returns t. NULL is allowed in both. */
struct det_tensor *det_tensor_ref(struct det_tensor *t);
void det_tensor_unref(struct det_tensor *t);

enum det_dtype det_tensor_dtype(const struct det_tensor *t);
int det_tensor_ndim(const struct det_tensor *t);
/* Borrowed, det_tensor_ndim() long. */
const int64_t *det_tensor_dims(const struct det_tensor *t);
/* dims[i]; a negative i counts from the end; 0 where t is NULL or i is out of range. */
int64_t det_tensor_dim(const struct det_tensor *t, int i);
size_t det_tensor_numel(const struct det_tensor *t);
size_t det_tensor_bytes(const struct det_tensor *t);
/* True where the bytes are in ordinary memory. */
bool det_tensor_is_host(const struct det_tensor *t);
/* The bytes in C order: host memory, or the device's address for a tensor on a device. NULL where
 * they lie in another order (activations): use det_tensor_read(). Valid while t is. Work of an
 * asynchronous device may still be running: det_engine_sync() first. */
void *det_tensor_data(struct det_tensor *t);
/* Copies all elements to or from `host` in C order; `bytes` must be det_tensor_bytes(t), else
 * DET_EINVAL. Reading waits for the device; writing does not, and `host` is the caller's again. */
int det_tensor_read(const struct det_tensor *t, void *host, size_t bytes, struct det_err *err);
int det_tensor_write(struct det_tensor *t, const void *host, size_t bytes, struct det_err *err);
/* The one element of a tensor as a number; NaN (and the error) where t has several, or is NULL. */
double det_item(struct det_engine *e, const struct det_tensor *t);

/* ---- Gradients ---- */

/* Marks a leaf of a floating dtype, as modules do with their parameters. Returns t. */
struct det_tensor *det_requires_grad(struct det_engine *e, struct det_tensor *t);
/* The accumulated gradient of a leaf; NULL before the first backward, and with an error while it is
 * averaged over ranks. Borrowed. */
struct det_tensor *det_tensor_grad(struct det_tensor *t);
/* Adds d loss / d leaf to the gradient of every leaf; loss has one element. A second call for the
 * same graph is DET_ESTATE. 0 or the engine's error. */
int det_backward(struct det_engine *e, struct det_tensor *loss);
struct det_backward_options {
    struct det_tensor *gradient; /* d result / d loss, of loss's shape; then loss may be of any */
    bool retain_graph;           /* the same graph may be gone through once more */
};
int det_backward_opt(struct det_engine *e, struct det_tensor *loss,
                     const struct det_backward_options *options);

/* ---- Functions (torch.nn.functional) ---- */
/* All take borrowed tensors and return one that belongs to the step. */

/* Two operands are broadcast as PyTorch does: counted from the last, each dimension is equal, or 1
 * (or not there) in one of them and repeated. Both have one dtype (else DET_EINVAL: use
 * det_cast()); a tensor without dimensions takes the other's, where both are floating or both are
 * whole. */
struct det_tensor *det_add(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_sub(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_mul(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_div(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
/* factor * x, and factor * x + offset in one pass: an image is normalised. Of whole numbers, whole
 * ones (else DET_EINVAL: use det_cast()). */
struct det_tensor *det_scale(struct det_engine *e, struct det_tensor *x, double factor);
struct det_tensor *det_affine(struct det_engine *e, struct det_tensor *x, double factor,
                              double offset);
/* The sum and the mean of all elements, a scalar; summed in a fixed order. A sum of whole numbers
 * or bool is i64. */
struct det_tensor *det_sum(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_mean(struct det_engine *e, struct det_tensor *x);
/* To a narrower floating dtype: rounds to nearest even. To a whole one: cuts the fraction off; out
 * of range becomes the nearest end. To bool: not 0. x itself where it has the dtype. */
struct det_tensor *det_cast(struct det_engine *e, struct det_tensor *x, enum det_dtype dtype);

/* Views: the same elements under another shape; nothing is copied, gradients go back through them.
 * A negative dimension counts from the end. An operation that needs its input dense copies it then
 * (det_contiguous()). */
/* One of the dims may be -1. Copies where x is not dense. */
struct det_tensor *det_reshape(struct det_engine *e, struct det_tensor *x, int ndim,
                               const int64_t *dims);
/* Joins the dimensions from start_dim on into one: det_flatten(e, x, 1) -> (N, C*H*W). */
struct det_tensor *det_flatten(struct det_engine *e, struct det_tensor *x, int start_dim);
/* The same elements without a path for gradients. */
struct det_tensor *det_detach(struct det_engine *e, struct det_tensor *x);
/* Dimension i of the result is dimension order[i] of x; `order` has x's number of dimensions. */
struct det_tensor *det_permute(struct det_engine *e, struct det_tensor *x, const int *order);
struct det_tensor *det_transpose(struct det_engine *e, struct det_tensor *x, int dim0, int dim1);
/* `length` elements of dimension dim from `start` on. */
struct det_tensor *det_narrow(struct det_engine *e, struct det_tensor *x, int dim, int64_t start,
                              int64_t length);
/* x[start:end:step] of dimension dim; a negative start or end counts from the end, end 0 is the
 * end, step 0 is 1. */
struct det_slice {
    int64_t start, end, step;
};
struct det_tensor *det_slice(struct det_engine *e, struct det_tensor *x, int dim,
                             const struct det_slice *slice);
/* One element of dimension dim, which is gone then. */
struct det_tensor *det_select(struct det_engine *e, struct det_tensor *x, int dim, int64_t index);
/* Repeats dimensions of 1, and puts new ones before; -1 keeps a dimension. */
struct det_tensor *det_expand(struct det_engine *e, struct det_tensor *x, int ndim,
                              const int64_t *dims);
/* A dimension of 1 before dimension dim (-1: at the end); and without it. */
struct det_tensor *det_unsqueeze(struct det_engine *e, struct det_tensor *x, int dim);
struct det_tensor *det_squeeze(struct det_engine *e, struct det_tensor *x, int dim);
/* x itself where it is dense in C order, else a copy that is. */
struct det_tensor *det_contiguous(struct det_engine *e, struct det_tensor *x);
/* A copy, which what changes x later (a step of an optimizer) leaves alone; gradients go back
 * through it. */
struct det_tensor *det_clone(struct det_engine *e, struct det_tensor *x);

struct det_tensor *det_relu(struct det_engine *e, struct det_tensor *x);
/* x (..., in), weight (out, in), bias (out) or NULL for none -> (..., out). */
struct det_tensor *det_linear(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias);

/* What lies outside of a padded tensor. */
enum det_pad_mode {
    DET_PAD_ZEROS,     /* a constant */
    DET_PAD_REFLECT,   /* the inside mirrored at the first and last element */
    DET_PAD_REPLICATE, /* the first and the last element */
    DET_PAD_CIRCULAR,  /* the other end */
};

/* 0 stands for PyTorch's default: stride 1, padding 0, dilation 1, groups 1. A number is used for
 * both directions, unless the pair (rows, columns) after it has one that is not 0. */
struct det_conv2d_options {
    int stride, padding, dilation, groups;
    bool no_bias; /* of the module; the function takes bias NULL */
    bool relu;    /* y = max(0, conv(x)), in one kernel */
    bool same;    /* padding='same': y is as large as x; stride 1 */
    enum det_pad_mode padding_mode;
    int stride_hw[2], padding_hw[2], dilation_hw[2];
    int kernel_hw[2];                         /* of the module, instead of its argument */
    int output_padding, output_padding_hw[2]; /* of transposed convolutions */
};
/* x (N, in, H, W), weight (out, in / groups, kH, kW), bias (out) or NULL. */
struct det_tensor *det_conv2d(struct det_engine *e, struct det_tensor *x, struct det_tensor *weight,
                              struct det_tensor *bias, const struct det_conv2d_options *options);

/* stride 0 means kernel. The windows of padding hold -inf (max) or count as zeros (avg). More kinds
 * of pooling are in det/conv.h. */
struct det_tensor *det_max_pool2d(struct det_engine *e, struct det_tensor *x, int kernel,
                                  int stride, int padding);
struct det_tensor *det_avg_pool2d(struct det_engine *e, struct det_tensor *x, int kernel,
                                  int stride, int padding);
/* (N, C, H, W) -> (N, C, 1, 1), the mean of each plane. */
struct det_tensor *det_global_avg_pool2d(struct det_engine *e, struct det_tensor *x);

/* Zeroes each element with probability p and scales the others by 1/(1-p); x itself unless
 * `training`. */
struct det_tensor *det_dropout(struct det_engine *e, struct det_tensor *x, double p, bool training);

/* Over the last dimension; floating. */
struct det_tensor *det_log_softmax(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_softmax(struct det_engine *e, struct det_tensor *x);
/* Losses: det/functional.h. */

/* The index of the greatest element along the last dimension, i64; the first one of equals. */
struct det_tensor *det_argmax(struct det_engine *e, struct det_tensor *x);
/* How many elements are equal; an f32 scalar (exact to 2^24). */
struct det_tensor *det_eq_count(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
/* The share of rows of x (N, C) whose greatest element is at target (N); an f32 scalar in 0..1. */
struct det_tensor *det_accuracy(struct det_engine *e, struct det_tensor *x,
                                struct det_tensor *target);

#endif
