#include "rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "uuid.h"
#include <string.h>

/* The generator's published first output for its default seed (Matsumoto & Nishimura). */
static void test_first_outputs(void **state)
{
    struct mt19937 r;
    mt19937_seed(&r, 5489);
    assert_int_equal(mt19937_u32(&r), 3499211612u);
    for (int i = 2; i < 10000; i++)
        mt19937_u32(&r);
    assert_int_equal(mt19937_u32(&r), 4123659995u); /* the C++ standard's check value */
}

static void test_shuffle(void **state)
{
    struct mt19937 r;
    int64_t v[] = {0, 1, 2, 3, 4};
    mt19937_seed(&r, 777);
    mt19937_shuffle(&r, v, 5);
    assert_memory_equal(v, ((int64_t[]){0, 4, 1, 2, 3}), sizeof v);
    for (int64_t i = 0; i < 5; i++)
        v[i] = i;
    mt19937_shuffle(&r, v, 5);
    assert_memory_equal(v, ((int64_t[]){2, 0, 1, 3, 4}), sizeof v);
    mt19937_seed(&r, 777);
    for (int64_t i = 0; i < 5; i++)
        v[i] = i; /* five batches of two of 0..9 */
    mt19937_shuffle(&r, v, 5);
    assert_memory_equal(v, ((int64_t[]){0, 4, 1, 2, 3}), sizeof v);
}

/* pytorch-api, seeds: request id and trial seed of a search without random hyperparameters. */
static void first_trial(uint32_t seed, char id[UUID_STR_MAX], uint32_t *trial_seed)
{
    struct mt19937 r;
    uint8_t b[16];
    mt19937_seed(&r, seed);
    for (int i = 0; i < 4; i++) {
        uint32_t v = mt19937_u32(&r);
        for (int k = 0; k < 4; k++)
            b[4 * i + k] = (uint8_t)(v >> 8 * k);
    }
    uuid_from_bytes(b, id);
    *trial_seed = (uint32_t)mt19937_bounded(&r, 0x7fffffff);
}

static void test_trial_seeds(void **state)
{
    char id[UUID_STR_MAX];
    uint32_t seed;
    first_trial(0, id, &seed);
    assert_string_equal(id, "ac0a7f8c-2faa-4497-b5a6-16b7c0cc21d8");
    assert_int_equal(seed, 441365315);
    first_trial(777, id, &seed);
    assert_int_equal(seed, 266444375);
}

static void test_bounded(void **state)
{
    struct mt19937 r, same;
    mt19937_seed(&r, 3);
    same = r;
    assert_true(mt19937_bounded(&r, 0) == 0);
    assert_memory_equal(&r, &same, sizeof r);
    for (int i = 0; i < 1000; i++) {
        assert_true(mt19937_bounded(&r, 6) <= 6);
        assert_true(mt19937_bounded(&r, UINT64_C(1) << 40) <= UINT64_C(1) << 40);
        double d = mt19937_double(&r);
        assert_true(d >= 0 && d < 1);
        d = mt19937_uniform(&r, -3, 5);
        assert_true(d >= -3 && d < 5);
    }
    mt19937_bounded(&r, UINT64_MAX);
}

/* Random123's known-answer vectors for philox4x32-10. */
static void test_philox(void **state)
{
    uint32_t out[4];
    philox4x32(0, 0, 0, out);
    assert_memory_equal(out, ((uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}), 16);
    philox4x32(UINT64_MAX, UINT64_MAX, UINT64_MAX, out);
    assert_memory_equal(out, ((uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}), 16);
    philox4x32(UINT64_C(0x299f31d0a4093822), UINT64_C(0x0370734413198a2e),
               UINT64_C(0x85a308d3243f6a88), out);
    assert_memory_equal(out, ((uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_outputs), cmocka_unit_test(test_shuffle),
        cmocka_unit_test(test_trial_seeds),   cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_philox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
