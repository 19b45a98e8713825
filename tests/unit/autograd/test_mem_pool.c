/* The pool of device memory: what it keeps, and what it gives back for other sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "mem_pool.h"

static size_t held; /* what the system has lent */

static int take(struct det_device *d, size_t bytes, void **ret, struct det_err *err)
{
    (void)d, (void)err;
    held += bytes;
    *ret = malloc(1);
    return 0;
}

static void give(struct det_device *d, void *p, size_t bytes)
{
    (void)d;
    held -= bytes;
    free(p);
}

static void ignore(struct det_device *d)
{
    (void)d;
}

#define MIB ((size_t)1 << 20)
#define N   32

/* N pieces of one size, taken and given back. */
static void round_of(struct mem_pool *p, size_t bytes)
{
    void *at[N];
    for (int i = 0; i < N; i++)
        assert_int_equal(mem_pool_alloc(p, bytes, &at[i], NULL), 0);
    for (int i = 0; i < N; i++)
        mem_pool_free(p, at[i], bytes);
}

static struct det_backend backend(bool host)
{
    return (struct det_backend){
        .host_memory = host, .mem_alloc = take, .mem_free = give, .device_close = ignore};
}

static void test_other_sizes_use_what_is_unused(void **state)
{
    (void)state;
    const struct det_backend b = backend(true);
    struct mem_pool *p = mem_pool_create(&b, NULL, 0);
    for (size_t bytes = 8 * MIB; bytes >= 2 * MIB; bytes /= 2)
        round_of(p, bytes);
    assert_true(held >= 8 * N * MIB);
    assert_true(held <= mem_pool_peak_bytes(p) + 32 * MIB);
    round_of(p, 8 * MIB);
    assert_true(held <= mem_pool_peak_bytes(p) + 32 * MIB);
    mem_pool_destroy(p);
    assert_int_equal(held, 0);
}

static void test_a_small_model_and_a_device_keep_all(void **state)
{
    (void)state;
    const struct det_backend host = backend(true), device = backend(false);
    struct mem_pool *p = mem_pool_create(&host, NULL, 0);
    round_of(p, MIB / 4);
    round_of(p, MIB / 8);
    assert_int_equal(held, N * (MIB / 4 + MIB / 8));
    mem_pool_destroy(p);
    p = mem_pool_create(&device, NULL, 0);
    round_of(p, 8 * MIB);
    round_of(p, 4 * MIB);
    assert_int_equal(held, N * 12 * MIB);
    mem_pool_destroy(p);
    assert_int_equal(held, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_sizes_use_what_is_unused),
        cmocka_unit_test(test_a_small_model_and_a_device_keep_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
