#include "numtext.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Any double, by trying; a report of metrics would spend most of its time here. */
static size_t by_trying(double v, char out[NUMTEXT_MAX])
{
    /* 15 digits give back every decimal of up to 15; below the normal range fewer may do. */
    int digits = fabs(v) < DBL_MIN ? 1 : 15, n;
    do
        n = snprintf(out, NUMTEXT_MAX, "%.*g", digits, v);
    while (digits++ < 17 && strtod(out, NULL) != v);
    return (size_t)n;
}

#if LDBL_MANT_DIG == 64
/*
 * The same text for 1e-30 <= v < 1e15 with few multiplications and divisions for each try. Powers
 * of ten up to 10^27 are exact in a 64-bit mantissa, so v * 10^k and m / 10^k, done in two steps
 * where k is greater, are each off by less than 1.5 units in the last of 64 bits. Where that could
 * change the result (a decimal digit near a tie, a quotient near the middle between two doubles)
 * the answer is "do not know".
 */
static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                     1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                     1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                     1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

#define SCALE_MAX 47 /* 17 digits of 1e-30 */
#define EXACT_MAX 22 /* the last power of ten that a double has as it is */

static long double times_power(long double x, int k)
{
    return k <= 27 ? x * powers[k] : x * powers[27] * powers[k - 27];
}

static long double by_power(long double x, int k)
{
    return k <= 27 ? x / powers[k] : x / powers[27] / powers[k - 27];
}

enum answer { NO, YES, UNKNOWN };

/* m / 10^k, correctly rounded; false: do not know. */
static bool divide_by_power(uint64_t m, int k, double *ret)
{
    union {
        long double value;
        uint64_t mantissa; /* the first 8 of its bytes */
    } q = {.value = by_power((long double)m, k)};
    unsigned below = q.mantissa & 0x7ff; /* the 11 bits that a double does not have */
    *ret = (double)q.value;
    return below < 0x3fd || below > 0x403;
}

/* The same, quicker for numbers as short as most: where a double has m and 10^k exactly, one
 * division of doubles rounds correctly. */
static bool divide_exactly(uint64_t m, int k, double *ret)
{
    if (m > UINT64_C(1) << 53 || k > EXACT_MAX)
        return divide_by_power(m, k, ret);
    *ret = k == 0 ? (double)m : (double)m / (double)powers[k];
    return true;
}

/* Does m / 10^k, correctly rounded, give v? */
static enum answer reads_back(uint64_t m, int k, double v)
{
    double got;
    if (!divide_exactly(m, k, &got))
        return UNKNOWN;
    return got == v ? YES : NO;
}

static bool ends_plain(char c)
{
    return c != 'e' && c != 'E' && c != 'x' && c != 'X';
}

/* A decimal without exponent, of so many digits that they are exact in 64 bits. */
static bool read_plain(const char *text, double *ret, char **ret_end)
{
    enum { DIGITS_MAX = 19 };
    const char *p = text + (*text == '-');
    uint64_t m = 0;
    int digits = 0, behind = 0;
    bool point = false;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (++digits > DIGITS_MAX)
            return false;
        m = m * 10 + (uint64_t)(*p - '0');
        behind += point;
    }
    if (digits == 0 || !ends_plain(*p) || !divide_exactly(m, behind, ret))
        return false;
    *ret = *text == '-' ? -*ret : *ret;
    *ret_end = (char *)p;
    return true;
}

/* `digits` digits of v with k of them after the point. */
static enum answer try_digits(double v, int digits, int k, uint64_t *ret)
{
    long double scaled = times_power(v, k);
    if (scaled >= powers[digits])
        return UNKNOWN; /* the exponent was guessed too low: these are too many digits */
    uint64_t whole = (uint64_t)scaled;
    double rest = (double)(scaled - (long double)whole);
    *ret = whole + (rest > 0.5);
    if (fabs(rest - 0.5) >= 0.02)
        return reads_back(*ret, k, v);
    /* Near a tie it is one of the two, whichever: the digits are too few where neither reads
     * back. */
    bool are_too_few = reads_back(whole, k, v) == NO && reads_back(whole + 1, k, v) == NO;
    return are_too_few ? NO : UNKNOWN;
}

/* m, less trailing zeros (k less by their number), last digit first; returns their number. */
static int digits_of(uint64_t m, int *k, char *digits)
{
    int n = 0;
    while (*k > 0 && m % 10 == 0) {
        m /= 10;
        --*k;
    }
    for (; m; m /= 10)
        digits[n++] = (char)('0' + m % 10);
    return n;
}

/* m * 10^-k, below 1e-4: as 1.25e-07. */
static size_t put_small(const char *digits, int n, int k, char *out)
{
    int len = 0, exponent = k - (n - 1);
    out[len++] = digits[n - 1];
    if (n > 1)
        out[len++] = '.';
    for (int i = n - 1; i-- > 0;)
        out[len++] = digits[i];
    out[len++] = 'e';
    out[len++] = '-';
    out[len++] = (char)('0' + exponent / 10);
    out[len++] = (char)('0' + exponent % 10);
    out[len] = 0;
    return (size_t)len;
}

/* m * 10^-k, 1e-30 <= it < 1e15, without trailing zeros. */
static size_t put_decimal(uint64_t m, int k, char *out)
{
    char digits[24];
    int len = 0, n = digits_of(m, &k, digits);
    if (k - (n - 1) > 4)
        return put_small(digits, n, k, out);
    while (n <= k)
        digits[n++] = '0';
    for (int i = n; i-- > 0;) {
        out[len++] = digits[i];
        if (i == k && k > 0)
            out[len++] = '.';
    }
    out[len] = 0;
    return (size_t)len;
}

/* Next to a power of ten the exponent may come out too high: the text is the same, since what 14
 * digits give back 15 do, as the same number. Too low is noticed above. */
static size_t write_shortest(double v, char *out)
{
    if (!(v >= 1e-30 && v < 1e15))
        return 0;
    int exponent = (int)floor(log10(v)) + 1; /* v < 10^exponent */
    for (int digits = 15; digits <= 17; digits++) {
        int k = digits - exponent;
        uint64_t m = 0;
        if (k < 0 || k > SCALE_MAX)
            return 0;
        enum answer a = try_digits(v, digits, k, &m);
        if (a == UNKNOWN)
            return 0;
        if (a == YES)
            return put_decimal(m, k, out);
    }
    return 0;
}
#else
static size_t write_shortest(double v, char *out)
{
    (void)v, (void)out;
    return 0;
}

static bool read_plain(const char *text, double *ret, char **ret_end)
{
    (void)text, (void)ret, (void)ret_end;
    return false;
}
#endif

size_t numtext(double v, char out[NUMTEXT_MAX])
{
    if (v == 0)
        return by_trying(v, out);
    out[0] = '-';
    int negative = v < 0;
    size_t n = write_shortest(fabs(v), out + negative);
    return n ? n + (size_t)negative : by_trying(v, out);
}

double numtext_read(const char *text, char **ret_end)
{
    double v;
    return read_plain(text, &v, ret_end) ? v : strtod(text, ret_end);
}
