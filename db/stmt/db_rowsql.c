#include "db_rowsql.h"

#include "mem.h"
#include <stdlib.h>
#include <string.h>

/* A statement's arguments; more rows than fit are several statements. */
enum { BYTES_MAX = 512 << 10 };

/* In each: N the column's name, V its parameter, A that as an array. */
static const struct {
    const char *mark, *each;
    bool of_changes;
} lists[] = {
    {"@names", "N", false},   {"@values", "V", false},      {"@arrays", "A", false},
    {"@sets", "N = V", true}, {"@joined", "N = v.N", true}, {"@excluded", "N = excluded.N", true},
};

static void add_part(struct buf *out, char part, const struct row_column *c, size_t param)
{
    if (part == 'N')
        buf_add_str(out, c->name);
    else if (part == 'A')
        buf_addf(out, "$%zu::%s[]", param, c->sql_type);
    else if (part == 'V')
        buf_addf(out, "$%zu::%s", param, c->sql_type);
    else
        buf_add_ch(out, part);
}

static void add_list(struct buf *out, const struct db_rowsql *s, const char *each, bool of_changes)
{
    const struct row_column *v[ROW_COLUMNS_MAX];
    size_t n = rowtable_written(s->kind, s->is_new, v);
    const char *comma = "";
    for (size_t i = 0; i < n; i++) {
        if (of_changes && v[i]->when != COL_CHANGES)
            continue;
        buf_add_str(out, comma);
        for (const char *p = each; *p; p++)
            add_part(out, *p, v[i], (size_t)s->before + i + 1);
        comma = ", ";
    }
}

static void add_reads(struct buf *out, const struct db_rowsql *s)
{
    const struct row_table *t = &row_tables[s->kind];
    for (size_t i = 0; i < t->n; i++) {
        const struct row_column *c = &t->v[i];
        buf_add_str(out, i > 0 ? ", " : "");
        if (c->type == COL_TIME)
            buf_addf(out, "(extract(epoch FROM %s) * 1000000)::bigint", c->name);
        else
            buf_add_str(out, c->name);
    }
}

static const char *add_mark(struct buf *out, const struct db_rowsql *s, const char *at)
{
    static const char reads[] = "@reads";
    for (size_t i = 0; i < DET_ARRAY_LEN(lists); i++)
        if (strncmp(at, lists[i].mark, strlen(lists[i].mark)) == 0) {
            add_list(out, s, lists[i].each, lists[i].of_changes);
            return at + strlen(lists[i].mark);
        }
    if (strncmp(at, reads, strlen(reads)) != 0)
        abort(); /* the text is constant: our mistake */
    add_reads(out, s);
    return at + strlen(reads);
}

const char *db_rowsql(struct db_rowsql *s)
{
    det_cleanup(buf_finish) struct buf made = BUF_INIT;
    for (const char *at = s->text; !s->made && *at;) {
        size_t n = strcspn(at, "@");
        buf_add(&made, at, n);
        at += n;
        if (*at)
            at = add_mark(&made, s, at);
    }
    if (!s->made)
        s->made = det_strdup(buf_str(&made));
    return s->made;
}

void db_rowsql_args(struct db_args *a, const struct db_rowsql *s, const void *row)
{
    const struct row_column *v[ROW_COLUMNS_MAX];
    size_t n = rowtable_written(s->kind, s->is_new, v);
    for (size_t i = 0; i < n; i++)
        db_str_arg(a, rowtable_text(v[i], row, a->v[a->n].num));
}

void db_rowsql_add(struct db_columns *c, struct db_tx *tx, struct db_rowsql *s, const void *row)
{
    const struct row_column *v[ROW_COLUMNS_MAX];
    size_t n = rowtable_written(s->kind, s->is_new, v);
    for (size_t i = 0; i < n; i++) {
        char num[ROW_TEXT_MAX];
        db_col(c, rowtable_text(v[i], row, num), rowtable_is_number(v[i]));
    }
    db_col_row_end(c);
    if (db_columns_bytes(c) > BYTES_MAX)
        db_rowsql_flush(c, tx, s);
}

void db_rowsql_flush(struct db_columns *c, struct db_tx *tx, struct db_rowsql *s)
{
    db_columns_add(c, tx, db_rowsql(s));
}

int db_rowsql_read(const struct db_result *r, int i, enum row_kind kind, void *row,
                   struct det_err *err)
{
    const struct row_table *t = &row_tables[kind];
    for (size_t k = 0; k < t->n; k++) {
        const char *text = db_is_null(r, i, (int)k) ? NULL : db_text(r, i, (int)k);
        if (!rowtable_put(&t->v[k], row, text))
            return det_fail(err, DET_ECORRUPT, "%s %s has the unknown state %s", t->what,
                            db_text(r, i, 0), db_text(r, i, (int)k));
    }
    return 0;
}
