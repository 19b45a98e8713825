/* periods.h: days and months in a row. */
#include "periods.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

static struct periods parsed(bool by_month, const char *start, const char *end)
{
    struct periods p;
    struct det_err err;
    if (periods_parse(by_month, start, end, &p, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}

static void check(const struct periods *p, size_t i, const char *text, const char *day)
{
    char out[PERIOD_TEXT_MAX];
    period_text(p, i, out);
    assert_string_equal(out, text);
    period_first_day(p, i, out);
    assert_string_equal(out, day);
}

static void test_days(void **state)
{
    struct periods p = parsed(false, "2028-02-28", "2028-03-01");
    assert_int_equal(p.n, 3);
    check(&p, 0, "2028-02-28", "2028-02-28");
    check(&p, 1, "2028-02-29", "2028-02-29");
    check(&p, 3, "2028-03-02", "2028-03-02");
    p = parsed(false, "2026-03-28", "2026-03-30"); /* a clock is put forward within, elsewhere */
    assert_int_equal(p.n, 3);
    check(&p, 2, "2026-03-30", "2026-03-30");
    p = parsed(false, "1970-01-01", "1970-01-01");
    assert_int_equal(p.n, 1);
    check(&p, 0, "1970-01-01", "1970-01-01");
}

static void test_months(void **state)
{
    struct periods p = parsed(true, "2025-11", "2026-02");
    assert_int_equal(p.n, 4);
    check(&p, 1, "2025-12", "2025-12-01");
    check(&p, 2, "2026-01", "2026-01-01");
    check(&p, 4, "2026-03", "2026-03-01");
}

static void test_bad(void **state)
{
    static const struct {
        bool by_month;
        const char *start, *end, *words;
    } bad[] = {
        {false, NULL, "2026-01-01", "startDate: \"\" is not a day, as 2026-01-31"},
        {false, "2026-01-01", "", "endDate: \"\" is not a day"},
        {false, "2026-02-29", "2026-03-01", "startDate: \"2026-02-29\" is not a day"},
        {false, "2026-1-1", "2026-03-01", "startDate"},
        {false, "2026-01-01T00:00:00Z", "2026-03-01", "startDate"},
        {false, "2026-01", "2026-03-01", "startDate"},
        {false, "1969-12-31", "2026-03-01", "startDate"},
        {false, "2026-01-01", "9999-01-01", "endDate"},
        {true, "2026-01-01", "2026-03", "startDate: \"2026-01-01\" is not a month, as 2026-01"},
        {true, "2026-13", "2026-03", "startDate"},
        {false, "2026-01-02", "2026-01-01", "endDate: 2026-01-01 is before startDate, 2026-01-02"},
        {false, "2016-01-01", "2026-01-08", "endDate: at most 3660 days"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct periods p;
        struct det_err err;
        assert_int_equal(periods_parse(bad[i].by_month, bad[i].start, bad[i].end, &p, &err),
                         DET_EINVAL);
        if (!strstr(err.text, bad[i].words))
            fail_msg("%s, not %s", err.text, bad[i].words);
    }
    assert_int_equal(parsed(false, "2016-01-01", "2026-01-07").n, PERIODS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_months),
        cmocka_unit_test(test_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
