/* The pool against a real PostgreSQL: group commit, isolation of a bad unit, outage, a newer
 * schema. */
#include "pg_private.h"

#include "db.h"
#include "db_cluster.h"
#include "db_users.h"
#include "mem.h"

#include <libpq-fe.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct pg_private pg;
static uv_loop_t loop;
static struct db *db;
static bool is_up = true, is_down, deposed;

struct got {
    bool done;
    int rc, rows;
    int64_t i64;
    char sqlstate[6];
    bool is_away;
};

static void on_got(void *arg, const struct db_result *r)
{
    struct got *g = arg;
    assert_false(g->done); /* exactly once */
    g->done = true;
    g->rc = db_rc(r);
    g->rows = db_rows(r);
    snprintf(g->sqlstate, sizeof g->sqlstate, "%s", db_sqlstate(r));
    if (*g->sqlstate) { /* the statement is for a log: whoever asked reads the rest */
        assert_true(*db_statement(r));
        assert_null(strstr(db_error(r)->text, db_statement(r)));
    }
    g->is_away = db_is_away(r);
    if (g->rows)
        g->i64 = db_i64(r, 0, 0);
}

static void on_state(void *arg, bool up)
{
    is_up = up;
    is_down = !up;
}

static void on_deposed(void *arg)
{
    deposed = true;
}

static void query_wait(const char *sql, struct got *g)
{
    *g = (struct got){0};
    db_query(db, sql, NULL, on_got, g);
    assert_false(g->done); /* never from inside */
    assert_true(loop_until(&loop, &g->done, 60000));
}

static int64_t count(const char *sql)
{
    struct got g;
    query_wait(sql, &g);
    assert_int_equal(g.rc, 0);
    return g.i64;
}

/* All of this file holds where commits need not wait for the disk unless the master asks for it. */
static void role_is_lax(void)
{
    PGconn *pg_conn = PQconnectdb(pg.uri);
    PGresult *r = PQexec(pg_conn, "ALTER ROLE det SET synchronous_commit = off");
    assert_int_equal(PQresultStatus(r), PGRES_COMMAND_OK);
    PQclear(r);
    PQfinish(pg_conn);
}

static int setup(void **state)
{
    struct det_err err;
    struct db_options o = {.on_state = on_state, .on_deposed = on_deposed};
    if (pg_private_start(&pg) < 0)
        return -1;
    role_is_lax();
    if (pg_private_connect(&pg, &loop, o, &db) < 0)
        return -1;
    assert_int_equal(db_migrate(pg.uri, &err), 0); /* again: nothing to do */
    pg_private_write(&loop, db, "CREATE TABLE t (k text PRIMARY KEY, v bigint)");
    pg_private_write(&loop, db, "CREATE SEQUENCE asked");
    return 0;
}

static int teardown(void **state)
{
    pg_private_close(&pg, &loop, db);
    return 0;
}

static void put(const char *k, int64_t v, struct got *g)
{
    db_write(db, "INSERT INTO t VALUES ($1, $2::bigint)", db_i64_arg(db_str_arg(DB_ARGS, k), v),
             on_got, g);
}

/* Every session of the master's ends at once, and is seen to be gone by another one. */
static void sessions_end(void)
{
    PGconn *other = PQconnectdb(pg.uri);
    PGresult *r =
        PQexec(other, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                      "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
    assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
    assert_true(PQntuples(r) > 3);
    for (int i = 0; i < PQntuples(r); i++)
        assert_string_equal(PQgetvalue(r, i, 0), "t");
    PQclear(r);
    PQfinish(other);
}

/* Its server may not have begun with it yet. */
static void sleeper_end(void)
{
    while (count("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity "
                 "WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'") == 0)
        ;
}

/* Of two connections one is slow: what was sent to it already waits, the others do not. */
static void test_slow_read(void **state)
{
    enum { QUICK = 40, BEHIND = 3 };
    struct got slow = {0}, quick[QUICK] = {0};
    db_query(db, "SELECT pg_sleep(29)", NULL, on_got, &slow);
    for (int i = 0; i < QUICK; i++)
        db_query(db, "SELECT $1::bigint", db_i64_arg(DB_ARGS, i), on_got, &quick[i]);
    assert_true(loop_until(&loop, &quick[QUICK - 1].done, 60000));
    int done = 0;
    for (int i = 0; i < QUICK; i++)
        done += quick[i].done;
    assert_in_range(done, QUICK - BEHIND, QUICK - 1);
    assert_false(slow.done);
    struct got again[QUICK] = {0}; /* equal to one that waits behind the slow one, or not */
    for (int i = 0; i < QUICK; i++)
        db_query(db, "SELECT $1::bigint", db_i64_arg(DB_ARGS, i), on_got, &again[i]);
    for (int i = 0; i < QUICK; i++)
        assert_true(again[i].done || loop_until(&loop, &again[i].done, 60000));
    assert_false(slow.done);
    sleeper_end();
    assert_true(loop_until(&loop, &slow.done, 60000));
    assert_string_equal(slow.sqlstate, "57014");
    for (int i = 0; i < QUICK; i++)
        assert_true(loop_until(&loop, &quick[i].done, 60000));
}

/* The second write to such a connection makes libpq close the socket: no event tells of it. */
static void test_writes_to_dead_sessions(void **state)
{
    struct got reads[40] = {0}, write = {0};
    put("dead", 1, &write);
    sessions_end();
    for (size_t i = 0; i < DET_ARRAY_LEN(reads); i++) {
        db_query(db, "SELECT 1", NULL, on_got, &reads[i]);
        assert_false(reads[i].done); /* never from inside */
    }
    for (size_t i = 0; i < DET_ARRAY_LEN(reads); i++) {
        assert_true(loop_until(&loop, &reads[i].done, 60000));
        assert_int_equal(reads[i].rc, DET_EUNAVAIL);
    }
    assert_true(loop_until(&loop, &write.done, 60000));
    struct got kept = {0};
    db_query_kept(db, "SELECT $1::bigint", 7, on_got, &kept);
    assert_true(loop_until(&loop, &kept.done, 60000));
    assert_int_equal(kept.i64, 7);
    assert_true(loop_until(&loop, &is_up, 60000));
}

static void test_group(void **state)
{
    struct got g[100] = {0};
    char k[16];
    for (int i = 0; i < 100; i++) {
        snprintf(k, sizeof k, "g%d", i);
        put(k, i, &g[i]);
    }
    for (int i = 0; i < 100; i++) {
        assert_true(loop_until(&loop, &g[i].done, 60000));
        assert_int_equal(g[i].rc, 0);
    }
    assert_int_equal(count("SELECT count(*) FROM t WHERE k LIKE 'g%'"), 100);
    assert_int_equal(count("SELECT count(DISTINCT xmin::text) FROM t WHERE k LIKE 'g%'"), 1);
}

static void test_bad_unit(void **state)
{
    struct got g[3] = {0};
    put("b1", 1, &g[0]);
    put("g0", 1, &g[1]); /* there already */
    put("b2", 1, &g[2]);
    for (int i = 0; i < 3; i++)
        assert_true(loop_until(&loop, &g[i].done, 60000));
    assert_int_equal(g[0].rc, 0);
    assert_int_equal(g[1].rc, DET_EEXIST);
    assert_string_equal(g[1].sqlstate, "23505");
    assert_int_equal(g[2].rc, 0);
    assert_int_equal(count("SELECT count(*) FROM t WHERE k LIKE 'b%'"), 2);
}

static void test_unit_is_atomic(void **state)
{
    struct got g = {0}, other = {0};
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx, "INSERT INTO t VALUES ('a1', 1)", NULL);
    db_tx_add(tx, "INSERT INTO t VALUES ('g1', 1)", NULL);
    assert_int_equal(db_tx_size(tx), 2);
    db_tx_commit(tx, on_got, &g);
    put("a2", 2, &other);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_true(loop_until(&loop, &other.done, 60000));
    assert_int_equal(g.rc, DET_EEXIST);
    assert_int_equal(other.rc, 0);
    assert_int_equal(count("SELECT count(*) FROM t WHERE k = 'a1'"), 0);
}

static void test_bad_sql(void **state)
{
    struct got g;
    query_wait("SELECT nonsense", &g);
    assert_int_equal(g.rc, DET_EIO);
    query_wait("SELECT 'x'::integer", &g);
    assert_int_equal(g.rc, DET_EINVAL);
    assert_int_equal(count("SELECT 7"), 7);
}

/* Readers come back on their own clock. */
static void reads_are_back(void)
{
    struct got r;
    bool ready = false, never = false;
    for (int i = 0; i < 300 && !ready; i++) {
        query_wait("SELECT 1", &r);
        ready = r.rc == 0;
        if (!ready)
            loop_until(&loop, &never, 50);
    }
    assert_true(ready);
}

/* A statement is known by its text, not by where that lies. */
static void test_texts_in_one_place(void **state)
{
    char sql[32];
    for (int i = 0; i < 20; i++) {
        snprintf(sql, sizeof sql, "SELECT %d", i);
        assert_int_equal(count(sql), i);
    }
}

static void test_outage(void **state)
{
    struct got w = {0}, r = {0};
    pg_private_stop(&pg);
    assert_true(loop_until(&loop, &is_down, 60000));
    put("o1", 1, &w);
    db_query(db, "SELECT 1", NULL, on_got, &r);
    assert_true(loop_until(&loop, &w.done, 60000));
    assert_true(loop_until(&loop, &r.done, 60000));
    assert_int_equal(w.rc, DET_EUNAVAIL);
    assert_int_equal(r.rc, DET_EUNAVAIL);
    assert_true(w.is_away && r.is_away);
    is_up = false;
    assert_int_equal(pg_private_again(&pg), 0);
    assert_true(loop_until(&loop, &is_up, 60000));
    memset(&w, 0, sizeof w);
    put("o1", 1, &w);
    assert_true(loop_until(&loop, &w.done, 60000));
    assert_int_equal(w.rc, 0);
    reads_are_back();
    assert_false(deposed);
}

static void write_wait(const char *sql, struct got *g)
{
    *g = (struct got){0};
    db_write(db, sql, NULL, on_got, g);
    assert_true(loop_until(&loop, &g->done, 60000));
}

static const char how_prepared[] =
    "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO t VALUES ($1, "
    "$2::bigint)%'";

static void put_wait(const char *k, int rc)
{
    struct got g = {0};
    put(k, 1, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_int_equal(g.rc, rc);
}

/* libpq's, of which one call does not take what it is given, as for want of memory. */
static int calls_to_refuse;

static bool is_refused(void)
{
    return calls_to_refuse > 0 && --calls_to_refuse == 0;
}

#define REFUSES(name, params, ...)                                                                 \
    int __real_##name params;                                                                      \
    int __wrap_##name params;                                                                      \
    int __wrap_##name params                                                                       \
    {                                                                                              \
        return is_refused() ? 0 : __real_##name(__VA_ARGS__);                                      \
    }
REFUSES(PQsendPrepare, (PGconn * c, const char *name, const char *sql, int n, const Oid *types), c,
        name, sql, n, types)
REFUSES(PQsendQueryParams,
        (PGconn * c, const char *sql, int n, const Oid *types, const char *const *v, const int *len,
         const int *formats, int format),
        c, sql, n, types, v, len, formats, format)
REFUSES(PQsendQueryPrepared,
        (PGconn * c, const char *name, int n, const char *const *v, const int *len,
         const int *formats, int format),
        c, name, n, v, len, formats, format)
REFUSES(PQpipelineSync, (PGconn * c), c)

/* Asks on from inside, where answers are read. */
static void on_first(void *arg, const struct db_result *r)
{
    db_query(db, "SELECT 10", NULL, on_got, arg);
}

static void test_one_refused(int n)
{
    struct got w = {0}, r = {0};
    char k[32], sql[96];
    snprintf(k, sizeof k, "refused%d", n);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM t WHERE k = '%s'", k);
    is_up = is_down = false;
    calls_to_refuse = n;
    db_query(db, "SELECT 9", NULL, on_first, &r);
    put(k, n, &w);
    assert_true(loop_until(&loop, &w.done, 60000));
    assert_true(loop_until(&loop, &r.done, 60000));
    bool was_refused = calls_to_refuse == 0;
    calls_to_refuse = 0;
    assert_true(was_refused || n > 4);
    assert_true(was_refused || (w.rc == 0 && r.rc == 0));
    assert_true(!is_down || is_up || loop_until(&loop, &is_up, 60000));
    reads_are_back();
    assert_true(w.rc == 0 || w.rc == DET_EUNAVAIL);
    assert_int_equal(count(sql), w.rc == 0);
}

/* Each call of a group's and of reads' in turn: everybody is answered, and what was said to be
 * written is, and nothing else. */
static void test_libpq_takes_not_all(void **state)
{
    for (int n = 1; n <= 12; n++)
        test_one_refused(n);
    is_up = true;
    put_wait("not refused", 0);
}

/* Prepared once, used by all; names the server forgot, and new connections, hurt nobody. */
static void test_prepared(void **state)
{
    static const char bad[] = "INSERT INTO nowhere VALUES (1)";
    struct got g;
    put_wait("p1", 0);
    put_wait("p1", DET_EEXIST);
    put_wait("p2", 0);
    write_wait(how_prepared, &g);
    assert_int_equal(g.i64, 1);
    for (int i = 0; i < 2; i++) { /* a preparation that fails tells why, again and again */
        write_wait(bad, &g);
        assert_int_equal(g.rc, DET_EIO);
        assert_string_equal(g.sqlstate, "42P01");
    }
    write_wait("DEALLOCATE ALL", &g);
    put_wait("p3", DET_EUNAVAIL); /* to be tried again */
    put_wait("p3", 0);
    is_up = is_down = false;
    write_wait("SELECT pg_terminate_backend(pg_backend_pid())", &g);
    assert_true(is_up || loop_until(&loop, &is_up, 60000));
    put_wait("p4", 0);
    write_wait(how_prepared, &g);
    assert_int_equal(g.i64, 1);
}

/* Zero under a sanitizer. */
static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* The socket takes little at a time; what waits goes on when it can, and none of it stays with
 * libpq. */
static void test_large_unit(void **state)
{
    static char k[320 << 10];
    struct got g = {0};
    size_t before = heap_bytes();
    struct db_tx *tx = db_tx_begin(db);
    memset(k, 'l', sizeof k - 1);
    for (int i = 0; i < 100; i++) {
        snprintf(k, 8, "l%05d", i);
        k[6] = 'x';
        db_tx_add(tx, "INSERT INTO t SELECT left($1, 6), length($1)", db_str_arg(DB_ARGS, k));
    }
    db_tx_commit(tx, on_got, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_int_equal(g.rc, 0);
    assert_true(heap_bytes() < before + (1 << 20));
    assert_int_equal(count("SELECT sum(v) FROM t WHERE k LIKE 'l%'"), 100 * (sizeof k - 1));
}

static void batch(int64_t number, const char *k, struct got *g)
{
    struct db_tx *tx = db_tx_begin(db);
    *g = (struct got){0};
    db_begin_batch(tx, db_epoch(db), number);
    db_tx_add(tx, "INSERT INTO t VALUES ($1, 1)", db_str_arg(DB_ARGS, k));
    db_tx_commit(tx, on_got, g);
    assert_true(loop_until(&loop, &g->done, 60000));
}

/* A batch that is sent again after its commit was not heard of is done, and done once. */
static void test_batch(void **state)
{
    struct got g;
    batch(1, "n1", &g);
    assert_int_equal(g.rc, 0);
    batch(1, "n2", &g);
    assert_string_equal(g.sqlstate, "DE005");
    batch(3, "n3", &g);
    assert_string_equal(g.sqlstate, "DE006");
    batch(2, "n4", &g);
    assert_int_equal(g.rc, 0);
    assert_int_equal(count("SELECT count(*) FROM t WHERE k LIKE 'n%'"), 2);
}

/* The server dies in mid-transaction, by a statement of the group's last unit: it sends the answers
 * it has, and nothing of them is committed. Whoever is told "done" then would lose what he
 * wrote. */
static void test_dies_in_commit(void **state)
{
    struct got g = {0}, b = {0}, last = {0};
    is_up = is_down = false;
    put("dies", 1, &g);
    struct db_tx *tx = db_tx_begin(db);
    db_begin_batch(tx, db_epoch(db), 3);
    db_tx_add(tx, "INSERT INTO t VALUES ('dies too', 1)", NULL);
    db_tx_commit(tx, on_got, &b);
    db_write(db, "SELECT pg_terminate_backend(pg_backend_pid())", NULL, on_got, &last);
    assert_true(loop_until(&loop, &last.done, 60000) && g.done && b.done);
    assert_int_equal(g.rc, DET_EUNAVAIL);
    assert_int_equal(b.rc, DET_EUNAVAIL);
    assert_int_equal(last.rc, DET_EUNAVAIL);
    assert_true(is_up || loop_until(&loop, &is_up, 60000));
    put_wait("dies", 0);
    batch(3, "dies too", &b);
    assert_int_equal(b.rc, 0);
}

/* A constraint that is looked at in the commit fails the unit that breaks it, and it alone. */
static void test_commit_fails(void **state)
{
    struct got g, good = {0}, bad = {0};
    write_wait("CREATE TABLE late (v bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)", &g);
    write_wait("INSERT INTO late VALUES (1)", &g);
    write_wait("INSERT INTO late VALUES (1)", &g);
    assert_int_equal(g.rc, DET_EEXIST);
    db_write(db, "INSERT INTO late VALUES (2)", NULL, on_got, &good);
    db_write(db, "INSERT INTO late VALUES (1)", NULL, on_got, &bad);
    assert_true(loop_until(&loop, &bad.done, 60000) && good.done);
    assert_int_equal(good.rc, 0);
    assert_int_equal(bad.rc, DET_EEXIST);
    assert_string_equal(bad.sqlstate, "23505");
    assert_int_equal(count("SELECT count(*) FROM late"), 2);
}

/* Somebody holds the leader's row: what is to be written is to be tried again, nothing worse. */
static void test_epoch_check_fails(void **state)
{
    struct got g = {0}, held = {0};
    db_query(db,
             "WITH l AS MATERIALIZED (SELECT epoch FROM cluster FOR UPDATE) "
             "SELECT pg_sleep(25), epoch FROM l",
             NULL, on_got, &held);
    while (!held.done &&
           count("SELECT count(*) FROM (SELECT FROM cluster FOR SHARE SKIP LOCKED) c"))
        ;
    put("e1", 1, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_int_equal(g.rc, DET_EUNAVAIL);
    count(
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'WITH l AS%'");
    assert_true(loop_until(&loop, &held.done, 60000));
    put_wait("e1", 0);
    assert_false(deposed);
}

/* PostgreSQL is stopped, not gone: reads under way end within seconds, a write waits for its
 * outcome. */
static void test_hang(void **state)
{
    struct got r = {0}, w = {0};
    is_up = is_down = false;
    pg_private_signal(&pg, SIGSTOP);
    db_query(db, "SELECT 1", NULL, on_got, &r);
    put("h1", 1, &w);
    bool ended = loop_until(&loop, &r.done, 60000);
    bool waits = !w.done, told = is_down;
    pg_private_signal(&pg, SIGCONT);
    assert_true(ended && waits && told);
    assert_int_equal(r.rc, DET_EUNAVAIL);
    assert_true(loop_until(&loop, &w.done, 60000));
    assert_int_equal(w.rc, 0);
    assert_true(is_up || loop_until(&loop, &is_up, 60000));
    reads_are_back();
    assert_int_equal(count("SELECT count(*) FROM t WHERE k = 'h1'"), 1);
}

#define FLUSHER "FROM pg_stat_activity WHERE query LIKE 'SELECT pg_logical_emit%'"

static void put_three(const char *k, struct got g[3])
{
    char key[16];
    for (int i = 0; i < 3; i++) {
        g[i] = (struct got){0};
        snprintf(key, sizeof key, "%.8s-%d", k, i);
        put(i == 2 ? k : key, 1, &g[i]);
    }
}

/* What is committed is done only when it is on disk; where that is not heard of, it is to be tried
 * again. */
static void test_flush(void **state)
{
    struct got first[3] = {0}, next[3] = {0}; /* fewer wait for the disk themselves */
    put_three("f0", first);
    for (int i = 0; i < 3; i++)
        assert_true(loop_until(&loop, &first[i].done, 60000));
    pid_t flusher = (pid_t)count("SELECT pid " FLUSHER);
    assert_int_equal(kill(flusher, SIGSTOP), 0);
    put_three("f1", first);
    while (count("SELECT count(*) FROM t WHERE k = 'f1'") == 0)
        ;
    put_three("f2", next); /* goes out, although nobody knows of f1 yet */
    while (count("SELECT count(*) FROM t WHERE k = 'f2'") == 0)
        ;
    bool waited = !first[2].done && !next[2].done;
    kill(flusher, SIGCONT);
    assert_true(waited && loop_until(&loop, &next[2].done, 60000) && first[2].done);
    assert_int_equal(first[2].rc, 0);
    assert_int_equal(next[2].rc, 0);

    is_up = is_down = false;
    struct got all[3] = {0}, *lost = &all[2];
    kill(flusher, SIGSTOP);
    put_three("f3", all);
    while (count("SELECT count(*) FROM t WHERE k = 'f3'") == 0)
        ;
    kill(flusher, SIGTERM);
    kill(flusher, SIGCONT);
    assert_true(loop_until(&loop, &lost->done, 60000));
    assert_true(lost->rc == 0 || lost->rc == DET_EUNAVAIL);
    assert_true(is_up || loop_until(&loop, &is_up, 60000));
    put_wait("f4", 0);
}

#define WAL(which) "(pg_current_wal_" which "_lsn() - '0/0')::bigint"

/* One that waits itself, and several whose flush another session waits for. */
static void test_is_on_disk(void **state)
{
    static const char add[] = "INSERT INTO t SELECT $1, g FROM generate_series(1, 1) g "
                              "RETURNING " WAL("insert");
    static const char *const keys[] = {"w0", "w1", "w2", "w3"};
    struct got g[4] = {0};
    for (int i = 0; i < 4; i++) {
        db_write(db, add, db_str_arg(DB_ARGS, keys[i]), on_got, &g[i]);
        if (i == 0 || i == 3) {
            assert_true(loop_until(&loop, &g[i].done, 60000));
            assert_true(count("SELECT " WAL("flush")) >= g[i].i64);
        }
    }
}

/* Another flusher may be of a server that crashed meanwhile: it vouches for no commit of before, so
 * the writer begins anew too. */
static void test_flusher_takes_the_writer_along(void **state)
{
    static const char writer[] = "SELECT pid FROM pg_stat_activity WHERE pid = $1::int";
    struct got g[3], w = {0}, left = {0};
    put_three("fw", g);
    for (int i = 0; i < 3; i++)
        assert_true(loop_until(&loop, &g[i].done, 60000));
    db_write(db, "SELECT pg_backend_pid()", NULL, on_got, &w);
    assert_true(loop_until(&loop, &w.done, 60000));
    pid_t flusher = (pid_t)count("SELECT pid " FLUSHER);
    assert_true(flusher != w.i64);
    is_up = is_down = false;
    assert_int_equal(kill(flusher, SIGTERM), 0);
    assert_true(loop_until(&loop, &is_up, 60000));
    db_query(db, writer, db_i64_arg(DB_ARGS, w.i64), on_got, &left);
    assert_true(loop_until(&loop, &left.done, 60000));
    assert_int_equal(left.rows, 0);
    put_wait("fw-after", 0);
}

/* "Done already" is an answer too: what it saw must be on disk before it is given. */
static void test_done_is_on_disk(void **state)
{
    struct got f[3], b = {0};
    put_three("f5", f);
    for (int i = 0; i < 3; i++)
        assert_true(loop_until(&loop, &f[i].done, 60000));
    pid_t flusher = (pid_t)count("SELECT pid " FLUSHER);
    assert_int_equal(kill(flusher, SIGSTOP), 0);
    struct db_tx *tx = db_tx_begin(db);
    db_begin_batch(tx, db_epoch(db), 3); /* test_dies_in_commit has done it */
    db_tx_commit(tx, on_got, &b);
    bool told = loop_until(&loop, &b.done, 300);
    kill(flusher, SIGCONT);
    assert_false(told);
    assert_true(loop_until(&loop, &b.done, 60000));
    assert_string_equal(b.sqlstate, "DE005");
}

static void test_newer(void **state)
{
    struct det_err err;
    struct got g = {0};
    db_write(db, "INSERT INTO schema_version (version) VALUES (9999)", NULL, on_got, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_int_equal(db_migrate(pg.uri, &err), DET_ESTATE);
    assert_non_null(strstr(err.text, "9999"));
}

/* Last: another master raised the epoch. */
static void test_deposed(void **state)
{
    struct got g = {0}, raised = {0};
    db_query(db, "UPDATE cluster SET epoch = epoch + 1", NULL, on_got, &raised);
    assert_true(loop_until(&loop, &raised.done, 60000)); /* readers are many: wait for this one */
    put("d1", 1, &g);
    assert_true(loop_until(&loop, &g.done, 60000));
    assert_true(g.rc < 0);
    assert_true(deposed);
    assert_int_equal(count("SELECT count(*) FROM t WHERE k = 'd1'"), 0);
    struct db_tx *nothing = db_tx_begin(db); /* nor does it speak for the leader */
    struct got n = {0};
    db_tx_fence(nothing);
    db_tx_commit(nothing, on_got, &n);
    assert_true(loop_until(&loop, &n.done, 60000));
    assert_true(n.rc < 0);
}

/* Each run of the statement takes a number, so that an answer tells which run it is of. */
#define NUMBERED "SELECT nextval('asked') FROM pg_sleep($1::float8)"

static void ask_numbered(bool search, const char *seconds, struct got *g, int n)
{
    struct db_args *a = db_str_arg(DB_ARGS, seconds);
    for (int i = 0; i < n; i++)
        (search ? db_query_search : db_query)(db, NUMBERED, a, on_got, &g[i]);
}

static void wait_numbered(struct got *g, int n)
{
    for (int i = 0; i < n; i++) {
        assert_true(g[i].done || loop_until(&loop, &g[i].done, 60000));
        assert_int_equal(g[i].rc, 0);
    }
}

/* What is asked while an equal one is under way is asked once, after it: nobody hears what was read
 * before he asked, and what differs is none of its business. */
static void equal_ones(bool search)
{
    struct got first[40] = {0}, other = {0}, later[3] = {0};
    put("equal", 1, &other);
    assert_true(loop_until(&loop, &other.done, 60000));
    count("SELECT count(*) FROM t, LATERAL setval('asked', 1, false)");
    other = (struct got){0};
    ask_numbered(search, "0.1", first, 40);
    ask_numbered(search, "0.11", &other, 1);
    wait_numbered(first, 1);
    assert_in_range(first[0].i64, 1, 2); /* numbers are taken at the end, the other's maybe first */
    ask_numbered(search, "0.1", later, 3);
    wait_numbered(first, 40);
    wait_numbered(&other, 1);
    wait_numbered(later, 3);
    for (int i = 1; i < 40; i++)
        assert_int_equal(first[i].i64, first[1].i64);
    assert_true(first[1].i64 > first[0].i64 && other.i64 != first[0].i64 &&
                other.i64 != first[1].i64);
    for (int i = 0; i < 3; i++) /* it may join those that still waited */
        assert_true(later[i].i64 >= first[1].i64);
    /* The first, those that waited, the other; the later ones are another, or two where those that
     * waited took so long (HOLD_MS) that nobody waits for them. */
    assert_in_range(count("SELECT last_value FROM asked"), 3, 5);
}

/* Who waits for PostgreSQL to come back would ask for ever what takes too long each time. The
 * statement ends itself as a limit would: a session's own limit would outlive the test. */
static void test_too_long_is_not_away(void **state)
{
    struct got g;
    query_wait("SELECT pg_sleep(20) FROM pg_cancel_backend(pg_backend_pid())", &g);
    assert_int_equal(g.rc, DET_EUNAVAIL);
    assert_string_equal(g.sqlstate, "57014");
    assert_false(g.is_away);
}

static void test_equal_reads(void **state)
{
    equal_ones(false);
}

static void test_equal_searches(void **state)
{
    equal_ones(true);
}

/* A search that takes long leaves room for another one. */
static void test_two_searches(void **state)
{
    struct got slow = {0}, quick = {0};
    PGconn *holder = PQconnectdb(pg.uri);
    pg_private_ask(holder, "SELECT 1 FROM pg_advisory_lock(77)");
    db_query_search(db, "SELECT 1 FROM pg_advisory_xact_lock(77)", NULL, on_got, &slow);
    db_query_search(db, "SELECT 2::bigint", NULL, on_got, &quick);
    assert_true(loop_until(&loop, &quick.done, 60000));
    assert_false(slow.done);
    assert_int_equal(quick.rc, 0);
    PQfinish(holder);
    assert_true(loop_until(&loop, &slow.done, 60000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group),
        cmocka_unit_test(test_bad_unit),
        cmocka_unit_test(test_unit_is_atomic),
        cmocka_unit_test(test_bad_sql),
        cmocka_unit_test(test_outage),
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_libpq_takes_not_all),
        cmocka_unit_test(test_large_unit),
        cmocka_unit_test(test_dies_in_commit),
        cmocka_unit_test(test_commit_fails),
        cmocka_unit_test(test_epoch_check_fails),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_texts_in_one_place),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_is_on_disk),
        cmocka_unit_test(test_done_is_on_disk),
        cmocka_unit_test(test_flusher_takes_the_writer_along),
        cmocka_unit_test(test_slow_read),
        cmocka_unit_test(test_too_long_is_not_away),
        cmocka_unit_test(test_equal_reads),
        cmocka_unit_test(test_equal_searches),
        cmocka_unit_test(test_two_searches),
        cmocka_unit_test(test_writes_to_dead_sessions),
        cmocka_unit_test(test_deposed),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
