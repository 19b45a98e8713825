/* Mixed precision: which dtype comes out, that weights are cast once, and when the casts are
 * forgotten; the limit of tensor memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "det/functional.h"
#include "engine.h"

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

static struct det_tensor *matrix(struct det_engine *e, double value)
{
    return det_full(e, DET_F32, 2, (int64_t[]){4, 4}, value);
}

static void test_dtypes(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *x = matrix(e, 1);
    assert_int_equal(det_autocast_dtype(e), DET_F32);
    assert_int_equal(det_autocast_begin(e, DET_F16), 0);
    assert_int_equal(det_autocast_dtype(e), DET_BF16); /* a CPU has units for this one */
    struct det_tensor *y = det_linear(e, x, x, NULL);
    assert_int_equal(det_tensor_dtype(y), DET_BF16);
    assert_int_equal(det_tensor_dtype(det_relu(e, y)), DET_BF16);
    assert_int_equal(det_tensor_dtype(det_softmax(e, y)), DET_F32);
    assert_int_equal(det_tensor_dtype(det_add(e, y, x)), DET_F32);
    assert_int_equal(det_tensor_dtype(det_mul(e, y, y)), DET_BF16);
    det_autocast_begin(e, DET_F32);
    assert_int_equal(det_tensor_dtype(det_linear(e, y, x, NULL)), DET_F32);
    det_autocast_end(e);
    assert_int_equal(det_tensor_dtype(det_matmul(e, x, x)), DET_BF16);
    det_autocast_end(e);
    assert_int_equal(det_tensor_dtype(det_linear(e, x, x, NULL)), DET_F32);
    assert_int_equal(det_autocast_begin(e, DET_I64), DET_EINVAL);
}

static void test_without_it_dtypes_do_not_mix(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *x = matrix(e, 1);
    struct det_err err;
    assert_null(det_add(e, x, det_cast(e, x, DET_BF16)));
    det_engine_error(e, &err);
    assert_non_null(strstr(err.text, "add(float32[4, 4], bfloat16[4, 4])"));
    assert_non_null(strstr(err.text, "det_cast"));
}

static void test_weights_are_cast_once_until_the_end(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = det_tensor_ref(det_requires_grad(e, matrix(e, 1)));
    const float two[16] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    float g[16];
    det_autocast_begin(e, DET_BF16);
    struct det_tensor *y = det_linear(e, det_linear(e, matrix(e, 1), w, NULL), w, NULL);
    assert_int_equal(e->casts.n, 1);
    det_autocast_end(e);
    assert_int_equal(e->casts.n, 0);
    assert_int_equal(det_backward(e, det_sum(e, det_cast(e, y, DET_F32))), 0);
    assert_int_equal(det_tensor_dtype(det_tensor_grad(w)), DET_F32);
    assert_int_equal(det_tensor_read(det_tensor_grad(w), g, sizeof g, NULL), 0);
    assert_true(g[0] == 32); /* 4 rows times 4 units: 16 from each of the two uses */
    assert_int_equal(det_tensor_write(w, two, sizeof two, NULL), 0);
    det_autocast_begin(e, DET_BF16);
    struct det_tensor *z = det_select(e, det_linear(e, matrix(e, 1), w, NULL), 0, 0);
    assert_true(det_item(e, det_select(e, z, 0, 0)) == 8); /* the new weights */
    det_autocast_end(e);
    det_tensor_unref(w);
}

/* The sum of a row of ones through w, [4, 4] of the same number each. */
static double through(struct det_engine *e, struct det_tensor *w)
{
    struct det_tensor *y = det_linear(e, matrix(e, 1), w, NULL);
    return det_item(e, det_select(e, det_select(e, y, 0, 0), 0, 0));
}

/* Whichever way a weight is changed inside a stretch, what was cast before is not used again. */
static void test_a_weight_that_was_written_is_cast_again(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = det_tensor_ref(det_requires_grad(e, matrix(e, 1)));
    struct det_tensor *other = det_requires_grad(e, matrix(e, 1));
    float all[16];
    det_autocast_begin(e, DET_BF16);
    assert_true(through(e, w) == 4);
    assert_true(through(e, other) == 4);
    for (int i = 0; i < 16; i++)
        all[i] = 2;
    assert_int_equal(det_tensor_write(w, all, sizeof all, NULL), 0);
    assert_true(through(e, w) == 8);
    assert_int_equal(e->casts.n, 2); /* the other one has not changed */
    for (int i = 0; i < 16; i++)
        all[i] = 3;
    struct det_tensor *view = det_reshape(e, det_detach(e, w), 1, (int64_t[]){16});
    assert_int_equal(det_tensor_write(view, all, sizeof all, NULL), 0);
    assert_true(through(e, w) == 12);
    assert_int_equal(det__copy(e, matrix(e, 4), w, NULL), 0);
    assert_true(through(e, w) == 16);
    det_autocast_end(e);
    det_tensor_unref(w);
}

/* Nobody tells the engine that memory which is not its own was written. */
static void test_what_is_not_the_engines_is_cast_each_time(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = det_host_tensor(DET_F32, 2, (int64_t[]){4, 4}, NULL);
    float *at = det_tensor_data(w);
    w->requires_grad = true;
    for (int k = 1; k < 3; k++) {
        det_autocast_begin(e, DET_BF16);
        for (int turn = 0; turn < 2; turn++) {
            for (int i = 0; i < 16; i++)
                at[i] = (float)(k + turn);
            assert_true(through(e, w) == 4 * (k + turn));
        }
        det_autocast_end(e);
    }
    det_tensor_unref(w);
}

/* The sum of a convolution whose weight is w, backwards. */
static void go_through(struct det_engine *e, struct det_tensor *w)
{
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){1, 1, 2, 2}, 3);
    const struct det_conv2d_options o = {.stride = 1};
    det_backward(e, det_sum(e, det_conv2d(e, x, w, NULL, &o)));
}

static struct det_tensor *window(struct det_engine *e)
{
    struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){1, 1, 1, 1}, 2);
    return det_tensor_ref(det_requires_grad(e, w));
}

/* As where two losses of one network are gone through one after the other. */
static void test_a_stretch_may_go_backwards_twice(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = window(e);
    struct det_err err;
    det_autocast_begin(e, DET_BF16);
    go_through(e, w);
    go_through(e, w);
    det_autocast_end(e);
    assert_int_equal(det_engine_error(e, &err), 0);
    assert_true(det_item(e, det_tensor_grad(w)) == 24);
    det_tensor_unref(w);
}

/* What a weight was used as first is cast ahead, and once. */
static void test_a_weight_that_is_cast_twice_is_remembered_once(void **state)
{
    struct det_engine *e = *state;
    struct det_tensor *w = window(e);
    const struct det_conv2d_options o = {.stride = 1};
    for (int i = 0; i < 3; i++) {
        det_autocast_begin(e, DET_BF16);
        det_no_grad_begin(e);
        det_conv2d(e, det_full(e, DET_F32, 4, (int64_t[]){1, 1, 2, 2}, 3), w, NULL, &o);
        det_no_grad_end(e);
        go_through(e, w);
        det_autocast_end(e);
        assert_int_equal(e->cast_before.n, 1);
    }
    det_tensor_unref(w);
}

static void test_memory_limit_is_named(void **state)
{
    (void)state;
    struct det_engine *e;
    struct det_err err;
    struct det_engine_options o = {.threads = 1, .mem_limit_bytes = 1 << 20};
    assert_int_equal(det_engine_create(&o, &e, NULL), 0);
    assert_non_null(det_zeros(e, DET_F32, 1, (int64_t[]){200000}));
    assert_null(det_zeros(e, DET_F32, 1, (int64_t[]){100000}));
    assert_int_equal(det_engine_error(e, &err), DET_ENOMEM);
    assert_non_null(strstr(err.text, "400000 bytes"));
    assert_non_null(strstr(err.text, "in use"));
    assert_non_null(strstr(err.text, "DET_MEM_LIMIT"));
    assert_non_null(strstr(err.text, "smaller batch"));
    det_engine_clear_error(e);
    det_engine_step_end(e);
    assert_non_null(det_zeros(e, DET_F32, 1, (int64_t[]){100000}));
    det_engine_destroy(e);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* What was meant to bound or to speed up training does so, or says why not. */
static void test_numbers_of_the_environment_are_read_whole(void **state)
{
    static const struct {
        const char *name, *value;
        int code;
    } cases[] = {
        {"DET_MEM_LIMIT", "4G", DET_EINVAL},
        {"DET_MEM_LIMIT", "lots", DET_EINVAL},
        {"DET_MEM_LIMIT", "-1", DET_EINVAL},
        {"DET_MEM_LIMIT", "", 0},
        {"DET_MEM_LIMIT", "1048576", 0},
        {"DET_THREADS_PER_SLOT", "two", DET_EINVAL},
        {"DET_THREADS_PER_SLOT", "2.5", DET_EINVAL},
        {"DET_THREADS_PER_SLOT", "-3", DET_EINVAL},
        {"DET_THREADS_PER_SLOT", "3", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct det_engine *e = NULL;
        struct det_err err = {0};
        struct det_engine_options o = {0};
        setenv(cases[i].name, cases[i].value, 1);
        int rc = det_engine_create(&o, &e, &err);
        unsetenv(cases[i].name);
        if (rc != cases[i].code)
            fail_msg("%s=%s: %d, %s", cases[i].name, cases[i].value, rc, err.text);
        if (rc < 0)
            assert_non_null(strstr(err.text, cases[i].name));
        else if (strcmp(cases[i].value, "3") == 0)
            assert_int_equal(det_engine_threads(e), 3);
        det_engine_destroy(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_dtypes),
        CASE(test_without_it_dtypes_do_not_mix),
        CASE(test_weights_are_cast_once_until_the_end),
        CASE(test_a_weight_that_was_written_is_cast_again),
        CASE(test_what_is_not_the_engines_is_cast_each_time),
        CASE(test_a_stretch_may_go_backwards_twice),
        CASE(test_a_weight_that_is_cast_twice_is_remembered_once),
        cmocka_unit_test(test_memory_limit_is_named),
        cmocka_unit_test(test_numbers_of_the_environment_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
