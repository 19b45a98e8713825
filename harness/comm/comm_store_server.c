/* Rank 0's side of the store: one thread, one poll loop, no locks (it shares nothing but the stop
 * descriptor). */
#include "clk.h"
#include "comm_net.h"
#include "comm_store.h"
#include "map.h"
#include "mem.h"
#include "thread.h"
#include "vec.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define NO_DESCRIPTOR_MS 50
#define STRANGER_MS      10000
#define UNHEARD_MS       60000

struct value {
    void *p;
    size_t n;
};

struct peer {
    int fd;
    int rank; /* -1 before HELLO */
    int64_t since_ms;
    struct buf in;
    char *want;         /* key of a GET that waits */
    int64_t verdict_ms; /* when a VERDICT must be answered; 0: none asked */
};

struct comm_store_server {
    pthread_t thread;
    int listener, stop;
    int size;
    char secret[HASH_HEX_MAX];
    struct map *values; /* key -> struct value * */
    VEC(struct peer *) peers;
    bool *seen, *gone, *failed; /* by rank */
    struct buf verdict;         /* the last one given */
    struct buf reason;          /* why the first rank left that gave a reason */
    struct buf trouble;         /* what the first rank that told could not do */
    bool closed;                /* rank 0 was told that there is none, and will not ask again */
    int64_t unheard_ms;         /* by then rank 0 has asked for it; 0: it has, or there is none */
    int patience_ms;
    int (*on_unheard)(void *arg, const char *why, int unheard_ms);
    void *arg;
};

static void send_answer(struct peer *p, enum comm_store_op op, const void *v, size_t n)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    comm_net_frame(&b, op, "", v, n);
    det_ignore(comm_net_send(p->fd, b.p, b.len, NULL),
               "a broken connection shows at the next read");
}

static void queue_reply(struct peer *p, const void *v, size_t n)
{
    send_answer(p, COMM_STORE_VALUE, v, n);
}

static void on_put(struct comm_store_server *s, const char *key, const void *p, size_t n)
{
    struct value *v = det_zalloc(sizeof *v);
    v->p = det_memdup(n ? p : "", n ? n : 1);
    v->n = n;
    struct value *old = map_put(s->values, key, v);
    if (old)
        free(old->p);
    free(old);
    for (size_t i = 0; i < s->peers.n; i++) {
        struct peer *w = s->peers.v[i];
        if (!w->want || strcmp(w->want, key) != 0)
            continue;
        free(w->want);
        w->want = NULL;
        queue_reply(w, v->p, v->n);
    }
}

static void free_value(struct value *v)
{
    free(v->p);
    free(v);
}

static bool drop_values(struct comm_store_server *s, const char *prefix)
{
    struct map *kept = map_create();
    const char *key;
    void *v;
    for (size_t it = 0; map_next(s->values, &it, &key, &v);)
        if (strncmp(key, prefix, strlen(prefix)) == 0)
            free_value(v);
        else
            map_put(kept, key, v);
    map_destroy(s->values);
    s->values = kept;
    return true;
}

static void on_get(struct comm_store_server *s, struct peer *p, const char *key)
{
    const struct value *v = map_get(s->values, key);
    if (v) {
        queue_reply(p, v->p, v->n);
        return;
    }
    free(p->want);
    p->want = det_strdup(key);
}

/* False, and so the end of the connection. */
static bool turn_away(struct peer *p, const char *answer)
{
    queue_reply(p, answer, strlen(answer));
    return false;
}

/* False ends the connection. */
static bool on_hello(struct comm_store_server *s, struct peer *p, const void *v, size_t n)
{
    struct comm_store_hello h;
    if (n != sizeof h)
        return false;
    memcpy(&h, v, sizeof h);
    h.secret[sizeof h.secret - 1] = 0;
    if (!hash_equal(h.secret, s->secret) || h.rank >= (uint32_t)s->size)
        return turn_away(p, COMM_STORE_REFUSED);
    if (s->seen[h.rank])
        return turn_away(p, s->gone[h.rank] ? COMM_STORE_LATER : COMM_STORE_REFUSED);
    s->seen[h.rank] = true;
    p->rank = (int)h.rank;
    queue_reply(p, "", 0);
    return true;
}

static void add_verdict(const struct comm_store_server *s, struct buf *out)
{
    for (int r = 0; r < s->size; r++) {
        if (!s->gone[r] && s->failed[r])
            continue;
        buf_addf(out, "%srank %d %s", out->len ? ", " : "", r,
                 s->gone[r] ? "is gone" : "does not answer");
    }
}

static bool all_accounted(const struct comm_store_server *s)
{
    if (s->reason.len)
        return true; /* who asks goes on to ask for it */
    for (int r = 0; r < s->size; r++)
        if (!s->gone[r] && !s->failed[r])
            return false;
    return true;
}

static void answer_verdicts(struct comm_store_server *s)
{
    buf_clear(&s->verdict);
    add_verdict(s, &s->verdict);
    for (size_t i = 0; i < s->peers.n; i++) {
        struct peer *p = s->peers.v[i];
        if (!p->verdict_ms)
            continue;
        p->verdict_ms = 0;
        queue_reply(p, buf_str(&s->verdict), s->verdict.len);
    }
}

/* Answers all who asked, once every rank is accounted for or the first one's time is up: so all
 * get the same verdict. Returns the next deadline. */
static int64_t answer_due_verdicts(struct comm_store_server *s)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < s->peers.n; i++)
        if (s->peers.v[i]->verdict_ms && s->peers.v[i]->verdict_ms < next)
            next = s->peers.v[i]->verdict_ms;
    if (next == INT64_MAX || (next > clk_mono_ms() && !all_accounted(s)))
        return next;
    answer_verdicts(s);
    return INT64_MAX;
}

static void name_gone(const struct comm_store_server *s, struct buf *out)
{
    for (int r = 0; r < s->size; r++)
        if (s->gone[r])
            buf_addf(out, "%srank %d is gone", out->len ? ", " : "", r);
}

/* Rank 0 leaves after a failure: ranks that notice it only by that must not blame rank 0, so the
 * verdict, or who left before it, is there before they ask. */
static void last_words(struct comm_store_server *s)
{
    det_cleanup(buf_finish) struct buf who = BUF_INIT;
    name_gone(s, &who);
    for (size_t i = 0; i < s->peers.n; i++) {
        struct peer *p = s->peers.v[i];
        if (p->rank >= 0 && s->verdict.len)
            queue_reply(p, s->verdict.p, s->verdict.len);
        if (p->rank >= 0 && s->reason.len)
            send_answer(p, COMM_STORE_REASON, s->reason.p, s->reason.len);
        if (p->rank >= 0 && who.len)
            send_answer(p, COMM_STORE_LOST, who.p, who.len);
    }
}

/* ---- Ranks that leave with a reason ---------------------------------------------------------- */

static bool on_left(struct comm_store_server *s, struct peer *p)
{
    if (p->rank == 0) {
        s->unheard_ms = 0;
        s->closed = s->reason.len == 0;
    }
    send_answer(p, COMM_STORE_REASON, s->reason.p, s->reason.len);
    return true;
}

/* Each looks between its batches: rank 0 may have no collective for long. */
static void tell_others(struct comm_store_server *s, const struct peer *who)
{
    for (size_t i = 0; i < s->peers.n; i++) {
        struct peer *p = s->peers.v[i];
        if (p != who && p->rank >= 0)
            send_answer(p, COMM_STORE_REASON, s->reason.p, s->reason.len);
    }
}

static bool on_leave(struct comm_store_server *s, struct peer *p, const void *why, size_t n)
{
    if (s->closed)
        return false; /* nobody would act on it */
    if (s->reason.len == 0) {
        buf_addf(&s->reason, "rank %d: ", p->rank);
        buf_add(&s->reason, why, n);
        s->unheard_ms = clk_mono_ms() + s->patience_ms;
        tell_others(s, p);
    }
    return on_left(s, p);
}

/* Returns the next deadline. */
static int64_t tell_unheard(struct comm_store_server *s)
{
    if (!s->unheard_ms)
        return INT64_MAX;
    if (s->unheard_ms > clk_mono_ms())
        return s->unheard_ms;
    int again_ms = s->on_unheard ? s->on_unheard(s->arg, buf_str(&s->reason), s->patience_ms) : 0;
    s->unheard_ms = again_ms > 0 ? clk_mono_ms() + again_ms : 0;
    return again_ms > 0 ? s->unheard_ms : INT64_MAX;
}

static bool on_verdict(struct comm_store_server *s, struct peer *p, const void *v, size_t n)
{
    uint32_t ms;
    if (n != sizeof ms)
        return false;
    memcpy(&ms, v, sizeof ms);
    s->failed[p->rank] = true;
    p->verdict_ms = clk_mono_ms() + (ms > 60000 ? 60000 : ms);
    return true;
}

static bool on_trouble(struct comm_store_server *s, const struct peer *p, const void *what,
                       size_t n)
{
    if (s->trouble.len == 0) {
        buf_addf(&s->trouble, "rank %d: ", p->rank);
        buf_add(&s->trouble, what, n < COMM_STORE_TOLD_MAX ? n : COMM_STORE_TOLD_MAX);
    }
    return true;
}

static bool on_gone(struct comm_store_server *s, struct peer *p)
{
    det_cleanup(buf_finish) struct buf who = BUF_INIT;
    name_gone(s, &who);
    if (s->trouble.len)
        send_answer(p, COMM_STORE_TROUBLE, s->trouble.p, s->trouble.len);
    queue_reply(p, buf_str(&who), who.len);
    return true;
}

/* Keys that a rank leaves behind are there; another one is not waited for in vain. */
static void answer_lost(struct comm_store_server *s)
{
    det_cleanup(buf_finish) struct buf who = BUF_INIT;
    name_gone(s, &who);
    for (size_t i = 0; who.len && i < s->peers.n; i++) {
        struct peer *p = s->peers.v[i];
        if (!p->want)
            continue;
        free(p->want);
        p->want = NULL;
        send_answer(p, COMM_STORE_LOST, who.p, who.len);
    }
}

static bool on_frame(struct comm_store_server *s, struct peer *p, uint32_t op, const char *key,
                     const void *v, size_t n)
{
    if (op == COMM_STORE_HELLO)
        return p->rank < 0 && on_hello(s, p, v, n);
    if (p->rank < 0)
        return false;
    switch (op) {
    case COMM_STORE_PUT: on_put(s, key, v, n); return true;
    case COMM_STORE_GET: on_get(s, p, key); return true;
    case COMM_STORE_DROP: return p->rank == 0 && drop_values(s, key);
    case COMM_STORE_VERDICT: return on_verdict(s, p, v, n);
    case COMM_STORE_GONE: return on_gone(s, p);
    case COMM_STORE_LEAVE: return on_leave(s, p, v, n);
    case COMM_STORE_LEFT: return on_left(s, p);
    case COMM_STORE_TROUBLE: return on_trouble(s, p, v, n);
    default: return false;
    }
}

/* Takes whole frames off p->in. */
static bool take_frames(struct comm_store_server *s, struct peer *p)
{
    struct comm_store_frame f;
    while (p->in.len >= sizeof f) {
        memcpy(&f, p->in.p, sizeof f);
        if (f.key_bytes > COMM_STORE_KEY_MAX || f.value_bytes > COMM_STORE_VALUE_MAX ||
            (p->rank < 0 && f.value_bytes > sizeof(struct comm_store_hello)))
            return false;
        size_t whole = sizeof f + f.key_bytes + f.value_bytes;
        if (p->in.len < whole)
            return true;
        char key[COMM_STORE_KEY_MAX + 1];
        memcpy(key, p->in.p + sizeof f, f.key_bytes);
        key[f.key_bytes] = 0;
        if (!on_frame(s, p, f.op, key, p->in.p + sizeof f + f.key_bytes, f.value_bytes))
            return false;
        buf_consume(&p->in, whole);
    }
    return true;
}

static bool on_readable(struct comm_store_server *s, struct peer *p)
{
    char chunk[16384];
    ssize_t k = recv(p->fd, chunk, sizeof chunk, MSG_DONTWAIT);
    if (k < 0)
        return errno == EAGAIN || errno == EINTR;
    if (k == 0)
        return false;
    buf_add(&p->in, chunk, (size_t)k);
    return take_frames(s, p);
}

static void drop_peer(struct comm_store_server *s, size_t i)
{
    struct peer *p = s->peers.v[i];
    if (p->rank >= 0)
        s->gone[p->rank] = true;
    comm_net_close(&p->fd);
    buf_finish(&p->in);
    free(p->want);
    free(p);
    vec_remove(&s->peers, i);
}

/* Connections that never say HELLO must not use up the descriptors of a training process. */
static void forget_strangers(struct comm_store_server *s)
{
    int64_t now_ms = clk_mono_ms();
    for (size_t i = s->peers.n; i-- > 0;)
        if (s->peers.v[i]->rank < 0 && now_ms - s->peers.v[i]->since_ms > STRANGER_MS)
            drop_peer(s, i);
}

static void on_connection(struct comm_store_server *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    int why = fd < 0 ? errno : 0;
    forget_strangers(s);
    if (why == EMFILE || why == ENFILE) /* it waits in the queue, and would wake us at once */
        poll(&(struct pollfd){.fd = s->stop, .events = POLLIN}, 1, NO_DESCRIPTOR_MS);
    if (fd < 0)
        return;
    if (s->peers.n >= COMM_STORE_RANKS_MAX + 64) {
        close(fd);
        return;
    }
    struct peer *p = det_zalloc(sizeof *p);
    *p = (struct peer){.fd = fd, .rank = -1, .since_ms = clk_mono_ms()};
    vec_push(&s->peers, p);
}

static int wait_ms(int64_t deadline)
{
    if (deadline == INT64_MAX)
        return -1;
    int64_t left = deadline - clk_mono_ms();
    return left < 0 ? 0 : (int)left;
}

static void *serve_peers(void *arg)
{
    struct comm_store_server *s = arg;
    VEC(struct pollfd) fds = {0};
    for (;;) {
        int64_t next = answer_due_verdicts(s), other = tell_unheard(s);
        fds.n = 0;
        vec_push(&fds, (struct pollfd){.fd = s->stop, .events = POLLIN});
        vec_push(&fds, (struct pollfd){.fd = s->listener, .events = POLLIN});
        for (size_t i = 0; i < s->peers.n; i++)
            vec_push(&fds, (struct pollfd){.fd = s->peers.v[i]->fd, .events = POLLIN});
        if (poll(fds.v, fds.n, wait_ms(next < other ? next : other)) < 0 && errno != EINTR)
            break;
        if (fds.v[0].revents)
            break;
        for (size_t i = fds.n - 2; i-- > 0;) /* backwards: drop_peer() moves what follows */
            if (fds.v[i + 2].revents && !on_readable(s, s->peers.v[i]))
                drop_peer(s, i);
        answer_lost(s);
        if (fds.v[1].revents)
            on_connection(s);
    }
    last_words(s);
    vec_free(&fds);
    return NULL;
}

static void server_destroy(struct comm_store_server *s)
{
    while (s->peers.n)
        drop_peer(s, s->peers.n - 1);
    vec_free(&s->peers);
    const char *key;
    void *v;
    for (size_t it = 0; map_next(s->values, &it, &key, &v);)
        free_value(v);
    map_destroy(s->values);
    comm_net_close(&s->listener);
    det_closep(&s->stop);
    buf_finish(&s->verdict);
    buf_finish(&s->reason);
    buf_finish(&s->trouble);
    free(s->seen);
    free(s->gone);
    free(s->failed);
    free(s);
}

int comm_store_serve(const struct comm_store_options *o, struct comm_store_server **ret,
                     struct det_err *err)
{
    int fd = comm_net_listen(o->host, o->port, err);
    if (fd < 0)
        return fd;
    struct comm_store_server *s = det_zalloc(sizeof *s);
    s->listener = fd;
    s->stop = eventfd(0, EFD_CLOEXEC);
    int rc = s->stop < 0 ? errno : 0;
    s->size = o->size;
    s->patience_ms = o->unheard_ms > 0 ? o->unheard_ms : UNHEARD_MS;
    s->on_unheard = o->on_unheard;
    s->arg = o->arg;
    const char *secret = o->secret ? o->secret : "";
    hash_bytes(HASH_SHA256, secret, strlen(secret), s->secret);
    s->values = map_create();
    s->seen = det_zalloc((size_t)o->size);
    s->gone = det_zalloc((size_t)o->size);
    s->failed = det_zalloc((size_t)o->size);
    if (rc == 0)
        rc = thread_start(&s->thread, NULL, serve_peers, s);
    if (rc) {
        server_destroy(s);
        return det_fail_errno(err, DET_EIO, rc, "rendezvous thread");
    }
    *ret = s;
    return 0;
}

void comm_store_server_stop(struct comm_store_server *s)
{
    if (!s)
        return;
    uint64_t one = 1;
    if (write(s->stop, &one, sizeof one) == sizeof one)
        pthread_join(s->thread, NULL);
    server_destroy(s);
}
