#include "comm_net.h"

#include "clk.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int resolve_host(const char *host, int port, int flags, struct addrinfo **ret,
                        struct det_err *err)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    int rc = getaddrinfo(host, service, &hints, ret);
    if (rc)
        return det_fail(err, DET_EINVAL, "address %s: %s", host ? host : "*", gai_strerror(rc));
    return 0;
}

static int remaining_ms(int64_t deadline_ms)
{
    int64_t left = deadline_ms - clk_mono_ms();
    return left < 0 ? 0 : left > 1 << 30 ? 1 << 30 : (int)left;
}

static int dial_one(const struct addrinfo *a, int64_t deadline_ms, struct det_err *err)
{
    det_cleanup(det_closep) int fd =
        socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "socket");
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 && errno != EINPROGRESS)
        return det_fail_errno(err, DET_EUNAVAIL, errno, "connect");
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (poll(&p, 1, remaining_ms(deadline_ms)) <= 0)
        return det_fail(err, DET_ETIMEOUT, "connect: timed out");
    int so = 0, on = 1;
    socklen_t n = sizeof so;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &so, &n) < 0 || so)
        return det_fail_errno(err, DET_EUNAVAIL, so ? so : errno, "connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    int ret = fd;
    fd = -1;
    return ret;
}

int comm_net_dial(const char *host, int port, int64_t deadline_ms, struct det_err *err)
{
    struct addrinfo *list = NULL;
    int rc = resolve_host(host, port, 0, &list, err);
    if (rc < 0)
        return rc;
    int fd = DET_EUNAVAIL;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = dial_one(a, deadline_ms, err);
    freeaddrinfo(list);
    return fd;
}

static int listen_one(const struct addrinfo *a, const char *host, int port, struct det_err *err)
{
    det_cleanup(det_closep) int fd =
        socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return det_fail_errno(err, DET_EIO, errno, "socket");
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 1024) < 0)
        return det_fail_errno(err, DET_EIO, errno, "listen on %s:%d for the other ranks",
                              host ? host : "*", port);
    int ret = fd;
    fd = -1;
    return ret;
}

int comm_net_listen(const char *host, int port, struct det_err *err)
{
    struct addrinfo *list = NULL;
    int rc = resolve_host(host, port, AI_PASSIVE, &list, err);
    if (rc < 0)
        return rc;
    int fd = listen_one(list, host, port, err);
    freeaddrinfo(list);
    return fd;
}

void comm_net_close(int *fd)
{
    if (*fd >= 0)
        shutdown(*fd, SHUT_RDWR);
    det_closep(fd);
}

int comm_net_send(int fd, const void *p, size_t n, struct det_err *err)
{
    const char *c = p;
    int64_t deadline_ms = clk_mono_ms() + COMM_NET_SEND_MS;
    while (n) {
        ssize_t k = send(fd, c, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd q = {.fd = fd, .events = POLLOUT};
            if (poll(&q, 1, remaining_ms(deadline_ms)) == 0)
                return det_fail(err, DET_ETIMEOUT, "send: the peer does not read");
            continue;
        }
        if (k < 0)
            return det_fail_errno(err, DET_EPEER, errno, "send");
        c += k;
        n -= (size_t)k;
        deadline_ms = clk_mono_ms() + COMM_NET_SEND_MS;
    }
    return 0;
}

int comm_net_recv(int fd, void *p, size_t n, int64_t deadline_ms, struct det_err *err)
{
    char *c = p;
    while (n) {
        struct pollfd q = {.fd = fd, .events = POLLIN};
        int ready = poll(&q, 1, remaining_ms(deadline_ms));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return det_fail(err, DET_ETIMEOUT, "no answer in time");
        ssize_t k = recv(fd, c, n, 0);
        if (k < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (k <= 0)
            return det_fail(err, DET_EPEER, "receive: %s", k ? strerror(errno) : "closed");
        c += k;
        n -= (size_t)k;
    }
    return 0;
}

void comm_net_frame(struct buf *out, enum comm_store_op op, const char *key, const void *p,
                    size_t n)
{
    struct comm_store_frame f = {op, (uint32_t)strlen(key), (uint32_t)n};
    buf_add(out, &f, sizeof f);
    buf_add(out, key, f.key_bytes);
    if (n)
        buf_add(out, p, n);
}
