#include "db_array.h"

#include <stdlib.h>
#include <string.h>

static struct buf *next_column(struct db_columns *c)
{
    if (c->at >= DB_ARGS_MAX)
        abort(); /* the count is fixed by the statement's text: our mistake */
    struct buf *b = &c->v[c->at++];
    buf_add_ch(b, b->len == 0 ? '{' : ',');
    return b;
}

static void add_quoted(struct buf *b, const char *s)
{
    buf_add_ch(b, '"');
    for (size_t n; *s; s += n) {
        n = strcspn(s, "\"\\");
        buf_add(b, s, n);
        if (s[n]) {
            buf_add_ch(b, '\\');
            buf_add_ch(b, s[n++]);
        }
    }
    buf_add_ch(b, '"');
}

void db_col(struct db_columns *c, const char *s, bool is_number)
{
    struct buf *b = next_column(c);
    if (s && !is_number)
        add_quoted(b, s);
    else
        buf_add_str(b, s ? s : "NULL");
}

void db_col_row_end(struct db_columns *c)
{
    c->n = c->at;
    c->at = 0;
}

size_t db_columns_bytes(const struct db_columns *c)
{
    size_t n = 0;
    for (int i = 0; i < c->n; i++)
        n += c->v[i].len;
    return n;
}

void db_columns_add(struct db_columns *c, struct db_tx *tx, const char *sql)
{
    struct db_args *a = DB_ARGS;
    for (int i = 0; i < c->n; i++) {
        buf_add_ch(&c->v[i], '}');
        db_text_arg(a, buf_str(&c->v[i]), c->v[i].len);
    }
    if (c->n > 0)
        db_tx_add(tx, sql, a);
    for (int i = 0; i < c->n; i++)
        buf_finish(&c->v[i]);
    c->n = 0;
}
