/* What dead ranks left in their spools, against a scripted master. */
#include "reports.h"

#include "fsx.h"
#include "scripted_server.h"
#include "spool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CLOSE "Connection: close\r\n\r\n{}"
#define MANY  50000 /* more than a tenth of a second takes */

static const char ok[] = "HTTP/1.1 200 OK\r\n" CLOSE;

struct left {
    char dir[32];
    uv_loop_t loop;
    struct server master;
    struct client_uv *http;
    struct taskspec spec;
    bool is_done;
    struct reports_tally n;
};

static void on_done(void *arg, const struct reports_tally *n)
{
    struct left *l = arg;
    assert_false(l->is_done);
    l->is_done = true;
    l->n = *n;
}

/* One rank's spool with n reports, and a master. */
static void begin_calls(struct left *l, int n, const char *call, const char *const *answers)
{
    char url[64];
    struct spool *s = NULL;
    *l = (struct left){.dir = "/tmp/det-reports-XXXXXX", .master.repeat = true};
    assert_non_null(mkdtemp(l->dir));
    det_cleanup(freep) char *run = det_asprintf("%s/run", l->dir);
    det_cleanup(freep) char *path = det_asprintf("%s/reports.0", run);
    assert_int_equal(mkdir(run, 0755), 0);
    assert_int_equal(spool_open(path, &s, NULL), 0);
    for (int i = 0; i < n; i++)
        assert_int_equal(spool_append(s, &(struct spool_record){"1.1", "POST", call, "{}"}, NULL),
                         0);
    spool_close(s);
    l->spec = (struct taskspec){.dir = l->dir, .dirfd = open(l->dir, O_RDONLY | O_DIRECTORY)};
    assert_true(reports_are_left(&l->spec));
    uv_loop_init(&l->loop);
    server_start(&l->master, answers);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", l->master.port);
    struct client_options co = {.url = url, .token_kind = CLIENT_TOKEN_ALLOCATION, .token = "t"};
    assert_int_equal(client_uv_create(&l->loop, &co, &l->http, NULL), 0);
}

static void begin(struct left *l, int n, const char *const *answers)
{
    begin_calls(l, n, "/api/v1/x", answers);
}

static void end(struct left *l)
{
    client_uv_close(l->http);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&l->loop), 0);
    server_end(&l->master);
    close(l->spec.dirfd);
    det_ignore(fsx_remove_tree(AT_FDCWD, l->dir, NULL), "the test is over");
}

static void wait_done(struct left *l)
{
    while (!l->is_done)
        uv_run(&l->loop, UV_RUN_ONCE);
}

static void all_of_it_goes(void **state)
{
    static const char *const answers[] = {ok, "HTTP/1.1 503 No\r\n" CLOSE, "", ok, NULL};
    struct left l;
    begin(&l, 20, answers);
    const struct reports_limits limits = {.retry_ms = 60000};
    reports_start(&l.loop, l.http, &l.spec, limits, on_done, &l);
    wait_done(&l);
    assert_int_equal(l.n.sent, 20);
    assert_int_equal(l.n.left, 0);
    end(&l);
}

/* What the master refuses will never be taken: it is neither sent nor left, and said to be lost. */
static void what_is_refused_is_not_sent(void **state)
{
    static const char stale[] =
        "HTTP/1.1 409 Conflict\r\nConnection: close\r\n\r\n{\"message\":\"stale run\"}";
    static const char *const answers[] = {ok, stale, stale, ok, NULL};
    struct left l;
    begin(&l, 6, answers);
    const struct reports_limits limits = {.retry_ms = 60000};
    reports_start(&l.loop, l.http, &l.spec, limits, on_done, &l);
    wait_done(&l);
    assert_int_equal(l.n.sent, 4);
    assert_int_equal(l.n.refused, 2);
    assert_int_equal(l.n.left, 0);
    assert_non_null(strstr(l.n.refusal.text, "stale run"));
    end(&l);
}

/* What only informs is not missed where the trial is gone. */
static void what_informs_is_dropped(void **state)
{
    static const char gone[] = "HTTP/1.1 404 Not Found\r\n" CLOSE;
    static const char *const answers[] = {gone, NULL};
    struct left l;
    begin_calls(&l, 2, "/api/v1/trials/7/progress", answers);
    const struct reports_limits limits = {.retry_ms = 60000};
    reports_start(&l.loop, l.http, &l.spec, limits, on_done, &l);
    wait_done(&l);
    assert_int_equal(l.n.refused, 0);
    assert_int_equal(l.n.left, 0);
    end(&l);
}

/* As a rank takes it: a fault of whatever number is one, and ends. */
static void any_fault_ends(void **state)
{
    static const char fault[] = "HTTP/1.1 501 Fault\r\n" CLOSE;
    static const char *const answers[] = {fault, fault, ok, NULL};
    struct left l;
    begin(&l, 2, answers);
    const struct reports_limits limits = {.retry_ms = 60000};
    reports_start(&l.loop, l.http, &l.spec, limits, on_done, &l);
    wait_done(&l);
    assert_int_equal(l.n.sent, 2);
    end(&l);
}

/* A master that takes each report must not keep a killed task for as long as there are any. */
static void a_kill_leaves_the_rest(void **state)
{
    static const char *const answers[] = {ok, NULL};
    struct reports_limits killed = {.retry_ms = 60000, .all_ms = 100};
    struct left l;
    begin(&l, MANY, answers);
    reports_start(&l.loop, l.http, &l.spec, killed, on_done, &l);
    wait_done(&l);
    assert_true(l.n.sent < MANY);
    assert_int_equal(l.n.left, 1);
    end(&l);
}

static void a_kill_meanwhile_leaves_the_rest(void **state)
{
    static const char *const answers[] = {ok, NULL};
    struct left l;
    begin(&l, MANY, answers);
    struct reports *r = reports_start(&l.loop, l.http, &l.spec,
                                      (struct reports_limits){.retry_ms = 60000}, on_done, &l);
    uv_run(&l.loop, UV_RUN_ONCE);
    assert_false(l.is_done);
    reports_hurry(r, 100);
    wait_done(&l);
    assert_true(l.n.sent < MANY);
    assert_int_equal(l.n.left, 1);
    end(&l);
}

static void a_kill_does_not_wait_for_an_answer(void **state)
{
    static const char *const answers[] = {"", NULL};
    struct left l;
    begin(&l, 1, answers);
    struct reports *r = reports_start(&l.loop, l.http, &l.spec,
                                      (struct reports_limits){.retry_ms = 600000}, on_done, &l);
    reports_hurry(r, 100);
    wait_done(&l);
    assert_int_equal(l.n.sent, 0);
    assert_int_equal(l.n.left, 1);
    end(&l);
}

/* ---- Reports of metrics go together ---- */

#define METRICS "/api/v1/trials/7/metrics"

static int count_requests(const struct left *l, const char *line)
{
    int n = 0;
    for (const char *p = buf_str(&l->master.seen); (p = strstr(p, line)); p++)
        n++;
    return n;
}

static void send_metrics(struct left *l, int n, const char *const *answers)
{
    begin_calls(l, n, METRICS, answers);
    reports_start(&l->loop, l->http, &l->spec, (struct reports_limits){.retry_ms = 60000}, on_done,
                  l);
    wait_done(l);
    assert_int_equal(l->n.left, 0);
}

static void metrics_go_together(void **state)
{
    static const char *const answers[] = {ok, "HTTP/1.1 503 No\r\n" CLOSE, ok, NULL};
    struct left l;
    send_metrics(&l, 300, answers);
    assert_int_equal(l.n.sent, 300);
    assert_int_equal(count_requests(&l, "POST " METRICS "/batch "), 4); /* 128, 128 twice, 44 */
    assert_int_equal(count_requests(&l, "POST " METRICS " "), 0);
    end(&l);
}

static void one_of_them_is_refused(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        "{\"refused\":[{\"index\":1,\"status\":503,\"message\":\"later\"}]}",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        "{\"refused\":[{\"index\":1,\"status\":400,\"message\":\"no good\"}]}",
        ok, NULL};
    struct left l;
    send_metrics(&l, 131, answers); /* 128, 128 without the first, which was kept, 2 */
    assert_int_equal(l.n.sent, 130);
    assert_int_equal(l.n.refused, 1);
    assert_non_null(strstr(l.n.refusal.text, "no good"));
    assert_int_equal(count_requests(&l, "POST " METRICS "/batch "), 3);
    end(&l);
}

/* One that the master has a fault of is refused in the end, and keeps no other. */
static void one_of_them_is_a_fault(void **state)
{
    static const char once[] =
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        "{\"refused\":[{\"index\":1,\"status\":500,\"message\":\"a fault\"}]}";
    static const char again[] =
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        "{\"refused\":[{\"index\":0,\"status\":500,\"message\":\"a fault\"}]}";
    static const char fault[] = "HTTP/1.1 500 Fault\r\n" CLOSE;
    static const char *const answers[] = {once,  again, again, again, again, fault, fault,
                                          fault, fault, fault, fault, fault, ok,    NULL};
    struct left l;
    send_metrics(&l, 3, answers);
    assert_int_equal(l.n.sent, 2);
    assert_int_equal(l.n.refused, 1);
    assert_int_equal(count_requests(&l, "POST " METRICS "/batch "), 5);
    assert_int_equal(count_requests(&l, "POST " METRICS " "), 8);
    end(&l);
}

static void a_fault_of_all_parts_them(void **state)
{
    static const char fault[] = "HTTP/1.1 500 Fault\r\n" CLOSE;
    static const char *const answers[] = {fault, fault, fault, fault, fault, ok, NULL};
    struct left l;
    send_metrics(&l, 3, answers);
    assert_int_equal(l.n.sent, 3);
    assert_int_equal(count_requests(&l, "POST " METRICS "/batch "), 5);
    end(&l);
}

/* What was kept is neither left nor sent again where there is no time for the rest. */
static void what_was_kept_is_not_left(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        "{\"refused\":[{\"index\":2,\"status\":503,\"message\":\"later\"}]}",
        "HTTP/1.1 503 No\r\n" CLOSE, NULL};
    struct left l;
    begin_calls(&l, 3, METRICS, answers);
    struct reports *r = reports_start(&l.loop, l.http, &l.spec,
                                      (struct reports_limits){.retry_ms = 60000}, on_done, &l);
    while (l.master.n < 2) /* the third is asked for again: what the first answer says is known */
        uv_run(&l.loop, UV_RUN_ONCE);
    reports_hurry(r, 0);
    wait_done(&l);
    assert_int_equal(l.n.sent, 2);
    assert_int_equal(l.n.left, 1);
    end(&l);
}

/* One report after the other would take a minute. */
static void a_fault_that_stays_is_not_waited_for_at_each(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 500 Fault\r\n" CLOSE, NULL};
    struct left l;
    begin(&l, 40, answers);
    reports_start(&l.loop, l.http, &l.spec, (struct reports_limits){.retry_ms = 2000}, on_done, &l);
    wait_done(&l);
    assert_int_equal(l.n.sent + l.n.refused, 0);
    assert_int_equal(l.n.left, 1);
    end(&l);
}

/* A second of one each tenth would be ten. */
static void a_strained_master_is_asked_ever_more_seldom(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 503 No\r\n" CLOSE, NULL};
    struct left l;
    begin_calls(&l, 3, METRICS, answers);
    reports_start(&l.loop, l.http, &l.spec, (struct reports_limits){.retry_ms = 1000}, on_done, &l);
    wait_done(&l);
    assert_int_equal(l.n.sent, 0);
    assert_int_equal(l.n.left, 1);
    assert_true(count_requests(&l, "POST " METRICS "/batch ") <= 6);
    end(&l);
}

static void an_older_master_gets_each(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 404 Not Found\r\n" CLOSE, ok, NULL};
    struct left l;
    send_metrics(&l, 200, answers);
    assert_int_equal(l.n.sent, 200);
    assert_int_equal(count_requests(&l, "POST " METRICS "/batch "), 1);
    assert_int_equal(count_requests(&l, "POST " METRICS " "), 200);
    end(&l);
}

static void what_it_does_not_take_as_one_goes_in_pieces(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 400 Bad Request\r\n" CLOSE, ok, NULL};
    struct left l;
    send_metrics(&l, 200, answers);
    assert_int_equal(l.n.sent, 200);
    assert_int_equal(count_requests(&l, "POST " METRICS "/batch "), 2);
    assert_int_equal(count_requests(&l, "POST " METRICS " "), 128);
    end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_goes),
        cmocka_unit_test(what_is_refused_is_not_sent),
        cmocka_unit_test(what_informs_is_dropped),
        cmocka_unit_test(any_fault_ends),
        cmocka_unit_test(a_kill_leaves_the_rest),
        cmocka_unit_test(a_kill_meanwhile_leaves_the_rest),
        cmocka_unit_test(a_kill_does_not_wait_for_an_answer),
        cmocka_unit_test(metrics_go_together),
        cmocka_unit_test(one_of_them_is_refused),
        cmocka_unit_test(one_of_them_is_a_fault),
        cmocka_unit_test(a_fault_of_all_parts_them),
        cmocka_unit_test(what_was_kept_is_not_left),
        cmocka_unit_test(a_fault_that_stays_is_not_waited_for_at_each),
        cmocka_unit_test(a_strained_master_is_asked_ever_more_seldom),
        cmocka_unit_test(an_older_master_gets_each),
        cmocka_unit_test(what_it_does_not_take_as_one_goes_in_pieces),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
