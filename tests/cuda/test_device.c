/* What can go wrong with a device, on the emulated one: it copies late, has little memory, two of
 * it are used by one thread, its driver is too old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "det/functional.h"
#include "engine.h"
#include "include/cuda_runtime_api.h"
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
    struct det_err err;
    enum { N = 6 << 20 }; /* three times what the ring has */
    struct det_tensor *x = det_host_tensor(DET_F32, 1, (int64_t[]){N}, NULL);
    float *v = det_tensor_data(x);
    for (int i = 0; i < N; i++)
        v[i] = (float)i;
    struct det_tensor *on_device = det_to_device(e, x);
    for (int i = 0; i < N; i++)
        v[i] = -1;
    assert_int_equal(det_tensor_read(on_device, v, N * sizeof *v, &err), 0);
    for (int i = 0; i < N; i++)
        assert_true(v[i] == (float)i);
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

/* What copies to the device have there is given to a tensor that finds no other memory. */
static void test_memory_of_copies_is_given_to_tensors(void **state)
{
    struct det_engine *e = open_engine("cuda");
    struct det_tensor *x = det_host_tensor(DET_F32, 1, (int64_t[]){1 << 20}, NULL);
    setenv("EMULATED_MEMORY", "20000000", 1);
    det_to_device(e, x); /* 4 MB, and a ring of 8 MB */
    det_full(e, DET_F32, 1, (int64_t[]){3 << 20}, 1);
    assert_fine(e);
    unsetenv("EMULATED_MEMORY");
    det_tensor_unref(x);
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

/* A counter of the emulated device's, set to 0; an engine is open. */
static long *counter(enum emulated_call call)
{
    det_cleanup(freep) char *path =
        det_asprintf("%s/det_backend_cuda.so", getenv("DET_BACKEND_DIR"));
    void *module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    long *all = module ? dlsym(module, "emulated_calls") : NULL;
    assert_non_null(all);
    all[call] = 0;
    return &all[call];
}

static void test_algorithms_are_asked_for_once_a_shape(void **state)
{
    struct det_engine *e = open_engine("cuda");
    long *queries = counter(EMULATED_QUERY);
    run_convolutions(e);
    assert_int_equal(*queries, 12); /* what the graph API refuses is asked of v7 */
    run_convolutions(e);
    assert_int_equal(*queries, 12);
    det_engine_destroy(e);
}

/* A convolution of ones; nobody waits for it. */
static struct det_tensor *convolve_row(struct det_engine *e, int64_t wide)
{
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){1, 3, 1, wide}, 1);
    struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){2, 3, 1, 1}, 1);
    return det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
}

/* So many plans are kept; the next makes room for itself while runs of the others are queued: the
 * emulated cuDNN ends a program that destroys the plan of such a run. */
static void test_plans_make_room_when_their_runs_are_done(void **state)
{
    enum { KEPT = 1024 };
    struct det_engine *e = open_engine("cuda");
    long *queries = counter(EMULATED_QUERY);
    for (int64_t wide = 1; wide <= KEPT; wide++) {
        convolve_row(e, wide);
        det_engine_step_end(e);
    }
    assert_int_equal(*queries, KEPT);
    assert_true(det_item(e, det_sum(e, convolve_row(e, KEPT + 1))) == 6 * (KEPT + 1));
    convolve_row(e, 1);
    assert_int_equal(*queries, KEPT + 2); /* it went with the others */
    assert_fine(e);
    det_engine_destroy(e);
}

static void test_what_is_refused_is_not_tried_again(void **state)
{
    struct det_engine *e = open_engine("cuda");
    long *runs = counter(EMULATED_CONV);
    run_convolutions(e);
    assert_int_equal(*runs, 6);
    run_convolutions(e);
    assert_int_equal(*runs, 9); /* strides of 3 were refused */
    det_engine_destroy(e);
}

/* A linear layer of ones over rows of `wide`, forwards and backwards. */
static void run_linear(struct det_engine *e, int64_t wide)
{
    struct det_tensor *x = det_full(e, DET_F32, 2, (int64_t[]){4, wide}, 1);
    struct det_tensor *w = det_full(e, DET_F32, 2, (int64_t[]){8, wide}, 1);
    struct det_tensor *b = det_full(e, DET_F32, 1, (int64_t[]){8}, 1);
    det_requires_grad(e, x);
    det_requires_grad(e, w);
    det_requires_grad(e, b);
    struct det_tensor *y = det_linear(e, x, w, b);
    det_backward(e, det_sum(e, y));
    assert_true(det_item(e, det_sum(e, y)) == (double)(4 * 8 * (wide + 1)));
    assert_true(det_item(e, det_sum(e, det_tensor_grad(b))) == 4 * 8);
    assert_fine(e);
    det_engine_step_end(e);
}

/* Launches of kernels of ours in the layer's second step; cuBLASLt is asked in the first. */
static long linear_kernels(int64_t wide, const char *has_lt)
{
    struct det_engine *e = open_engine("cuda");
    setenv("EMULATED_LT", has_lt, 1);
    long *asked = counter(EMULATED_QUERY);
    run_linear(e, wide);
    long *launched = counter(EMULATED_KERNEL);
    run_linear(e, wide);
    assert_int_equal(*asked, 2);
    unsetenv("EMULATED_LT");
    det_engine_destroy(e);
    return *launched;
}

static void test_a_bias_costs_a_linear_layer_no_kernel(void **state)
{
    long with_lt = linear_kernels(16, "1");
    assert_true(linear_kernels(16, "0") >= with_lt + 2); /* there is no algorithm */
    assert_true(linear_kernels(3, "1") == with_lt + 1);  /* forwards it is refused as it is run */
}

/* A convolution of ones whose every window has 27 of them. */
static void expect_27(struct det_engine *e)
{
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){1, 3, 5, 5}, 1);
    struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){2, 3, 3, 3}, 1);
    struct det_tensor *y = det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
    assert_true(det_item(e, det_sum(e, y)) == 27 * 18);
    assert_fine(e);
    det_engine_step_end(e);
}

/* Weights of 1 x 1 lie as cuDNN wants them: no kernel comes between the copy of x and the
 * convolution. The first makes the plan. */
static void test_a_convolution_waits_for_what_is_copied_to_it(void **state)
{
    struct det_engine *e = open_engine("cuda");
    for (int i = 1; i < 4; i++) {
        struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){2, 1, 1, 1}, 3);
        struct det_tensor *host = det_host_tensor(DET_F32, 4, (int64_t[]){1, 1, 1, 2}, NULL);
        float *v = det_tensor_data(host);
        v[0] = (float)i, v[1] = 2;
        struct det_tensor *x = det_to_device(e, host);
        det_tensor_unref(host);
        struct det_tensor *y = det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
        assert_true(det_item(e, det_sum(e, y)) == 6 * (i + 2));
        det_engine_step_end(e);
    }
    assert_fine(e);
    det_engine_destroy(e);
}

/* How often cuDNN ran that convolution, where the device lacks something. */
static long runs_with(const char *name, const char *value)
{
    struct det_engine *e = open_engine("cuda");
    long *runs = counter(EMULATED_CONV);
    setenv(name, value, 1);
    expect_27(e);
    unsetenv(name);
    det_engine_destroy(e);
    return *runs;
}

/* Attention of queries that a mask hides every key from, by the dtype's least number as masks of
 * padding have it: the mean of the values, and gradients that are numbers. */
static void least_mask(enum det_dtype dtype)
{
    enum { ROWS = 5, KEYS = 70, WIDTH = 16 };
    struct det_engine *e = open_engine("cuda");
    struct det_tensor *q = det_full(e, dtype, 4, (int64_t[]){1, 2, ROWS, WIDTH}, 0.25);
    struct det_tensor *k =
        det_requires_grad(e, det_full(e, dtype, 4, (int64_t[]){1, 2, KEYS, WIDTH}, 0.5));
    struct det_tensor *v = det_full(e, dtype, 4, (int64_t[]){1, 2, KEYS, WIDTH}, 0.5);
    struct det_tensor *mask = det_full(e, dtype, 2, (int64_t[]){ROWS, KEYS}, -3.38e38);
    struct det_tensor *y = det_scaled_dot_product_attention(e, q, k, v, .mask = mask);
    assert_true(det_item(e, det_mean(e, det_cast(e, y, DET_F32))) == 0.5);
    assert_int_equal(det_backward(e, det_sum(e, det_cast(e, det_scale(e, y, 0), DET_F32))), 0);
    assert_true(det_item(e, det_sum(e, det_cast(e, det_tensor_grad(k), DET_F32))) == 0);
    assert_fine(e);
    det_engine_destroy(e);
}

static void test_a_mask_of_the_least_number_leaves_the_mean(void **state)
{
    (void)state;
    least_mask(DET_F32);
    least_mask(DET_BF16);
}

static void test_tensors_too_large_for_cudnn_go_another_way(void **state)
{
    assert_int_equal(runs_with("EMULATED_ELEMENTS", "75"), 1);
    assert_int_equal(runs_with("EMULATED_ELEMENTS", "74"), 0);
}

static void test_an_algorithm_that_wants_gigabytes_is_passed_over(void **state)
{
    assert_int_equal(runs_with("EMULATED_ALGO_BYTES", "1024"), 1);
    assert_int_equal(runs_with("EMULATED_ALGO_BYTES", "2147483648"), 0);
}

/* The second image of a channels-last batch begins at 4 * 75 bytes. */
static void test_a_view_at_an_odd_address_is_copied(void **state)
{
    struct det_engine *e = open_engine("cuda");
    long *runs = counter(EMULATED_CONV);
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){2, 3, 7, 7}, 1);
    struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){3, 3, 3, 3}, 1);
    struct det_tensor *y = det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
    struct det_tensor *second = det_narrow(e, y, 0, 1, 1);
    struct det_tensor *z = det_conv2d(e, second, w, NULL, &(const struct det_conv2d_options){0});
    assert_true(det_item(e, det_sum(e, z)) == 27 * 27 * 27);
    assert_int_equal(*runs, 2);
    assert_fine(e);
    det_engine_destroy(e);
}

static void test_memory_that_cudnn_lacks_is_memory(void **state)
{
    struct det_engine *e = open_engine("cuda");
    struct det_err err;
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){1, 3, 5, 5}, 1);
    struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){2, 3, 3, 3}, 1);
    setenv("EMULATED_DNN_MEMORY", "0", 1);
    det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
    unsetenv("EMULATED_DNN_MEMORY");
    assert_int_equal(det_engine_error(e, &err), DET_ENOMEM);
    det_engine_destroy(e);
}

/* Another engine would give other bits, and only where memory is short. */
static void test_an_engine_is_not_chosen_by_what_memory_is_free(void **state)
{
    struct det_engine *e = open_engine("cuda");
    struct det_err err;
    struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){1, 3, 5, 5}, 1);
    struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){2, 3, 3, 3}, 1);
    setenv("EMULATED_PLAN_MEMORY", "0", 1);
    det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
    unsetenv("EMULATED_PLAN_MEMORY");
    assert_int_equal(det_engine_error(e, &err), DET_ENOMEM);
    det_engine_clear_error(e);
    long *queries = counter(EMULATED_QUERY), before = *queries;
    det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
    assert_int_equal(*queries, before + 1); /* the graph API's, not v7's too */
    assert_fine(e);
    det_engine_destroy(e);
}

/* The words for a fault of a kernel: it is met by the next one, unless each is waited for. */
static void fault(struct det_err *ret)
{
    struct det_engine *e = open_engine("cuda");
    setenv("EMULATED_FAULT", "1", 1);
    struct det_tensor *x = det_relu(e, det_full(e, DET_F32, 1, (int64_t[]){7}, 7));
    det_item(e, x);
    assert_int_equal(det_engine_error(e, ret), DET_EDEVICE);
    unsetenv("EMULATED_FAULT");
    det_engine_destroy(e);
}

static void test_a_fault_says_that_it_may_be_an_earlier_ones(void **state)
{
    struct det_err err;
    fault(&err);
    assert_non_null(strstr(err.text, "an illegal memory access"));
    assert_non_null(strstr(err.text, "or one before it: DET_CUDA_SYNC=1 finds which"));
    assert_non_null(
        strstr(err.text, "cuda:0 emulated, driver for CUDA 12.4, runtime 13.0, cuDNN 9"));
    assert_null(strstr(err.text, "fill"));
}

/* The libraries meet what a kernel before them did, and run where the engine's kernels do. */
static void test_a_fault_is_met_by_a_library(void **state)
{
    struct det_err err;
    for (int is_conv = 0; is_conv < 2; is_conv++) {
        struct det_engine *e = open_engine("cuda");
        struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){1, 3, 4, 4}, 1);
        struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){2, 3, 3, 3}, 1);
        struct det_tensor *a = det_full(e, DET_F64, 2, (int64_t[]){4, 4}, 1);
        setenv("EMULATED_FAULT", "2", 1); /* the launch before is the first */
        det_relu(e, a);
        if (is_conv)
            det_conv2d(e, x, w, NULL, &(const struct det_conv2d_options){0});
        else
            det_matmul(e, a, a);
        assert_int_equal(det_engine_error(e, &err), DET_EDEVICE);
        assert_non_null(strstr(err.text, is_conv ? "cuDNN" : "cuBLAS"));
        assert_non_null(strstr(err.text, "or one before it"));
        unsetenv("EMULATED_FAULT");
        det_engine_destroy(e);
    }
}

/* In a process of its own: the setting is looked at once. */
static void test_a_fault_is_found_by_waiting_for_each_kernel(void **state)
{
    struct det_err err;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("DET_CUDA_SYNC", "1", 1);
        fault(&err);
        _exit(strstr(err.text, "fill") == NULL);
    }
    assert_true(waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

/* What a process that is told to prints when it closes the device: a row of each kernel and shape.
 */
static void profile(const char *to)
{
    setenv("DET_CUDA_PROFILE", "1", 1);
    if (!freopen(to, "w", stderr))
        _exit(1);
    struct det_engine *e = open_engine("cuda");
    for (int i = 0; i < 5; i++)
        det_relu(e, det_full(e, DET_F32, 2, (int64_t[]){3, 7}, i));
    det_engine_destroy(e);
    fflush(stderr);
    _exit(0);
}

static void test_a_profile_has_a_row_of_each_kernel_and_shape(void **state)
{
    char path[] = "/tmp/det-profile-XXXXXX", text[2048] = "";
    int status, fd = mkstemp(path);
    pid_t pid = fork();
    if (pid == 0)
        profile(path);
    assert_true(waitpid(pid, &status, 0) == pid && status == 0);
    assert_true(read(fd, text, sizeof text - 1) > 0);
    close(fd);
    unlink(path);
    /* The first three calls of a shape are not counted; an emulated call takes a millisecond. */
    assert_non_null(
        strstr(text, "2    1000.00    1000.00  50.00  relu float32[3,7] -> float32[3,7]"));
    assert_non_null(strstr(text, "2    1000.00    1000.00  50.00  fill -> float32[3,7]"));
    assert_non_null(strstr(text, "4000 in all"));
}

/* How many products and convolutions of f32 round their inputs, forwards and backwards: a product,
 * a linear layer, a convolution that cuDNN's graph API takes, and one that it refuses. */
static long round_inputs(void)
{
    struct det_engine *e = open_engine("cuda");
    long *rounded = counter(EMULATED_TF32);
    struct det_tensor *a = det_full(e, DET_F32, 2, (int64_t[]){4, 4}, 1);
    assert_true(det_item(e, det_sum(e, det_matmul(e, a, a))) == 64);
    run_linear(e, 16);
    for (int stride = 1; stride <= 2; stride++) { /* of as many channels as tiles of ours take */
        struct det_tensor *x = det_full(e, DET_F32, 4, (int64_t[]){2, 16, 9, 9}, 1);
        struct det_tensor *w = det_full(e, DET_F32, 4, (int64_t[]){16, 16, 3, 3}, 1);
        det_requires_grad(e, x);
        det_requires_grad(e, w);
        const struct det_conv2d_options o = {.stride = stride};
        det_backward(e, det_sum(e, det_conv2d(e, x, w, NULL, &o)));
    }
    assert_fine(e);
    det_engine_destroy(e);
    return *rounded;
}

/* In processes of their own: the setting is looked at once. */
static void test_tf32_is_for_who_allows_it(void **state)
{
    enum { EACH = 1 + 3 + 2 * 3 };
    for (int allowed = 0; allowed < 2; allowed++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            setenv("DET_ALLOW_TF32", allowed ? "1" : "0", 1);
            _exit((int)round_inputs());
        }
        assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), allowed ? EACH : 0);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fault_is_found_by_waiting_for_each_kernel), /* no threads yet */
        cmocka_unit_test(test_a_profile_has_a_row_of_each_kernel_and_shape),
        cmocka_unit_test(test_tf32_is_for_who_allows_it),
        cmocka_unit_test(test_a_fault_says_that_it_may_be_an_earlier_ones),
        cmocka_unit_test(test_a_fault_is_met_by_a_library),
        cmocka_unit_test(test_what_is_refused_is_not_tried_again),
        cmocka_unit_test(test_a_bias_costs_a_linear_layer_no_kernel),
        cmocka_unit_test(test_a_convolution_waits_for_what_is_copied_to_it),
        cmocka_unit_test(test_a_mask_of_the_least_number_leaves_the_mean),
        cmocka_unit_test(test_tensors_too_large_for_cudnn_go_another_way),
        cmocka_unit_test(test_an_algorithm_that_wants_gigabytes_is_passed_over),
        cmocka_unit_test(test_a_view_at_an_odd_address_is_copied),
        cmocka_unit_test(test_memory_that_cudnn_lacks_is_memory),
        cmocka_unit_test(test_an_engine_is_not_chosen_by_what_memory_is_free),
        cmocka_unit_test(test_a_batch_may_be_refilled_at_once),
        cmocka_unit_test(test_scratch_memory_is_taken_from_the_pool),
        cmocka_unit_test(test_memory_of_copies_is_given_to_tensors),
        cmocka_unit_test(test_two_devices_in_one_thread),
        cmocka_unit_test(test_an_engine_moves_to_another_thread),
        cmocka_unit_test(test_algorithms_are_asked_for_once_a_shape),
        cmocka_unit_test(test_plans_make_room_when_their_runs_are_done),
        cmocka_unit_test(test_a_driver_that_is_too_old_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
