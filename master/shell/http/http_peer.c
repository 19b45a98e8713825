#include "http_peer.h"

#include "mem.h"

#include <sys/resource.h>
#include <sys/socket.h>

enum {
    FIRST_MS = 20000,
    NEXT_MS = 150000,
    REQUEST_MS = 30000,
    SILENT_MS = 15000,
    KEPT_FDS = 256,
    FLOOR_BYTES_S = 32 << 10
};

static void list_remove(struct http_peers *all, struct http_peer *p)
{
    if (p->prev)
        p->prev->next = p->next;
    else
        all->lists[p->state].first = p->next;
    if (p->next)
        p->next->prev = p->prev;
    else
        all->lists[p->state].last = p->prev;
}

static void list_append(struct http_peers *all, struct http_peer *p)
{
    p->next = NULL;
    p->prev = all->lists[p->state].last;
    if (p->prev)
        p->prev->next = p;
    else
        all->lists[p->state].first = p;
    all->lists[p->state].last = p;
}

static void enter_state(struct http_peers *all, struct http_peer *p, enum http_peer_state state,
                        uint64_t now_ms)
{
    if (!p || p->state == PEER_CUT)
        return;
    list_remove(all, p);
    p->state = state;
    p->since_ms = p->heard_ms = now_ms;
    list_append(all, p);
}

void http_peer_cut(struct http_peers *all, struct http_peer *p, uint64_t now_ms)
{
    if (!p || p->state == PEER_CUT)
        return;
    enter_state(all, p, PEER_CUT, now_ms);
    shutdown(p->fd, SHUT_RDWR);
}

void http_peer_reset(struct http_peers *all, struct http_peer *p, uint64_t now_ms)
{
    struct linger none = {.l_onoff = 1};
    if (p)
        setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    http_peer_cut(all, p, now_ms);
}

static void make_room(struct http_peers *all, uint64_t now_ms)
{
    struct http_peer *oldest = NULL;
    for (int i = PEER_NEW; i <= PEER_IDLE; i++) {
        struct http_peer *p = all->lists[i].first;
        if (p && (!oldest || p->heard_ms < oldest->heard_ms))
            oldest = p;
    }
    http_peer_cut(all, oldest, now_ms);
}

struct http_peer *http_peer_add(struct http_peers *all, int fd, uint64_t now_ms)
{
    struct http_peer *p = det_zalloc(sizeof *p);
    *p = (struct http_peer){.fd = fd, .since_ms = now_ms, .heard_ms = now_ms};
    if (all->room && all->count >= all->room)
        make_room(all, now_ms);
    list_append(all, p);
    all->count++;
    return p;
}

void http_peer_remove(struct http_peers *all, struct http_peer *p)
{
    if (!p)
        return;
    list_remove(all, p);
    all->count--;
    free(p);
}

void http_peer_begins(struct http_peers *all, struct http_peer *p, uint64_t now_ms)
{
    enter_state(all, p, PEER_READING, now_ms);
    if (p)
        p->bytes = 0;
}

void http_peer_sent(struct http_peers *all, struct http_peer *p, size_t bytes, uint64_t now_ms)
{
    if (!p || p->state != PEER_READING)
        return;
    list_remove(all, p);
    p->bytes += bytes;
    p->heard_ms = now_ms;
    list_append(all, p);
}

void http_peer_in_hand(struct http_peers *all, struct http_peer *p, uint64_t now_ms)
{
    enter_state(all, p, PEER_BUSY, now_ms);
}

void http_peer_goes_on(struct http_peers *all, struct http_peer *p, uint64_t now_ms)
{
    enter_state(all, p, PEER_READING, now_ms);
}

void http_peer_idle(struct http_peers *all, struct http_peer *p, uint64_t now_ms)
{
    enter_state(all, p, PEER_IDLE, now_ms);
}

/* Whether it is over one of its limits. */
static bool is_late(const struct http_peer *p, uint64_t now_ms)
{
    uint64_t since = now_ms - p->since_ms, silent = now_ms - p->heard_ms;
    switch (p->state) {
    case PEER_NEW: return since > FIRST_MS;
    case PEER_READING:
        return silent > SILENT_MS || since > REQUEST_MS + p->bytes / FLOOR_BYTES_S * 1000;
    case PEER_IDLE: return since > NEXT_MS;
    case PEER_BUSY:
    case PEER_CUT:
    case PEER_STATES: break;
    }
    return false;
}

void http_peers_sweep(struct http_peers *all, uint64_t now_ms)
{
    for (int i = PEER_NEW; i <= PEER_IDLE; i++) {
        struct http_peer *next;
        for (struct http_peer *p = all->lists[i].first; p; p = next) {
            next = p->next;
            if (is_late(p, now_ms))
                http_peer_cut(all, p, now_ms);
        }
    }
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
