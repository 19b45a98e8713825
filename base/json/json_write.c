/* The printer. Ours and not jansson's, because jansson cannot print the shortest double that reads
 * back, and because canonical text must not depend on a library's version. */
#include "json.h"

#include "numtext.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void write_value(struct buf *out, const json_t *j, bool pretty, int depth);

void json_write_finite(struct buf *out, double v)
{
    char text[NUMTEXT_MAX];
    numtext(v, text);
    buf_add_str(out, text);
    if (!strpbrk(text, ".en"))
        buf_add_str(out, ".0"); /* so that it is read back as a real */
}

#define BYTES(c) (UINT64_C(0x0101010101010101) * (c))

/* A bit in each byte that is 0; above the lowest such byte there may be others. */
static uint64_t zero_bytes(uint64_t x)
{
    return (x - BYTES(1)) & ~x & BYTES(0x80);
}

/* How many bytes stand as they are: up to a quote, a backslash or a control character. */
static size_t plain_span(const char *s, size_t n)
{
    size_t i = 0;
    for (uint64_t x; i + sizeof x <= n; i += sizeof x) {
        memcpy(&x, s + i, sizeof x);
        if (zero_bytes(x ^ BYTES('"')) | zero_bytes(x ^ BYTES('\\')) | zero_bytes(x & BYTES(0xe0)))
            break;
    }
    while (i < n && (unsigned char)s[i] >= 0x20 && s[i] != '"' && s[i] != '\\')
        i++;
    return i;
}

void json_write_string(struct buf *out, const char *s, size_t n)
{
    buf_reserve(out, n + 2);
    buf_add_ch(out, '"');
    for (size_t i = 0; i < n; i++) {
        size_t plain = plain_span(s + i, n - i);
        buf_add(out, s + i, plain);
        i += plain;
        if (i == n)
            break;
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            buf_add(out, (char[]){'\\', (char)c}, 2);
        else if (c == '\n')
            buf_add_str(out, "\\n");
        else
            buf_addf(out, "\\u%04x", c);
    }
    buf_add_ch(out, '"');
}

static void line_break(struct buf *out, bool pretty, int depth)
{
    if (pretty)
        buf_addf(out, "\n%*s", depth * 2, "");
}

static void write_array(struct buf *out, const json_t *j, bool pretty, int depth)
{
    size_t n = json_array_size(j);
    buf_add_ch(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_ch(out, ',');
        line_break(out, pretty, depth + 1);
        write_value(out, json_array_get(j, i), pretty, depth + 1);
    }
    if (n)
        line_break(out, pretty, depth);
    buf_add_ch(out, ']');
}

static void write_member(struct buf *out, const char *key, const json_t *v, bool pretty, int depth)
{
    line_break(out, pretty, depth);
    json_write_string(out, key, strlen(key));
    buf_add_str(out, pretty ? ": " : ":");
    write_value(out, v, pretty, depth);
}

static void write_object(struct buf *out, const json_t *j, bool pretty, int depth)
{
    const char *key;
    json_t *v;
    bool first = true;
    buf_add_ch(out, '{');
    json_object_foreach((json_t *)j, key, v)
    {
        if (!first)
            buf_add_ch(out, ',');
        first = false;
        write_member(out, key, v, pretty, depth + 1);
    }
    if (!first)
        line_break(out, pretty, depth);
    buf_add_ch(out, '}');
}

static void write_value(struct buf *out, const json_t *j, bool pretty, int depth)
{
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_OBJECT: write_object(out, j, pretty, depth); break;
    case JSON_ARRAY: write_array(out, j, pretty, depth); break;
    case JSON_STRING: json_write_string(out, json_string_value(j), json_string_length(j)); break;
    case JSON_INTEGER: buf_add_i64(out, json_integer_value(j)); break;
    case JSON_REAL: json_write_finite(out, json_real_value(j)); break;
    case JSON_TRUE: buf_add_str(out, "true"); break;
    case JSON_FALSE: buf_add_str(out, "false"); break;
    case JSON_NULL: buf_add_str(out, "null"); break;
    }
}

void json_write(struct buf *out, const json_t *j)
{
    write_value(out, j, false, 0);
}

void json_write_pretty(struct buf *out, const json_t *j)
{
    write_value(out, j, true, 0);
}

char *json_text(const json_t *j)
{
    struct buf out = BUF_INIT;
    json_write(&out, j);
    return buf_steal(&out);
}

void json_add_key(struct buf *out, const char *key)
{
    assert(out->len);
    if (out->p[out->len - 1] != '{')
        buf_add_ch(out, ',');
    buf_add_ch(out, '"');
    buf_add_str(out, key);
    buf_add(out, "\":", 2);
}

void json_add_str(struct buf *out, const char *key, const char *s)
{
    json_add_key(out, key);
    json_write_string(out, s, strlen(s));
}

void json_add_int(struct buf *out, const char *key, int64_t v)
{
    json_add_key(out, key);
    buf_add_i64(out, v);
}

void json_add_flag(struct buf *out, const char *key, bool v)
{
    json_add_key(out, key);
    buf_add_str(out, v ? "true" : "false");
}

void json_add(struct buf *out, const char *key, const json_t *v)
{
    json_add_key(out, key);
    json_write(out, v);
}
