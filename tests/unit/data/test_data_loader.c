/* Loaders and batches: shapes, the order given, prefetching, errors at their own batch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "data_loader.h"
#include "mem.h"
#include <string.h>

static struct det_err err;
static int64_t fail_at;

static int get(void *self, int64_t index, void *const *out, struct det_err *e)
{
    float x[2] = {(float)index, (float)-index};
    if (index == fail_at)
        return det_fail(e, DET_EIO, "unreadable");
    memcpy(out[0], x, sizeof x);
    memcpy(out[1], &index, sizeof index);
    return 0;
}

static const struct det_dataset_type type = {.get = get};
static const struct det_field fields[] = {
    {.name = "x", .dtype = DET_F32, .ndim = 1, .dims = {2}}, {.name = "i", .dtype = DET_I64}};

static struct det_data_loader *loader(int64_t records, int64_t batch_size, int prefetch,
                                      bool drop_last)
{
    fail_at = -1;
    return det_data_loader(det_dataset_callback(&type, NULL, records, fields, 2, &err), &err,
                           .batch_size = batch_size, .prefetch = prefetch, .drop_last = drop_last);
}

/* Batches of a backward order over `n` records, three at a time. */
struct order {
    int64_t n, buf[3];
};

static int backwards(void *arg, int64_t k, struct data_pick *ret, struct det_err *e)
{
    struct order *o = arg;
    int64_t left = o->n - 3 * k;
    size_t n = left < 3 ? (size_t)left : 3;
    if (left <= 0)
        return det_fail(e, DET_ENOENT, "no more");
    for (size_t i = 0; i < n; i++)
        o->buf[i] = left - 1 - (int64_t)i;
    *ret = (struct data_pick){o->buf, n, k};
    return 0;
}

static void check_batch(const struct det_batch *b, int64_t left)
{
    int64_t n = left < 3 ? left : 3, i[3];
    struct det_tensor *x = det_batch_tensor(b, "x");
    assert_int_equal(det_batch_length(b), n);
    assert_int_equal(det_tensor_ndim(x), 2);
    assert_int_equal(det_tensor_dim(x, 0), n);
    assert_int_equal(det_tensor_dim(x, 1), 2);
    assert_true(((float *)det_tensor_data(x))[1] == (float)-(left - 1));
    assert_int_equal(det_tensor_read(det_batch_tensor(b, "i"), i, (size_t)n * 8, &err), 0);
    for (int64_t k = 0; k < n; k++)
        assert_int_equal(i[k], left - 1 - k);
    assert_null(det_batch_tensor(b, "z"));
}

static void batches_come_in_the_given_order(void **state)
{
    for (int prefetch = 0; prefetch <= 4; prefetch++) {
        struct order o = {.n = 100};
        const struct det_batch *b;
        struct det_data_loader *l = loader(100, 3, prefetch, false);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(data_loader_start(l, (struct data_order){backwards, &o, 0}, &err), 0);
            for (int64_t left = 100; left > 0; left -= 3) {
                assert_int_equal(data_loader_next(l, &b, &err), 0);
                check_batch(b, left);
            }
            assert_int_equal(data_loader_next(l, &b, &err), DET_ENOENT);
            assert_int_equal(data_loader_next(l, &b, &err), DET_ENOENT);
        }
        det_data_loader_destroy(l);
    }
}

static void a_failure_comes_at_its_own_batch(void **state)
{
    for (int prefetch = 0; prefetch <= 4; prefetch++) {
        struct order o = {.n = 30};
        const struct det_batch *b;
        struct det_data_loader *l = loader(30, 3, prefetch, false);
        fail_at = 19; /* in the fourth batch: 20 19 18 */
        assert_int_equal(data_loader_start(l, (struct data_order){backwards, &o, 0}, &err), 0);
        for (int k = 0; k < 3; k++)
            assert_int_equal(data_loader_next(l, &b, &err), 0);
        assert_int_equal(data_loader_next(l, &b, &err), DET_EIO);
        assert_non_null(strstr(err.text, "record 19: unreadable"));
        assert_int_equal(data_loader_next(l, &b, &err), DET_EIO);
        det_data_loader_destroy(l);
    }
}

/* Destroyed or started anew while its thread is running ahead. */
static void stopping_early_is_fine(void **state)
{
    struct order o = {.n = 1000000};
    const struct det_batch *b;
    for (int k = 0; k < 20; k++) {
        struct det_data_loader *l = loader(1000000, 3, 3, false);
        assert_int_equal(data_loader_start(l, (struct data_order){backwards, &o, 0}, &err), 0);
        for (int i = 0; i < k; i++)
            assert_int_equal(data_loader_next(l, &b, &err), 0);
        det_data_loader_destroy(l);
    }
}

static void lengths_and_sequential_access(void **state)
{
    struct det_data_loader *l = loader(10, 4, 0, false);
    assert_int_equal(det_data_loader_length(l), 3);
    assert_int_equal(det_batch_length(det_data_loader_get(l, 2, &err)), 2);
    assert_int_equal(det_batch_length(det_data_loader_get(l, 0, &err)), 4);
    assert_null(det_data_loader_get(l, 3, &err));
    assert_null(det_data_loader_get(l, -1, &err));
    det_data_loader_destroy(l);
    l = loader(10, 4, 0, true);
    assert_int_equal(det_data_loader_length(l), 2);
    det_data_loader_destroy(l);
    l = loader(10, 0, 0, false);
    assert_int_equal(det_data_loader_length(l), 10);
    det_data_loader_destroy(l);
    l = loader(2, INT64_MAX / 8, 0, false);
    assert_int_equal(det_batch_length(det_data_loader_get(l, 0, &err)), 2);
    det_data_loader_destroy(l);
}

static void wrong_options_are_refused(void **state)
{
    assert_null(loader(10, -1, 0, false));
    assert_null(loader(10, 1, -1, false));
    assert_null(loader(10, 1, 10000, false));
    assert_null(loader(0, 1, 0, false));
    assert_null(det_data_loader(NULL, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_in_the_given_order),
        cmocka_unit_test(a_failure_comes_at_its_own_batch),
        cmocka_unit_test(stopping_early_is_fine),
        cmocka_unit_test(lengths_and_sequential_access),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
