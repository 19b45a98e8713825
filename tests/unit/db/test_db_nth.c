/* The server goes away at each question of what asks before the master serves: the error says so,
 * and with the server there it does its work. */
#include "db.h"
#include "db_health.h"
#include "db_lives.h"
#include "db_migrate.h"
#include "mem.h"
#include "pg_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define NOWHERE "host=/nonexistent user=det dbname=postgres"

static struct pg_private pg;
static const char *conninfo;
static struct det_err err;
static int countdown; /* questions until the connection is gone; 0: it stays */
static bool is_cut;

static void ask_or_cut(PGconn *c)
{
    if (countdown == 0 || --countdown > 0)
        return;
    is_cut = true;
    shutdown(PQsocket(c), SHUT_RDWR);
}

PGresult *__real_PQexec(PGconn *c, const char *sql);
PGresult *__wrap_PQexec(PGconn *c, const char *sql);
PGresult *__wrap_PQexec(PGconn *c, const char *sql)
{
    ask_or_cut(c);
    return __real_PQexec(c, sql);
}

PGresult *__real_PQexecParams(PGconn *c, const char *sql, int n, const Oid *types,
                              const char *const *v, const int *len, const int *formats, int format);
PGresult *__wrap_PQexecParams(PGconn *c, const char *sql, int n, const Oid *types,
                              const char *const *v, const int *len, const int *formats, int format);
PGresult *__wrap_PQexecParams(PGconn *c, const char *sql, int n, const Oid *types,
                              const char *const *v, const int *len, const int *formats, int format)
{
    ask_or_cut(c);
    return __real_PQexecParams(c, sql, n, types, v, len, formats, format);
}

static int migrate(void)
{
    return db_migrate(conninfo, &err);
}

static int look(void)
{
    struct db_health h;
    int rc = db_health(conninfo, &h, &err);
    if (rc == 0) {
        assert_int_equal(h.schema, h.newest);
        assert_int_equal(h.functions, h.functions_newest);
    }
    return rc;
}

static int look_for_store(void)
{
    char id[DB_STORE_ID_MAX];
    int rc = db_health_store(conninfo, "/nowhere", id, &err);
    if (rc == 0)
        assert_string_equal(id, "");
    return rc;
}

static int begin_life(void)
{
    bool is_led = true;
    int rc = db_new_life(conninfo, &is_led, &err);
    if (rc == 0)
        assert_false(is_led);
    return rc;
}

static int lead(void)
{
    uv_loop_t loop;
    struct db *db = NULL;
    uv_loop_init(&loop);
    int rc = db_create(&loop, &(struct db_options){.conninfo = conninfo}, NULL, &db, &err);
    if (rc == 0) {
        rc = db_start(db, &err);
        db_close(db, NULL, NULL);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return rc;
}

static const struct job {
    const char *name;
    int (*run)(void);
} jobs[] = {{"migrate", migrate},
            {"look", look},
            {"look for a store", look_for_store},
            {"begin a life", begin_life},
            {"lead", lead}};

/* Whether the connection went: there were so many questions. */
static bool try_nth(const struct job *j, int n)
{
    err = (struct det_err){0};
    is_cut = false;
    countdown = n;
    int rc = j->run();
    countdown = 0;
    if (is_cut && (rc >= 0 || rc != err.code || !err.text[0]))
        fail_msg("%s: cut off at question %d, and it ends with %d: %s", j->name, n, rc, err.text);
    if (!is_cut && rc < 0)
        fail_msg("%s: not done with the server there: %s", j->name, err.text);
    return is_cut;
}

static void each_question_is_cut_off(void **state)
{
    conninfo = pg.uri;
    assert_int_equal(migrate(), 0);
    for (size_t i = 0; i < DET_ARRAY_LEN(jobs); i++) {
        int n = 1;
        while (try_nth(&jobs[i], n))
            n++;
        assert_in_range(n, 2, 200);
    }
}

static void nothing_listens_there(void **state)
{
    conninfo = NOWHERE;
    for (size_t i = 0; i < DET_ARRAY_LEN(jobs); i++) {
        err = (struct det_err){0};
        if (jobs[i].run() >= 0 || !strstr(err.text, "/nonexistent"))
            fail_msg("%s: %s", jobs[i].name, err.text);
    }
}

static int setup(void **state)
{
    return pg_private_start(&pg);
}

static int teardown(void **state)
{
    pg_private_stop(&pg);
    pg_private_down(&pg);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_question_is_cut_off),
        cmocka_unit_test(nothing_listens_there),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
