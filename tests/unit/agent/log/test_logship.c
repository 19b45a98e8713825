/* Shipping a log against a scripted master: what was not answered is sent again, as it was. */
#include "logship.h"

#include "scripted_server.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CLOSE "Connection: close\r\n\r\n"

static const struct logspool_origin origin = {"3.x", "3.x.1", "c", "agent-0"};

struct shipping {
    char path[32];
    uv_loop_t loop;
    struct server master;
    struct client_uv *http;
    struct logspool *spool;
    struct logship *ship;
    bool is_empty;
};

static void on_empty(void *arg)
{
    struct shipping *s = arg;
    s->is_empty = true;
    uv_stop(&s->loop);
}

static void begin(struct shipping *s, const char *const *answers)
{
    char url[64];
    *s = (struct shipping){.path = "/tmp/det-logship-XXXXXX"};
    close(mkstemp(s->path));
    uv_loop_init(&s->loop);
    server_start(&s->master, answers);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", s->master.port);
    struct client_options co = {.url = url, .token_kind = CLIENT_TOKEN_ALLOCATION, .token = "t"};
    assert_int_equal(client_uv_create(&s->loop, &co, &s->http, NULL), 0);
    assert_int_equal(logspool_open(AT_FDCWD, s->path, &origin, 7, &s->spool, NULL), 0);
    s->ship = logship_create(&s->loop, s->http, s->spool);
}

static void end(struct shipping *s)
{
    logship_close(s->ship);
    client_uv_close(s->http);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    logspool_close(s->spool);
    server_end(&s->master);
    unlink(s->path);
}

static void say(struct shipping *s, const char *text)
{
    struct logline l = {.text = text, .len = strlen(text), .rank = -1};
    logspool_add(s->spool, "stdout", 0, &l);
}

/* Ships until nothing is unsent. */
static void ship(struct shipping *s)
{
    logship_kick(s->ship);
    logship_when_empty(s->ship, on_empty, s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_true(s->is_empty);
    assert_int_equal(logspool_unsent(s->spool), 0);
}

static int times(const struct shipping *s, const char *what)
{
    int n = 0;
    for (const char *p = s->master.seen.p; p && (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void what_was_not_answered_goes_again(void **state)
{
    static const char *const answers[] = {"", "HTTP/1.1 503 No\r\nRetry-After: 0\r\n" CLOSE "{}",
                                          "HTTP/1.1 200 OK\r\n" CLOSE "{}", NULL};
    struct shipping s;
    begin(&s, answers);
    say(&s, "one\n");
    say(&s, "two\n");
    ship(&s);
    assert_int_equal(times(&s, "POST /api/v1/task/logs"), 3);
    assert_int_equal(times(&s, "\"one\\n\""), 3);
    assert_int_equal(times(&s, "\"two\\n\""), 3);
    assert_int_equal(times(&s, "\"offset\":8"), 3); /* by its number the master keeps it once */
    end(&s);
}

static void what_is_refused_blocks_nothing(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 409 Conflict\r\n" CLOSE "{}", NULL};
    struct shipping s;
    begin(&s, answers);
    say(&s, "one\n");
    ship(&s);
    assert_int_equal(times(&s, "\"one\\n\""), 1);
    end(&s);
}

/* A det-task that was killed when its task had said a line. */
static void begin_left_behind(struct shipping *s, const char *const *answers)
{
    begin(s, answers);
    say(s, "one\n");
    logship_close(s->ship);
    logspool_close(s->spool);
}

/* A det-task that was killed: whoever opens its spool sends what is in it. */
static void what_was_left_behind_goes(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\n" CLOSE "{}", NULL};
    struct shipping s;
    begin_left_behind(&s, answers);
    assert_int_equal(logspool_open(AT_FDCWD, s.path, &origin, 8, &s.spool, NULL), 0);
    s.ship = logship_create(&s.loop, s.http, s.spool);
    ship(&s);
    assert_int_equal(times(&s, "\"one\\n\""), 1);
    end(&s);
}

/* Of its last line there may be half: what is written behind it must stay JSON. */
static void half_a_line_is_cut_off(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\n" CLOSE "{}", NULL};
    struct shipping s;
    begin_left_behind(&s, answers);
    FILE *f = fopen(s.path, "a");
    assert_true(fputs("{\"task_id\":\"3.x\",\"log\":\"hal", f) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(logspool_open(AT_FDCWD, s.path, &origin, 8, &s.spool, NULL), 0);
    say(&s, "two\n");
    s.ship = logship_create(&s.loop, s.http, s.spool);
    ship(&s);
    JSON_OWN body = json_parse(strstr(s.master.seen.p, "{\"logs\""),
                               strlen(strstr(s.master.seen.p, "{\"logs\"")), NULL);
    const json_t *logs = json_arr(body, "logs");
    assert_int_equal(json_array_size(logs), 2);
    assert_string_equal(json_str(json_array_get(logs, 0), "log", ""), "one\n");
    assert_string_equal(json_str(json_array_get(logs, 1), "log", ""), "two\n");
    end(&s);
}

/* The blocks of sent lines were given back, and then det-task was killed: the rest still goes. */
static void a_hole_is_passed_over(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\n" CLOSE "{}", NULL};
    struct shipping s;
    begin(&s, answers);
    logship_close(s.ship);
    logspool_close(s.spool);
    FILE *f = fopen(s.path, "w");
    assert_int_equal(fseek(f, (17 << 20) + 5, SEEK_SET), 0);
    assert_true(fputs("{\"task_id\":\"3.x\",\"log\":\"one\\n\"}\n", f) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(logspool_open(AT_FDCWD, s.path, &origin, 8, &s.spool, NULL), 0);
    say(&s, "two\n");
    s.ship = logship_create(&s.loop, s.http, s.spool);
    ship(&s);
    assert_int_equal(times(&s, "\"one\\n\""), 1);
    assert_int_equal(times(&s, "\"two\\n\""), 1);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_answered_goes_again),
        cmocka_unit_test(what_is_refused_blocks_nothing),
        cmocka_unit_test(what_was_left_behind_goes),
        cmocka_unit_test(half_a_line_is_cut_off),
        cmocka_unit_test(a_hole_is_passed_over),
    };
    return cmocka_run_group_tests_name("logship", tests, NULL, NULL);
}
