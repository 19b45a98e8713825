/* Tensors of the emulated device that are read while their engine goes on (device_reads.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "device_reads.h"
#include "mem.h"

enum { TENSORS = 3, N = 1 << 18 }; /* a MiB each */

struct reading {
    struct det_engine *e;
    struct device_reads *r;
    struct det_tensor *t[TENSORS];
    float *host[TENSORS];
};

/* The engine owns t for the step: what changes them is done in it. */
static void begin(struct reading *a)
{
    struct det_err err;
    const struct det_engine_options o = {.device = "cuda", .seed = 1, .threads = 1};
    if (det_engine_create(&o, &a->e, &err) < 0)
        fail_msg("%s", err.text);
    a->r = device_reads_create(a->e);
    for (int i = 0; i < TENSORS; i++) {
        a->t[i] = det_full(a->e, DET_F32, 1, (int64_t[]){N - i}, i + 1);
        a->host[i] = det_zalloc(N * sizeof(float));
        assert_true(device_reads_takes(a->r, a->t[i]));
        device_reads_add(a->r, a->t[i], a->host[i]);
    }
    if (device_reads_begin(a->r, &err) < 0)
        fail_msg("%s", err.text);
}

static void change(struct reading *a)
{
    struct det_err err;
    for (int i = 0; i < TENSORS; i++)
        assert_int_equal(
            det__copy(a->e, det_full(a->e, DET_F32, 1, (int64_t[]){N - i}, -1), a->t[i], &err), 0);
}

static void assert_first_values(const struct reading *a)
{
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < N; k++)
            assert_true(a->host[i][k] == (k < N - i ? (float)(i + 1) : 0));
}

static void finish(struct reading *a)
{
    struct det_err err;
    assert_int_equal(det_engine_error(a->e, &err), 0);
    device_reads_destroy(a->r);
    for (int i = 0; i < TENSORS; i++)
        free(a->host[i]);
    det_engine_destroy(a->e);
}

static void *fetch(void *arg)
{
    struct det_err err;
    return device_reads_fetch(arg, &err) < 0 ? arg : NULL;
}

static void test_training_goes_on_meanwhile(void **state)
{
    struct reading a = {0};
    pthread_t thread;
    void *failed;
    begin(&a);
    assert_int_equal(pthread_create(&thread, NULL, fetch, a.r), 0);
    for (int i = 0; i < 20; i++)
        change(&a);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_null(fetch(a.r)); /* again */
    assert_first_values(&a);
    finish(&a);
}

static void test_a_device_that_has_no_room_is_read_at_once(void **state)
{
    struct reading a = {0};
    struct det_err err;
    setenv("EMULATED_MEMORY", "6200000", 1); /* not for the tensors and their copy */
    begin(&a);
    assert_false(device_reads_yield(a.e));
    assert_int_equal(det__copy(a.e, det_full(a.e, DET_F32, 1, (int64_t[]){N}, -1), a.t[0], &err),
                     0);
    assert_first_values(&a);
    assert_null(fetch(a.r));
    assert_first_values(&a);
    unsetenv("EMULATED_MEMORY");
    finish(&a);
}

static void test_the_copy_gives_way(void **state)
{
    struct reading a = {0};
    setenv("EMULATED_MEMORY", "10000000", 1);
    begin(&a);
    change(&a);
    det_full(a.e, DET_F32, 1, (int64_t[]){N}, 1);
    det_full(a.e, DET_F32, 1, (int64_t[]){N}, 1);
    assert_false(device_reads_yield(a.e)); /* one of them had it */
    assert_first_values(&a);
    assert_null(fetch(a.r));
    unsetenv("EMULATED_MEMORY");
    finish(&a);
}

static void test_what_nobody_wants_is_forgotten(void **state)
{
    struct reading a = {0};
    begin(&a);
    finish(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_goes_on_meanwhile),
        cmocka_unit_test(test_a_device_that_has_no_room_is_read_at_once),
        cmocka_unit_test(test_the_copy_gives_way),
        cmocka_unit_test(test_what_nobody_wants_is_forgotten),
    };
    int failed = 0;
    static const char *const orders[] = {"early", "late"}; /* of streams that nothing orders */
    for (int i = 0; i < 2; i++) {
        setenv("EMULATED_ORDER", orders[i], 1);
        failed += cmocka_run_group_tests(tests, NULL, NULL);
    }
    return failed;
}
