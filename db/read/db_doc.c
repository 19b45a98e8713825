#include "db_doc.h"

#include "db_stmt.h"
#include "json.h"

#include <string.h>

/* PostgreSQL's numbers of its types (pg_type.dat): fixed for good. */
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_TIMESTAMPTZ = 1184,
    OID_NUMERIC = 1700,
    OID_JSONB = 3802
};

/* "2024-02-29 23:59:59.5+00", as a session in UTC shows it. */
static void put_time(struct buf *out, const char *s, size_t n)
{
    size_t whole = strlen("2024-02-29 23:59:59");
    if (n < whole + 3 || s[10] != ' ' || memcmp(s + n - 3, "+00", 3) != 0) {
        json_write_string(out, s, n); /* infinity, or another calendar */
        return;
    }
    size_t digits = n - 3 - whole;
    buf_add_ch(out, '"');
    buf_add(out, s, 10);
    buf_add_ch(out, 'T');
    buf_add(out, s + 11, 8);
    buf_add_ch(out, '.');
    if (digits > 1)
        buf_add(out, s + whole + 1, digits - 1);
    buf_add(out, "000000", 6 - (digits > 1 ? digits - 1 : 0));
    buf_add_str(out, "Z\"");
}

static void put_number(struct buf *out, const char *s, size_t n)
{
    const char *first = *s == '-' ? s + 1 : s;
    if (*first >= '0' && *first <= '9')
        buf_add(out, s, n);
    else
        json_write_string(out, s, n);
}

static void put_value(struct buf *out, const struct db_result *r, int row, int col)
{
    const char *s = PQgetvalue(r->pg, row, col);
    size_t n = (size_t)PQgetlength(r->pg, row, col);
    if (PQgetisnull(r->pg, row, col)) {
        buf_add_str(out, "null");
        return;
    }
    switch (PQftype(r->pg, col)) {
    case OID_BOOL: buf_add_str(out, *s == 't' ? "true" : "false"); break;
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_JSON:
    case OID_JSONB: buf_add(out, s, n); break;
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_NUMERIC: put_number(out, s, n); break;
    case OID_TIMESTAMPTZ: put_time(out, s, n); break;
    default: json_write_string(out, s, n);
    }
}

static void put_name(struct buf *out, const char *name, size_t n, char before)
{
    if (before)
        buf_add_ch(out, before);
    buf_add_ch(out, '"');
    buf_add(out, name, n); /* the statement's own: nothing to escape */
    buf_add(out, "\":", 2);
}

/* Whether the column belongs to the object that `open` (up to its dot) names. */
static bool is_within(const char *name, const char *open, size_t n)
{
    return open && !strncmp(name, open, n + 1);
}

/* Columns of one name in front of the dot, as an object or null. Returns the column after them. */
static int put_object(struct buf *out, const struct db_result *r, int row, int from, int to)
{
    const char *open = PQfname(r->pg, from);
    size_t n = (size_t)(strchr(open, '.') - open);
    bool is_null = PQgetisnull(r->pg, row, from);
    int col = from;
    buf_add_str(out, is_null ? "null" : "");
    for (; col < to && is_within(PQfname(r->pg, col), open, n); col++) {
        const char *name = PQfname(r->pg, col) + n + 1;
        if (is_null)
            continue;
        put_name(out, name, strlen(name), col == from ? '{' : ',');
        put_value(out, r, row, col);
    }
    if (!is_null)
        buf_add_ch(out, '}');
    return col;
}

void db_put_members(struct buf *out, const struct db_result *r, int row, int from, int to)
{
    char before = 0;
    int end = to < 0 ? PQnfields(r->pg) : to;
    for (int col = from; col < end;) {
        const char *name = PQfname(r->pg, col);
        size_t n = strcspn(name, ".?");
        if (name[n] == '?' && PQgetisnull(r->pg, row, col)) {
            col++;
            continue;
        }
        put_name(out, name, n, before);
        before = ',';
        if (name[n] == '.') {
            col = put_object(out, r, row, col, end);
        } else {
            put_value(out, r, row, col);
            col++;
        }
    }
}

void db_put_rows(struct buf *out, const struct db_result *r)
{
    buf_add_ch(out, '[');
    for (int i = 0; i < db_rows(r); i++) {
        buf_add_str(out, i ? ",{" : "{");
        db_put_members(out, r, i, 0, -1);
        buf_add_ch(out, '}');
    }
    buf_add_ch(out, ']');
}
