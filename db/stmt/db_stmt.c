#include "db_stmt.h"

#include "buf.h"
#include "clk.h"
#include "db_state.h"
#include "mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct db_arg *arg_next(struct db_args *a)
{
    if (a->n >= DB_ARGS_MAX)
        abort(); /* the count is fixed by the statement's text: our mistake */
    return &a->v[a->n++];
}

struct db_args *db_bytes_arg(struct db_args *a, const void *p, size_t len)
{
    struct db_arg *v = arg_next(a);
    v->p = p ? p : "";
    v->len = (int)len;
    v->format = 1;
    return a;
}

struct db_args *db_text_arg(struct db_args *a, const char *p, size_t len)
{
    struct db_arg *v = arg_next(a);
    v->p = p;
    v->len = (int)len;
    v->format = 0;
    return a;
}

struct db_args *db_str_arg(struct db_args *a, const char *s)
{
    return db_text_arg(a, s, s ? strlen(s) : 0);
}

struct db_args *db_null_arg(struct db_args *a)
{
    return db_text_arg(a, NULL, 0);
}

struct db_args *db_i64_arg(struct db_args *a, int64_t v)
{
    db_text_arg(a, "", 0);
    struct db_arg *x = &a->v[a->n - 1];
    x->len = snprintf(x->num, sizeof x->num, "%" PRId64, v);
    x->p = x->num;
    return a;
}

struct db_args *db_f64_arg(struct db_args *a, double v)
{
    db_text_arg(a, "", 0);
    struct db_arg *x = &a->v[a->n - 1];
    x->len = snprintf(x->num, sizeof x->num, "%.17g", v); /* "nan", "inf": PostgreSQL reads both */
    x->p = x->num;
    return a;
}

struct db_args *db_bool_arg(struct db_args *a, bool v)
{
    return db_str_arg(a, v ? "t" : "f");
}

struct db_args *db_time_arg(struct db_args *a, int64_t wall_us)
{
    if (wall_us == 0)
        return db_null_arg(a);
    db_text_arg(a, "", 0);
    struct db_arg *x = &a->v[a->n - 1];
    _Static_assert(sizeof x->num >= CLK_RFC3339_MAX, "a time fits");
    clk_format(wall_us, x->num);
    x->len = (int)strlen(x->num);
    x->p = x->num;
    return a;
}

struct db_stmt *db_stmt_create(const char *sql, const struct db_args *args)
{
    size_t bytes = 0;
    int n = args ? args->n : 0;
    for (int i = 0; i < n; i++)
        bytes += (size_t)args->v[i].len + 1;
    struct db_stmt *s = det_alloc(sizeof *s + bytes);
    s->sql = sql;
    s->n = n;
    s->bytes = bytes;
    char *at = s->data;
    for (int i = 0; i < n; i++) {
        const struct db_arg *a = &args->v[i];
        s->v[i] = a->p ? at : NULL;
        s->len[i] = a->len;
        s->format[i] = a->format;
        if (!a->p)
            continue;
        memcpy(at, a->p, (size_t)a->len);
        at[a->len] = 0;
        at += a->len + 1;
    }
    return s;
}

bool db_stmt_equal(const struct db_stmt *a, const struct db_stmt *b)
{
    if (a->sql != b->sql || a->n != b->n || a->bytes != b->bytes)
        return false;
    for (int i = 0; i < a->n; i++)
        if (!a->v[i] != !b->v[i] || a->format[i] != b->format[i] || a->len[i] != b->len[i] ||
            (a->v[i] && memcmp(a->v[i], b->v[i], (size_t)a->len[i]) != 0))
            return false;
    return true;
}

void db_result_fail(struct db_result *r, int code, const char *text)
{
    *r = (struct db_result){.index = SIZE_MAX};
    r->rc = det_fail(&r->err, code, "%s", text);
}

void db_result_init(struct db_result *r, PGresult *pg, const char *sql)
{
    *r = (struct db_result){.pg = pg};
    ExecStatusType st = PQresultStatus(pg);
    if (st == PGRES_TUPLES_OK || st == PGRES_COMMAND_OK)
        return;
    const char *state = PQresultErrorField(pg, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(pg, PG_DIAG_MESSAGE_PRIMARY);
    snprintf(r->sqlstate, sizeof r->sqlstate, "%s", state ? state : "");
    if (st == PGRES_PIPELINE_ABORTED)
        r->rc = det_fail(&r->err, DET_ECANCELED, "another statement of the transaction failed");
    else if (!state)
        r->rc = det_fail(&r->err, DET_EUNAVAIL, "the connection to PostgreSQL was lost");
    else
        r->rc = det_fail(&r->err, db_state_find(state)->code, "%s (SQLSTATE %s)",
                         text ? text : "database error", state);
    if (state)
        snprintf(r->in, sizeof r->in, "%s", sql);
}

void db_result_finish(struct db_result *r)
{
    PQclear(r->pg);
    r->pg = NULL;
}

struct shared_buf *db_made(const struct db_result *r)
{
    return r->made;
}

const char *db_words(const struct db_result *r)
{
    const char *text = PQresultErrorField(r->pg, PG_DIAG_MESSAGE_PRIMARY);
    return text ? text : "";
}

int db_rc(const struct db_result *r)
{
    return r->rc;
}

const struct det_err *db_error(const struct db_result *r)
{
    return &r->err;
}

const char *db_statement(const struct db_result *r)
{
    return r->in;
}

const char *db_sqlstate(const struct db_result *r)
{
    return r->sqlstate;
}

enum db_state db_state(const struct db_result *r)
{
    return db_state_find(r->sqlstate)->state;
}

enum db_blame db_blame(const struct db_result *r)
{
    if (r->rc >= 0)
        return DB_BLAME_NOBODY;
    return r->sqlstate[0] ? db_state_find(r->sqlstate)->blame : DB_BLAME_SERVER;
}

size_t db_stmt_index(const struct db_result *r)
{
    return r->index;
}

bool db_timed_out(const struct db_result *r)
{
    return db_state(r) == DB_STATE_OVERTIME;
}

bool db_is_away(const struct db_result *r)
{
    return r->rc == DET_EUNAVAIL && !db_timed_out(r);
}

int db_rows(const struct db_result *r)
{
    return r->pg && !r->rc ? PQntuples(r->pg) : 0;
}

int64_t db_affected(const struct db_result *r)
{
    return r->pg && !r->rc ? strtoll(PQcmdTuples(r->pg), NULL, 10) : 0;
}

bool db_is_null(const struct db_result *r, int row, int col)
{
    return PQgetisnull(r->pg, row, col);
}

const char *db_text(const struct db_result *r, int row, int col)
{
    return PQgetvalue(r->pg, row, col);
}

size_t db_text_len(const struct db_result *r, int row, int col)
{
    return (size_t)PQgetlength(r->pg, row, col);
}

int64_t db_i64(const struct db_result *r, int row, int col)
{
    return strtoll(db_text(r, row, col), NULL, 10);
}

double db_f64(const struct db_result *r, int row, int col)
{
    return strtod(db_text(r, row, col), NULL);
}

bool db_bool(const struct db_result *r, int row, int col)
{
    return db_text(r, row, col)[0] == 't';
}

static int nibble_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int db_bytes(const struct db_result *r, int row, int col, struct buf *out, struct det_err *err)
{
    const char *p = db_text(r, row, col);
    size_t n = db_text_len(r, row, col);
    if (n == 0)
        return 0;
    if (n < 2 || p[0] != '\\' || p[1] != 'x' || n % 2)
        return det_fail(err, DET_ECORRUPT, "column %d is not bytea", col);
    buf_reserve(out, n / 2);
    for (size_t i = 2; i < n; i += 2) {
        int hi = nibble_of(p[i]), lo = nibble_of(p[i + 1]);
        if (hi < 0 || lo < 0)
            return det_fail(err, DET_ECORRUPT, "column %d is not bytea", col);
        buf_add_ch(out, (char)(hi << 4 | lo));
    }
    return 0;
}
