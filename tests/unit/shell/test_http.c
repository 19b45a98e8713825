/* The HTTP server on a loop, against a raw client in a thread: keep-alive, late answers, streams,
 * refusals. */
#include "http.h"

#include "auth.h"
#include "db_lives.h"
#include "driver.h"
#include "lives.h"
#include "db_cluster.h"
#include "mem.h"
#include "shell.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static uv_loop_t loop;
static struct shell sh;
static uint16_t port;

/* Handlers. */

static void on_echo(struct shell *s, struct http_req *req)
{
    char text[256];
    const char *q = http_query(req, "someName");
    snprintf(text, sizeof text, "{\"id\":\"%s\",\"q\":\"%s\",\"n\":%zu}", http_param(req, "id"),
             q ? q : "", req->body.len);
    http_reply(req, 200, text);
}

static void on_literal(struct shell *s, struct http_req *req)
{
    http_reply(req, 200, "{\"literal\":true}");
}

/* One answer to all who ask, made by the first. */
static struct shared_buf *made;

static void on_made(struct shell *s, struct http_req *req)
{
    if (!made) {
        made = shared_buf_create();
        buf_add_str(&made->b, "{\"made\":[1,2]}");
    }
    http_reply_made(req, made);
}

struct late {
    uv_timer_t timer;
    struct http_req *req;
};

static void late_free(uv_handle_t *h)
{
    free(container_of(h, struct late, timer));
}

static void on_late_timer(uv_timer_t *t)
{
    struct late *l = container_of(t, struct late, timer);
    http_reply(l->req, 200, "{\"late\":true}");
    uv_close((uv_handle_t *)t, late_free);
}

static void on_late(struct shell *s, struct http_req *req)
{
    struct late *l = det_zalloc(sizeof *l);
    l->req = req;
    uv_timer_init(&loop, &l->timer);
    uv_timer_start(&l->timer, on_late_timer, 20, 0);
}

static struct http_stream *stream;
static uv_timer_t tick;
static int ticks;
static atomic_int streams_gone;

static void on_tick(uv_timer_t *t)
{
    if (!stream)
        return;
    char line[32];
    int n = snprintf(line, sizeof line, "%d", ticks++);
    http_stream_result(stream, line, (size_t)n);
    if (ticks == 5) {
        http_stream_error(stream, DET_ENOENT, "gone");
        http_stream_end(det_take(stream));
    }
}

static void on_stream_wake(void *arg)
{
    if (!stream || !http_stream_is_gone(stream))
        return;
    streams_gone++;
    http_stream_end(det_take(stream));
}

static void on_stream(struct shell *s, struct http_req *req)
{
    ticks = http_query(req, "endless") ? 6 : 0;
    stream = http_stream_begin(req, NULL, on_stream_wake, NULL);
}

/* Writes on, whoever reads. */
static void on_flood(struct shell *s, struct http_req *req)
{
    static char mb[1 << 20];
    ticks = 6; /* none of them ends it */
    stream = http_stream_begin(req, NULL, on_stream_wake, NULL);
    for (size_t n = 0; n < HTTP_STREAM_MAX; n += sizeof mb)
        http_stream_write(stream, mb, sizeof mb);
    assert_false(http_stream_is_gone(stream));
    http_stream_write(stream, mb, 1);
    assert_true(http_stream_is_gone(stream));
}

static void on_whoami(struct shell *s, struct http_req *req)
{
    char text[256];
    snprintf(text, sizeof text, "{\"kind\":%d,\"alloc\":\"%s\",\"run\":%d}", (int)req->who.kind,
             req->who.alloc_id, (int)req->who.run_id);
    http_reply(req, 200, text);
}

static struct http_req *unanswered, *unbegun;
static struct http_stream *unended;

static void on_never(struct shell *s, struct http_req *req)
{
    if (http_query(req, "stream"))
        unbegun = req;
    else
        unanswered = req;
}

static void on_unended(struct shell *s, struct http_req *req)
{
    unended = http_stream_begin(req, NULL, NULL, NULL);
}

static const struct http_route routes[] = {
    {HTTP_POST, "/api/v1/never", 0, on_never, 4096},
    {HTTP_POST, "/api/v1/things/{id}", 0, on_echo, 4096},
    {HTTP_GET, "/api/v1/things/{id}", 0, on_echo, 0},
    {HTTP_GET, "/api/v1/things/best", 0, on_literal, 0},
    {HTTP_GET, "/api/v1/made", 0, on_made, 0},
    {HTTP_GET, "/api/v1/late", 0, on_late, 0},
    {HTTP_GET, "/api/v1/stream", 0, on_stream, 0},
    {HTTP_GET, "/api/v1/flood", 0, on_flood, 0},
    {HTTP_GET, "/api/v1/unended", 0, on_unended, 0},
    {HTTP_GET, "/api/v1/agent-only", HTTP_AUTH_AGENT, on_whoami, 0},
    {HTTP_GET, "/api/v1/alloc-only", HTTP_AUTH_ALLOC, on_whoami, 0},
    {HTTP_POST, "/api/v1/alloc-only", HTTP_AUTH_ALLOC, on_whoami, 0},
};

/* The client: one blocking socket. */

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval t = {.tv_sec = 60};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        return -1;
    return fd;
}

/* Reads until the text holds `until`, the peer closes, or a minute passed. */
static char *talk(int fd, const char *send_text, const char *until)
{
    static char in[1 << 16];
    size_t n = 0;
    in[0] = 0;
    if (send_text && send(fd, send_text, strlen(send_text), MSG_NOSIGNAL) < 0)
        return in;
    while (n < sizeof in - 1 && !strstr(in, until)) {
        ssize_t got = recv(fd, in + n, sizeof in - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
        in[n] = 0;
    }
    return in;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
static atomic_bool client_done;
static uv_async_t woken;
static const char *failure;

#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            failure = #what;                                                                       \
            close(fd);                                                                             \
            return;                                                                                \
        }                                                                                          \
    } while (0)

static void client_basics(void)
{
    int fd = dial();
    EXPECT(fd >= 0);
    EXPECT(strstr(talk(fd, GET("/api/v1/things/a%20b?some_name=x%26y"), "}"),
                  "{\"id\":\"a b\",\"q\":\"x&y\",\"n\":0}"));
    EXPECT(strstr(talk(fd, GET("/api/v1/things/best/"), "}"), "literal")); /* same connection */
    EXPECT(strstr(talk(fd, GET("/api/v1/late"), "}"), "late"));
    EXPECT(strstr(talk(fd, GET("/api/v1/none"), "}}"), "\"reason\":\"NotFound\""));
    char *in = talk(fd, "DELETE /api/v1/late HTTP/1.1\r\nHost: x\r\n\r\n", "}}");
    EXPECT(strstr(in, "405"));
    EXPECT(strstr(
        talk(fd, "POST /api/v1/things/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "}"),
        "\"n\":3"));
    close(fd);
}

static void client_too_big(void)
{
    static char text[10000];
    int fd = dial();
    int n = snprintf(text, sizeof text,
                     "POST /api/v1/things/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 8000\r\n\r\n");
    memset(text + n, 'x', 8000);
    text[n + 8000] = 0;
    char *in = talk(fd, text, "}}");
    EXPECT(strstr(in, " 413 ") && strstr(in, "ResourceExhausted"));
    EXPECT(strstr(talk(fd, GET("/api/v1/things/best"), "}"), "literal"));
    close(fd);
}

static void client_made(void)
{
    int fd = dial();
    EXPECT(fd >= 0);
    EXPECT(strstr(talk(fd, GET("/api/v1/made"), "}"), "\r\n\r\n{\"made\":[1,2]}"));
    EXPECT(strstr(talk(fd, GET("/api/v1/made?pretty"), "}\n"), "\"made\": [\n"));
    EXPECT(strstr(talk(fd, GET("/api/v1/made"), "}"), "\r\n\r\n{\"made\":[1,2]}"));
    close(fd);
}

/* Appends one so many times. */
static void repeat(struct buf *b, const char *one, int n)
{
    for (int i = 0; i < n; i++)
        buf_add_str(b, one);
}

/* What is asked so gets this status, at once and with a reason; the 431 of ours says the limit. */
static bool is_told(struct buf *b, const char *status)
{
    int fd = dial();
    char *in = talk(fd, buf_str(b), "\r\n\r\n");
    bool ok =
        strncmp(in, "HTTP/1.1 ", 9) == 0 && strstr(status, (char[]){in[9], in[10], in[11], 0});
    if (!ok)
        print_error("%zu bytes of head: %.40s\n", b->len, in);
    close(fd);
    buf_finish(b);
    return ok;
}

static bool is_head_told(const char *one, int n, const char *header, int headers,
                         const char *status)
{
    struct buf b = BUF_INIT;
    buf_add_str(&b, "GET /api/v1/things/1?");
    repeat(&b, one, n);
    buf_add_str(&b, " HTTP/1.1\r\nHost: x\r\n");
    repeat(&b, header, headers);
    buf_add_str(&b, "\r\n");
    return is_told(&b, status);
}

/* Several hundred parameters are fine. Whatever is too long is answered, whether it leaves too
 * little for an answer or does not fit at all: hung up on without a word is nobody, nor kept. */
static void client_long_head(void)
{
    int fd = dial();
    EXPECT(is_head_told("trialIds=123456&", 300, "", 0, "200"));
    EXPECT(is_head_told("a&", 2400, "", 0, "200"));
    EXPECT(is_head_told("", 0, "A: b\r\n", 70, "200"));
    for (int n = 4900; n < 6500; n += 5)
        EXPECT(is_head_told("x", n, "", 0, n <= 5010 ? "200" : "414 431"));
    for (int n = 70; n < 110; n++)
        EXPECT(is_head_told("", 0, "A: b\r\n", n, n < 72 ? "200" : "431"));
    EXPECT(is_head_told("x", 100000, "", 0, "414"));
    EXPECT(is_head_told("", 0, "A: b\r\n", 1000, "431"));
    EXPECT(is_head_told("x", 5500, "", 0, "431"));
    static char text[6000] = "GET /api/v1/things/1?";
    memset(text + strlen(text), 'x', 5500);
    snprintf(text + strlen(text), 100, " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT(strstr(talk(fd, text, "}}"), "5120 is the most\"}}"));
    EXPECT(recv(fd, text, 1, 0) == 0);
    close(fd);
}

static void client_stream(void)
{
    int fd = dial();
    char *in = talk(fd, GET("/api/v1/stream"), "0\r\n\r\n");
    EXPECT(strstr(in, "{\"result\":4}\n") || strstr(in, "\"result\":"));
    EXPECT(strstr(in, "grpcCode"));
    close(fd);
    fd = dial();
    talk(fd, GET("/api/v1/stream?endless=1"), "\"result\"");
    close(fd); /* the server must notice while it has nothing to say */
}

static void client_flood(void)
{
    char some[4096];
    int fd = dial();
    EXPECT(send(fd, GET("/api/v1/flood"), strlen(GET("/api/v1/flood")), 0) > 0);
    while (recv(fd, some, sizeof some, 0) > 0)
        ; /* what was under way; then its end */
    close(fd);
}

static void client_auth(void)
{
    char text[1024], token[AUTH_TOKEN_MAX];
    int fd = dial();
    EXPECT(strstr(talk(fd, GET("/api/v1/agent-only"), "}}"), "token missing"));
    EXPECT(strstr(
        talk(fd,
             "GET /api/v1/agent-only HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n",
             "}"),
        "\"kind\":3"));
    struct auth_claim c = {.experiment_id = 1,
                           .trial_id = 2,
                           .run_id = 3,
                           .user_id = 4,
                           .alloc_id = "1.a.3",
                           .task_id = "1.a"};
    auth_alloc_token(sh.auth, &c, token);
    snprintf(text, sizeof text,
             "GET /api/v1/alloc-only HTTP/1.1\r\nHost: x\r\nGrpc-Metadata-x-allocation-token: "
             "Bearer %s\r\n\r\n",
             token);
    EXPECT(strstr(talk(fd, text, "}}"), "has ended")); /* no such allocation lives */
    snprintf(text, sizeof text,
             "POST /api/v1/alloc-only HTTP/1.1\r\nHost: x\r\nGrpc-Metadata-x-allocation-token: "
             "Bearer %s\r\nContent-Length: 0\r\n\r\n",
             token);
    EXPECT(strstr(talk(fd, text, "}"), "{\"kind\":2,\"alloc\":\"1.a.3\",\"run\":3}"));
    token[strlen("A2:1:01234567:0:")] ^= 1; /* another experiment's */
    snprintf(text, sizeof text,
             "GET /api/v1/alloc-only HTTP/1.1\r\nHost: x\r\nGrpc-Metadata-x-allocation-token: "
             "Bearer %s\r\n\r\n",
             token);
    EXPECT(strstr(talk(fd, text, "}}"), "invalid credentials"));
    EXPECT(strstr(
        talk(fd,
             "GET /api/v1/alloc-only HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n",
             "}}"),
        "PermissionDenied"));
    close(fd);
}

static void *client(void *arg)
{
    ((void (*)(void))arg)();
    client_done = true;
    uv_async_send(&woken);
    return NULL;
}

static void on_woken(uv_async_t *a)
{
}

static void run_client(void (*fn)(void))
{
    pthread_t t;
    failure = NULL;
    client_done = false;
    pthread_create(&t, NULL, client, (void *)fn);
    while (!client_done)
        uv_run(&loop, UV_RUN_ONCE);
    pthread_join(t, NULL);
    if (failure)
        print_error("client expected: %s\n", failure);
    assert_null(failure);
}

static void test_basics(void **state)
{
    run_client(client_basics);
}

/* What was sent is still whole, and nobody's any more but who made it. */
static void test_made(void **state)
{
    run_client(client_made);
    for (int i = 0; i < 3000 && made->owners > 1; i++)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(made->owners, 1);
    assert_string_equal(made->b.p, "{\"made\":[1,2]}");
    shared_buf_unref(made);
}

static void test_too_big(void **state)
{
    run_client(client_too_big);
}

static void test_long_head(void **state)
{
    run_client(client_long_head);
}

static void test_stream(void **state)
{
    run_client(client_stream);
    for (int i = 0; i < 3000 && !streams_gone; i++) /* the tick timer bounds each turn to 20 ms */
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(streams_gone, 1);
}

static void test_flood(void **state)
{
    int before = streams_gone;
    run_client(client_flood);
    for (int i = 0; i < 3000 && streams_gone == before; i++)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(streams_gone, before + 1);
}

static void test_auth(void **state)
{
    run_client(client_auth);
}

static void test_routes_twice(void **state)
{
    struct det_err err;
    assert_int_equal(http_add_routes(sh.http, routes, 1, &err), DET_EINVAL);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static int say(const char *text)
{
    int fd = dial();
    assert_true(fd >= 0 && send(fd, text, strlen(text), MSG_NOSIGNAL) > 0);
    return fd;
}

/* The last test. Who holds a request or a stream past the grace is answered for, and may yet
 * answer, begin one, or end it when the server is no more: the database, whose answers it waited
 * for, is closed after it. */
static void test_answered_after_the_end(void **state)
{
    bool closed = false;
    int fd = say("POST /api/v1/never HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    int begins =
        say("POST /api/v1/never?stream=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    int ends = say(GET("/api/v1/unended"));
    while (!unanswered || !unbegun || !unended)
        uv_run(&loop, UV_RUN_ONCE);
    http_close(det_take(sh.http), on_closed, &closed);
    while (!closed)
        uv_run(&loop, UV_RUN_ONCE);
    assert_non_null(strstr(talk(fd, NULL, "}}"), "the master is stopping"));
    close(fd);
    close(begins);
    close(ends);
    http_reply(unanswered, 200, "{}");
    struct http_stream *begun = http_stream_begin(unbegun, NULL, NULL, NULL);
    assert_true(http_stream_is_gone(begun));
    http_stream_end(unended);
    http_stream_write(begun, "x", 1);
    http_stream_end(begun);
}

static int setup(void **state)
{
    struct det_err err;
    struct db_cluster secrets = {.token_key = "k", .agent_token = "secret"};
    uv_loop_init(&loop);
    sh.loop = &loop;
    sh.auth = auth_create(&sh, &secrets);
    sh.driver = driver_create(&sh, core_create(&core_options_default), NULL, NULL);
    struct db_life *life = det_zalloc(sizeof *life);
    *life = (struct db_life){.epoch = 1, .last_batch = INT64_MAX, .nonce = "0123456789"};
    sh.lives = lives_create(&sh, life, 1);
    struct http_options o = {.host = "127.0.0.1", .sh = &sh};
    if (http_create(&loop, &o, &sh.http, &err) < 0)
        return -1;
    assert_int_equal(http_add_routes(sh.http, routes, DET_ARRAY_LEN(routes), &err), 0);
    port = http_port(sh.http);
    uv_async_init(&loop, &woken, on_woken);
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, 20, 20);
    return 0;
}

static int teardown(void **state)
{
    uv_close((uv_handle_t *)&woken, NULL);
    uv_close((uv_handle_t *)&tick, NULL);
    driver_destroy(sh.driver);
    lives_destroy(sh.lives);
    uv_run(&loop, UV_RUN_DEFAULT);
    auth_destroy(sh.auth);
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_basics),
        cmocka_unit_test(test_made),
        cmocka_unit_test(test_too_big),
        cmocka_unit_test(test_long_head),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_auth),
        cmocka_unit_test(test_routes_twice),
        cmocka_unit_test(test_answered_after_the_end),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
