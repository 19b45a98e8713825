#include "table.h"

#include "buf.h"
#include "vec.h"
#include "wide.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct table {
    const char *const *heads;
    size_t columns;
    VEC(char *) cells;
};

static bool as_csv;

void table_as_csv(void)
{
    as_csv = true;
}

bool table_is_csv(void)
{
    return as_csv;
}

struct table *table_create(const char *const *heads, size_t n)
{
    struct table *t = det_zalloc(sizeof *t);
    t->heads = heads;
    t->columns = n;
    return t;
}

void table_cell(struct table *t, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < b.len; i++)
        if ((unsigned char)b.p[i] < 0x20)
            b.p[i] = ' '; /* a name with control characters must not move the cursor */
    buf_add_ch(&b, '\0');
    vec_push(&t->cells, buf_steal(&b));
}

static const char *head_text(const struct table *t, size_t col)
{
    return t->heads[col] + (t->heads[col][0] == '>');
}

static size_t column_width(const struct table *t, size_t col)
{
    size_t w = wide_columns(head_text(t, col));
    for (size_t i = col; i < t->cells.n; i += t->columns)
        if (wide_columns(t->cells.v[i]) > w)
            w = wide_columns(t->cells.v[i]);
    return w;
}

static void print_cell(const struct table *t, size_t col, const char *text, size_t width)
{
    int pad = (int)(width - wide_columns(text));
    if (t->heads[col][0] == '>')
        printf("%*s%s", pad, "", text);
    else if (col + 1 < t->columns)
        printf("%s%*s", text, pad, "");
    else
        printf("%s", text);
    fputs(col + 1 < t->columns ? "  " : "\n", stdout);
}

static void print_columns(const struct table *t)
{
    size_t *width = det_reallocarray(NULL, t->columns, sizeof *width);
    for (size_t c = 0; c < t->columns; c++)
        width[c] = column_width(t, c);
    for (size_t c = 0; c < t->columns; c++)
        print_cell(t, c, head_text(t, c), width[c]);
    for (size_t i = 0; i < t->cells.n; i++)
        print_cell(t, i % t->columns, t->cells.v[i], width[i % t->columns]);
    free(width);
}

static void print_csv_field(const struct table *t, size_t col, const char *text)
{
    bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted)
        putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    if (quoted)
        putchar('"');
    fputs(col + 1 < t->columns ? "," : "\n", stdout);
}

static void print_csv(const struct table *t)
{
    for (size_t c = 0; c < t->columns; c++)
        print_csv_field(t, c, head_text(t, c));
    for (size_t i = 0; i < t->cells.n; i++)
        print_csv_field(t, i % t->columns, t->cells.v[i]);
}

void table_fit(struct table *t, size_t col, size_t most)
{
    enum { LEAST = 12 };
    size_t all = 2 * (t->columns - 1), wide = column_width(t, col);
    for (size_t c = 0; c < t->columns; c++)
        all += column_width(t, c);
    if (as_csv || all <= most || wide <= LEAST)
        return;
    size_t room = all - most < wide - LEAST ? wide - (all - most) : LEAST;
    for (size_t i = col; i < t->cells.n; i += t->columns) {
        char *text = t->cells.v[i];
        if (wide_columns(text) > room)
            t->cells.v[i] = det_asprintf("%.*s..", (int)wide_cut(text, (int)room - 2), text);
        if (t->cells.v[i] != text)
            free(text);
    }
}

void table_destroy(struct table *t)
{
    for (size_t i = 0; i < t->cells.n; i++)
        free(t->cells.v[i]);
    vec_free(&t->cells);
    free(t);
}

void table_print(struct table *t, const char *empty)
{
    if (as_csv)
        print_csv(t);
    else if (t->cells.n == 0)
        puts(empty);
    else
        print_columns(t);
    table_destroy(t);
}
