/* Triggers of webhooks: what is asked of the database, and when. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "db.h"
#include "db_impl.h"
#include "db_webhooks.h"
#include "hooks.h"
#include "masterconf.h"
#include "shell.h"

#include <libpq-fe.h>
#include <string.h>

static struct {
    db_cb *cb;
    void *arg;
} asked; /* the question of which triggers there are; cb NULL: none is open */
static unsigned questions, told;

void __wrap_db_webhook_log_triggers(struct db *db, db_cb *cb, void *arg);
void __wrap_db_webhook_log_triggers(struct db *db, db_cb *cb, void *arg)
{
    assert_null(asked.cb); /* of two answers the older may come last */
    questions++;
    asked.cb = cb;
    asked.arg = arg;
}

/* "": there is none. */
static void answer(int rc, const char *regex)
{
    PGresAttDesc columns[] = {{.name = (char *)"id"}, {.name = (char *)"regex"}};
    PGresult *pg = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    db_cb *cb = asked.cb;
    assert_true(PQsetResultAttrs(pg, 2, columns));
    if (*regex)
        assert_true(PQsetvalue(pg, 0, 0, (char *)"7", 1) &&
                    PQsetvalue(pg, 0, 1, (char *)regex, (int)strlen(regex)));
    asked.cb = NULL;
    cb(asked.arg, &(struct db_result){.rc = rc, .pg = pg});
    PQclear(pg);
}

void __wrap_db_webhook_log_hit(struct db *db, const struct db_log_hit *h, db_cb *cb, void *arg);
void __wrap_db_webhook_log_hit(struct db *db, const struct db_log_hit *h, db_cb *cb, void *arg)
{
    assert_int_equal(h->trigger_id, 7);
    told++;
    cb(arg, &(struct db_result){0});
}

/* Nothing is due. */
void __wrap_db_webhook_due(struct db *db, const char *busy, db_cb *cb, void *arg);
void __wrap_db_webhook_due(struct db *db, const char *busy, db_cb *cb, void *arg)
{
    cb(arg, &(struct db_result){.rc = DET_EUNAVAIL});
}
void __wrap_db_webhook_sweep(struct db *db, int most, db_cb *cb, void *arg);
void __wrap_db_webhook_sweep(struct db *db, int most, db_cb *cb, void *arg)
{
    cb(arg, &(struct db_result){.rc = DET_EUNAVAIL});
}

static uv_timer_t *timer;
static uv_timer_cb on_time;
int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb cb, uint64_t ms, uint64_t repeat);
int __wrap_uv_timer_start(uv_timer_t *t, uv_timer_cb cb, uint64_t ms, uint64_t repeat)
{
    timer = t;
    on_time = cb;
    return 0;
}

static void on_line_told(void *arg, int rc, const struct det_err *err)
{
    assert_int_equal(rc, 0);
}

/* Whether a line with this word is told of. */
static bool is_told(struct hooks *h, const char *task, const char *word)
{
    struct db_log_line line = {.task_id = task, .log = word, .log_len = strlen(word)};
    unsigned before = told;
    size_t n = hooks_match(h, &line, 1, on_line_told, NULL);
    assert_int_equal(told - before, n);
    return n == 1;
}

static uv_loop_t loop;
static struct masterconf conf = {.webhook_networks = (char *)""};
static struct shell sh = {.conf = &conf, .loop = &loop};

static struct hooks *begin(void)
{
    questions = told = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    return hooks_create(&sh);
}

static void end(struct hooks *h)
{
    hooks_destroy(h);
    if (asked.cb)
        answer(0, "");
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void an_outage_is_asked_again(void **state)
{
    struct hooks *h = begin();
    answer(DET_EUNAVAIL, "");
    on_time(timer);
    answer(0, "oom");
    assert_int_equal(questions, 2);
    assert_true(is_told(h, "1.a", "oom"));
    assert_false(is_told(h, "1.a", "oom")); /* once for a task */
    assert_false(is_told(h, "1.b", "all well"));
    on_time(timer); /* nothing has changed */
    assert_int_equal(questions, 2);
    end(h);
}

static void what_changes_meanwhile_is_asked_for(void **state)
{
    struct hooks *h = begin();
    hooks_changed(h);
    hooks_deleted(h, 1);
    answer(0, "oom"); /* of before */
    assert_int_equal(questions, 2);
    answer(0, "nan");
    assert_true(is_told(h, "1.a", "nan"));
    assert_false(is_told(h, "1.b", "oom"));
    assert_int_equal(questions, 2);
    hooks_changed(h);
    answer(DET_EIO, ""); /* the former ones count */
    assert_true(is_told(h, "1.c", "nan"));
    end(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_outage_is_asked_again),
                                       cmocka_unit_test(what_changes_meanwhile_is_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
