#include "ports.h"

#include "mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Binds all addresses of a family for a moment. The port, also where it was 0; 0 where it is taken;
 * -1 where the host does not let us, as without such a family. It does not listen: a rank of
 * another cluster that waits for its first one to do so would be connected to us, and fail. */
static int bind_once(int family, int port)
{
    det_cleanup(det_closep) int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr *a = family == AF_INET6 ? (struct sockaddr *)&a6 : (struct sockaddr *)&a4;
    socklen_t n = family == AF_INET6 ? sizeof a6 : sizeof a4;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a, n) < 0 || getsockname(fd, a, &n) < 0)
        return errno == EADDRINUSE ? 0 : -1;
    return ntohs(family == AF_INET6 ? a6.sin6_port : a4.sin_port);
}

/* A socket of IPv6 takes the port for IPv4 as well, unless the host says otherwise. */
static int bind_everywhere(int port)
{
    int v4 = bind_once(AF_INET, port);
    int v6 = bind_once(AF_INET6, v4 > 0 ? v4 : port);
    return v4 == 0 || v6 == 0 ? 0 : v4 > 0 ? v4 : v6;
}

/* An abstract name is bound once in a network namespace, which is where ports are taken, and free
 * again when its holder is gone. -1: another run has it. */
static int lease_port(int port)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "det-port/%d", port);
    det_cleanup(det_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0)
        return -1;
    int ret = fd;
    fd = -1;
    return ret;
}

/* port 0: any. The port; 0 where it cannot be had; -1 where nobody can tell. One that another run
 * has leased is not even bound, since that could be in the way of its rank 0. */
static int take_port(int port, int *ret_lease)
{
    int found = port ? port : bind_everywhere(0);
    if (found <= 0)
        return found;
    det_cleanup(det_closep) int fd = lease_port(found);
    if (fd < 0)
        return 0;
    int free_one = port ? bind_everywhere(port) : found;
    if (free_one > 0) {
        *ret_lease = fd;
        fd = -1;
    }
    return free_one;
}

void ports_take(struct ports *ret, const json_t *env, struct buf *said)
{
    *ret = (struct ports)PORTS_NONE;
    for (size_t i = 0; i < RUNPORTS_N; i++) {
        const char *name = runports_name(i);
        long port = strtol(json_str(env, name, ""), NULL, 10);
        if (port <= 0 || port > UINT16_MAX || take_port((int)port, &ret->lease[i]))
            continue;
        int other = take_port(0, &ret->lease[i]);
        if (other <= 0)
            continue; /* who needs the port will say so */
        ret->other.port[i] = other;
        buf_addf(said, "%s%s %ld by %d", said->len ? ", " : "", name, port, other);
    }
}

void ports_name(const struct runports *p, json_t *env)
{
    for (size_t i = 0; i < RUNPORTS_N; i++)
        if (p->port[i] > 0)
            json_set(env, runports_name(i), json_sprintf("%d", p->port[i]));
}

void ports_give(struct ports *p)
{
    for (size_t i = 0; i < RUNPORTS_N; i++)
        det_closep(&p->lease[i]);
}
