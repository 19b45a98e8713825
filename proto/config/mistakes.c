#include "mistakes.h"

#include <stdio.h>
#include <string.h>

#define KEPT_MAX       1000
#define PATH_SHOWN_MAX 200

void mistakes_finish(struct mistakes *m)
{
    buf_finish(&m->text);
    m->n = 0;
}

void mistakes_add(struct mistakes *m, const char *path, const char *fmt, ...)
{
    if (m->n++ >= KEPT_MAX)
        return;
    if (*path) {
        mistakes_quote(&m->text, path, PATH_SHOWN_MAX);
        buf_add_str(&m->text, ": ");
    }
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&m->text, fmt, ap);
    va_end(ap);
    buf_add_ch(&m->text, '\n');
}

/* Whole lines of text that fit into max bytes; returns their length, *ret_n says how many. */
static size_t whole_lines(const char *text, size_t max, size_t *ret_n)
{
    size_t len = 0;
    *ret_n = 0;
    for (const char *end; (end = strchr(text + len, '\n')); (*ret_n)++) {
        size_t next = (size_t)(end - text) + 1;
        if (next > max)
            break;
        len = next;
    }
    return len;
}

int mistakes_report(const struct mistakes *m, const char *title, struct det_err *err)
{
    if (m->n == 0)
        return 0;
    size_t shown;
    size_t len = whole_lines(buf_str(&m->text), DET_ERR_TEXT_MAX - 200, &shown);
    int line_end = len ? (int)len - 1 : 0;
    if (m->n == 1 && shown == 1)
        return det_fail(err, DET_EINVAL, "%.100s: %.*s", title, line_end, buf_str(&m->text));
    char rest[64] = "";
    if (shown < m->n)
        snprintf(rest, sizeof rest, "\nand %zu more", m->n - shown);
    return det_fail(err, DET_EINVAL, "%.100s: %zu mistakes:\n%.*s%s", title, m->n, line_end,
                    buf_str(&m->text), rest);
}

void mistakes_quote(struct buf *out, const char *s, size_t max)
{
    size_t n = strlen(s), cut = n;
    if (n > max) {
        cut = max;
        while (cut && ((unsigned char)s[cut] & 0xc0) == 0x80)
            cut--;
    }
    for (size_t i = 0; i < cut; i++)
        buf_add_ch(out, (unsigned char)s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i]);
    if (cut < n)
        buf_add_str(out, "...");
}

void mistakes_describe(struct buf *out, const json_t *j)
{
    switch (j ? json_typeof(j) : JSON_NULL) {
    case JSON_OBJECT: buf_add_str(out, json_object_size(j) ? "a map" : "an empty map"); break;
    case JSON_ARRAY: buf_add_str(out, json_array_size(j) ? "a list" : "an empty list"); break;
    case JSON_STRING:
        buf_add_ch(out, '"');
        mistakes_quote(out, json_string_value(j), 40);
        buf_add_ch(out, '"');
        break;
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL: json_write(out, j); break;
    }
}
