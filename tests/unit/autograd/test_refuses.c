/* What tensors' functions refuse: no input, or one that does not fit. Each says which function it
 * was and what is wrong, gives NULL, and leaves the first error as it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "det/conv.h"
#include "det/functional.h"

struct inputs {
    struct det_tensor *scalar, *vector, *matrix, *batch, *image, *index, *whole, *grown;
};

static int setup(void **state)
{
    struct det_engine *e;
    if (det_engine_create(&(struct det_engine_options){.seed = 9, .threads = 2}, &e, NULL) < 0)
        return -1;
    *state = e;
    return 0;
}

static int teardown(void **state)
{
    det_engine_destroy(*state);
    return 0;
}

static struct det_tensor *zeros(struct det_engine *e, enum det_dtype type, int ndim, int64_t a,
                                int64_t b, int64_t c, int64_t d)
{
    return det_zeros(e, type, ndim, (int64_t[]){a, b, c, d});
}

static struct inputs make_inputs(struct det_engine *e)
{
    int64_t eight[] = {1, 1, 1, 1, 1, 1, 1, 2};
    return (struct inputs){.scalar = det_scalar(e, DET_F32, 1),
                           .vector = zeros(e, DET_F32, 1, 6, 0, 0, 0),
                           .matrix = zeros(e, DET_F32, 2, 2, 3, 0, 0),
                           .batch = zeros(e, DET_F32, 3, 2, 3, 4, 0),
                           .image = zeros(e, DET_F32, 4, 2, 4, 5, 5),
                           .index = zeros(e, DET_I64, 1, 2, 0, 0, 0),
                           .whole = zeros(e, DET_I32, 2, 2, 3, 0, 0),
                           .grown = det_zeros(e, DET_F32, 8, eight)};
}

/* ---- One tensor, which is not there ---- */

#define OF_ONE(X)                                                                                  \
    X(neg, det_neg(e, x))                                                                          \
    X(relu, det_relu(e, x))                                                                        \
    X(gelu, det_gelu(e, x))                                                                        \
    X(pow, det_pow(e, x, 2))                                                                       \
    X(clamp, det_clamp(e, x, 0, 1))                                                                \
    X(scale, det_scale(e, x, 2))                                                                   \
    X(sum, det_sum(e, x))                                                                          \
    X(mean, det_mean(e, x))                                                                        \
    X(cast, det_cast(e, x, DET_F64))                                                               \
    X(isnan, det_isnan(e, x))                                                                      \
    X(contiguous, det_contiguous(e, x))                                                            \
    X(clone, det_clone(e, x))                                                                      \
    X(detach, det_detach(e, x))                                                                    \
    X(reshape, det_reshape(e, x, 1, (int64_t[]){-1}))                                              \
    X(flatten, det_flatten(e, x, 0))                                                               \
    X(permute, det_permute(e, x, (int[]){0}))                                                      \
    X(transpose, det_transpose(e, x, 0, 0))                                                        \
    X(narrow, det_narrow(e, x, 0, 0, 1))                                                           \
    X(slice, det_slice(e, x, 0, &(struct det_slice){0}))                                           \
    X(select, det_select(e, x, 0, 0))                                                              \
    X(expand, det_expand(e, x, 1, (int64_t[]){1}))                                                 \
    X(unsqueeze, det_unsqueeze(e, x, 0))                                                           \
    X(squeeze, det_squeeze(e, x, 0))                                                               \
    X(full_like, det_full_like(e, x, 1))                                                           \
    X(sum_over, det_sum_over(e, x, det_over(false, 0)))                                            \
    X(var_over, det_var_over(e, x, 1, det_over(false, 0)))                                         \
    X(norm_over, det_norm_over(e, x, 2, det_over(false, 0)))                                       \
    X(any_over, det_any_over(e, x, det_over(false, 0)))                                            \
    X(max_over, det_max_over(e, x, 0, false, NULL))                                                \
    X(argmax_over, det_argmax_over(e, x, 0, false))                                                \
    X(prod_over, det_prod_over(e, x, 0, false))                                                    \
    X(logsumexp, det_logsumexp(e, x, 0, false))                                                    \
    X(cumsum, det_cumsum(e, x, 0))                                                                 \
    X(sort, det_sort(e, x, 0, false, NULL))                                                        \
    X(topk, det_topk(e, x, 1, 0, true, NULL))                                                      \
    X(softmax, det_softmax(e, x))                                                                  \
    X(log_softmax_over, det_log_softmax_over(e, x, 0))                                             \
    X(cat, det_cat(e, &x, 1, 0))                                                                   \
    X(stack, det_stack(e, &x, 1, 0))                                                               \
    X(one_hot, det_one_hot(e, x, 3))                                                               \
    X(tril, det_tril(e, x, 0))                                                                     \
    X(matmul, det_matmul(e, x, x))                                                                 \
    X(index_select, det_index_select(e, x, 0, x))                                                  \
    X(gather, det_gather(e, x, 0, x))                                                              \
    X(embedding, det_embedding(e, x, x))                                                           \
    X(layer_norm, det_layer_norm(e, x, 1, NULL, NULL, 1e-5))                                       \
    X(rms_norm, det_rms_norm(e, x, 1, NULL, 1e-5))                                                 \
    X(group_norm, det_group_norm(e, x, 1, NULL, NULL, 1e-5))                                       \
    X(attention, det_scaled_dot_product_attention(e, x, x, x))                                     \
    X(rotary, det_rotary(e, x))                                                                    \
    X(dropout, det_dropout(e, x, 0.5, true))                                                       \
    X(conv2d, det_conv2d(e, x, x, NULL, &(struct det_conv2d_options){.stride = 1}))                \
    X(max_pool2d, det_max_pool2d(e, x, 2, 2, 0))                                                   \
    X(cross_entropy, det_cross_entropy(e, x, x))                                                   \
    X(mse_loss, det_mse_loss(e, x, x))

#define DEFINE(name, call)                                                                         \
    static struct det_tensor *call_##name(struct det_engine *e, struct det_tensor *x)              \
    {                                                                                              \
        return call;                                                                               \
    }
#define ROW(name, call) {#name, call_##name},
OF_ONE(DEFINE)

static const struct {
    const char *name;
    struct det_tensor *(*call)(struct det_engine *e, struct det_tensor *x);
} of_one[] = {OF_ONE(ROW)};

static void no_input_is_told(void **state)
{
    struct det_engine *e = *state;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        struct det_err err = {0};
        assert_null(of_one[i].call(e, NULL));
        if (det_engine_error(e, &err) != DET_EINVAL || !strstr(err.text, "NULL"))
            fail_msg("%s: %s", of_one[i].name, err.text);
        det_engine_clear_error(e);
    }
}

/* What came first is what has to be mended: nothing after it says anything else. */
static void the_first_error_stays(void **state)
{
    struct det_engine *e = *state;
    struct inputs in = make_inputs(e);
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        struct det_err err = {0};
        det_engine_fail(e, DET_ESTATE, "the first");
        assert_null(of_one[i].call(e, i % 2 ? in.matrix : NULL));
        if (det_engine_error(e, &err) != DET_ESTATE || strcmp(err.text, "the first"))
            fail_msg("%s: %s", of_one[i].name, err.text);
        det_engine_clear_error(e);
    }
}

/* ---- Inputs that do not fit ---- */

#define UNFIT(X)                                                                                   \
    X(many_dims, det_reshape(e, in->vector, 9, (int64_t[9]){6}), "9 dimensions, at most 8")        \
    X(less_than_no_dim, det_reshape(e, in->vector, 1, (int64_t[]){-2}), "dimension 0 is -2")       \
    X(two_holes, det_reshape(e, in->vector, 2, (int64_t[]){-1, -1}), "dimension 1 is -1")          \
    X(other_size, det_reshape(e, in->vector, 2, (int64_t[]){-1, 4}), "its 6 elements cannot be")   \
    X(flatten_past, det_flatten(e, in->vector, 3), "flatten: start_dim 3")                         \
    X(permute_twice, det_permute(e, in->matrix, (int[]){0, 0}), "permute")                         \
    X(transpose_past, det_transpose(e, in->matrix, 0, 2), "there is no dimension 2")               \
    X(narrow_past, det_narrow(e, in->matrix, 1, 2, 2), "narrow")                                   \
    X(narrow_nowhere, det_narrow(e, in->matrix, 5, 0, 1), "there is no dimension 5")               \
    X(select_nowhere, det_select(e, in->matrix, -3, 0), "there is no dimension -3")                \
    X(select_past, det_select(e, in->matrix, 0, 2), "select")                                      \
    X(expand_other, det_expand(e, in->matrix, 2, (int64_t[]){2, 4}), "expand")                     \
    X(unsqueeze_nine, det_unsqueeze(e, in->grown, 0), "unsqueeze: at most 8 dimensions")           \
    X(unsqueeze_past, det_unsqueeze(e, in->matrix, 4), "there is no dimension 4")                  \
    X(squeeze_past, det_squeeze(e, in->matrix, 2), "there is no dimension 2")                      \
    X(sum_twice, det_sum_over(e, in->matrix, det_over(false, 1, -1)), "is named twice")            \
    X(sum_nowhere, det_sum_over(e, in->matrix, det_over(false, 2)), "dimension 2")                 \
    X(max_nowhere, det_max_over(e, in->matrix, 2, false, NULL), "dimension 2")                     \
    X(sort_nowhere, det_sort(e, in->matrix, 2, false, NULL), "dimension 2")                        \
    X(topk_many, det_topk(e, in->matrix, 4, 1, true, NULL), "topk")                                \
    X(cumsum_nowhere, det_cumsum(e, in->matrix, 2), "dimension 2")                                 \
    X(softmax_nowhere, det_softmax_over(e, in->matrix, 2), "dimension 2")                          \
    X(cat_none, det_cat(e, &in->matrix, 0, 0), "cat: 0 tensors, 1 to ")                            \
    X(stack_none, det_stack(e, &in->matrix, 0, 0), "stack: 0 tensors, 1 to ")                      \
    X(cat_unlike, det_cat(e, (struct det_tensor *[]){in->matrix, in->batch}, 2, 0), "cat")         \
    X(one_hot_eight, det_one_hot(e, in->grown, 3), "one_hot: the input is NULL or has 8")          \
    X(one_hot_of_f32, det_one_hot(e, in->matrix, 3), "must be int64, with at least one class")     \
    X(arange_back, det_arange(e, DET_F32, 1, 3, 0), "arange: from 1 to 3 in steps of 0")           \
    X(matmul_scalar, det_matmul(e, in->scalar, in->matrix), "has no dimension")                    \
    X(embedding_row, det_embedding(e, in->vector, in->index), "the weight must be [rows, width]")  \
    X(embedding_padding,                                                                           \
      det_embedding(e, in->matrix, in->index, .padding = true, .padding_idx = 2),                  \
      "embedding: padding row 2, the weight has 2 rows")                                           \
    X(embedding_of_f32, det_embedding(e, in->matrix, in->vector), "must be int64: use det_cast()") \
    X(gather_of_f32, det_gather(e, in->matrix, 0, in->matrix), "must be int64: use det_cast()")    \
    X(layer_norm_none, det_layer_norm(e, in->matrix, 0, NULL, NULL, 1e-5),                         \
      "layer_norm: over 0 dimensions")                                                             \
    X(group_norm_three, det_group_norm(e, in->image, 3, NULL, NULL, 1e-5), "group_norm")           \
    X(group_norm_row, det_group_norm(e, in->vector, 1, NULL, NULL, 1e-5), "group_norm")            \
    X(dropout_over, det_dropout(e, in->matrix, 1.5, true), "p is 1.5 and must be in 0..1")         \
    X(attention_unlike, det_scaled_dot_product_attention(e, in->image, in->image, in->batch),      \
      "attention")                                                                                 \
    X(attention_dropout,                                                                           \
      det_scaled_dot_product_attention(e, in->image, in->image, in->image, .dropout = 2),          \
      "dropout is 2 and must be in 0..1")                                                          \
    X(rotary_odd, det_rotary(e, in->image), "the width must be even")                              \
    X(linear_row, det_linear(e, in->vector, in->matrix, NULL), "the layer takes 3 features")       \
    X(linear_bias, det_linear(e, in->matrix, in->matrix, in->matrix), "the bias must be [2]")      \
    X(conv_row, det_conv2d(e, in->vector, in->image, NULL, &conv), "[N, C, H, W]")                 \
    X(conv_weight, det_conv2d(e, in->image, in->matrix, NULL, &conv), "must have 4 dimensions")    \
    X(conv_bias, det_conv2d(e, in->image, in->image, in->vector, &conv), "the bias must be [2]")   \
    X(pool_row, det_max_pool2d(e, in->vector, 2, 2, 0), "[N, C, H, W]")                            \
    X(pool_padding, det_avg_pool2d(e, in->image, 2, 2, 2), "at most half of the kernel")           \
    X(pool_stride, det_avg_pool2d(e, in->image, 2, 1025, 0), "must be 1 to 1024")                  \
    X(pool_taps, det_max_pool2d(e, zeros(e, DET_F32, 4, 1, 1, 20, 20), 17, 1, 0),                  \
      "has more than 256 taps")                                                                    \
    X(loss_shapes, det_mse_loss(e, in->matrix, in->vector), "mse_loss")                            \
    X(loss_target, det_cross_entropy(e, in->matrix, in->matrix), "cross_entropy")                  \
    X(loss_weight, det_cross_entropy(e, in->matrix, in->index, .weight = in->vector),              \
      "the weight must be [3], one for each class")                                                \
    X(loss_smoothing, det_cross_entropy(e, in->matrix, in->index, .label_smoothing = 2),           \
      "label_smoothing is 2 and must be in 0..1")                                                  \
    X(nll_smoothing, det_nll_loss(e, in->matrix, in->index, .label_smoothing = 0.1), "nll_loss")   \
    X(eq_count_shapes, det_eq_count(e, in->index, in->whole), "shapes and dtypes must be equal")

static const struct det_conv2d_options conv = {.stride = 1};

#define DEFINE_UNFIT(name, call, text)                                                             \
    static struct det_tensor *unfit_##name(struct det_engine *e, struct inputs *in)                \
    {                                                                                              \
        return call;                                                                               \
    }
#define UNFIT_ROW(name, call, text) {#name, unfit_##name, text},
UNFIT(DEFINE_UNFIT)

static const struct {
    const char *name;
    struct det_tensor *(*call)(struct det_engine *e, struct inputs *in);
    const char *text;
} unfit[] = {UNFIT(UNFIT_ROW)};

static void what_does_not_fit_is_told(void **state)
{
    struct det_engine *e = *state;
    struct inputs in = make_inputs(e);
    int wrong = 0;
    for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++) {
        struct det_err err = {0};
        struct det_tensor *got = unfit[i].call(e, &in);
        if (got || det_engine_error(e, &err) >= 0 || !strstr(err.text, unfit[i].text)) {
            print_error("%s: %s, '%s'\n", unfit[i].name, got ? "done" : "refused", err.text);
            wrong++;
        }
        det_engine_clear_error(e);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_input_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_error_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
