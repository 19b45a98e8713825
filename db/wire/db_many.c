#include "db_many.h"

#include "db_texts.h"
#include "mem.h"

#include <assert.h>

enum { UNITS_MAX = 256, BYTES_MAX = 8 << 20 };

struct together {
    struct db_tx *first;
    size_t n;
};

static size_t count_from(const struct db_tx *first)
{
    size_t n = 0, bytes = 0;
    for (const struct db_tx *tx = first; tx && tx->many && tx->many == first->many; tx = tx->next) {
        bytes += tx->bytes;
        if (n == UNITS_MAX || (n > 0 && bytes > BYTES_MAX))
            break;
        n++;
    }
    return n;
}

static void put_column(struct db_texts *out, const struct db_tx *tx, size_t n, int col)
{
    for (; n > 0; n--, tx = tx->next) {
        const struct db_stmt *s = tx->stmts[0];
        assert(s->format[col] == 0);
        db_texts_add(out, s->v[col], (size_t)s->len[col]);
    }
}

static PGresult *row_of(const PGresult *all, int row)
{
    PGresult *one = PQcopyResult(all, PG_COPYRES_ATTRS);
    for (int c = 0; one && c < PQnfields(all); c++)
        PQsetvalue(one, 0, c, PQgetvalue(all, row, c),
                   PQgetisnull(all, row, c) ? -1 : PQgetlength(all, row, c));
    return one;
}

/* Each unit's own row; a failure is everybody's, upon which each is tried alone. */
static void on_together(void *arg, const struct db_result *r)
{
    struct together *t = arg;
    struct db_tx *tx = t->first;
    assert(r->rc < 0 || (size_t)db_rows(r) == t->n);
    for (size_t i = 0; i < t->n; i++, tx = tx->next) {
        db_result_finish(&tx->result);
        tx->result = *r;
        tx->result.pg = r->rc < 0 ? NULL : row_of(r->pg, (int)i);
    }
    free(t);
}

static void send_together(struct db_conn *conn, struct db_tx *first, size_t n)
{
    struct db_texts columns[DB_ARGS_MAX] = {0};
    struct db_args *a = DB_ARGS;
    struct together *t = det_alloc(sizeof *t);
    *t = (struct together){first, n};
    for (int i = 0; i < first->stmts[0]->n; i++) {
        put_column(&columns[i], first, n, i);
        db_texts_end(&columns[i]);
        db_bytes_arg(a, columns[i].b.p, columns[i].b.len);
    }
    db_conn_send(conn, db_stmt_create(first->many, a), on_together, t);
    for (int i = 0; i < a->n; i++)
        db_texts_finish(&columns[i]);
}

struct db_tx *db_many_send(struct db_conn *conn, struct db_tx *tx, db_op_cb *each)
{
    size_t n = count_from(tx);
    if (n > 1) {
        send_together(conn, tx, n);
        while (n-- > 0)
            tx = tx->next;
        return tx;
    }
    for (size_t i = 0; i < tx->n; i++)
        db_conn_lend(conn, tx->stmts[i], each, tx);
    return tx->next;
}
