#include "clk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
static void test_round_trip(void **state)
{
    static const char *const times[] = {"2023-07-06T23:56:54.311328Z", "1970-01-01T00:00:00Z",
                                        "2024-02-29T12:00:00.000001Z",
                                        "1969-12-31T23:59:59.500000Z"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t us;
        char text[CLK_RFC3339_MAX];
        assert_int_equal(clk_parse(times[i], &us, NULL), 0);
        clk_format(us, text);
        assert_string_equal(text, times[i]);
    }
}

static void test_far(void **state)
{
    char text[CLK_RFC3339_MAX];
    clk_format(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.775807Z");
    clk_format(INT64_MIN, text);
    assert_string_equal(text, "0000-01-01T00:00:00.224192Z");
}

static void test_forms(void **state)
{
    int64_t a, b;
    assert_int_equal(clk_parse("2023-01-01T02:00:00+02:00", &a, NULL), 0);
    assert_int_equal(clk_parse("2022-12-31 19:00:00.0000009-05:00", &b, NULL), 0);
    assert_true(a == b);
    assert_true(a == INT64_C(1672531200000000));
}

static void test_bad(void **state)
{
    static const char *const bad[] = {"",
                                      "2023",
                                      "2023-02-29T00:00:00Z",
                                      "2023-13-01T00:00:00Z",
                                      "2023-01-01T24:00:00Z",
                                      "2023-01-01T00:00:00",
                                      "2023-01-01T00:00:00.Z",
                                      "2023-01-01T00:00:00Zx",
                                      "2023-01-01T00:00:00+2:00",
                                      "-023-01-01T00:00:00Z"};
    int64_t us;
    struct det_err err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(clk_parse(bad[i], &us, &err), DET_EINVAL);
}

static void test_clocks(void **state)
{
    int64_t us = clk_mono_us();
    assert_true(clk_mono_ms() >= us / 1000);
    assert_true(clk_wall_us() > INT64_C(1600000000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_far),
        cmocka_unit_test(test_forms),      cmocka_unit_test(test_bad),
        cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
