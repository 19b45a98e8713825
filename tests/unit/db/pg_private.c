#include "pg_private.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int pg_sh(const char *verb, const char *dir)
{
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/bash", "bash", DET_SOURCE "/tests/lib/pg.sh", verb, dir, (char *)NULL);
        _exit(127);
    }
    int st = 0;
    if (pid < 0 || waitpid(pid, &st, 0) != pid)
        return -1;
    return WIFEXITED(st) && WEXITSTATUS(st) == 0 ? 0 : -1;
}

/* Takes the server down when this process ends, however it does: an assertion that fails aborts. */
static void down_at_end(const char *dir)
{
    int ends[2];
    char c;
    if (pipe2(ends, O_CLOEXEC) < 0 || fork() != 0)
        return; /* the write end stays open as long as this process lives */
    setsid();
    close(ends[1]);
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
        _exit(1);
    while (read(ends[0], &c, 1) < 0)
        ;
    _exit(pg_sh("down", dir) < 0);
}

int pg_private_start(struct pg_private *p)
{
    snprintf(p->dir, sizeof p->dir, "/tmp/det-test-pg.%d", (int)getpid());
    snprintf(p->uri, sizeof p->uri, "host=%s user=det dbname=postgres", p->dir);
    down_at_end(p->dir);
    return pg_sh("start", p->dir);
}

int pg_private_again(struct pg_private *p)
{
    return pg_sh("start", p->dir);
}

void pg_private_stop(struct pg_private *p)
{
    pg_sh("stop", p->dir);
}

void pg_private_down(struct pg_private *p)
{
    pg_sh("down", p->dir);
}

static long first_number(const char *path)
{
    long n = 0;
    FILE *f = fopen(path, "r");
    if (!f || fscanf(f, "%ld", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

void pg_private_signal(const struct pg_private *p, int number)
{
    char path[128];
    snprintf(path, sizeof path, "%s/data/postmaster.pid", p->dir);
    long server = first_number(path), child;
    if (server <= 0)
        abort();                 /* the caller started it */
    kill((pid_t)server, number); /* first, so that no child is added */
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", server, server);
    FILE *f = fopen(path, "r");
    while (f && fscanf(f, "%ld", &child) == 1)
        kill((pid_t)child, number);
    if (f)
        fclose(f);
}

static void on_late(uv_timer_t *t)
{
    *(bool *)t->data = true;
}

bool loop_until(uv_loop_t *loop, const bool *flag, unsigned deadline_ms)
{
    bool late = false;
    uv_timer_t timer;
    uv_timer_init(loop, &timer);
    timer.data = &late;
    uv_update_time(loop);
    uv_timer_start(&timer, on_late, deadline_ms, 20); /* again: a timer may run just before the
                                                       * poll */
    while (!*flag && !late)
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return *flag;
}

int pg_private_open(struct pg_private *p, uv_loop_t *loop, struct db **ret)
{
    return pg_private_open_as(p, loop, (struct db_options){0}, ret);
}

static void on_deposed(void *arg)
{
    fail();
}

int pg_private_connect(struct pg_private *p, uv_loop_t *loop, struct db_options o, struct db **ret)
{
    struct det_err err = {0};
    o.conninfo = p->uri;
    if (!o.on_deposed)
        o.on_deposed = on_deposed;
    uv_loop_init(loop);
    if (db_migrate(p->uri, &err) == 0 && db_create(loop, &o, NULL, ret, &err) == 0 &&
        db_start(*ret, &err) == 0)
        return 0;
    fprintf(stderr, "%s\n", err.text);
    return -1;
}

int pg_private_open_as(struct pg_private *p, uv_loop_t *loop, struct db_options o, struct db **ret)
{
    return pg_private_start(p) < 0 ? -1 : pg_private_connect(p, loop, o, ret);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

void pg_private_close(struct pg_private *p, uv_loop_t *loop, struct db *db)
{
    bool closed = false;
    db_close(db, on_closed, &closed);
    loop_until(loop, &closed, 60000);
    assert_int_equal(uv_loop_close(loop), 0);
    pg_private_stop(p);
    pg_private_down(p);
}

void pg_private_on_answer(void *arg, const struct db_result *r)
{
    struct pg_answer *a = arg;
    a->done = true;
    a->rc = db_rc(r);
    snprintf(a->text, sizeof a->text, "%s",
             db_rc(r) < 0 ? db_error(r)->text
             : db_rows(r) ? db_text(r, 0, 0)
                          : "-");
}

const char *pg_private_read(uv_loop_t *loop, struct db *db, const char *sql)
{
    static struct pg_answer a;
    a.done = false;
    db_query(db, sql, NULL, pg_private_on_answer, &a);
    assert_true(loop_until(loop, &a.done, 60000));
    return a.text;
}

void pg_private_write(uv_loop_t *loop, struct db *db, const char *sql)
{
    struct pg_answer a = {0};
    db_write(db, sql, NULL, pg_private_on_answer, &a);
    assert_true(loop_until(loop, &a.done, 60000));
    if (a.rc < 0)
        fail_msg("%s: %s", sql, a.text);
}

const char *pg_private_ask(PGconn *c, const char *sql)
{
    static char text[512];
    PGresult *r = PQexec(c, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK && PQresultStatus(r) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(c));
    snprintf(text, sizeof text, "%s", PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return text;
}
