/* The engine: sticky errors, what belongs to a step, gradients switched off, the random state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "det/functional.h"

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

static struct det_tensor *vector(struct det_engine *e, float a, float b)
{
    return det_from_host(e, DET_F32, 1, (int64_t[]){2}, (float[]){a, b});
}

static const char *text_of(struct det_engine *e)
{
    static struct det_err err;
    assert_true(det_engine_error(e, &err) < 0);
    return err.text;
}

/* What a dtype has no answer for is refused by name, with the cast that helps. */
static void test_dtypes_are_refused_by_name(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *whole = det_zeros(e, DET_I32, 2, (int64_t[]){2, 3});
    struct det_tensor *index = det_zeros(e, DET_I64, 2, (int64_t[]){2, 3});
    assert_null(det_mean(e, whole));
    assert_non_null(strstr(text_of(e), "mean: the input is int32"));
    assert_non_null(strstr(text_of(e), "det_cast(e, x, DET_F32)"));
    det_engine_clear_error(e);
    assert_null(det_scale(e, whole, 0.5));
    assert_non_null(strstr(text_of(e), "scale(int32[2, 3]): no int32 is 0.5: use det_cast("));
    det_engine_clear_error(e);
    assert_null(det_affine(e, det_cast(e, whole, DET_U8), 1, -1));
    assert_non_null(strstr(text_of(e), "no uint8 is -1"));
    det_engine_clear_error(e);
    assert_null(det_scatter_add(e, whole, 1, index, index));
    assert_non_null(strstr(text_of(e), "the source is int64, the input int32: use det_cast()"));
    det_engine_clear_error(e);
    struct det_tensor *wide = det_zeros(e, DET_F64, 2, (int64_t[]){3, 2});
    assert_null(det_matmul(e, wide, wide));
    det_engine_clear_error(e);
    assert_null(det_linear(e, det_transpose(e, wide, 0, 1), wide, NULL));
    assert_non_null(strstr(text_of(e), "float64"));
    det_engine_clear_error(e);
}

static void test_a_clone_is_apart(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *x = vector(e, 3, 4), *y = det_clone(e, x), *same = det_contiguous(e, x);
    assert_int_equal(det_tensor_write(x, (float[]){5, 6}, 8, NULL), 0);
    assert_true(det_item(e, det_sum(e, y)) == 7);
    assert_true(det_item(e, det_sum(e, same)) == 11);
}

static void test_first_error_stays(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *x = det_zeros(e, DET_F32, 2, (int64_t[]){4, 7});
    struct det_tensor *w = det_zeros(e, DET_F32, 2, (int64_t[]){3, 8});
    struct det_tensor *y = det_relu(e, det_linear(e, x, w, NULL));
    assert_null(y);
    assert_null(det_mean(e, y));
    assert_int_equal(det_engine_error(e, NULL), DET_EINVAL);
    assert_non_null(strstr(text_of(e), "linear(float32[4, 7], float32[3, 8])"));
    assert_non_null(strstr(text_of(e), "det_flatten"));
    assert_int_equal(det_backward(e, y), DET_EINVAL);
    assert_true(isnan(det_item(e, y)));
    det_engine_clear_error(e);
    assert_int_equal(det_engine_error(e, NULL), 0);
    assert_non_null(det_relu(e, x));
}

static void test_null_alone_is_named(void **state)
{
    struct det_engine *e = *state;
    assert_null(det_add(e, vector(e, 1, 2), NULL));
    assert_non_null(strstr(text_of(e), "add(float32[2], NULL): input 2 is NULL"));
}

static void test_bad_arguments(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *image = det_zeros(e, DET_F32, 4, (int64_t[]){1, 1, 3, 3});
    struct det_tensor *bytes = det_zeros(e, DET_U8, 1, (int64_t[]){2});
    struct det_tensor *bad = det_from_host(e, DET_I64, 1, (int64_t[]){1}, (int64_t[]){10});
    struct det_tensor *row = det_zeros(e, DET_F32, 2, (int64_t[]){1, 10});
    struct det_tensor *results[] = {
        det_max_pool2d(e, image, 0, 1, 0),
        det_max_pool2d(e, image, 4, 1, 0),
        det_avg_pool2d(e, image, 2, -1, 0),
        det_relu(e, bytes),
        det_dropout(e, image, 1.5, true),
        det_add(e, image, row),
        det_nll_loss(e, row, bad),
        det_reshape(e, row, 2, (int64_t[]){3, -1}),
        det_reshape(e, row, 2, (int64_t[]){-1, -1}),
        det_flatten(e, row, 5),
        det_mean(e, bytes),
        det_zeros(e, DET_F32, 1, (int64_t[]){-1}),
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        assert_null(results[i]);
    struct det_tensor *(*again[])(struct det_engine *, struct det_tensor *) = {det_relu, det_mean};
    for (int i = 0; i < 2; i++) {
        det_engine_clear_error(e);
        assert_null(again[i](e, bytes));
        assert_non_null(strstr(text_of(e), "det_cast"));
    }
    det_engine_clear_error(e);
    assert_null(det_nll_loss(e, row, bad));
    assert_non_null(strstr(text_of(e), "class 10"));
    det_engine_clear_error(e);
    assert_null(det_max_pool2d(e, image, 4, 1, 0));
    assert_non_null(strstr(text_of(e), "does not fit on the image 3x3"));
}

static void test_step_end_frees_what_nobody_holds(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *kept = det_tensor_ref(det_affine(e, vector(e, 1, 2), 2, 1));
    vector(e, 3, 4);
    size_t during = det_engine_mem_bytes(e);
    det_engine_step_end(e);
    assert_true(det_engine_mem_bytes(e) < during);
    float v[2];
    assert_int_equal(det_tensor_read(kept, v, sizeof v, NULL), 0);
    assert_true(v[0] == 3 && v[1] == 5);
    det_tensor_unref(kept);
    assert_int_equal(det_engine_mem_bytes(e), 0);
}

static void test_gradients_add_up_until_cleared(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = det_tensor_ref(det_requires_grad(e, vector(e, 1, 2)));
    float g[2];
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(det_backward(e, det_sum(e, det_mul(e, w, w))), 0);
        det_engine_step_end(e);
        assert_int_equal(det_tensor_read(det_tensor_grad(w), g, sizeof g, NULL), 0);
        assert_true(g[0] == 2 * (float)i && g[1] == 4 * (float)i);
    }
    det_tensor_unref(w);
}

static void test_no_grad_and_detach(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = det_requires_grad(e, vector(e, 1, 2));
    det_no_grad_begin(e);
    det_no_grad_begin(e);
    det_no_grad_end(e);
    struct det_tensor *y = det_sum(e, w);
    det_no_grad_end(e);
    assert_true(det_grad_enabled(e));
    assert_int_equal(det_backward(e, y), DET_EINVAL);
    det_engine_clear_error(e);
    assert_int_equal(det_backward(e, det_sum(e, det_mul(e, w, det_detach(e, w)))), 0);
    float g[2];
    assert_int_equal(det_tensor_read(det_tensor_grad(w), g, sizeof g, NULL), 0);
    assert_true(g[0] == 1 && g[1] == 2);
}

static void test_backward_twice_is_refused(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = det_requires_grad(e, vector(e, 1, 2));
    struct det_tensor *h = det_mul(e, w, w);
    struct det_tensor *a = det_sum(e, h), *b = det_mean(e, h);
    assert_int_equal(det_backward(e, a), 0);
    assert_int_equal(det_backward(e, a), DET_ESTATE);
    det_engine_clear_error(e);
    assert_int_equal(det_backward(e, b), DET_ESTATE); /* h is shared */
    det_engine_clear_error(e);
    assert_int_equal(det_backward(e, h), DET_EINVAL); /* not one element */
}

static void test_random_state_repeats(void **state)
{
    struct det_engine *e = *state;
    const int64_t n = 1000;
    struct det_rng_state before = det_engine_rng_state(e);
    float a[1000], b[1000], c[1000];
    struct det_tensor *x = det_full(e, DET_F32, 1, &n, 1);
    det_tensor_read(det_dropout(e, x, 0.5, true), a, sizeof a, NULL);
    det_tensor_read(det_dropout(e, x, 0.5, true), b, sizeof b, NULL);
    det_engine_set_rng_state(e, before);
    det_tensor_read(det_dropout(e, x, 0.5, true), c, sizeof c, NULL);
    assert_memory_equal(a, c, sizeof a);
    assert_memory_not_equal(a, b, sizeof a);
    assert_ptr_equal(det_dropout(e, x, 0.5, false), x);
    double sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += a[i];
    assert_true(fabs(sum - 1000) < 120); /* about half are 2, the rest 0 */
}

static void test_memory_outlives_the_engine(void **state)
{
    (void)state;
    struct det_engine *e;
    assert_int_equal(det_engine_create(&(struct det_engine_options){.device = "ref"}, &e, NULL), 0);
    struct det_tensor *t = det_tensor_ref(vector(e, 5, 6));
    det_engine_destroy(e);
    float v[2];
    assert_int_equal(det_tensor_read(t, v, sizeof v, NULL), 0);
    assert_true(v[1] == 6);
    det_tensor_unref(t);
}

static void test_accuracy(void **state)
{
    struct det_engine *e = *state;
    const float x[] = {0, 1, 0, /**/ 3, 1, 2, /**/ 0, 0, 1, /**/ 1, 1, 0};
    const int64_t y[] = {1, 0, 1, 0};
    struct det_tensor *t = det_from_host(e, DET_F32, 2, (int64_t[]){4, 3}, x);
    double share = det_item(e, det_accuracy(e, t, det_from_host(e, DET_I64, 1, (int64_t[]){4}, y)));
    assert_true(share == 0.75);
}

static void test_unknown_device(void **state)
{
    (void)state;
    struct det_engine *e = NULL;
    struct det_err err;
    assert_int_equal(det_engine_create(&(struct det_engine_options){.device = "cpu:7"}, &e, &err),
                     DET_ENOENT);
    assert_null(e);
    assert_non_null(strstr(err.text, "cpu:7"));
}

#define REFUSED(e, call, words)                                                                    \
    do {                                                                                           \
        call;                                                                                      \
        assert_non_null(strstr(text_of(e), words));                                                \
        assert_non_null(strstr(text_of(e), "det_tensor_ref()"));                                   \
        det_engine_clear_error(e);                                                                 \
    } while (0)

/* As who keeps the hidden state of the batch before, but no reference to it. */
static void test_a_tensor_of_an_earlier_step_is_named(void **state)
{
    struct det_engine *e = *state;
    struct det_err err = {0};
    struct det_tensor *leaf = det_requires_grad(e, vector(e, 1, 2)), *loss = det_sum(e, leaf);
    struct det_tensor *old = det_relu(e, leaf), *kept = det_tensor_ref(vector(e, 3, 4));
    float host[2];
    det_engine_step_end(e);
    struct det_tensor *now = vector(e, 3, 4);
    REFUSED(e, assert_null(det_relu(e, old)), "relu(float32[2]): input 1 is of an earlier batch");
    REFUSED(e, assert_null(det_add(e, now, old)), "add(float32[2], float32[2]): input 2 is of");
    REFUSED(e, assert_null(det_reshape(e, old, 2, (int64_t[]){1, 2})), "is of");
    REFUSED(e, assert_null(det_to_device(e, old)), "to_device");
    REFUSED(e, assert_true(isnan(det_item(e, loss))), "item: float32[] is of an earlier batch");
    REFUSED(e, assert_int_equal(det_backward(e, loss), DET_EINVAL), "backward: the loss is of");
    assert_int_equal(det_tensor_read(old, host, sizeof host, &err), DET_EINVAL);
    assert_null(det_tensor_data(old));
    assert_false(det_tensor_is_host(old));
    det_tensor_unref(det_tensor_ref(old)); /* too late */
    det_tensor_unref(old);
    assert_true(det_item(e, det_sum(e, det_add(e, kept, now))) == 14);
    det_tensor_unref(kept);
}

/* y = x * x; dy = (10, 1); twice over the same graph the gradients add up. */
static void test_backward_with_options(void **state)
{
    struct det_engine *e = *state;
    float g[2], weights[2] = {10, 1};
    struct det_tensor *x = det_requires_grad(e, vector(e, 3, 4)), *y = det_mul(e, x, x);
    struct det_tensor *dy = det_host_tensor_view(DET_F32, 1, (int64_t[]){2}, weights, NULL);
    struct det_backward_options o = {.gradient = dy, .retain_graph = true};
    assert_int_equal(det_backward_opt(e, y, &o), 0);
    assert_int_equal(det_backward_opt(e, y, &o), 0);
    assert_int_equal(det_tensor_read(det_tensor_grad(x), g, sizeof g, NULL), 0);
    assert_true(g[0] == 120 && g[1] == 16);
    o.gradient = det_zeros(e, DET_F32, 1, (int64_t[]){3});
    assert_int_equal(det_backward_opt(e, y, &o), DET_EINVAL);
    assert_non_null(strstr(text_of(e), "backward(float32[2], gradient float32[3])"));
    det_engine_clear_error(e);
    o = (struct det_backward_options){.gradient = dy};
    assert_int_equal(det_backward_opt(e, y, &o), 0);
    assert_int_equal(det_backward_opt(e, y, &o), DET_ESTATE);
    det_tensor_unref(dy);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_dtypes_are_refused_by_name),
        CASE(test_first_error_stays),
        CASE(test_a_clone_is_apart),
        CASE(test_null_alone_is_named),
        CASE(test_bad_arguments),
        CASE(test_step_end_frees_what_nobody_holds),
        CASE(test_gradients_add_up_until_cleared),
        CASE(test_no_grad_and_detach),
        CASE(test_backward_twice_is_refused),
        CASE(test_backward_with_options),
        CASE(test_a_tensor_of_an_earlier_step_is_named),
        CASE(test_random_state_repeats),
        CASE(test_memory_outlives_the_engine),
        CASE(test_accuracy),
        CASE(test_unknown_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
