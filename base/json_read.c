#include "json_read.h"

#include "utf8.h"
#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 256, INT_DIGITS_MAX = 18, EXACT_DIGITS = 15 };

struct reader {
    const char *p, *end;
    struct buf plain; /* the last string that had escapes */
};

static json_t *read_value(struct reader *r, int depth);

static void blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
        r->p++;
}

static bool take(struct reader *r, char c)
{
    blanks(r);
    bool there = r->p < r->end && *r->p == c;
    r->p += there;
    return there;
}

/* How many digits; their value goes on in *m. */
static int digits(struct reader *r, uint64_t *m)
{
    const char *from = r->p;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        *m = *m * 10 + (uint64_t)(*r->p - '0');
    return (int)(r->p - from);
}

static bool exponent(struct reader *r)
{
    uint64_t ignored = 0;
    if (r->p == r->end || (*r->p != 'e' && *r->p != 'E'))
        return false;
    r->p++;
    r->p += r->p < r->end && (*r->p == '+' || *r->p == '-');
    return digits(r, &ignored) > 0;
}

static json_t *by_strtod(const char *from, const char *end)
{
    char text[64], *stop;
    size_t n = (size_t)(end - from);
    if (n >= sizeof text)
        return NULL;
    memcpy(text, from, n);
    text[n] = '\0';
    double v = strtod(text, &stop);
    return *stop || !isfinite(v) ? NULL : json_real(v);
}

/* Up to 15 digits with a point in them: both the digits and the power of ten are exact as doubles, so
 * that their quotient is the nearest one (Clinger 1990). */
static double quotient(uint64_t m, int places)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    return (double)m / powers[places];
}

static json_t *read_number(struct reader *r)
{
    const char *from = r->p;
    bool negative = *from == '-';
    uint64_t m = 0;
    r->p += negative;
    const char *first = r->p;
    int n = digits(r, &m), places = 0;
    if (n == 0 || n > INT_DIGITS_MAX || (n > 1 && *first == '0'))
        return NULL;
    if (r->p == r->end || (*r->p != '.' && *r->p != 'e' && *r->p != 'E'))
        return json_integer(negative ? -(json_int_t)m : (json_int_t)m);
    if (*r->p == '.') {
        r->p++;
        places = digits(r, &m);
        if (places == 0)
            return NULL;
    }
    bool plain = r->p == r->end || (*r->p != 'e' && *r->p != 'E');
    if (!plain && !exponent(r))
        return NULL;
    if (!plain || n + places > EXACT_DIGITS)
        return by_strtod(from, r->p);
    return json_real(negative ? -quotient(m, places) : quotient(m, places));
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* \uXXXX, after the u. */
static bool add_code(struct reader *r)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        int digit = r->p < r->end ? hex_digit(*r->p) : -1;
        if (digit < 0)
            return false;
        v = v * 16 + (unsigned)digit;
    }
    if (v == 0 || (v >= 0xd800 && v <= 0xdfff))
        return false;
    char c[3] = {(char)(0xe0 | v >> 12), (char)(0x80 | (v >> 6 & 0x3f)), (char)(0x80 | (v & 0x3f))};
    if (v < 0x80)
        buf_add_ch(&r->plain, (char)v);
    else if (v < 0x800)
        buf_add(&r->plain, (char[]){(char)(0xc0 | v >> 6), c[2]}, 2);
    else
        buf_add(&r->plain, c, 3);
    return true;
}

/* After the backslash. */
static bool add_escaped(struct reader *r)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = r->p < r->end ? *r->p++ : '\0';
    if (c == 'u')
        return add_code(r);
    const char *at = c ? strchr(names, c) : NULL;
    if (at)
        buf_add_ch(&r->plain, meant[at - names]);
    return at;
}

/* To the next quote or backslash. */
static bool run(struct reader *r)
{
    while (r->p < r->end && *r->p != '"' && *r->p != '\\') {
        unsigned char c = (unsigned char)*r->p;
        size_t n = c < 0x80 ? c >= 0x20 : utf8_len(r->p, (size_t)(r->end - r->p));
        if (n == 0)
            return false;
        r->p += n;
    }
    return r->p < r->end;
}

/* From the opening quote to behind the closing one. What was there, or NULL; it lives until the next
 * string that has escapes. */
static const char *read_text(struct reader *r, size_t *ret_n)
{
    const char *from = ++r->p;
    if (!run(r))
        return NULL;
    if (*r->p == '"') {
        *ret_n = (size_t)(r->p++ - from);
        return from;
    }
    buf_clear(&r->plain);
    for (;;) {
        buf_add(&r->plain, from, (size_t)(r->p - from));
        if (*r->p++ == '"')
            break;
        if (!add_escaped(r))
            return NULL;
        from = r->p;
        if (!run(r))
            return NULL;
    }
    *ret_n = r->plain.len;
    return buf_str(&r->plain);
}

static json_t *read_string(struct reader *r)
{
    size_t n;
    const char *s = read_text(r, &n);
    return s ? json_stringn_nocheck(s, n) : NULL;
}

static json_t *read_array(struct reader *r, int depth)
{
    JSON_OWN j = json_array();
    r->p++;
    if (take(r, ']'))
        return det_take(j);
    do {
        json_t *v = read_value(r, depth + 1);
        if (!v || json_array_append_new(j, v) < 0)
            return NULL;
    } while (take(r, ','));
    return take(r, ']') ? det_take(j) : NULL;
}

/* The key, the colon, the value; a key that was there before makes the object no larger. */
static bool read_member(struct reader *r, json_t *obj, int depth)
{
    size_t n, before = json_object_size(obj);
    blanks(r);
    if (r->p == r->end || *r->p != '"')
        return false;
    const char *key = read_text(r, &n);
    if (!key || key == r->plain.p || !take(r, ':'))
        return false;
    json_t *v = read_value(r, depth + 1);
    return v && json_object_setn_new_nocheck(obj, key, n, v) == 0 &&
           json_object_size(obj) > before;
}

static json_t *read_object(struct reader *r, int depth)
{
    JSON_OWN j = json_object();
    r->p++;
    if (take(r, '}'))
        return det_take(j);
    do {
        if (!read_member(r, j, depth))
            return NULL;
    } while (take(r, ','));
    return take(r, '}') ? det_take(j) : NULL;
}

static json_t *read_word(struct reader *r, const char *word, json_t *value)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return NULL;
    r->p += n;
    return value; /* true, false and null are not counted */
}

static json_t *read_value(struct reader *r, int depth)
{
    blanks(r);
    if (r->p == r->end || depth > DEPTH_MAX)
        return NULL;
    switch (*r->p) {
    case '{':
        return read_object(r, depth);
    case '[':
        return read_array(r, depth);
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, "true", json_true());
    case 'f':
        return read_word(r, "false", json_false());
    case 'n':
        return read_word(r, "null", json_null());
    default:
        return read_number(r);
    }
}

json_t *json_read(const char *text, size_t len)
{
    struct reader r = {.p = text, .end = text + len};
    JSON_OWN j = read_value(&r, 0);
    blanks(&r);
    buf_finish(&r.plain);
    return r.p == r.end ? det_take(j) : NULL;
}
