/* The samplers against the check values of the contract. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "det/sampler.h"
#include "det/err.h"
#include <stdio.h>
#include <string.h>

static struct det_err err;

/* "0 4 1 | 8 9": items of several records in brackets, at most 20 items. */
static const char *once(struct det_sampler *s)
{
    static char text[512];
    const int64_t *item;
    size_t n, len = 0;
    det_sampler_begin(s);
    text[0] = '\0';
    for (int i = 0; i < 20 && det_sampler_next(s, &item, &n); i++) {
        for (size_t k = 0; k < n; k++)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld",
                                    k   ? ","
                                    : i ? " "
                                        : "",
                                    (long long)item[k]);
    }
    return text;
}

static struct det_sampler *seq(int64_t n)
{
    return det_sampler_sequential(n, &err);
}

static void check(struct det_sampler *s, int64_t length, const char *const *passes)
{
    assert_non_null(s);
    assert_int_equal(det_sampler_length(s), length);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; passes[i]; i++)
            assert_string_equal(once(s), passes[i]);
        det_sampler_rewind(s);
    }
    det_sampler_destroy(s);
}

#define CHECK(s, length, ...) check(s, length, (const char *const[]){__VA_ARGS__, NULL})

static void sequences(void **state)
{
    CHECK(seq(4), 4, "0 1 2 3", "0 1 2 3");
    CHECK(seq(0), 0, "");
    CHECK(det_sampler_list((int64_t[]){5, 3, 5}, 3, &err), 3, "5 3 5", "5 3 5");
    CHECK(det_sampler_batch(seq(5), 2, false, &err), 3, "0,1 2,3 4", "0,1 2,3 4");
    CHECK(det_sampler_batch(seq(5), 2, true, &err), 2, "0,1 2,3");
    CHECK(det_sampler_batch(seq(4), 2, true, &err), 2, "0,1 2,3");
}

static void repeat_and_skip(void **state)
{
    CHECK(det_sampler_repeat(seq(6), &err), 6, "0 1 2 3 4 5 0 1 2 3 4 5 0 1 2 3 4 5 0 1");
    CHECK(det_sampler_repeat(seq(0), &err), 0, "");
    CHECK(det_sampler_skip(seq(5), 2, &err), 5, "2 3 4", "2 3 4");
    CHECK(det_sampler_skip(seq(2), 5, &err), 2, "");
    CHECK(det_sampler_skip(det_sampler_repeat(seq(9), &err), 7, &err), 9,
          "7 8 0 1 2 3 4 5 6 7 8 0 1 2 3 4 5 6 7 8");
}

/* 19 items, 4 workers. */
static void shards(void **state)
{
    CHECK(det_sampler_distributed(seq(19), 4, 0, &err), 5, "0 4 8 12 16");
    CHECK(det_sampler_distributed(seq(19), 4, 1, &err), 5, "1 5 9 13 17");
    CHECK(det_sampler_distributed(seq(19), 4, 2, &err), 5, "2 6 10 14 18");
    CHECK(det_sampler_distributed(seq(19), 4, 3, &err), 4, "3 7 11 15");
    CHECK(det_sampler_distributed(det_sampler_batch(seq(19), 2, false, &err), 4, 1, &err), 3,
          "2,3 10,11 18");
    /* the count goes on over repeats: shards rotate */
    CHECK(det_sampler_distributed(det_sampler_repeat(seq(3), &err), 2, 1, &err), 1,
          "1 0 2 1 0 2 1 0 2 1 0 2 1 0 2 1 0 2 1 0");
}

static void shuffles(void **state)
{
    CHECK(det_sampler_shuffle(seq(5), 777, &err), 5, "0 4 1 2 3", "2 0 1 3 4");
    CHECK(det_sampler_shuffle(det_sampler_batch(seq(10), 2, false, &err), 777, &err), 5,
          "0,1 8,9 2,3 4,5 6,7");
    CHECK(det_sampler_random(6, 3, &err), 6, "4 0 3 2 1 5", "4 2 3 5 0 1", "0 5 1 4 3 2");
    CHECK(det_sampler_random(0, 3, &err), 0, "");
}

static void wrong_arguments_are_refused(void **state)
{
    assert_null(det_sampler_sequential(-1, &err));
    assert_null(det_sampler_random(-1, 0, &err));
    assert_null(det_sampler_batch(seq(3), 0, false, &err));
    assert_null(det_sampler_batch(det_sampler_batch(seq(3), 2, false, &err), 2, false, &err));
    assert_null(det_sampler_distributed(seq(3), 0, 0, &err));
    assert_null(det_sampler_distributed(seq(3), 2, 2, &err));
    assert_null(det_sampler_distributed(seq(3), 2, -1, &err));
    assert_null(det_sampler_skip(seq(3), -1, &err));
    assert_null(det_sampler_shuffle(det_sampler_repeat(seq(3), &err), 1, &err));
    assert_null(det_sampler_repeat(NULL, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences),
        cmocka_unit_test(repeat_and_skip),
        cmocka_unit_test(shards),
        cmocka_unit_test(shuffles),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("samplers", tests, NULL, NULL);
}
