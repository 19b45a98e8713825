/* Arguments, statements and what is read from results, without a server: the results are made up
 * as libpq would give them. */
#include "db_stmt.h"

#include "buf.h"
#include "db_doc.h"
#include "mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { OID_BOOL = 16, OID_INT4 = 23, OID_TEXT = 25, OID_FLOAT8 = 701, OID_TIMESTAMPTZ = 1184 };

struct column {
    const char *name, *value; /* NULL: SQL null */
    Oid type;
};

/* One row. */
static struct db_result row_of(const struct column *c, int n)
{
    PGresAttDesc as[8] = {0};
    PGresult *pg = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    for (int i = 0; i < n; i++)
        as[i] = (PGresAttDesc){.name = (char *)c[i].name, .typid = c[i].type};
    assert_int_equal(PQsetResultAttrs(pg, n, as), 1);
    for (int i = 0; i < n; i++)
        assert_int_equal(
            PQsetvalue(pg, 0, i, (char *)c[i].value, c[i].value ? (int)strlen(c[i].value) : -1), 1);
    struct db_result r;
    db_result_init(&r, pg, "SELECT 1");
    assert_int_equal(db_rc(&r), 0);
    return r;
}

/* Whatever a column holds, it is read as a whole or refused with its number. */
static void bytes(void **state)
{
    static const struct {
        const char *text, *bytes;
        size_t n;
        int rc;
    } cases[] = {
        {"", "", 0, 0},
        {"\\x", "", 0, 0},
        {"\\x00ff09a0", "\x00\xff\x09\xa0", 4, 0},
        {"\\x0", "", 0, DET_ECORRUPT},
        {"\\", "", 0, DET_ECORRUPT},
        {"ab", "", 0, DET_ECORRUPT},
        {"\\y00", "", 0, DET_ECORRUPT},
        {"\\x0g", "", 0, DET_ECORRUPT},
        {"\\x:0", "", 0, DET_ECORRUPT},
        {"\\x/0", "", 0, DET_ECORRUPT},
        {"\\x0A", "", 0, DET_ECORRUPT}, /* PostgreSQL writes small letters */
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct buf got = BUF_INIT;
        struct det_err err = {0};
        struct db_result r =
            row_of((struct column[]){{"id", "7", OID_INT4}, {"b", cases[i].text, 17}}, 2);
        int rc = db_bytes(&r, 0, 1, &got, &err);
        if (rc != cases[i].rc)
            fail_msg("'%s': %d", cases[i].text, rc);
        if (rc < 0)
            assert_string_equal(err.text, "column 1 is not bytea");
        else
            assert_memory_equal(buf_str(&got), cases[i].bytes, cases[i].n);
        assert_true(rc < 0 || got.len == cases[i].n);
        buf_finish(&got);
        db_result_finish(&r);
    }
}

/* What it shows of a row: JSON, whatever the column holds. */
static void members(void **state)
{
    static const struct {
        struct column c[4];
        int n;
        const char *json;
    } cases[] = {
        {{{"id", "-7", OID_INT4}, {"on", "t", OID_BOOL}, {"off", "f", OID_BOOL}},
         3,
         "\"id\":-7,\"on\":true,\"off\":false"},
        {{{"x", "-1.5e-7", OID_FLOAT8}, {"y", "NaN", OID_FLOAT8}, {"z", "-Infinity", OID_FLOAT8}},
         3,
         "\"x\":-1.5e-7,\"y\":\"NaN\",\"z\":\"-Infinity\""},
        {{{"t", "2024-02-29 23:59:59+00", OID_TIMESTAMPTZ},
          {"u", "2024-02-29 23:59:59.25+00", OID_TIMESTAMPTZ}},
         2,
         "\"t\":\"2024-02-29T23:59:59.000000Z\",\"u\":\"2024-02-29T23:59:59.250000Z\""},
        {{{"t", "infinity", OID_TIMESTAMPTZ},
          {"u", "0044-03-15 00:00:00+00 BC", OID_TIMESTAMPTZ},
          {"v", "12024-02-29 23:59:59+00", OID_TIMESTAMPTZ}},
         3,
         "\"t\":\"infinity\",\"u\":\"0044-03-15 00:00:00+00 BC\",\"v\":\"12024-02-29 23:59:59+00\""},
        {{{"s", "a\"b\n", OID_TEXT}, {"n", NULL, OID_TEXT}, {"m?", NULL, OID_TEXT}},
         3,
         "\"s\":\"a\\\"b\\n\",\"n\":null"},
        {{{"m?", "1", OID_INT4},
          {"o.a", "1", OID_INT4},
          {"o.b", NULL, OID_INT4},
          {"ob", "2", OID_INT4}},
         4,
         "\"m\":1,\"o\":{\"a\":1,\"b\":null},\"ob\":2"},
        {{{"o.a", NULL, OID_INT4}, {"o.b", "1", OID_INT4}}, 2, "\"o\":null"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct buf got = BUF_INIT;
        struct db_result r = row_of(cases[i].c, cases[i].n);
        db_put_members(&got, &r, 0, 0, -1);
        assert_string_equal(buf_str(&got), cases[i].json);
        buf_finish(&got);
        db_result_finish(&r);
    }
}

static const char *argument(const struct db_args *a, int i)
{
    return a->v[i].p ? a->v[i].p : "(null)";
}

static void arguments(void **state)
{
    struct db_args a = {0};
    db_i64_arg(db_str_arg(db_str_arg(&a, "x"), NULL), INT64_MIN);
    db_f64_arg(db_f64_arg(db_f64_arg(&a, 0.1), NAN), -INFINITY);
    db_time_arg(db_time_arg(db_bool_arg(&a, true), 0), 1);
    db_bytes_arg(&a, NULL, 0);
    static const char *const want[] = {"x",
                                       "(null)",
                                       "-9223372036854775808",
                                       "0.10000000000000001",
                                       "nan",
                                       "-inf",
                                       "t",
                                       "(null)",
                                       "1970-01-01T00:00:00.000001Z",
                                       ""};
    assert_int_equal(a.n, DET_ARRAY_LEN(want));
    for (int i = 0; i < a.n; i++)
        assert_string_equal(argument(&a, i), want[i]);
}

/* A statement that waits is joined by an equal one: nothing else may look like it. */
static void equal_statements(void **state)
{
    static const char sql[] = "SELECT $1", other_sql[] = "SELECT $1";
    struct db_args plain = {0}, null = {0}, empty = {0}, binary = {0}, other = {0}, two = {0};
    db_str_arg(&plain, "ab");
    db_null_arg(&null);
    db_str_arg(&empty, "");
    db_bytes_arg(&binary, "ab", 2);
    db_str_arg(&other, "ac");
    db_str_arg(db_str_arg(&two, "a"), "");
    const struct {
        const char *sql;
        const struct db_args *a;
    } cases[] = {{sql, &plain},  {other_sql, &plain}, {sql, &null}, {sql, &empty},
                 {sql, &binary}, {sql, &other},       {sql, &two},  {sql, NULL}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < DET_ARRAY_LEN(cases); k++) {
            det_cleanup(freep) struct db_stmt *a = db_stmt_create(cases[i].sql, cases[i].a);
            det_cleanup(freep) struct db_stmt *b = db_stmt_create(cases[k].sql, cases[k].a);
            if (db_stmt_equal(a, b) != (i == k))
                fail_msg("cases %zu and %zu", i, k);
        }
}

/* What libpq gives when nobody answers, and what a failed statement is asked for all the same. */
static void failures(void **state)
{
    static const struct {
        int status; /* -1: no result at all */
        int rc;
        const char *text;
    } cases[] = {
        {-1, DET_EUNAVAIL, "the connection to PostgreSQL was lost"},
        {PGRES_FATAL_ERROR, DET_EUNAVAIL, "the connection to PostgreSQL was lost"},
        {PGRES_BAD_RESPONSE, DET_EUNAVAIL, "the connection to PostgreSQL was lost"},
        {PGRES_PIPELINE_ABORTED, DET_ECANCELED, "another statement of the transaction failed"}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct db_result r;
        int status = cases[i].status;
        db_result_init(&r, status < 0 ? NULL : PQmakeEmptyPGresult(NULL, (ExecStatusType)status),
                       "SELECT 1");
        assert_int_equal(db_rc(&r), cases[i].rc);
        assert_string_equal(db_error(&r)->text, cases[i].text);
        assert_int_equal(db_blame(&r), DB_BLAME_SERVER);
        assert_string_equal(db_words(&r), "");
        assert_int_equal(db_rows(&r), 0);
        assert_int_equal(db_affected(&r), 0);
        assert_int_equal(db_is_away(&r), cases[i].rc == DET_EUNAVAIL);
        db_result_finish(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes),     cmocka_unit_test(members),
        cmocka_unit_test(arguments), cmocka_unit_test(equal_statements),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
