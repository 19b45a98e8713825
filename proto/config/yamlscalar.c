/* The value of a plain YAML scalar: yamljson_scalar() of yamljson.h. */
#include "yamljson.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static bool is_one_of(const char *s, size_t n, const char *const *words)
{
    for (; *words; words++)
        if (strlen(*words) == n && memcmp(s, *words, n) == 0)
            return true;
    return false;
}

/* Digits of the base from s on; returns how many. */
static size_t count_digits(const char *s, size_t n, const char *digits)
{
    size_t i = 0;
    while (i < n && s[i] && strchr(digits, s[i]))
        i++;
    return i;
}

static bool is_decimal(const char *s, size_t n)
{
    size_t sign = n && (*s == '-' || *s == '+');
    return n > sign && count_digits(s + sign, n - sign, "0123456789") == n - sign;
}

/* [sign] (digits [. [digits]] | . digits) [e [sign] digits] */
static bool is_float(const char *s, size_t n)
{
    size_t i = n && (*s == '-' || *s == '+');
    size_t whole = count_digits(s + i, n - i, "0123456789"), part = 0;
    i += whole;
    if (i < n && s[i] == '.') {
        part = count_digits(s + i + 1, n - i - 1, "0123456789");
        i += 1 + part;
    }
    if (!whole && !part)
        return false;
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        i += i < n && (s[i] == '-' || s[i] == '+');
        size_t exponent = count_digits(s + i, n - i, "0123456789");
        if (!exponent)
            return false;
        i += exponent;
    }
    return i == n;
}

static json_t *real_of(const char *text)
{
    double v = strtod(text, NULL);
    return isfinite(v) ? json_real(v) : NULL;
}

static json_t *integer_of(const char *text, int base)
{
    errno = 0;
    long long v = strtoll(text, NULL, base);
    if (errno == ERANGE)
        return base == 10 ? real_of(text) : NULL;
    return json_integer(v);
}

static json_t *number_of(const char *s, size_t n)
{
    det_cleanup(freep) char *text = det_strndup(s, n);
    if (is_decimal(s, n))
        return integer_of(text, 10);
    return text[0] == '0' && text[1] == 'o'   ? integer_of(text + 2, 8)
           : text[0] == '0' && text[1] == 'x' ? integer_of(text + 2, 16)
                                              : real_of(text);
}

static bool is_number(const char *s, size_t n)
{
    if (n > 2 && s[0] == '0' && s[1] == 'o')
        return count_digits(s + 2, n - 2, "01234567") == n - 2;
    if (n > 2 && s[0] == '0' && s[1] == 'x')
        return count_digits(s + 2, n - 2, "0123456789abcdefABCDEF") == n - 2;
    return is_float(s, n);
}

json_t *yamljson_scalar(const char *s, size_t n)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    static const char *const nans[] = {".nan", ".NaN", ".NAN", NULL};
    static const char *const infs[] = {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", NULL};
    static const char *const minus_infs[] = {"-.inf", "-.Inf", "-.INF", NULL};
    if (is_one_of(s, n, nulls))
        return json_null();
    if (is_one_of(s, n, trues))
        return json_true();
    if (is_one_of(s, n, falses))
        return json_false();
    if (is_number(s, n))
        return number_of(s, n);
    if (is_one_of(s, n, nans))
        return json_double(NAN);
    if (is_one_of(s, n, infs))
        return json_double(INFINITY);
    if (is_one_of(s, n, minus_infs))
        return json_double(-INFINITY);
    return json_stringn(s, n);
}
