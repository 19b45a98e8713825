/* Whether somebody listens where a leader serves: what is told, and what says nothing. */
#include "lead_probe.h"

#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

static uv_loop_t loop;
static struct lead_probe probe;

static int setup(void **state)
{
    uv_loop_init(&loop);
    probe = (struct lead_probe){.loop = &loop};
    return 0;
}

/* Whatever a case began has ended, and nothing of it is left in the loop. */
static int teardown(void **state)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_null(probe.call);
    return uv_loop_close(&loop);
}

/* A port of a loopback address where nobody but `ret` is: bound, and maybe listening. 0: the host
 * has no such address. */
static int bind_port(uv_tcp_t *ret, const char *ip, bool listens)
{
    struct sockaddr_storage at = {0};
    int size = sizeof at;
    bool is_v6 = strchr(ip, ':');
    uv_tcp_init(&loop, ret);
    if (is_v6)
        uv_ip6_addr(ip, 0, (struct sockaddr_in6 *)&at);
    else
        uv_ip4_addr(ip, 0, (struct sockaddr_in *)&at);
    if (uv_tcp_bind(ret, (struct sockaddr *)&at, 0) < 0 ||
        uv_tcp_getsockname(ret, (struct sockaddr *)&at, &size) < 0)
        return 0;
    uv_os_fd_t fd;
    assert_int_equal(uv_fileno((uv_handle_t *)ret, &fd), 0);
    if (listens)
        assert_int_equal(listen(fd, 8), 0); /* the kernel takes connections, as of a stopped one */
    return ntohs(is_v6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                       : ((struct sockaddr_in *)&at)->sin_port);
}

static void look_until_told(const char *url)
{
    lead_probe_look(&probe, url);
    while (probe.call)
        uv_run(&loop, UV_RUN_ONCE);
}

static void tells_who_listens(void **state)
{
    static const struct {
        const char *ip, *url;
        bool listens;
    } cases[] = {{"127.0.0.1", "http://127.0.0.1:%d", true},
                 {"127.0.0.1", "https://127.0.0.1:%d", false},
                 {"::1", "http://[::1]:%d", true},
                 {"::1", "http://[::1]:%d", false}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        uv_tcp_t there;
        char url[64];
        int port = bind_port(&there, cases[i].ip, cases[i].listens);
        snprintf(url, sizeof url, cases[i].url, port);
        probe.is_refused = cases[i].listens; /* what was seen before counts no more */
        if (port)
            look_until_told(url);
        if (port && probe.is_refused == cases[i].listens)
            fail_msg("%s: is_refused %d", url, probe.is_refused);
        uv_close((uv_handle_t *)&there, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
}

/* Nobody can be asked there, so nobody is said to be gone. */
static void silence_says_nothing(void **state)
{
    static const char *const urls[] = {
        "http://127.0.0.1:nosvc", /* the name has no address */
        "http://\xff\xfe:80",     /* nor is it one */
        "127.0.0.1:80",           /* not a URL of a master */
        "http://127.0.0.1",       "http://:80", "http://[::1]", "http://127.0.0.1:123456", "",
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(urls); i++) {
        look_until_told(urls[i]);
        if (probe.is_refused)
            fail_msg("%s", urls[i]);
    }
    char host[257], longest[300];
    memset(host, 'a', sizeof host);
    snprintf(longest, sizeof longest, "http://%.256s:80", host);
    lead_probe_look(&probe, longest);
    assert_null(probe.call);
}

static void note_tcp(uv_handle_t *h, void *arg)
{
    if (h->type == UV_TCP)
        *(bool *)arg = true;
}

static bool is_connecting(void)
{
    bool has_tcp = false;
    uv_walk(&loop, note_tcp, &has_tcp);
    return has_tcp;
}

/* One that is forgotten tells nothing any more, wherever it was. */
static void one_at_a_time_until_forgotten(void **state)
{
    lead_probe_look(&probe, "http://127.0.0.1:1");
    struct lead_probe_call *first = probe.call;
    assert_non_null(first);
    lead_probe_look(&probe, "http://127.0.0.1:2");
    assert_ptr_equal(probe.call, first);
    lead_probe_reset(&probe);
    assert_null(probe.call); /* while it looks the name up */
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(probe.is_refused);
    lead_probe_look(&probe, "http://127.0.0.1:1");
    while (probe.call && !is_connecting())
        uv_run(&loop, UV_RUN_ONCE);
    lead_probe_reset(&probe); /* while it connects */
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(probe.is_refused);
    lead_probe_reset(&probe); /* nothing is under way */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tells_who_listens, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_says_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(one_at_a_time_until_forgotten, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
