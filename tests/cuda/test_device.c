/* What can go wrong with a device, on the emulated one: it copies late, has little memory, two of
 * it are used by one thread, its driver is too old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "det/functional.h"
#include "engine.h"
#include "mem.h"

static struct det_engine *open_engine(const char *device)
{
    struct det_engine *e;
    struct det_err err;
    const struct det_engine_options o = {.device = device, .seed = 1, .threads = 1};
    if (det_engine_create(&o, &e, &err) < 0)
        fail_msg("%s", err.text);
    return e;
}

static void assert_fine(struct det_engine *e)
{
    struct det_err err;
    if (det_engine_error(e, &err) < 0)
        fail_msg("%s", err.text);
}

/* A batch's memory is filled with the next one as soon as it was handed over. */
static void test_a_batch_may_be_refilled_at_once(void **state)
{
    struct det_engine *e = open_engine("cuda");
    enum { N = 3 << 20 }; /* several pieces, and more of them than the ring has */
    struct det_tensor *x = det_host_tensor(DET_F32, 1, (int64_t[]){N}, NULL);
    float *v = det_tensor_data(x);
    for (int i = 0; i < N; i++)
        v[i] = 1;
    struct det_tensor *on_device = det_to_device(e, x);
    for (int i = 0; i < N; i++)
        v[i] = 2;
    assert_true(det_item(e, det_sum(e, on_device)) == N);
    assert_fine(e);
    det_tensor_unref(x);
    det_engine_destroy(e);
}

/* The pool keeps what a step used; a convolution that needs scratch memory gets it. */
static void test_scratch_memory_is_taken_from_the_pool(void **state)
{
    struct det_engine *e = open_engine("cuda");
    setenv("EMULATED_MEMORY", "106000000", 1);
    det_full(e, DET_F32, 1, (int64_t[]){23 << 20}, 1); /* 101 MB, free after the step */
    det_engine_step_end(e);
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){1, 64, 64, 64}, 1);
    struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){512, 64, 5, 5}, 1);
    det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){.stride = 16});
    assert_fine(e);
    unsetenv("EMULATED_MEMORY");
    det_engine_destroy(e);
}

/* A step. */
static double sum_of_sevens(struct det_engine *e)
{
    double ret = det_item(e, det_sum(e, det_full(e, DET_F32, 1, (int64_t[]){7}, 7)));
    det_engine_step_end(e);
    return ret;
}

/* The device that a thread works on is the thread's: engines of two take turns. */
static void test_two_devices_in_one_thread(void **state)
{
    setenv("EMULATED_DEVICES", "2", 1);
    struct det_engine *one = open_engine("cuda:0"), *two = open_engine("cuda:1");
    for (int i = 0; i < 3; i++) { /* the second time, memory comes from the pools */
        assert_true(sum_of_sevens(one) == 49);
        assert_true(sum_of_sevens(two) == 49);
    }
    assert_fine(one);
    assert_fine(two);
    det_engine_destroy(one);
    det_engine_destroy(two);
    unsetenv("EMULATED_DEVICES");
}

/* Convolutions of two shapes, forwards and backwards, one of which cuDNN refuses as it is run. */
static void run_convolutions(struct det_engine *e)
{
    for (int stride = 2; stride <= 3; stride++) {
        struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){2, 3, 9, 9}, 1);
        struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){4, 3, 3, 3}, 1);
        det_requires_grad(e, x);
        det_requires_grad(e, w);
        const struct det_conv2d_options o = {.stride = stride};
        det_backward(e, det_sum(e, det_conv2d(e, x, w, NULL, &o)));
    }
    assert_fine(e);
    det_engine_step_end(e);
}

static void test_algorithms_are_asked_for_once_a_shape(void **state)
{
    struct det_engine *e = open_engine("cuda");
    det_cleanup(freep) char *path =
        det_asprintf("%s/det_backend_cuda.so", getenv("DET_BACKEND_DIR"));
    void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    long *queries = module ? dlsym(module, "emulated_dnn_queries") : NULL;
    assert_non_null(queries);
    *queries = 0;
    run_convolutions(e);
    assert_int_equal(*queries, 6);
    run_convolutions(e);
    assert_int_equal(*queries, 6);
    det_engine_destroy(e);
}

static void *use_engine(void *arg)
{
    sum_of_sevens(arg);
    return NULL;
}

static void test_an_engine_moves_to_another_thread(void **state)
{
    setenv("EMULATED_DEVICES", "2", 1);
    struct det_engine *e = open_engine("cuda:1");
    pthread_t t;
    sum_of_sevens(e);
    assert_int_equal(pthread_create(&t, NULL, use_engine, e), 0);
    pthread_join(t, NULL);
    assert_fine(e);
    det_engine_destroy(e);
    unsetenv("EMULATED_DEVICES");
}

static void test_a_driver_that_is_too_old_is_named(void **state)
{
    struct det_engine *e;
    struct det_err err;
    const struct det_engine_options o = {.device = "cuda", .seed = 1, .threads = 1};
    setenv("EMULATED_DRIVER", "none", 1);
    assert_true(det_engine_create(&o, &e, &err) < 0);
    unsetenv("EMULATED_DRIVER");
    assert_non_null(strstr(err.text, "driver version is insufficient"));
    assert_non_null(strstr(err.text, "CUDA 12.4"));
    assert_non_null(strstr(err.text, "13.0"));
}

/* One tensor of a concatenation along the first dimension is one row: of gigabytes, on a GPU. */
static void test_rows_beyond_the_pitch_are_copied(void **state)
{
    struct det_engine *e = open_engine("cuda");
    const int64_t half = 40000;
    struct det_tensor *a = det_full(e, DET_U8, 1, &half, 1), *b = det_full(e, DET_U8, 1, &half, 2);
    struct det_tensor *y = det_cat(e, (struct det_tensor *[]){a, b}, 2, 0);
    assert_fine(e);
    struct det_tensor *ends = det_narrow(e, y, 0, half - 1, 2);
    unsigned char got[2];
    struct det_err err;
    if (det_tensor_read(ends, got, sizeof got, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(got[0], 1);
    assert_int_equal(got[1], 2);
    det_engine_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_may_be_refilled_at_once),
        cmocka_unit_test(test_scratch_memory_is_taken_from_the_pool),
        cmocka_unit_test(test_two_devices_in_one_thread),
        cmocka_unit_test(test_an_engine_moves_to_another_thread),
        cmocka_unit_test(test_algorithms_are_asked_for_once_a_shape),
        cmocka_unit_test(test_a_driver_that_is_too_old_is_named),
        cmocka_unit_test(test_rows_beyond_the_pitch_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
