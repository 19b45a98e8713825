/* Loaders and batches: shapes, the order given, prefetching, errors at their own batch. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "batch.h"
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
static const struct det_field fields[] = {{.name = "x", .dtype = DET_F32, .ndim = 1, .dims = {2}},
                                          {.name = "i", .dtype = DET_I64}};

static struct det_dataset *dataset(int64_t records)
{
    return det_dataset_callback(&type, NULL, records, fields, 2, &err);
}

static struct det_data_loader *loader(int64_t records, int64_t batch_size, int prefetch,
                                      bool drop_last)
{
    fail_at = -1;
    return det_data_loader(dataset(records), &err, .batch_size = batch_size, .prefetch = prefetch,
                           .drop_last = drop_last);
}

/* Batches of three, `w` workers that may be w + 1 ahead. */
static struct det_data_loader *with_workers(int64_t records, int w)
{
    fail_at = -1;
    return det_data_loader(dataset(records), &err, .batch_size = 3, .workers = w,
                           .prefetch = w ? w + 1 : 0);
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
    for (int workers = 0; workers <= 4; workers++) {
        struct order o = {.n = 100};
        const struct det_batch *b;
        struct det_data_loader *l = with_workers(100, workers);
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
    for (int workers = 0; workers <= 4; workers++) {
        struct order o = {.n = 30};
        const struct det_batch *b;
        struct det_data_loader *l = with_workers(30, workers);
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
        struct det_data_loader *l = with_workers(1000000, 1 + k % 3);
        assert_int_equal(data_loader_start(l, (struct data_order){backwards, &o, 0}, &err), 0);
        for (int i = 0; i < k; i++)
            assert_int_equal(data_loader_next(l, &b, &err), 0);
        det_data_loader_destroy(l);
    }
}

static struct det_batch *filling; /* cancel this one at record 3 */
static int64_t read_last;

static int get_and_cancel(void *self, int64_t index, void *const *out, struct det_err *e)
{
    read_last = index;
    if (index == 3)
        batch_cancel(filling);
    return 0;
}

/* So a pause does not wait for a batch of large images. */
static void canceling_ends_a_batch_at_its_record(void **state)
{
    static const struct det_dataset_type canceling = {.get = get_and_cancel};
    static const int64_t records[] = {0, 1, 2, 3, 4, 5};
    const struct data_pick pick = {records, 6, 0};
    struct det_dataset *ds = det_dataset_callback(&canceling, NULL, 6, fields, 2, &err);
    filling = batch_create(ds, 6, &(const struct det_loader_options){0}, &err);
    assert_int_equal(batch_fill(filling, &pick, 0, &err), DET_ECANCELED);
    assert_int_equal(read_last, 3);
    batch_destroy(filling);
    det_dataset_unref(ds);
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

/* ---- orders of one's own ---- */

static void check_records(const struct det_batch *b, const int64_t *want, int64_t n)
{
    int64_t i[8];
    assert_non_null(b);
    assert_int_equal(det_batch_length(b), n);
    assert_int_equal(det_tensor_read(det_batch_tensor(b, "i"), i, (size_t)n * 8, &err), 0);
    assert_memory_equal(i, want, (size_t)n * 8);
}

static void a_sampler_gives_the_order(void **state)
{
    static const int64_t list[] = {4, 4, 0, 9, 2};
    fail_at = -1;
    struct det_data_loader *l = det_data_loader(dataset(10), &err, .batch_size = 2,
                                                .sampler = det_sampler_list(list, 5, &err));
    assert_int_equal(det_data_loader_length(l), 3);
    check_records(det_data_loader_get(l, 0, &err), (int64_t[]){4, 4}, 2);
    check_records(det_data_loader_get(l, 2, &err), (int64_t[]){2}, 1);
    det_data_loader_destroy(l);
    l = det_data_loader(dataset(10), &err, .batch_size = 2, .drop_last = true,
                        .sampler = det_sampler_list(list, 5, &err));
    assert_int_equal(det_data_loader_length(l), 2);
    det_data_loader_destroy(l);
}

/* Epochs in any order, as a resume asks for them, give what one walk through all of them gives. */
static void epochs_of_a_sampler_are_found_again(void **state)
{
    int64_t walk[4][10];
    struct data_pick pick;
    fail_at = -1;
    struct det_data_loader *l = det_data_loader(
        dataset(10), &err,
        .batch_sampler = det_sampler_batch(det_sampler_random(10, 5, &err), 10, false, &err));
    assert_non_null(l);
    for (int e = 0; e < 4; e++) {
        assert_int_equal(data_loader_pick(l, e, 0, &pick, &err), 0);
        assert_int_equal(pick.epoch, e);
        memcpy(walk[e], pick.records, sizeof walk[e]);
    }
    assert_memory_not_equal(walk[0], walk[1], sizeof walk[0]);
    for (int i = 0; i < 4; i++) {
        int e = (int[]){2, 0, 3, 1}[i];
        assert_int_equal(data_loader_pick(l, e, 0, &pick, &err), 0);
        assert_memory_equal(pick.records, walk[e], sizeof walk[e]);
    }
    det_data_loader_destroy(l);
}

static void an_endless_sampler_goes_on(void **state)
{
    struct data_pick pick;
    fail_at = -1;
    struct det_sampler *s = det_sampler_repeat(det_sampler_sequential(3, &err), &err);
    s = det_sampler_skip(s, 1, &err);
    struct det_data_loader *l =
        det_data_loader(dataset(3), &err, .batch_sampler = det_sampler_batch(s, 1, false, &err));
    assert_int_equal(det_data_loader_length(l), 3);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(data_loader_pick(l, i / 3, i % 3, &pick, &err), 0);
        assert_int_equal(pick.records[0], (i + 1) % 3);
    }
    det_data_loader_destroy(l);
}

static struct det_sampler *sequential(int64_t n)
{
    return det_sampler_sequential(n, &err);
}

static void wrong_samplers_are_refused(void **state)
{
    fail_at = -1;
    assert_null(det_data_loader(dataset(3), &err, .shuffle = true, .sampler = sequential(3)));
    assert_null(det_data_loader(dataset(3), &err, .sampler = sequential(4)));
    assert_non_null(strstr(err.text, "record 3 of 3"));
    assert_null(det_data_loader(dataset(3), &err, .sampler = sequential(0)));
    assert_null(det_data_loader(dataset(3), &err, .batch_sampler = sequential(3)));
    assert_null(det_data_loader(dataset(3), &err,
                                .sampler = det_sampler_batch(sequential(3), 1, false, &err)));
    assert_null(det_data_loader(dataset(3), &err, .drop_last = true,
                                .batch_sampler = det_sampler_batch(sequential(3), 1, false, &err)));
    assert_null(det_data_loader(NULL, &err, .sampler = sequential(3)));
    assert_null(det_data_loader(dataset(3), &err, .workers = -1));
}

/* ---- collate ---- */

/* Replaces x by the sum of its rows, and adds a number by chance. */
static int sum_rows(void *arg, struct det_batch *b, struct det_err *e)
{
    const float *x = det_tensor_data(det_batch_tensor(b, "x"));
    struct det_draws draws = det_batch_draws(b);
    double chance = det_draw_uniform(&draws, 0, 1);
    float sum[2] = {0};
    for (int64_t i = 0; i < 2 * det_batch_length(b); i++)
        sum[i % 2] += x[i];
    if (sum[0] == *(float *)arg)
        return det_fail(e, DET_EINVAL, "bad sum");
    struct det_tensor *t = det_host_tensor(DET_F32, 1, (int64_t[]){2}, e);
    struct det_tensor *c = det_host_tensor(DET_F32, 0, NULL, e);
    float f = (float)chance;
    det_tensor_write(t, sum, sizeof sum, e);
    det_tensor_write(c, &f, sizeof f, e);
    int rc = det_batch_set(b, "x", t, e);
    return rc < 0 ? rc : det_batch_set(b, "chance", c, e);
}

static void collate_changes_batches(void **state)
{
    float chances[3][10], bad = -1;
    for (int workers = 0; workers < 3; workers++) {
        struct order o = {.n = 30};
        const struct det_batch *b;
        fail_at = -1;
        struct det_data_loader *l =
            det_data_loader(dataset(30), &err, .batch_size = 3, .workers = workers,
                            .collate = sum_rows, .collate_arg = &bad);
        assert_int_equal(data_loader_start(l, (struct data_order){backwards, &o, 7}, &err), 0);
        for (int k = 0; k < 10; k++) {
            float x[2];
            assert_int_equal(data_loader_next(l, &b, &err), 0);
            assert_int_equal(det_tensor_read(det_batch_tensor(b, "x"), x, sizeof x, &err), 0);
            assert_true(x[0] == (float)(3 * (28 - 3 * k)) && x[1] == -x[0]);
            assert_int_equal(det_tensor_read(det_batch_tensor(b, "chance"), &chances[workers][k],
                                             sizeof(float), &err),
                             0);
        }
        det_data_loader_destroy(l);
    }
    assert_memory_equal(chances[0], chances[1], sizeof chances[0]);
    assert_memory_equal(chances[0], chances[2], sizeof chances[0]);
    assert_true(chances[0][0] != chances[0][1]);
    bad = 3;
    struct det_data_loader *l = det_data_loader(dataset(3), &err, .batch_size = 3,
                                                .collate = sum_rows, .collate_arg = &bad);
    assert_null(det_data_loader_get(l, 0, &err));
    assert_string_equal(err.text, "collate: bad sum");
    det_data_loader_destroy(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_in_the_given_order),
        cmocka_unit_test(a_failure_comes_at_its_own_batch),
        cmocka_unit_test(stopping_early_is_fine),
        cmocka_unit_test(canceling_ends_a_batch_at_its_record),
        cmocka_unit_test(lengths_and_sequential_access),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(a_sampler_gives_the_order),
        cmocka_unit_test(epochs_of_a_sampler_are_found_again),
        cmocka_unit_test(an_endless_sampler_goes_on),
        cmocka_unit_test(wrong_samplers_are_refused),
        cmocka_unit_test(collate_changes_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
