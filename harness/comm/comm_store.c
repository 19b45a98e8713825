#include "comm_store.h"

#include "clk.h"
#include "comm_net.h"
#include "mem.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REASON_MS 5000 /* the server's thread answers at once, or its process is stopped */

struct comm_store {
    int fd;        /* -1: broken */
    char *reason;  /* why a rank has left; NULL: none has as far as known */
    char *trouble; /* what a rank could not do; NULL: nothing was told */
    char server[128];
    bool is_lost; /* what was asked for last may never come: a rank is gone */
};

static int send_frame(struct comm_store *s, enum comm_store_op op, const char *key, const void *p,
                      size_t n, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    comm_net_frame(&b, op, key, p, n);
    int rc = comm_net_send(s->fd, b.p, b.len, err);
    return rc < 0 ? det_wrap(err, rc, "rendezvous at %s", s->server) : 0;
}

static bool is_answer(uint32_t op)
{
    return op == COMM_STORE_VALUE || op == COMM_STORE_REASON || op == COMM_STORE_LOST ||
           op == COMM_STORE_TROUBLE;
}

/* Receives a frame whole before the deadline; its value, NUL-terminated, is malloc'ed. */
static int recv_frame(struct comm_store *s, int64_t deadline_ms, struct comm_store_frame *f,
                      char **ret, struct det_err *err)
{
    int rc = comm_net_recv(s->fd, f, sizeof *f, deadline_ms, err);
    if (rc < 0)
        return det_wrap(err, rc, "rendezvous at %s", s->server);
    if (!is_answer(f->op) || f->key_bytes || f->value_bytes > COMM_STORE_VALUE_MAX)
        return det_fail(err, DET_ECORRUPT, "rendezvous at %s: not an answer of a rank", s->server);
    det_cleanup(freep) char *p = det_alloc(f->value_bytes + 1);
    rc = comm_net_recv(s->fd, p, f->value_bytes, deadline_ms, err);
    if (rc < 0)
        return det_wrap(err, rc, "rendezvous at %s", s->server);
    p[f->value_bytes] = 0;
    *ret = det_take(p);
    return 0;
}

static void keep_reason(struct comm_store *s, char *text)
{
    if (!*text)
        return;
    free(s->reason);
    s->reason = det_strdup(text);
}

/* The next answer of the kind that was asked for: reasons, and rank 0's last words, which may be of
 * both kinds, come unasked. *ret is malloc'ed. */
static int recv_answer(struct comm_store *s, enum comm_store_op op, int64_t deadline_ms, void **ret,
                       size_t *ret_n, struct det_err *err)
{
    s->is_lost = false;
    for (;;) {
        struct comm_store_frame f;
        det_cleanup(freep) char *value = NULL;
        int rc = recv_frame(s, deadline_ms, &f, &value, err);
        if (rc < 0)
            return rc;
        if (f.op == COMM_STORE_REASON)
            keep_reason(s, value);
        if (f.op == COMM_STORE_TROUBLE && !s->trouble)
            s->trouble = det_take(value);
        s->is_lost = f.op == COMM_STORE_LOST;
        if (s->is_lost)
            return det_fail(err, DET_EPEER, "%s", *value ? value : "a rank is gone");
        if (f.op != op)
            continue;
        *ret_n = f.value_bytes;
        *ret = det_take(value);
        return 0;
    }
}

/* A half-read answer leaves the stream out of step, so any failure ends the connection. */
static int mark_broken(struct comm_store *s, int rc)
{
    comm_net_close(&s->fd);
    s->fd = -1;
    s->is_lost = false;
    return rc;
}

/* DET_EPEER: this is not the group to join, or it ended just now; another may open. */
static int say_hello(struct comm_store *s, const struct comm_store_options *o, int64_t deadline_ms,
                     struct det_err *err)
{
    struct comm_store_hello h = {.rank = (uint32_t)o->rank};
    const char *secret = o->secret ? o->secret : "";
    hash_bytes(HASH_SHA256, secret, strlen(secret), h.secret);
    int rc = send_frame(s, COMM_STORE_HELLO, "", &h, sizeof h, err);
    if (rc < 0)
        return rc;
    det_cleanup(freep) void *answer = NULL;
    size_t n;
    rc = recv_answer(s, COMM_STORE_VALUE, deadline_ms, &answer, &n, err);
    if (rc < 0 || n == 0)
        return rc;
    if (strcmp(answer, COMM_STORE_LATER) == 0)
        return det_fail(err, DET_EPEER, "rendezvous at %s: rank %d has left this group", s->server,
                        o->rank);
    return det_fail(err, DET_EPERM,
                    "rendezvous at %s: rank %d was refused (another run's secret, or the rank is "
                    "there already)",
                    s->server, o->rank);
}

static int dial_until(const struct comm_store_options *o, int64_t deadline_ms, struct det_err *err)
{
    for (;;) {
        int fd = comm_net_dial(o->host, o->port, deadline_ms, err);
        if (fd >= 0)
            return fd;
        if (clk_mono_ms() + 20 >= deadline_ms)
            return det_wrap(err, DET_ETIMEOUT, "rank 0 did not open %s:%d within %d ms", o->host,
                            o->port, o->timeout_ms);
        poll(NULL, 0, 10); /* refused: rank 0 is not there yet */
    }
}

static int join_once(const struct comm_store_options *o, int64_t deadline_ms,
                     struct comm_store **ret, struct det_err *err)
{
    int fd = dial_until(o, deadline_ms, err);
    if (fd < 0)
        return fd;
    struct comm_store *s = det_zalloc(sizeof *s);
    s->fd = fd;
    snprintf(s->server, sizeof s->server, "%.100s:%d", o->host, o->port);
    int rc = say_hello(s, o, deadline_ms, err);
    if (rc < 0) {
        comm_store_close(s);
        return rc;
    }
    *ret = s;
    return 0;
}

int comm_store_connect(const struct comm_store_options *o, struct comm_store **ret,
                       struct det_err *err)
{
    int64_t deadline_ms = clk_mono_ms() + o->timeout_ms;
    for (;;) {
        int rc = join_once(o, deadline_ms, ret, err);
        if (rc != DET_EPEER || clk_mono_ms() + 20 >= deadline_ms)
            return rc;
        poll(NULL, 0, 10); /* groups follow each other at one port; rank 0 is a step behind */
    }
}

void comm_store_close(struct comm_store *s)
{
    if (!s)
        return;
    comm_net_close(&s->fd);
    free(s->reason);
    free(s->trouble);
    free(s);
}

int comm_store_put(struct comm_store *s, const char *key, const void *p, size_t n,
                   struct det_err *err)
{
    if (s->fd < 0)
        return det_fail(err, DET_EPEER, "the connection to rank 0 is gone");
    if (strlen(key) > COMM_STORE_KEY_MAX || n > COMM_STORE_VALUE_MAX)
        return det_fail(err, DET_ETOOBIG, "rendezvous key %.40s: %zu bytes", key, n);
    int rc = send_frame(s, COMM_STORE_PUT, key, p, n, err);
    return rc < 0 ? mark_broken(s, rc) : 0;
}

int comm_store_drop(struct comm_store *s, const char *prefix, struct det_err *err)
{
    if (s->fd < 0)
        return det_fail(err, DET_EPEER, "the connection to rank 0 is gone");
    int rc = send_frame(s, COMM_STORE_DROP, prefix, NULL, 0, err);
    return rc < 0 ? mark_broken(s, rc) : 0;
}

int comm_store_take(struct comm_store *s, const char *key, int timeout_ms, void **ret,
                    size_t *ret_n, struct det_err *err)
{
    if (s->fd < 0)
        return det_fail(err, DET_EPEER, "the connection to rank 0 is gone");
    int rc = send_frame(s, COMM_STORE_GET, key, NULL, 0, err);
    if (rc < 0 && rc != DET_EPEER)
        return mark_broken(s, rc);
    /* where rank 0 is gone, its last words may be here already */
    rc = recv_answer(s, COMM_STORE_VALUE, clk_mono_ms() + timeout_ms, ret, ret_n, err);
    return rc < 0 && !s->is_lost ? mark_broken(s, rc) : rc;
}

bool comm_store_is_lost(const struct comm_store *s)
{
    return s->is_lost;
}

int comm_store_local_address(const struct comm_store *s, char *out, size_t cap, struct det_err *err)
{
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    if (getsockname(s->fd, (struct sockaddr *)&a, &n) < 0)
        return det_fail_errno(err, DET_EIO, errno, "getsockname");
    int rc = getnameinfo((struct sockaddr *)&a, n, out, (socklen_t)cap, NULL, 0, NI_NUMERICHOST);
    return rc ? det_fail(err, DET_EIO, "address of this host: %s", gai_strerror(rc)) : 0;
}

void comm_store_verdict(struct comm_store *s, int wait_ms, struct buf *out)
{
    uint32_t ms = (uint32_t)wait_ms;
    void *text = NULL;
    size_t n = 0;
    struct det_err last;
    int rc = DET_EPEER;
    if (s->fd >= 0) {
        det_ignore(send_frame(s, COMM_STORE_VERDICT, "", &ms, sizeof ms, NULL),
                   "if it fails, rank 0's last words may be here already");
        rc = recv_answer(s, COMM_STORE_VALUE, clk_mono_ms() + wait_ms + 1000, &text, &n, &last);
    }
    if (rc < 0) {
        buf_add_str(out, s->is_lost ? last.text : "rank 0 is gone or does not answer");
        mark_broken(s, 0);
        return;
    }
    buf_add(out, text, n);
    free(text);
}

int comm_store_gone(struct comm_store *s, int timeout_ms, struct buf *out, struct det_err *err)
{
    void *text = NULL;
    size_t n = 0;
    if (s->fd < 0)
        return det_fail(err, DET_EPEER, "the connection to rank 0 is gone");
    det_ignore(send_frame(s, COMM_STORE_GONE, "", NULL, 0, NULL),
               "if it fails, so does the answer");
    struct det_err local, *e = err ? err : &local;
    int rc = recv_answer(s, COMM_STORE_VALUE, clk_mono_ms() + timeout_ms, &text, &n, e);
    if (rc < 0 && s->is_lost) { /* rank 0's last words */
        buf_add_str(out, e->text);
        return 0;
    }
    if (rc < 0)
        return mark_broken(s, rc);
    buf_add(out, text, n);
    free(text);
    return 0;
}

static int ask_reason(struct comm_store *s, enum comm_store_op op, const char *why,
                      struct det_err *err)
{
    det_cleanup(freep) void *text = NULL;
    size_t n = 0;
    if (s->fd < 0)
        return det_fail(err, DET_EPEER, "the connection to rank 0 is gone");
    det_ignore(send_frame(s, op, "", why, strlen(why), NULL),
               "if it fails, it may have been told already");
    int rc = recv_answer(s, COMM_STORE_REASON, clk_mono_ms() + REASON_MS, &text, &n, err);
    return rc < 0 ? mark_broken(s, rc) : 0;
}

int comm_store_leave(struct comm_store *s, const char *why, struct det_err *err)
{
    return ask_reason(s, COMM_STORE_LEAVE, why, err);
}

bool comm_store_stirs(const struct comm_store *s)
{
    struct pollfd q = {.fd = s->fd, .events = POLLIN};
    return s->fd < 0 || poll(&q, 1, 0) > 0;
}

bool comm_store_left(struct comm_store *s, struct buf *out)
{
    /* also where it came unasked: rank 0 has heard */
    det_ignore(ask_reason(s, COMM_STORE_LEFT, "", NULL), "s->reason says whether one came");
    buf_add_str(out, s->reason ? s->reason : "");
    return s->reason;
}

void comm_store_tell(struct comm_store *s, const char *what)
{
    size_t n = strlen(what);
    if (s->fd >= 0)
        det_ignore(send_frame(s, COMM_STORE_TROUBLE, "", what,
                              n < COMM_STORE_TOLD_MAX ? n : COMM_STORE_TOLD_MAX, NULL),
                   "where rank 0 is gone, that is seen by all");
}

const char *comm_store_trouble(const struct comm_store *s)
{
    return s->trouble;
}
