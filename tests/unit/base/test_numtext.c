/* Shortest doubles: the fast way gives what trying gives. */
#include "numtext.h"
#include "rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(double v)
{
    char got[NUMTEXT_MAX], want[64];
    int digits = fabs(v) < DBL_MIN ? 1 : 15;
    do
        snprintf(want, sizeof want, "%.*g", digits, v);
    while (digits++ < 17 && strtod(want, NULL) != v);
    size_t n = numtext(v, got);
    assert_int_equal(n, strlen(got));
    assert_string_equal(got, want);
}

static void edges(void **state)
{
    /* clang-format off */
    static const double v[] = {
        0, 1, 10, 100, 0.1, 0.5, 0.001, 1e-4, 9.999e-5, 9.9999999999999991e-5, 1e14, 1e15, 1e16,
        999999999999999.9, 123456789012345678.0, 99.99999999999999, 9.999999999999998,
        0.99999999999999989, 5e-324, DBL_MIN, DBL_MAX, 0.1f, 0.3f, 1.0 / 3, 2.0 / 3, 4.35,
        0.000123};
    /* clang-format on */
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        check(v[i]);
        check(-v[i]);
    }
}

/* Powers of ten, where the number of digits changes, and their neighbours. */
static void powers_of_ten(void **state)
{
    for (int e = -35; e < 18; e++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", e);
        double up = strtod(text, NULL), down = up;
        for (int i = 0; i < 200; i++) {
            check(up);
            check(down);
            check(up * (i + 1));
            up = nextafter(up, INFINITY);
            down = nextafter(down, 0);
        }
    }
}

static void many(void **state)
{
    struct mt19937 r;
    mt19937_seed(&r, 7);
    for (int i = 0; i < 200000; i++) {
        double v;
        uint64_t bits = (uint64_t)mt19937_u32(&r) << 32 | mt19937_u32(&r);
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v))
            check(v);
        check((float)mt19937_double(&r));
        check(mt19937_double(&r) * pow(10, (int)(mt19937_u32(&r) % 22) - 6));
        check(mt19937_double(&r) * pow(10, -(int)(mt19937_u32(&r) % 33)));
        check((float)(mt19937_double(&r) * pow(10, -(int)(mt19937_u32(&r) % 33))));
        check((double)(mt19937_u32(&r) % 100000) / 1000);
        check((double)(mt19937_u32(&r) % (1 << 20)) / (1 << (mt19937_u32(&r) % 25))); /* ties */
    }
}

/* What is read is what strtod() reads, to the bit and the end. */
static void check_read(const char *text)
{
    char *want_end, *got_end = NULL;
    double want = strtod(text, &want_end), got = numtext_read(text, &got_end);
    if (memcmp(&got, &want, sizeof got) != 0 || got_end != want_end)
        fail_msg("\"%s\": %a up to %td, not %a up to %td", text, got, got_end - text, want,
                 want_end - text);
}

static void read_odd(void **state)
{
    /* clang-format off */
    static const char *const texts[] = {
        "", "-", ".", "-.", "x", "0", "-0", "-0.0", "1,2", "1.2.3", "5.", ".5", "-.5]", "1e5",
        "1e", "1E-3", "0x1p3", "--1", "+1", "9007199254740993", "-9007199254740993.0",
        "18446744073709551615", "9999999999999999999", "0.9999999999999999999", "1e400",
        "123456789012345678901234567890", "0.0000000000000000001", "0.00000000000000000001",
        "1 2", "inf", "nan", "1767323045.123456"};
    /* clang-format on */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_read(texts[i]);
}

static void read_many(void **state)
{
    struct mt19937 r;
    mt19937_seed(&r, 8);
    for (int i = 0; i < 200000; i++) {
        char text[400];
        double v = (mt19937_double(&r) - 0.5) * pow(10, (int)(mt19937_u32(&r) % 22) - 6);
        snprintf(text, sizeof text, "%.*f", (int)(mt19937_u32(&r) % 20), v);
        check_read(text);
        snprintf(text, sizeof text, "%.*g,", 1 + (int)(mt19937_u32(&r) % 19), v);
        check_read(text);
        double low = (double)(mt19937_u32(&r) >> 4), up = nextafter(low, INFINITY);
        snprintf(text, sizeof text, "%.12Lf]", ((long double)low + up) / 2); /* a tie */
        check_read(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(edges), cmocka_unit_test(powers_of_ten),
                                       cmocka_unit_test(many), cmocka_unit_test(read_odd),
                                       cmocka_unit_test(read_many)};
    return cmocka_run_group_tests_name("numtext", tests, NULL, NULL);
}
