#include "json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Left to itself jansson returns NULL where memory is out, which its own functions take for a value
 * that is not there: members would be missing from what is read and written, and nobody told. */
static void __attribute__((constructor)) jansson_begin(void)
{
    json_set_alloc_funcs(det_alloc, free);
}

enum { INT_DIGITS = 18 }; /* so many always fit 64 bits */

static size_t digits_at(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] >= '0' && s[n] <= '9')
        n++;
    return n;
}

/* The text, with integers too long for 64 bits written as reals: PostgreSQL prints 1e25 with all
 * its digits. */
static void widen_integers(struct buf *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = 1;
        if (s[i] == '"') {
            while (i + n < len && s[i + n] != '"')
                n += s[i + n] == '\\' ? 2 : 1;
            n = i + n < len ? n + 1 : len - i;
        } else {
            while (i + n < len && strchr("0123456789.eE+-", s[i]) && s[i + n] &&
                   strchr("0123456789.eE+-", s[i + n]))
                n++;
        }
        buf_add(out, s + i, n);
        size_t sign = s[i] == '-', digits = digits_at(s + i + sign, n - sign);
        if (digits > INT_DIGITS && sign + digits == n)
            buf_add_str(out, "e0");
        i += n;
    }
}

static json_t *parse_text(const char *text, size_t len, size_t more, struct det_err *err)
{
    size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | more;
    json_error_t e;
    json_t *j = json_loadb(text, len, flags, &e);
    if (!j && json_error_code(&e) == json_error_numeric_overflow) {
        det_cleanup(buf_finish) struct buf wide = BUF_INIT;
        widen_integers(&wide, text, len);
        j = json_loadb(buf_str(&wide), wide.len, flags, &e);
    }
    if (!j)
        det_fail(err, DET_EINVAL, "JSON: line %d, column %d: %s", e.line, e.column, e.text);
    return j;
}

json_t *json_parse(const char *text, size_t len, struct det_err *err)
{
    return parse_text(text, len, 0, err);
}

json_t *json_parse_nul(const char *text, size_t len, struct det_err *err)
{
    return parse_text(text, len, JSON_ALLOW_NUL, err);
}

const char *json_str(const json_t *obj, const char *key, const char *fallback)
{
    const json_t *v = json_object_get(obj, key);
    return json_is_string(v) ? json_string_value(v) : fallback;
}

static bool int_of_text(const char *s, int64_t *ret)
{
    char *end;
    if (!*s || strchr(" \t\n\r\v\f+", *s))
        return false;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || *end)
        return false;
    *ret = v;
    return true;
}

int64_t json_int(const json_t *obj, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(obj, key);
    int64_t parsed;
    if (json_is_integer(v))
        return json_integer_value(v);
    if (json_is_string(v) && int_of_text(json_string_value(v), &parsed))
        return parsed;
    if (!json_is_real(v))
        return fallback;
    double d = json_real_value(v);
    return d >= -0x1p63 && d < 0x1p63 && d == floor(d) ? (int64_t)d : fallback;
}

double json_num(const json_t *obj, const char *key, double fallback)
{
    const json_t *v = json_object_get(obj, key);
    if (json_is_number(v))
        return json_number_value(v);
    if (!json_is_string(v))
        return fallback;
    const char *s = json_string_value(v);
    if (strcmp(s, "NaN") == 0)
        return NAN;
    if (strcmp(s, "Infinity") == 0)
        return INFINITY;
    return strcmp(s, "-Infinity") == 0 ? -INFINITY : fallback;
}

bool json_flag(const json_t *obj, const char *key, bool fallback)
{
    const json_t *v = json_object_get(obj, key);
    return json_is_boolean(v) ? json_is_true(v) : fallback;
}

json_t *json_obj(const json_t *obj, const char *key)
{
    json_t *v = json_object_get(obj, key);
    return json_is_object(v) ? v : NULL;
}

json_t *json_arr(const json_t *obj, const char *key)
{
    json_t *v = json_object_get(obj, key);
    return json_is_array(v) ? v : NULL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **json_sorted_keys(const json_t *obj, size_t *ret_n)
{
    size_t n = 0;
    const char **keys = det_alloc((json_object_size(obj) + 1) * sizeof *keys);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)obj, key, v) keys[n++] = key;
    qsort(keys, n, sizeof *keys, by_text);
    *ret_n = n;
    return keys;
}

json_t *json_path(const json_t *obj, const char *path)
{
    const json_t *at = obj;
    for (;;) {
        size_t n = strcspn(path, ".");
        json_t *next = json_object_getn(at, path, n);
        if (!next || !path[n])
            return next;
        at = next;
        path += n + 1;
    }
}

json_t *json_double(double v)
{
    if (isnan(v))
        return json_string("NaN");
    if (isinf(v))
        return json_string(v > 0 ? "Infinity" : "-Infinity");
    return json_real(v);
}

json_t *json_i64s(int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)v);
    return json_string(text);
}

/* Bytes of the well-formed UTF-8 character at p (RFC 3629), 0 if ill-formed. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80)
        return p[0] ? 1 : 0; /* a NUL would end the text for every reader in C */
    size_t len = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
                 : (p[0] & 0xf0) == 0xe0        ? 3
                 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                : 0;
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] > 0x9f;
    bool too_high = p[0] == 0xf4 && p[1] > 0x8f;
    return overlong || surrogate || too_high ? 0 : len;
}

json_t *json_lossy(const char *s, size_t len)
{
    struct buf out = BUF_INIT;
    const unsigned char *p = (const unsigned char *)s;
    while (len) {
        size_t n = utf8_len(p, len);
        if (n)
            buf_add(&out, p, n);
        else
            buf_add(&out, "\xef\xbf\xbd", 3);
        n = n ? n : 1;
        p += n;
        len -= n;
    }
    json_t *j = json_stringn(buf_str(&out), out.len);
    buf_finish(&out);
    return j;
}

bool json_is_text(const char *s)
{
    JSON_OWN j = json_string(s);
    return j != NULL;
}

void json_set(json_t *obj, const char *key, json_t *value)
{
    if (json_object_set_new(obj, key, value ? value : json_null()) < 0)
        abort();
}

json_t *json_make(const char *fmt, ...)
{
    json_error_t e;
    va_list ap;
    va_start(ap, fmt);
    json_t *j = json_vpack_ex(&e, 0, fmt, ap);
    va_end(ap);
    if (!j) {
        fprintf(stderr, "json_make(\"%s\"): %s\n", fmt, e.text);
        abort();
    }
    return j;
}
