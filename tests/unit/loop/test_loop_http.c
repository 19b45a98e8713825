/* The loop's way to the master, over real sockets: this program is the master. */
#include "loop_env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener;

static void set_up(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
    det_cleanup(freep) char *url = det_asprintf("http://127.0.0.1:%d", ntohs(a.sin_port));
    unsetenv("DET_MASTERS");
    setenv("DET_MASTER", url, 1);
    setenv("DET_SESSION_TOKEN", "t", 1);
}

/* A connection whose request is here, unanswered. */
static int take_request(void)
{
    char text[4096];
    int fd = accept(listener, NULL, NULL);
    assert_true(fd >= 0);
    assert_true(recv(fd, text, sizeof text, 0) > 0);
    return fd;
}

struct asked {
    struct loop_http http;
    int rc, status;
    bool must_arrive; /* else nobody is to wait for it */
};

static void *ask(void *arg)
{
    struct asked *a = arg;
    struct loop_http_request q = {.method = "GET", .path = "/api/v1/x", .timeout_ms = 60000};
    struct loop_http_response r = {0};
    a->rc = a->http.call(a->http.self, &q, &r, NULL);
    a->status = r.status;
    if (a->must_arrive && a->rc < 0)
        shutdown(listener, SHUT_RDWR);
    buf_finish(&r.body);
    return NULL;
}

/* A process may have several runs, one after the other: a script that calls the trainer twice. */
static void a_run_after_a_canceled_one(void **state)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    struct asked first = {0}, second = {.must_arrive = true};
    pthread_t thread;
    set_up();
    assert_int_equal(loop_http_from_env(&first.http, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, ask, &first), 0);
    int fd = take_request();
    first.http.cancel(first.http.self);
    pthread_join(thread, NULL);
    close(fd);
    assert_int_equal(first.rc, DET_ECANCELED);
    ask(&first); /* that run is over */
    assert_int_equal(first.rc, DET_ECANCELED);

    assert_int_equal(loop_http_from_env(&second.http, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, ask, &second), 0);
    fd = take_request();
    assert_int_equal(send(fd, answer, strlen(answer), MSG_NOSIGNAL), (ssize_t)strlen(answer));
    pthread_join(thread, NULL);
    assert_int_equal(second.rc, 0);
    assert_int_equal(second.status, 200);
    close(fd);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_run_after_a_canceled_one)};
    return cmocka_run_group_tests_name("loop_http", tests, NULL, NULL);
}
