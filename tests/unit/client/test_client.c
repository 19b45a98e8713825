/* The blocking client against a scripted server. */
#include "client.h"

#include "clk.h"
#include "scripted_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct client *client_of(const struct server *s, enum client_token kind, int retries)
{
    char url[64];
    struct client *c = NULL;
    struct det_err err = {0};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", s->port);
    struct client_options o = {
        .url = url, .token_kind = kind, .token = "secret", .retries = retries};
    assert_int_equal(client_create(&o, &c, &err), 0);
    return c;
}

#define CLOSE    "Connection: close\r\n"
#define OK(body) "HTTP/1.1 200 OK\r\n" CLOSE "\r\n" body

static void test_call(void **state)
{
    static const char *const answers[] = {OK("{\"a\":1}"), NULL};
    struct server s = {0};
    server_start(&s, answers);
    struct client *c = client_of(&s, CLIENT_TOKEN_ALLOCATION, 0);
    struct client_resp r = CLIENT_RESP_INIT;
    struct det_err err = {0};
    static const char *const headers[] = {"Det-Seq: 1.2", NULL};
    struct client_req req = {.path = "/api/v1/x", .query = "a=b", .headers = headers, .body = "{}"};
    assert_int_equal(client_call(c, &req, &r, &err), 0);
    assert_int_equal(r.status, 200);
    assert_string_equal(buf_str(&r.body), "{\"a\":1}");
    assert_non_null(strstr(buf_str(&s.seen), "POST /api/v1/x?a=b HTTP/1.1\r\n"));
    assert_non_null(
        strstr(buf_str(&s.seen), "Grpc-Metadata-x-allocation-token: Bearer secret\r\n"));
    assert_non_null(strstr(buf_str(&s.seen), "Det-Seq: 1.2\r\n"));
    assert_null(strstr(buf_str(&s.seen), "Expect"));
    client_resp_finish(&r);
    client_destroy(c);
    server_end(&s);
}

/* Of an answer that is longer than it may be the status is known all the same. */
static void test_too_long(void **state)
{
    static const char *const answers[] = {OK("12345"), NULL};
    struct server s = {0};
    server_start(&s, answers);
    struct client *c = client_of(&s, CLIENT_TOKEN_NONE, 0);
    struct client_resp r = CLIENT_RESP_INIT;
    struct det_err err = {0};
    struct client_req req = {.path = "/x", .body = "{}", .answer_max = 4};
    assert_int_equal(client_call(c, &req, &r, &err), DET_ETOOBIG);
    assert_int_equal(r.status, 200);
    assert_string_equal(err.text, "POST /x: the answer has more than 4 bytes");
    client_resp_finish(&r);
    client_destroy(c);
    server_end(&s);
}

static void test_retry_then_error(void **state)
{
    static const char *const answers[] = {
        "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\n" CLOSE "\r\n{\"message\":\"later\"}", "",
        "HTTP/1.1 409 Conflict\r\n" CLOSE
        "\r\n{\"error\":{\"code\":10,\"reason\":\"Aborted\",\"error\":\"run 1 is old\"}}",
        NULL};
    struct server s = {0};
    server_start(&s, answers);
    struct client *c = client_of(&s, CLIENT_TOKEN_USER, 5);
    struct det_err err = {0};
    assert_int_equal(client_json(c, NULL, "/api/v1/x", NULL, NULL, &err), DET_ESTALE);
    assert_string_equal(err.text, "GET /api/v1/x: run 1 is old");
    assert_non_null(strstr(buf_str(&s.seen), "Authorization: Bearer secret\r\n"));
    client_destroy(c);
    server_end(&s);
}

static void test_several_masters(void **state)
{
    static const char standby[] = "HTTP/1.1 503 No\r\nRetry-After: 30\r\n" CLOSE "\r\n{}";
    static const char *const first[] = {standby, NULL};
    static const char *const second[] = {OK("{}"), OK("{}"), "", NULL};
    struct server a = {0}, b = {0};
    char url[128];
    struct client *c;
    struct det_err err = {0};
    server_start(&a, first);
    server_start(&b, second);
    snprintf(url, sizeof url, "http://127.0.0.1:%d,127.0.0.1:%d", a.port, b.port);
    struct client_options o = {.url = url, .retries = 1};
    assert_int_equal(client_create(&o, &c, &err), 0);
    int64_t begun = clk_mono_ms();
    assert_int_equal(client_json(c, NULL, "/x", NULL, NULL, &err), 0);
    assert_int_equal(client_json(c, NULL, "/x", NULL, NULL, &err), 0);
    assert_true(clk_mono_ms() - begun < 20000); /* not the pause that the standby asked for */
    struct client_req req = {.path = "/x", .once = true};
    assert_int_equal(client_call(c, &req, NULL, &err), DET_EUNAVAIL);
    client_destroy(c);
    server_end(&a);
    server_end(&b);
}

static int take_line(void *arg, const char *line, size_t len, struct det_err *err)
{
    buf_add(arg, line, len);
    buf_add_ch(arg, ';');
    return 0;
}

static void test_stream_and_silence(void **state)
{
    static const char *const answers[] = {OK("{\"n\":1}\n\n{\"n\":2}\n{\"n\":"), OK("{\"n\":3}\n"),
                                          NULL};
    struct server s = {.hold = true};
    server_start(&s, answers);
    struct client *c = client_of(&s, CLIENT_TOKEN_AGENT, 0);
    struct buf lines = BUF_INIT;
    struct det_err err = {0};
    struct client_req req = {.path = "/orders"};
    assert_int_equal(client_stream(c, &req, 60000, take_line, &lines, &err), 0);
    assert_string_equal(buf_str(&lines), "{\"n\":1};{\"n\":2};");
    int64_t begun = clk_mono_ms();
    assert_int_equal(client_stream(c, &req, 2000, take_line, &lines, &err), DET_ETIMEOUT);
    assert_true(clk_mono_ms() - begun < 50000);
    assert_string_equal(buf_str(&lines), "{\"n\":1};{\"n\":2};{\"n\":3};");
    buf_finish(&lines);
    client_destroy(c);
    server_end(&s);
}

struct opening {
    int opened, lines;
};

static void count_opening(void *arg)
{
    struct opening *o = arg;
    o->opened++;
    assert_int_equal(o->lines, 0);
}

static int count_line(void *arg, const char *line, size_t len, struct det_err *err)
{
    struct opening *o = arg;
    o->lines++;
    return 0;
}

/* Told once, at a good answer's head; a refusal is none. */
static void test_opened(void **state)
{
    static const char *const answers[] = {"HTTP/1.1 100 Continue\r\n\r\n" OK("1\n2\n"),
                                          "HTTP/1.1 503 No\r\n" CLOSE "\r\n{}", OK(""), NULL};
    struct server s = {.hold = true};
    server_start(&s, answers);
    struct client *c = client_of(&s, CLIENT_TOKEN_USER, 0);
    struct opening o = {0};
    struct det_err err = {0};
    struct client_req req = {.path = "/logs", .on_open = count_opening};
    assert_int_equal(client_stream(c, &req, 0, count_line, &o, &err), 0);
    assert_int_equal(o.lines, 2);
    assert_int_equal(o.opened, 1);
    o = (struct opening){0};
    assert_int_equal(client_stream(c, &req, 0, count_line, &o, &err), DET_EUNAVAIL);
    assert_int_equal(o.opened, 0);
    assert_int_equal(client_stream(c, &req, 2000, count_line, &o, &err), DET_ETIMEOUT);
    assert_int_equal(o.opened, 1); /* though no line came */
    client_destroy(c);
    server_end(&s);
}

static int option_of(int fd, int level, int name)
{
    int value = 0;
    socklen_t len = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* The one of this process that is connected to the port of *arg. */
static int look_at_socket(void *arg, const char *line, size_t len, struct det_err *err)
{
    const struct server *s = arg;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in a = {0};
        socklen_t a_len = sizeof a;
        if (getpeername(fd, (struct sockaddr *)&a, &a_len) < 0 || ntohs(a.sin_port) != s->port)
            continue;
        assert_true(option_of(fd, SOL_SOCKET, SO_KEEPALIVE));
        assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
        assert_in_range(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1, 59);
        return 7;
    }
    return 0;
}

/* A host that vanishes sends no reset. */
static void test_silent_host(void **state)
{
    static const char *const answers[] = {OK("1\n"), NULL};
    struct server s = {0};
    server_start(&s, answers);
    struct client *c = client_of(&s, CLIENT_TOKEN_USER, 0);
    struct det_err err = {0};
    struct client_req req = {.path = "/logs"};
    assert_int_equal(client_stream(c, &req, 0, look_at_socket, &s, &err), 7);
    client_destroy(c);
    server_end(&s);
}

static void *cancel_it(void *arg)
{
    client_cancel(arg);
    return NULL;
}

static void test_cancel(void **state)
{
    static const char *const answers[] = {"", NULL};
    struct server s = {.hold = true};
    server_start(&s, answers);
    struct client *c = client_of(&s, CLIENT_TOKEN_USER, 0);
    pthread_t t;
    struct det_err err = {0};
    assert_int_equal(pthread_create(&t, NULL, cancel_it, c), 0);
    assert_int_equal(client_json(c, NULL, "/x", NULL, NULL, &err), DET_ECANCELED);
    pthread_join(t, NULL);
    client_destroy(c);
    server_end(&s);
}

static void test_urls(void **state)
{
    static const char *const good[][2] = {
        {"http://h:1", "http://h:1"}, {"h", "http://h:8080"},        {"https://h", "https://h:443"},
        {"http://h/", "http://h:80"}, {"[::1]:7", "http://[::1]:7"}, {"h.x:9", "http://h.x:9"}};
    static const char *const bad[] = {"",        "http://", "h:0",  "h:70000", "h:1/x",
                                      "ftp://h", "h h",     "h:1x", "h,",      "a,b c"};
    struct client *c;
    struct det_err err = {0};
    for (size_t i = 0; i < DET_ARRAY_LEN(good); i++) {
        assert_int_equal(client_create(&(struct client_options){.url = good[i][0]}, &c, &err), 0);
        assert_string_equal(client_url(c), good[i][1]);
        client_destroy(c);
    }
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++)
        assert_int_equal(client_create(&(struct client_options){.url = bad[i]}, &c, &err),
                         DET_EINVAL);
}

static void test_status(void **state)
{
    struct det_err err = {0};
    assert_int_equal(client_status(204, NULL, 0, &err), 0);
    const char *exists = "{\"error\":{\"reason\":\"AlreadyExists\",\"error\":\"twice\"}}";
    assert_int_equal(client_status(409, exists, strlen(exists), &err), DET_EEXIST);
    assert_string_equal(err.text, "twice");
    assert_int_equal(client_status(418, "short\nand stout", 15, &err), DET_EINVAL);
    assert_string_equal(err.text, "HTTP status 418 (invalid argument): short");
    assert_int_equal(client_status(500, "[1]", 3, &err), DET_EIO);
    assert_int_equal(client_status(401, "{\"error\":5}", 11, &err), DET_EAUTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_retry_then_error),
        cmocka_unit_test(test_several_masters),
        cmocka_unit_test(test_stream_and_silence),
        cmocka_unit_test(test_opened),
        cmocka_unit_test(test_silent_host),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
