#include "http_peer.h"

#include "mem.h"

#include <sys/resource.h>
#include <sys/socket.h>

enum {
    FIRST_MS = 20000,
    NEXT_MS = 150000,
    REQUEST_MS = 30000,
    KEPT_FDS = 256,
    FLOOR_BYTES_S = 32 << 10
};

struct http_peer *http_peer_add(struct http_peers *all, int fd)
{
    struct http_peer *p = det_zalloc(sizeof *p);
    p->fd = fd;
    p->is_new = true;
    p->since_ms = uv_now(all->loop);
    p->next = all->head;
    p->link = &all->head;
    if (p->next)
        p->next->link = &p->next;
    all->head = p;
    return p;
}

void http_peer_remove(struct http_peer *p)
{
    if (!p)
        return;
    *p->link = p->next;
    if (p->next)
        p->next->link = p->link;
    free(p);
}

void http_peer_begins(struct http_peers *all, struct http_peer *p)
{
    if (!p)
        return;
    p->since_ms = uv_now(all->loop);
    p->is_reading = true;
    p->is_new = false;
    p->bytes = 0;
}

void http_peer_sent(struct http_peer *p, size_t bytes)
{
    if (p)
        p->bytes += bytes;
}

void http_peer_in_hand(struct http_peer *p)
{
    if (p)
        p->since_ms = 0;
}

void http_peer_idle(struct http_peers *all, struct http_peer *p)
{
    if (!p)
        return;
    p->since_ms = uv_now(all->loop);
    p->is_reading = false;
}

static uint64_t limit_ms(const struct http_peer *p)
{
    if (p->is_reading)
        return REQUEST_MS + p->bytes / FLOOR_BYTES_S * 1000;
    return p->is_new ? FIRST_MS : NEXT_MS;
}

void http_peers_sweep(struct http_peers *all)
{
    uint64_t now = uv_now(all->loop);
    for (struct http_peer *p = all->head; p; p = p->next)
        if (p->since_ms && now - p->since_ms > limit_ms(p))
            shutdown(p->fd, SHUT_RDWR);
}

unsigned http_peers_max(unsigned most)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return most < 512 ? most : 512;
    rlim_t want = most + KEPT_FDS;
    if (r.rlim_cur < want) {
        r.rlim_cur = r.rlim_max == RLIM_INFINITY || r.rlim_max > want ? want : r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
        getrlimit(RLIMIT_NOFILE, &r);
    }
    if (r.rlim_cur >= want)
        return most;
    return r.rlim_cur > 2 * KEPT_FDS ? (unsigned)r.rlim_cur - KEPT_FDS : (unsigned)r.rlim_cur / 2;
}
