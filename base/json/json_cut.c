#include "json_cut.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct cut {
    const char *p, *end;
    const struct json_step *path;
    size_t steps;
    struct json_span *ret;
};

static void skip_blanks(struct cut *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
        c->p++;
}

static bool take_char(struct cut *c, char ch)
{
    skip_blanks(c);
    if (c->p == c->end || *c->p != ch)
        return false;
    c->p++;
    return true;
}

static bool is_digit(const struct cut *c)
{
    return c->p < c->end && *c->p >= '0' && *c->p <= '9';
}

static bool skip_digits(struct cut *c)
{
    if (!is_digit(c))
        return false;
    while (is_digit(c))
        c->p++;
    return true;
}

/* Whether json_parse() would take it: an integer of 64 bits, or a finite double. */
static bool in_range(const char *from, const char *to, bool is_real)
{
    char text[512];
    size_t n = (size_t)(to - from);
    bool plain = !is_real || (!memchr(from, 'e', n) && !memchr(from, 'E', n));
    if (n <= 18 && plain)
        return true;
    if (n >= sizeof text)
        return false;
    memcpy(text, from, n);
    text[n] = 0;
    errno = 0;
    if (is_real)
        return isfinite(strtod(text, NULL));
    strtoll(text, NULL, 10);
    return errno == 0;
}

static bool skip_number(struct cut *c)
{
    const char *from = c->p;
    bool is_real = false;
    if (*c->p == '-')
        c->p++;
    if (c->p < c->end && *c->p == '0')
        c->p++;
    else if (!skip_digits(c))
        return false;
    if (c->p < c->end && *c->p == '.') {
        c->p++;
        is_real = true;
        if (!skip_digits(c))
            return false;
    }
    if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
        c->p++;
        is_real = true;
        if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
            c->p++;
        if (!skip_digits(c))
            return false;
    }
    return in_range(from, c->p, is_real);
}

/* Four hexadecimal digits, or -1. */
static int take_hex4(struct cut *c)
{
    int v = 0;
    if (c->end - c->p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int ch = (unsigned char)*c->p++;
        int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                    : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                    : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                             : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* After the backslash. No NUL, no lone half of a surrogate pair. */
static bool skip_escape(struct cut *c)
{
    if (c->p == c->end)
        return false;
    char ch = *c->p++;
    if (ch != 'u')
        return ch && strchr("\"\\/bfnrt", ch);
    int v = take_hex4(c);
    if (v <= 0 || (v >= 0xDC00 && v <= 0xDFFF))
        return false;
    if (v < 0xD800 || v > 0xDBFF)
        return true;
    if (c->end - c->p < 2 || c->p[0] != '\\' || c->p[1] != 'u')
        return false;
    c->p += 2;
    v = take_hex4(c);
    return v >= 0xDC00 && v <= 0xDFFF;
}

/* One UTF-8 sequence of two bytes or more (RFC 3629: shortest form, no surrogates). */
static bool skip_utf8(struct cut *c)
{
    const unsigned char *p = (const unsigned char *)c->p;
    int n = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
            : (p[0] & 0xF0) == 0xE0        ? 3
            : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                           : 0;
    if (n == 0 || c->end - c->p < n)
        return false;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return false;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return false;
    c->p += n;
    return true;
}

static bool skip_string(struct cut *c)
{
    if (!take_char(c, '"'))
        return false;
    while (c->p < c->end) {
        unsigned char ch = (unsigned char)*c->p;
        if (ch == '"') {
            c->p++;
            return true;
        }
        if (ch < 0x20)
            return false;
        if (ch >= 0x80) {
            if (!skip_utf8(c))
                return false;
            continue;
        }
        c->p++;
        if (ch == '\\' && !skip_escape(c))
            return false;
    }
    return false;
}

static bool skip_word(struct cut *c, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
        return false;
    c->p += n;
    return true;
}

static bool skip_value(struct cut *c, int depth, size_t step);

static bool skip_array(struct cut *c, int depth)
{
    c->p++;
    if (take_char(c, ']'))
        return true;
    do {
        if (!skip_value(c, depth + 1, SIZE_MAX))
            return false;
    } while (take_char(c, ','));
    return take_char(c, ']');
}

static bool is_key(const char *key, const char *p, size_t n)
{
    return strlen(key) == n && memcmp(key, p, n) == 0;
}

/* The step after this key; SIZE_MAX: off the path. */
static size_t step_after(const struct cut *c, size_t step, const char *key, size_t n)
{
    if (step >= c->steps)
        return SIZE_MAX;
    const struct json_step *s = &c->path[step];
    return is_key(s->key, key, n) || is_key(s->alias, key, n) ? step + 1 : SIZE_MAX;
}

static bool skip_member(struct cut *c, int depth, size_t step, bool *seen)
{
    skip_blanks(c);
    const char *key = c->p + 1;
    if (!skip_string(c))
        return false;
    size_t n = (size_t)(c->p - 1 - key);
    /* An escaped spelling of a step would go unseen: such a text is left to the parser. */
    if (step < c->steps && memchr(key, '\\', n))
        return false;
    size_t next = step_after(c, step, key, n);
    if (next != SIZE_MAX && *seen)
        return false;
    *seen = *seen || next != SIZE_MAX;
    if (!take_char(c, ':'))
        return false;
    skip_blanks(c);
    const char *from = c->p;
    if (!skip_value(c, depth + 1, next))
        return false;
    if (next == c->steps && *from == '[')
        *c->ret = (struct json_span){from, (size_t)(c->p - from)};
    return true;
}

static bool skip_object(struct cut *c, int depth, size_t step)
{
    bool seen = false;
    c->p++;
    if (take_char(c, '}'))
        return true;
    do {
        if (!skip_member(c, depth, step, &seen))
            return false;
    } while (take_char(c, ','));
    return take_char(c, '}');
}

static bool skip_value(struct cut *c, int depth, size_t step)
{
    skip_blanks(c);
    if (c->p == c->end || depth > JSON_CUT_DEPTH)
        return false;
    switch (*c->p) {
    case '{': return skip_object(c, depth, step);
    case '[': return skip_array(c, depth);
    case '"': return skip_string(c);
    case 't': return skip_word(c, "true");
    case 'f': return skip_word(c, "false");
    case 'n': return skip_word(c, "null");
    default: return (*c->p == '-' || is_digit(c)) && skip_number(c);
    }
}

bool json_cut(const char *text, size_t len, const struct json_step *path, size_t n,
              struct json_span *ret)
{
    struct cut c = {.p = text, .end = text + len, .path = path, .steps = n, .ret = ret};
    *ret = (struct json_span){0};
    if (len == 0 || !skip_value(&c, 0, 0))
        return false;
    skip_blanks(&c);
    return c.p == c.end;
}

void json_cut_rest(const char *text, size_t len, const struct json_span *cut, struct buf *ret)
{
    size_t before = (size_t)(cut->p - text);
    buf_add(ret, text, before);
    buf_add_str(ret, "[]");
    buf_add(ret, cut->p + cut->len, len - before - cut->len);
}
