/* The sampler chain against the check values of docs/contract/loop.md 8. */
#include "mem.h"
#include "sampler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* PyTorch's, from torch.manual_seed(777); next(iter(DataLoader(range(8), 8, shuffle=True))), twice
 * over one iterator; test_torch_data.py compares many more. */
static void shuffle_check_values(void **state)
{
    int64_t v[8], want[2][8] = {{0, 4, 1, 2, 6, 7, 5, 3}, {1, 2, 0, 7, 6, 4, 5, 3}};
    for (int epoch = 0; epoch < 2; epoch++) {
        sampler_shuffle(777, epoch, v, 8);
        assert_memory_equal(v, want[epoch], sizeof v);
    }
    assert_int_equal(sampler_epoch_seed(777, 0), 5577495087507753894);
    assert_int_equal(sampler_epoch_seed(777, 3), 6184333440679374964);
}

static void shuffle_depends_on_seed_and_epoch_only(void **state)
{
    int64_t a[100], b[100], seen[100] = {0};
    sampler_shuffle(5, 7, a, 100);
    sampler_shuffle(5, 7, b, 100);
    assert_memory_equal(a, b, sizeof a);
    for (int i = 0; i < 100; i++)
        seen[a[i]]++;
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
    sampler_shuffle(5, 8, b, 100);
    assert_memory_not_equal(a, b, sizeof a);
    sampler_shuffle(6, 7, b, 100);
    assert_memory_not_equal(a, b, sizeof a);
    sampler_shuffle(1, 0, NULL, 0);
}

/* DistributedSampler over 19 items, 4 workers. */
static void shards(void **state)
{
    static const int64_t lengths[] = {5, 5, 5, 4};
    for (int rank = 0; rank < 4; rank++) {
        struct sampler_plan p = {.batches = 19, .size = 4, .rank = rank};
        struct sampler_pos pos;
        assert_int_equal(sampler_shard_length(19, 4, rank), lengths[rank]);
        for (int64_t k = 0; k < lengths[rank]; k++) {
            assert_true(sampler_at(&p, k, &pos));
            assert_int_equal(pos.index, rank + 4 * k);
            assert_int_equal(pos.epoch, 0);
        }
        assert_false(sampler_at(&p, lengths[rank], &pos));
    }
}

/* Repeat below the shards: 5 batches for 2 ranks rotate between epochs. Skip is of the rank's
 * share. */
static void repeat_shard_skip(void **state)
{
    struct sampler_plan p = {.batches = 5, .repeat = true, .size = 2, .rank = 1};
    static const int64_t index[] = {1, 3, 0, 2, 4, 1}, epoch[] = {0, 0, 1, 1, 1, 2};
    struct sampler_pos pos;
    for (int64_t k = 0; k < 6; k++) {
        p.skip = 0;
        assert_true(sampler_at(&p, k, &pos));
        assert_int_equal(pos.index, index[k]);
        assert_int_equal(pos.epoch, epoch[k]);
        p.skip = k;
        assert_true(sampler_at(&p, 0, &pos));
        assert_int_equal(pos.index, index[k]);
    }
}

/* Batches of 2 over 19 items, 4 workers: rank 1 gets [2,3],[10,11],[18]. */
static void batch_ranges(void **state)
{
    struct sampler_plan p = {.batches = 10, .size = 4, .rank = 1};
    static const int64_t first[] = {2, 10, 18}, count[] = {2, 2, 1};
    struct sampler_pos pos;
    int64_t f, n;
    for (int64_t k = 0; k < 3; k++) {
        assert_true(sampler_at(&p, k, &pos));
        sampler_batch_range(19, 2, pos.index, &f, &n);
        assert_int_equal(f, first[k]);
        assert_int_equal(n, count[k]);
    }
    assert_false(sampler_at(&p, 3, &pos));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffle_check_values),
        cmocka_unit_test(shuffle_depends_on_seed_and_epoch_only),
        cmocka_unit_test(shards),
        cmocka_unit_test(repeat_shard_skip),
        cmocka_unit_test(batch_ranges),
    };
    return cmocka_run_group_tests_name("sampler", tests, NULL, NULL);
}
