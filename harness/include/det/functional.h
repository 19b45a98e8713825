/*
 * Functions on tensors beyond det/tensor.h: what torch.nn.functional and the functions of `torch`
 * are in Python. All take borrowed tensors and return one that belongs to the step; on failure
 * NULL, with the engine's error set. A negative `dim` counts from the end.
 *
 * Where a function has options, they are the fields of a struct, written by name after the fixed
 * arguments: det_cross_entropy(e, x, target, .label_smoothing = 0.1).
 */
#ifndef DET_FUNCTIONAL_H
#define DET_FUNCTIONAL_H

#include "det/tensor.h"

/* ---- Element-wise; tensors of a floating dtype unless said otherwise ---- */

struct det_tensor *det_neg(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_abs(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_exp(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_log(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_sqrt(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_rsqrt(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_reciprocal(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_sin(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_cos(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_tanh(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_erf(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_sigmoid(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_log_sigmoid(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_gelu(struct det_engine *e, struct det_tensor *x);      /* by erf */
struct det_tensor *det_gelu_tanh(struct det_engine *e, struct det_tensor *x); /* approximate */
struct det_tensor *det_silu(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_mish(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_relu6(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_hardswish(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_hardsigmoid(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_floor(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_ceil(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_round(struct det_engine *e, struct det_tensor *x); /* ties to even */
struct det_tensor *det_sign(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_pow(struct det_engine *e, struct det_tensor *x, double exponent);
struct det_tensor *det_clamp(struct det_engine *e, struct det_tensor *x, double lo, double hi);
struct det_tensor *det_hardtanh(struct det_engine *e, struct det_tensor *x, double lo, double hi);
struct det_tensor *det_elu(struct det_engine *e, struct det_tensor *x, double alpha);
struct det_tensor *det_leaky_relu(struct det_engine *e, struct det_tensor *x, double slope);
/* log(1 + exp(beta * x)) / beta; x itself where beta * x > threshold (PyTorch's defaults: 1, 20).
 */
struct det_tensor *det_softplus(struct det_engine *e, struct det_tensor *x, double beta,
                                double threshold);

/* Two operands as in det_add(). `slope` of prelu is fitted by broadcasting: for images reshape it
 * to (C, 1, 1), as the module does. maximum and minimum take whole numbers too. */
struct det_tensor *det_pow_tensor(struct det_engine *e, struct det_tensor *x, struct det_tensor *y);
struct det_tensor *det_prelu(struct det_engine *e, struct det_tensor *x, struct det_tensor *slope);
struct det_tensor *det_maximum(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_minimum(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);

/* bool tensors of any two operands of one dtype; the logical ones ask "not 0". */
struct det_tensor *det_eq(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_ne(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_lt(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_le(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_gt(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_ge(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_logical_and(struct det_engine *e, struct det_tensor *a,
                                   struct det_tensor *b);
struct det_tensor *det_logical_or(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);
struct det_tensor *det_logical_xor(struct det_engine *e, struct det_tensor *a,
                                   struct det_tensor *b);
struct det_tensor *det_logical_not(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_isnan(struct det_engine *e, struct det_tensor *x);
/* cond (bool) ? a : b, all three broadcast; a and b of one dtype, any. */
struct det_tensor *det_where(struct det_engine *e, struct det_tensor *cond, struct det_tensor *a,
                             struct det_tensor *b);

/* ---- New tensors ---- */

/* A number as a tensor without dimensions: det_gt(e, x, det_scalar(e, DET_F32, 0.5)). */
struct det_tensor *det_scalar(struct det_engine *e, enum det_dtype dtype, double value);
/* With the shape and dtype of x. */
struct det_tensor *det_full_like(struct det_engine *e, struct det_tensor *x, double value);
struct det_tensor *det_zeros_like(struct det_engine *e, struct det_tensor *x);
struct det_tensor *det_ones_like(struct det_engine *e, struct det_tensor *x);
/* start, start + step, ... below end (above, for a negative step); step is not 0. */
struct det_tensor *det_arange(struct det_engine *e, enum det_dtype dtype, double start, double end,
                              double step);
/* n numbers from `first` to `last`, f32. */
struct det_tensor *det_linspace(struct det_engine *e, double first, double last, int64_t n);
/* f32, drawn from the engine's generator: uniform in [0, 1), and standard normal (Box-Muller over
 * its uniforms). A draw has 24 bits, so other dtypes are det_cast()'s: wider ones have no more
 * bits, and in bf16 and f16 a uniform one may round to 1. */
struct det_tensor *det_rand(struct det_engine *e, int ndim, const int64_t *dims);
struct det_tensor *det_randn(struct det_engine *e, int ndim, const int64_t *dims);

/* ---- Reductions ---- */

/* Dimensions: n of them, each once; n = 0 means all. `keep`: 1 stays in the place of each. */
struct det_dims {
    bool keep;
    int n;
    int dims[DET_DIMS_MAX];
};
/* det_sum_over(e, x, det_over(true, -1)): over the last dimension, which stays as 1. */
#define det_over(keep_dims, ...)                                                                   \
    (&(const struct det_dims){keep_dims, sizeof((int[]){__VA_ARGS__}) / sizeof(int), {__VA_ARGS__}})

/* Of every dtype. Floating ones stay what they are, summed in double in a fixed order; sums and
 * products of whole ones and bool are i64, modulo 2^64, as PyTorch's; the mean and what is made of
 * it are floating only. The variance divides by n - correction: 1 is PyTorch's default; the norm is
 * (sum |x|^p)^(1/p). */
struct det_tensor *det_sum_over(struct det_engine *e, struct det_tensor *x,
                                const struct det_dims *over);
struct det_tensor *det_mean_over(struct det_engine *e, struct det_tensor *x,
                                 const struct det_dims *over);
struct det_tensor *det_var_over(struct det_engine *e, struct det_tensor *x, double correction,
                                const struct det_dims *over);
struct det_tensor *det_std_over(struct det_engine *e, struct det_tensor *x, double correction,
                                const struct det_dims *over);
struct det_tensor *det_norm_over(struct det_engine *e, struct det_tensor *x, double p,
                                 const struct det_dims *over);
/* Over one dimension. *ret_index (NULL: not wanted) is the i64 place of the value, the first of
 * equals; the gradient goes there. */
struct det_tensor *det_max_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep,
                                struct det_tensor **ret_index);
struct det_tensor *det_min_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep,
                                struct det_tensor **ret_index);
struct det_tensor *det_argmax_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep);
struct det_tensor *det_argmin_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep);
struct det_tensor *det_prod_over(struct det_engine *e, struct det_tensor *x, int dim, bool keep);
struct det_tensor *det_logsumexp(struct det_engine *e, struct det_tensor *x, int dim, bool keep);
struct det_tensor *det_cumsum(struct det_engine *e, struct det_tensor *x, int dim);
/* Whether any or all elements are not 0: bool. */
struct det_tensor *det_any_over(struct det_engine *e, struct det_tensor *x,
                                const struct det_dims *over);
struct det_tensor *det_all_over(struct det_engine *e, struct det_tensor *x,
                                const struct det_dims *over);
/* In order along dim; equals stay in theirs, NaN counts as the greatest. *ret_index: where each
 * came from. */
struct det_tensor *det_sort(struct det_engine *e, struct det_tensor *x, int dim, bool descending,
                            struct det_tensor **ret_index);
/* The k greatest (or smallest) along dim, in order. */
struct det_tensor *det_topk(struct det_engine *e, struct det_tensor *x, int64_t k, int dim,
                            bool smallest, struct det_tensor **ret_index);

/* Along any dimension; det_softmax() and det_log_softmax() are those of the last. */
struct det_tensor *det_softmax_over(struct det_engine *e, struct det_tensor *x, int dim);
struct det_tensor *det_log_softmax_over(struct det_engine *e, struct det_tensor *x, int dim);

/* ---- Joining and marking ---- */

/* n tensors (at most 512) one after the other along dim; along a new dimension dim. */
struct det_tensor *det_cat(struct det_engine *e, struct det_tensor *const *xs, int n, int dim);
struct det_tensor *det_stack(struct det_engine *e, struct det_tensor *const *xs, int n, int dim);
/* `value` where mask (bool, broadcast) is true, else x. */
struct det_tensor *det_masked_fill(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *mask, double value);
/* i64 classes of any shape -> i64 (shape, classes) of 0 and 1. */
struct det_tensor *det_one_hot(struct det_engine *e, struct det_tensor *x, int64_t classes);
/* The last two dimensions' elements (i, j) with j - i <= diagonal (tril) or >= (triu), else 0. */
struct det_tensor *det_tril(struct det_engine *e, struct det_tensor *x, int64_t diagonal);
struct det_tensor *det_triu(struct det_engine *e, struct det_tensor *x, int64_t diagonal);

/* ---- Matrix products ---- */

/* torch.matmul: the last two dimensions are matrices, those before them batches, broadcast; a
 * vector is a row on the left and a column on the right, and its dimension is dropped again. */
struct det_tensor *det_matmul(struct det_engine *e, struct det_tensor *a, struct det_tensor *b);

/* ---- Indexing: `index` is i64, each element in 0..size of dim - 1, else DET_EINVAL ---- */

/* x at the positions `index` (of any shape, taken flat) of dimension dim. */
struct det_tensor *det_index_select(struct det_engine *e, struct det_tensor *x, int dim,
                                    struct det_tensor *index);
/* y[i][j] = x[index[i][j]][j] for dim 0, and so on. `index` has the dimensions of x but in dim. */
struct det_tensor *det_gather(struct det_engine *e, struct det_tensor *x, int dim,
                              struct det_tensor *index);
/* x with src[i][j] added at [index[i][j]][j] for dim 0, and so on, in the order of src. `src` has
 * the shape of `index`, which has the dimensions of x but in dim, and the dtype of x, any. */
struct det_tensor *det_scatter_add(struct det_engine *e, struct det_tensor *x, int dim,
                                   struct det_tensor *index, struct det_tensor *src);

struct det_embedding_options {
    bool padding;        /* padding_idx counts */
    int64_t padding_idx; /* its row gets no gradient; below 0: from the end */
};
/* The rows `index` (any shape) of weight (rows, width) -> (shape of index, width). */
#define det_embedding(e, weight, index, ...)                                                       \
    det_embedding_opt(e, weight, index, &(const struct det_embedding_options){__VA_ARGS__})
struct det_tensor *det_embedding_opt(struct det_engine *e, struct det_tensor *weight,
                                     struct det_tensor *index,
                                     const struct det_embedding_options *options);

/* ---- Norms ---- */

/* Over the last `dims` dimensions together; weight and bias have as many elements, or are NULL.
 * Layer norm: Ba et al. 2016; eps 0 means 1e-5. */
struct det_tensor *det_layer_norm(struct det_engine *e, struct det_tensor *x, int dims,
                                  struct det_tensor *weight, struct det_tensor *bias, double eps);
/* x / sqrt(mean(x^2) + eps) * weight (Zhang & Sennrich 2019); eps 0 means 1e-6. */
struct det_tensor *det_rms_norm(struct det_engine *e, struct det_tensor *x, int dims,
                                struct det_tensor *weight, double eps);

/* (N, C, ...): over each of `groups` groups of channels (Wu & He 2018); weight and bias (C) or
 * NULL; eps 0 means 1e-5. */
struct det_tensor *det_group_norm(struct det_engine *e, struct det_tensor *x, int64_t groups,
                                  struct det_tensor *weight, struct det_tensor *bias, double eps);

/* ---- Attention ---- */

struct det_attention_options {
    struct det_tensor *mask; /* (time, keys), or (batch, heads, time, keys), broadcast: added to
                                the scores (of their dtype, to which autocast rounds it), or bool,
                                false hides. Of padded keys (key_padding_mask): bool
                                (batch, 1, 1, keys). NULL: none */
    bool causal;             /* position t sees the keys 0..t */
    double dropout;          /* of the weights; pass 0 outside of training */
    double scale;            /* of the scores; 0: 1 / sqrt(width) */
};
/* softmax(scale q k^T + mask) v (Vaswani et al. 2017). q (batch, heads, time, width), k and v
 * (batch, heads, keys, width); or without batch, or without batch and heads. The scores are
 * computed in blocks, forward and backward: memory grows with time, not with its square. */
#define det_scaled_dot_product_attention(e, q, k, v, ...)                                          \
    det_attention_opt(e, q, k, v, &(const struct det_attention_options){__VA_ARGS__})
struct det_tensor *det_attention_opt(struct det_engine *e, struct det_tensor *q,
                                     struct det_tensor *k, struct det_tensor *v,
                                     const struct det_attention_options *options);
/* The same of one tensor x (batch, time, 3 * width) that holds query, key and value of all heads
 * side by side, as one linear layer makes them -> (batch, time, width). Nothing is copied. */
#define det_packed_attention(e, x, heads, ...)                                                     \
    det_packed_attention_opt(e, x, heads, &(const struct det_attention_options){__VA_ARGS__})
struct det_tensor *det_packed_attention_opt(struct det_engine *e, struct det_tensor *x,
                                            int64_t heads,
                                            const struct det_attention_options *options);

struct det_rotary_options {
    double base;      /* 0: 10000 */
    int64_t position; /* of the first */
    bool halves;      /* pairs i and i + width / 2, as in GPT-NeoX and Llama; else 2i and 2i + 1 */
};
/* Rotary position embedding (Su et al. 2021) of queries or keys (.., time, width). */
#define det_rotary(e, x, ...) det_rotary_opt(e, x, &(const struct det_rotary_options){__VA_ARGS__})
struct det_tensor *det_rotary_opt(struct det_engine *e, struct det_tensor *x,
                                  const struct det_rotary_options *options);

/* ---- Losses ---- */

/* What becomes of the losses of a batch. */
enum det_reduction {
    DET_REDUCE_MEAN, /* over what counts: by the weights of the classes that are there */
    DET_REDUCE_SUM,
    DET_REDUCE_NONE, /* one loss for each */
};

struct det_cross_entropy_options {
    struct det_tensor *weight; /* of each class; NULL: 1 */
    bool ignore;               /* ignore_index counts; -100 is always ignored, as in PyTorch */
    int64_t ignore_index;      /* targets of this class count nothing */
    enum det_reduction reduction;
    double label_smoothing; /* 0..1 (Szegedy et al. 2016) */
};
/* x (N, C) logits, target (N) i64 classes in 0..C-1, the softmax and the loss in one pass; or x
 * (N, C, ...) and target (N, ...), each place a row. A class out of range is DET_EINVAL, on a GPU
 * at the next det_item() or det_engine_sync(). */
#define det_cross_entropy(e, x, target, ...)                                                       \
    det_cross_entropy_opt(e, x, target, &(const struct det_cross_entropy_options){__VA_ARGS__})
struct det_tensor *det_cross_entropy_opt(struct det_engine *e, struct det_tensor *x,
                                         struct det_tensor *target,
                                         const struct det_cross_entropy_options *options);
/* The same of log-probabilities; label_smoothing must be 0. */
#define det_nll_loss(e, x, target, ...)                                                            \
    det_nll_loss_opt(e, x, target, &(const struct det_cross_entropy_options){__VA_ARGS__})
struct det_tensor *det_nll_loss_opt(struct det_engine *e, struct det_tensor *x,
                                    struct det_tensor *target,
                                    const struct det_cross_entropy_options *options);

/* Losses of single elements: x and target of one shape. Gradients flow to targets in the first
 * four.
 */
struct det_loss_options {
    enum det_reduction reduction;
};
#define det_mse_loss(e, x, target, ...)                                                            \
    det_mse_loss_opt(e, x, target, &(const struct det_loss_options){__VA_ARGS__})
struct det_tensor *det_mse_loss_opt(struct det_engine *e, struct det_tensor *x,
                                    struct det_tensor *target,
                                    const struct det_loss_options *options);
#define det_l1_loss(e, x, target, ...)                                                             \
    det_l1_loss_opt(e, x, target, &(const struct det_loss_options){__VA_ARGS__})
struct det_tensor *det_l1_loss_opt(struct det_engine *e, struct det_tensor *x,
                                   struct det_tensor *target,
                                   const struct det_loss_options *options);

struct det_smooth_l1_options {
    enum det_reduction reduction;
    double beta; /* 0: 1 */
};
/* d^2 / (2 beta) below beta, else |d| - beta / 2. */
#define det_smooth_l1_loss(e, x, target, ...)                                                      \
    det_smooth_l1_loss_opt(e, x, target, &(const struct det_smooth_l1_options){__VA_ARGS__})
struct det_tensor *det_smooth_l1_loss_opt(struct det_engine *e, struct det_tensor *x,
                                          struct det_tensor *target,
                                          const struct det_smooth_l1_options *options);

struct det_huber_options {
    enum det_reduction reduction;
    double delta; /* 0: 1 */
};
/* d^2 / 2 up to delta, else delta (|d| - delta / 2) (Huber 1964). */
#define det_huber_loss(e, x, target, ...)                                                          \
    det_huber_loss_opt(e, x, target, &(const struct det_huber_options){__VA_ARGS__})
struct det_tensor *det_huber_loss_opt(struct det_engine *e, struct det_tensor *x,
                                      struct det_tensor *target,
                                      const struct det_huber_options *options);

struct det_bce_options {
    enum det_reduction reduction;
    struct det_tensor *weight;     /* of each loss, broadcast; NULL: 1 */
    struct det_tensor *pos_weight; /* of positive targets, broadcast; of logits only */
};
/* x are probabilities; each logarithm counts as at least -100. */
#define det_bce_loss(e, x, target, ...)                                                            \
    det_bce_loss_opt(e, x, target, &(const struct det_bce_options){__VA_ARGS__})
struct det_tensor *det_bce_loss_opt(struct det_engine *e, struct det_tensor *x,
                                    struct det_tensor *target,
                                    const struct det_bce_options *options);
#define det_bce_with_logits_loss(e, x, target, ...)                                                \
    det_bce_with_logits_loss_opt(e, x, target, &(const struct det_bce_options){__VA_ARGS__})
struct det_tensor *det_bce_with_logits_loss_opt(struct det_engine *e, struct det_tensor *x,
                                                struct det_tensor *target,
                                                const struct det_bce_options *options);

struct det_kl_div_options {
    enum det_reduction reduction;
    bool batch_mean; /* the sum over the first dimension's size, which is the divergence */
    bool log_target; /* the target is log-probabilities too */
};
/* x are log-probabilities: target (log target - x). */
#define det_kl_div_loss(e, x, target, ...)                                                         \
    det_kl_div_loss_opt(e, x, target, &(const struct det_kl_div_options){__VA_ARGS__})
struct det_tensor *det_kl_div_loss_opt(struct det_engine *e, struct det_tensor *x,
                                       struct det_tensor *target,
                                       const struct det_kl_div_options *options);

/* a . b / (|a| |b|) along dim, each norm at least eps (0: 1e-8). */
struct det_tensor *det_cosine_similarity(struct det_engine *e, struct det_tensor *a,
                                         struct det_tensor *b, int dim, double eps);

#endif
