#include "comm.h"

#include "comm_impl.h"
#include "comm_store.h"
#include "mem.h"
#include "span.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_MAX  (UINT64_C(1) << 31) /* one rank's block in an allgather */
#define VERDICT_MS 700
#define TIMEOUT_MS (30 * 60 * 1000)

struct comm {
    pid_t owner; /* the process that joined: a forked copy of this must not end the group */
    int rank, size;
    int timeout_ms, default_timeout_ms;
    const struct comm_transport *transport; /* NULL: one rank */
    void *self;
    struct comm_store *store;
    struct comm_store_server *server; /* rank 0 */
    uint32_t op;
    struct det_err dead; /* code != 0: what killed it */
};

int comm_rank(const struct comm *c)
{
    return c->rank;
}

int comm_size(const struct comm *c)
{
    return c->size;
}

void comm_set_timeout(struct comm *c, int timeout_ms)
{
    c->timeout_ms = timeout_ms > 0 ? timeout_ms : c->default_timeout_ms;
}

int comm_timeout_ms(const struct comm *c)
{
    return c->timeout_ms;
}

/* The address that peers can reach this host at: told, or this end of the connection to rank 0. */
static int connect_ranks(struct comm *c, const struct comm_options *o, int join_ms,
                         struct det_err *err)
{
    char found[128];
    const char *address = o->bind_host;
    struct comm_store_options so = {.host = o->chief_host ? o->chief_host : "127.0.0.1",
                                    .port = o->port,
                                    .rank = o->rank,
                                    .size = o->size,
                                    .secret = o->secret,
                                    .timeout_ms = join_ms,
                                    .on_unheard = o->on_unheard,
                                    .arg = o->arg,
                                    .unheard_ms = o->unheard_ms};
    int rc = 0;
    if (o->rank == 0)
        rc = comm_store_serve(&so, &c->server, err);
    if (rc == 0)
        rc = comm_store_connect(&so, &c->store, err);
    if (rc == 0 && !address) {
        rc = comm_store_local_address(c->store, found, sizeof found, err);
        address = found;
    }
    if (rc < 0)
        return rc;
    return comm_gloo_open(o->rank, o->size, address, c->store, join_ms, &c->transport, &c->self,
                          err);
}

int comm_open(const struct comm_options *o, struct comm **ret, struct det_err *err)
{
    if (o->size < 1 || o->size > COMM_STORE_RANKS_MAX || o->rank < 0 || o->rank >= o->size)
        return det_fail(err, DET_EINVAL, "rank %d of %d", o->rank, o->size);
    struct comm *c = det_zalloc(sizeof *c);
    c->owner = getpid();
    c->rank = o->rank;
    c->size = o->size;
    c->timeout_ms = c->default_timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : TIMEOUT_MS;
    int join_ms = o->join_timeout_ms > 0 ? o->join_timeout_ms : 60000;
    int rc = o->size > 1 ? connect_ranks(c, o, join_ms, err) : 0;
    if (rc < 0) {
        comm_close(c);
        return det_wrap(err, rc, "rank %d of %d: joining", o->rank, o->size);
    }
    *ret = c;
    return 0;
}

static void hang_up(struct comm *c)
{
    if (c->self)
        c->transport->destroy(c->self);
    c->self = NULL;
}

void comm_close(struct comm *c)
{
    if (!c || c->owner != getpid())
        return;
    hang_up(c);
    comm_store_close(c->store);
    comm_store_server_stop(c->server);
    free(c);
}

int comm_leave(struct comm *c, const char *why, struct det_err *err)
{
    if (!c->transport)
        return 0;
    int rc = comm_store_leave(c->store, why, err); /* first: peers ask once we have hung up */
    hang_up(c);
    det_fail(&c->dead, DET_EPEER, "rank %d has left", c->rank);
    return rc;
}

bool comm_left(struct comm *c, struct buf *out)
{
    return c->transport && comm_store_left(c->store, out);
}

/* After a failure: adds who is lost, and keeps the error for every later call. */
static int tell_lost(struct comm *c, int rc, const char *what, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf who = BUF_INIT;
    struct det_err e = {.code = rc};
    if (err)
        e = *err;
    comm_store_verdict(c->store, VERDICT_MS, &who);
    c->dead.code = rc;
    det_fail(&c->dead, rc, "rank %d: %s: %s%s%s", c->rank, what, who.len ? buf_str(&who) : "",
             who.len ? ": " : "", e.text);
    if (err)
        *err = c->dead;
    return rc;
}

static int check_alive(struct comm *c, struct det_err *err)
{
    if (!c->dead.code)
        return 0;
    if (err)
        *err = c->dead;
    return c->dead.code;
}

static int end_collective(struct comm *c, int rc, const char *what, struct det_err *err)
{
    return rc < 0 ? tell_lost(c, rc, what, err) : 0;
}

int comm_check(struct comm *c, struct det_err *err)
{
    struct det_err local;
    err = err ? err : &local;
    int rc = c->transport ? check_alive(c, err) : 0;
    if (rc < 0 || !c->transport || !comm_store_stirs(c->store))
        return rc;
    det_fail(err, DET_EPEER, "noticed between two collectives");
    return tell_lost(c, DET_EPEER, "rendezvous", err);
}

int comm_watch(struct comm *c, int timeout_ms, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf who = BUF_INIT;
    struct det_err local;
    err = err ? err : &local;
    int rc = comm_check(c, err);
    if (rc < 0 || !c->transport)
        return rc;
    rc = comm_store_gone(c->store, timeout_ms, &who, err);
    const char *trouble = comm_store_trouble(c->store);
    if (rc == 0 && who.len == 0)
        return trouble ? det_fail(err, DET_EPEER, "%s", trouble) : 0;
    det_fail(err, DET_EPEER, "%s", trouble ? trouble : "noticed while the device waited");
    return tell_lost(c, DET_EPEER, "a collective of devices", err);
}

void comm_tell(struct comm *c, const char *what)
{
    if (c->transport)
        comm_store_tell(c->store, what);
}

#define ALLREDUCE_MEAN(name, type)                                                                 \
    int comm_allreduce_mean_##name(struct comm *c, type *v, size_t n, struct det_err *err)         \
    {                                                                                              \
        if (!c->transport || n == 0)                                                               \
            return 0;                                                                              \
        SPAN(SPAN_COMM, "allreduce");                                                              \
        struct det_err local;                                                                      \
        err = err ? err : &local;                                                                  \
        int rc = check_alive(c, err);                                                              \
        if (rc < 0)                                                                                \
            return rc;                                                                             \
        rc = c->transport->allreduce_sum_##name(c->self, v, n, c->op++, c->timeout_ms, err);       \
        if (rc < 0)                                                                                \
            return tell_lost(c, rc, "gradient mean", err);                                         \
        type scale = (type)1 / (type)c->size;                                                      \
        for (size_t i = 0; i < n; i++)                                                             \
            v[i] *= scale;                                                                         \
        return 0;                                                                                  \
    }
ALLREDUCE_MEAN(f32, float)
ALLREDUCE_MEAN(f64, double)

int comm_broadcast(struct comm *c, void *p, size_t n, int root, struct det_err *err)
{
    if (!c->transport || n == 0)
        return 0;
    SPAN(SPAN_COMM, "broadcast");
    struct det_err local;
    err = err ? err : &local;
    int rc = check_alive(c, err);
    if (rc < 0)
        return rc;
    rc = c->transport->broadcast(c->self, p, n, root, c->op++, c->timeout_ms, err);
    return end_collective(c, rc, "broadcast", err);
}

int comm_barrier(struct comm *c, struct det_err *err)
{
    if (!c->transport)
        return 0;
    SPAN(SPAN_COMM, "barrier");
    struct det_err local;
    err = err ? err : &local;
    int rc = check_alive(c, err);
    if (rc < 0)
        return rc;
    return end_collective(c, c->transport->barrier(c->self, c->op++, c->timeout_ms, err), "barrier",
                          err);
}

/* Every rank's length to all; the sum in *ret_total. */
static int gather_lengths(struct comm *c, size_t n, size_t *lengths, size_t *ret_total,
                          struct det_err *err)
{
    det_cleanup(freep) size_t *eights = det_alloc((size_t)c->size * sizeof *eights);
    for (int r = 0; r < c->size; r++)
        eights[r] = sizeof(size_t);
    lengths[c->rank] = n;
    int rc = c->transport->allgatherv(c->self, lengths, eights, c->op++, c->timeout_ms, err);
    if (rc < 0)
        return rc;
    *ret_total = 0;
    for (int r = 0; r < c->size; r++) {
        if (lengths[r] > BLOCK_MAX)
            return det_fail(err, DET_ETOOBIG, "rank %d sends %zu bytes", r, lengths[r]);
        *ret_total += lengths[r];
    }
    return 0;
}

static void blobs_init(struct comm_blobs *b, int n)
{
    *b = (struct comm_blobs){.n = n};
    b->v = det_zalloc((size_t)n * sizeof *b->v);
    b->bytes = det_zalloc((size_t)n * sizeof *b->bytes);
}

void comm_blobs_finish(struct comm_blobs *b)
{
    free(b->memory);
    free(b->v);
    free(b->bytes);
    *b = (struct comm_blobs){0};
}

static int blobs_place(struct comm_blobs *b, size_t total, struct det_err *err)
{
    b->memory = det_try_alloc(total + 1);
    if (!b->memory)
        return det_fail(err, DET_ENOMEM, "allgather of %zu bytes", total);
    char *at = b->memory;
    for (int r = 0; r < b->n; r++) {
        b->v[r] = at;
        at += b->bytes[r];
    }
    return 0;
}

/* Two steps, since lengths differ: lengths, then the blocks. */
static int gather_blobs(struct comm *c, const void *p, size_t n, struct comm_blobs *b,
                        struct det_err *err)
{
    size_t total = n;
    int rc = 0;
    b->bytes[c->rank] = n;
    if (c->transport)
        rc = gather_lengths(c, n, b->bytes, &total, err);
    if (rc == 0)
        rc = blobs_place(b, total, err);
    if (rc < 0)
        return rc;
    if (n)
        memcpy((char *)b->memory + ((const char *)b->v[c->rank] - (const char *)b->memory), p, n);
    if (c->transport && total)
        rc = c->transport->allgatherv(c->self, b->memory, b->bytes, c->op++, c->timeout_ms, err);
    return rc;
}

int comm_allgather(struct comm *c, const void *p, size_t n, struct comm_blobs *ret,
                   struct det_err *err)
{
    SPAN(SPAN_COMM, "allgather");
    struct det_err local;
    err = err ? err : &local;
    int rc = check_alive(c, err);
    if (rc < 0)
        return rc;
    blobs_init(ret, c->size);
    rc = gather_blobs(c, p, n, ret, err);
    if (rc == 0)
        return 0;
    comm_blobs_finish(ret);
    return c->transport ? tell_lost(c, rc, "allgather", err) : rc;
}

int comm_broadcast_bytes(struct comm *c, const void *p, size_t n, void **ret, size_t *ret_n,
                         struct det_err *err)
{
    uint64_t bytes = n;
    int rc = comm_broadcast(c, &bytes, sizeof bytes, 0, err);
    if (rc < 0)
        return rc;
    if (bytes > BLOCK_MAX)
        return det_fail(err, DET_ETOOBIG, "broadcast of %llu bytes", (unsigned long long)bytes);
    det_cleanup(freep) char *copy = det_try_alloc(bytes + 1);
    if (!copy)
        return det_fail(err, DET_ENOMEM, "broadcast of %llu bytes", (unsigned long long)bytes);
    if (c->rank == 0 && n)
        memcpy(copy, p, n);
    copy[bytes] = 0;
    rc = comm_broadcast(c, copy, bytes, 0, err);
    if (rc < 0)
        return rc;
    *ret_n = bytes;
    *ret = det_take(copy);
    return 0;
}
