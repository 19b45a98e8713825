/* A run's ports, where another program of the host holds some of them. */
#include "mem.h"
#include "ports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In place of the C library's. */
static int listened;
int listen(int fd, int backlog)
{
    listened++;
    return (int)syscall(SYS_listen, fd, backlog);
}

/* Listens on a port of the kernel's choice, as another program may: here or everywhere. */
static int listener(int family, bool local, int *port)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6};
    struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6;
    socklen_t n = family == AF_INET ? sizeof a4 : sizeof a6;
    a4.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, a, n) < 0)
        return -1;
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, a, &n), 0);
    *port = ntohs(family == AF_INET ? a4.sin_port : a6.sin6_port);
    return fd;
}

/* A free port that stays so: below those that the kernel gives to whoever asks for any, as the
 * tests beside this one do. */
static int quiet_port(void)
{
    for (int port = 10000 + getpid() % 20000; port < 32768; port++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        det_cleanup(det_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
            return port;
    }
    fail_msg("no port is free");
    return -1;
}

/* As a task's start does. */
static void take(struct ports *ports, json_t *env, struct buf *said)
{
    ports_take(ports, env, said);
    ports_name(&ports->other, env);
}

static int port_of(const json_t *env, const char *name)
{
    return (int)strtol(json_str(env, name, ""), NULL, 10);
}

static void is_exchanged(int family, bool local)
{
    int port, other;
    det_cleanup(det_closep) int fd = listener(family, local, &port);
    if (fd < 0)
        return; /* a host without IPv6 */
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    det_cleanup(ports_give) struct ports ports;
    JSON_OWN env = json_object();
    json_set(env, "C10D_PORT", json_sprintf("%d", port));
    json_set(env, "OTHER_PORT", json_sprintf("%d", port));
    take(&ports, env, &said);
    other = port_of(env, "C10D_PORT");
    det_cleanup(freep) char *words = det_asprintf("C10D_PORT %d by %d", port, other);
    assert_true(other > 1024 && other != port);
    assert_string_equal(buf_str(&said), words);
    assert_int_equal(port_of(env, "OTHER_PORT"), port);
}

static void taken_ports_are_exchanged(void **state)
{
    is_exchanged(AF_INET, true);
    is_exchanged(AF_INET, false);
    is_exchanged(AF_INET6, false);
}

static void several_are_listed(void **state)
{
    int port;
    det_cleanup(det_closep) int fd = listener(AF_INET, true, &port);
    assert_true(fd >= 0);
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    det_cleanup(ports_give) struct ports ports;
    JSON_OWN env = json_object();
    json_set(env, "DTRAIN_SSH_PORT", json_sprintf("%d", port));
    json_set(env, "INTER_TRAIN_PROCESS_COMM_PORT_2", json_sprintf("%d", port));
    take(&ports, env, &said);
    assert_non_null(strstr(buf_str(&said), ", INTER_TRAIN_PROCESS_COMM_PORT_2 "));
}

static void others_are_left_alone(void **state)
{
    int port = quiet_port();
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    det_cleanup(ports_give) struct ports ports;
    JSON_OWN env = json_make("{s:o, s:s, s:s}", "C10D_PORT", json_sprintf("%d", port),
                             "DTRAIN_SSH_PORT", "70000", "INTER_TRAIN_PROCESS_COMM_PORT_1", "soon");
    JSON_OWN before = json_deep_copy(env);
    take(&ports, env, &said);
    assert_true(json_equal(env, before));
    assert_int_equal(said.len, 0);
}

/* Two clusters on one host begin a run in the same moment: nobody listens yet. */
static void other_runs_are_seen(void **state)
{
    int port = quiet_port();
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    struct ports first, second;
    JSON_OWN a = json_make("{s:o}", "C10D_PORT", json_sprintf("%d", port));
    JSON_OWN b = json_deep_copy(a);
    take(&first, a, &said);
    take(&second, b, &said);
    assert_int_equal(port_of(a, "C10D_PORT"), port);
    assert_int_not_equal(port_of(b, "C10D_PORT"), port);
    ports_give(&first);
    ports_give(&second);
    json_set(b, "C10D_PORT", json_sprintf("%d", port));
    take(&second, b, &said);
    assert_int_equal(port_of(b, "C10D_PORT"), port);
    ports_give(&second);
}

/* A rank of another cluster's run may wait for this port to be listened on: by its rank 0. */
static void nobody_can_connect_to_us(void **state)
{
    int port = quiet_port();
    det_cleanup(buf_finish) struct buf said = BUF_INIT;
    det_cleanup(ports_give) struct ports ports;
    JSON_OWN env = json_make("{s:o}", "C10D_PORT", json_sprintf("%d", port));
    listened = 0;
    take(&ports, env, &said);
    assert_int_equal(port_of(env, "C10D_PORT"), port);
    assert_int_equal(listened, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_ports_are_exchanged), cmocka_unit_test(several_are_listed),
        cmocka_unit_test(others_are_left_alone),     cmocka_unit_test(other_runs_are_seen),
        cmocka_unit_test(nobody_can_connect_to_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
