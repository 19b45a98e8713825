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

void json_write_string(struct buf *out, const char *s, size_t n)
{
    buf_add_ch(out, '"');
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_add(out, s + from, i - from);
        from = i + 1;
        if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (c == '\n')
            buf_add_str(out, "\\n");
        else
            buf_addf(out, "\\u%04x", c);
    }
    buf_add(out, s + from, n - from);
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

static void write_member(struct buf *out, const char *key, const json_t *v, bool pretty,
                         int depth)
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
    json_object_foreach((json_t *)j, key, v) {
        if (!first)
            buf_add_ch(out, ',');
        first = false;
        write_member(out, key, v, pretty, depth + 1);
    }
    if (!first)
        line_break(out, pretty, depth);
    buf_add_ch(out, '}');
}

static void write_integer(struct buf *out, json_int_t v)
{
    char text[24], *at = text + sizeof text;
    uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        *--at = '-';
    buf_add(out, at, (size_t)(text + sizeof text - at));
}

static void write_value(struct buf *out, const json_t *j, bool pretty, int depth)
{
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_OBJECT:
        write_object(out, j, pretty, depth);
        break;
    case JSON_ARRAY:
        write_array(out, j, pretty, depth);
        break;
    case JSON_STRING:
        json_write_string(out, json_string_value(j), json_string_length(j));
        break;
    case JSON_INTEGER:
        write_integer(out, json_integer_value(j));
        break;
    case JSON_REAL:
        json_write_finite(out, json_real_value(j));
        break;
    default:
        buf_add_str(out, json_is_true(j) ? "true" : json_is_false(j) ? "false" : "null");
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
    write_integer(out, v);
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
