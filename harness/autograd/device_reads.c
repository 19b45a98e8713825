#include "device_reads.h"

#include "mem.h"

#include <pthread.h>

#define ALIGN 64

struct place {
    const struct det_tensor *from; /* until it was copied */
    char *host;
    size_t at, bytes; /* in the copy */
};

struct device_reads {
    struct det_engine *e;
    VEC(struct place) places;
    size_t bytes;
    struct det_stream *stream;
    struct det_event *copied;
    pthread_mutex_t lock; /* of what follows */
    char *copy;           /* on the device; NULL: nothing is left to be fetched */
    int rc;               /* of the fetching */
    struct det_err err;
};

struct device_reads *device_reads_create(struct det_engine *e)
{
    struct device_reads *r = det_zalloc(sizeof *r);
    r->e = e;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

bool device_reads_takes(const struct device_reads *r, const struct det_tensor *t)
{
    return t->engine == r->e && !t->storage->host && t->layout == DET_LAYOUT_PLAIN;
}

void device_reads_add(struct device_reads *r, const struct det_tensor *t, void *host)
{
    size_t bytes = det_tensor_bytes(t);
    vec_push(&r->places, (struct place){t, host, r->bytes, bytes});
    r->bytes += (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static int read_now(struct device_reads *r, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->places.n; i++)
        rc = det_tensor_read(r->places.v[i].from, r->places.v[i].host, r->places.v[i].bytes, err);
    return rc;
}

/* What is queued on the reads' stream from now on comes after the copies. */
static int mark_copied(struct device_reads *r, struct det_err *err)
{
    const struct det_backend *b = r->e->backend;
    int rc = r->stream ? 0 : b->stream_create(r->e->device, &r->stream, err);
    if (rc == 0 && !r->copied)
        rc = b->event_create(r->e->device, &r->copied, err);
    if (rc == 0)
        rc = b->event_record(r->copied, r->e->stream, err);
    return rc < 0 ? rc : b->event_wait(r->stream, r->copied, err);
}

static void give_back(struct device_reads *r)
{
    if (r->copy)
        mem_pool_free(r->e->pool, r->copy, r->bytes);
    r->copy = NULL;
}

static int copy_all(struct device_reads *r, struct det_err *err)
{
    void *copy = NULL;
    int rc = mem_pool_alloc(r->e->pool, r->bytes, &copy, err);
    r->copy = copy;
    for (size_t i = 0; rc == 0 && i < r->places.n; i++) {
        const struct place *p = &r->places.v[i];
        rc = r->e->backend->copy(r->e->stream, r->copy + p->at, p->from->data, p->bytes,
                                 DET_COPY_ON_DEVICE, err);
    }
    return rc < 0 ? rc : mark_copied(r, err);
}

int device_reads_begin(struct device_reads *r, struct det_err *err)
{
    if (r->bytes == 0)
        return 0;
    /* What went wrong on the device before must not get into a file. */
    int rc = r->e->backend->stream_sync(r->e->stream, err);
    if (rc == 0)
        rc = copy_all(r, err);
    if (rc == 0) {
        r->e->reads = r;
        return 0;
    }
    give_back(r);
    return rc == DET_ENOMEM ? read_now(r, err) : rc;
}

/* Under the lock. */
static int fetch_places(struct device_reads *r, struct det_err *err)
{
    const struct det_backend *b = r->e->backend;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < r->places.n; i++) {
        const struct place *p = &r->places.v[i];
        rc = b->copy(r->stream, p->host, r->copy + p->at, p->bytes, DET_COPY_TO_HOST, err);
    }
    return rc < 0 ? rc : b->stream_sync(r->stream, err);
}

/* Once, whoever comes first; the memory is the engine's thread's to give back. */
static int fetch_once(struct device_reads *r)
{
    if (r->places.n > 0 && r->copy)
        r->rc = fetch_places(r, &r->err);
    r->places.n = 0;
    return r->rc;
}

int device_reads_fetch(struct device_reads *r, struct det_err *err)
{
    pthread_mutex_lock(&r->lock);
    int rc = fetch_once(r);
    if (rc < 0)
        det_fail_as(err, rc, &r->err);
    pthread_mutex_unlock(&r->lock);
    return rc;
}

int device_reads_await(struct det_engine *e, struct det_err *err)
{
    return e->reads ? device_reads_fetch(e->reads, err) : 0;
}

bool device_reads_yield(struct det_engine *e)
{
    struct device_reads *r = e->reads;
    if (!r)
        return false;
    pthread_mutex_lock(&r->lock);
    fetch_once(r);
    bool held = r->copy != NULL;
    give_back(r);
    pthread_mutex_unlock(&r->lock);
    return held;
}

void device_reads_destroy(struct device_reads *r)
{
    if (!r)
        return;
    give_back(r);
    if (r->stream)
        r->e->backend->stream_destroy(r->stream);
    if (r->copied)
        r->e->backend->event_destroy(r->copied);
    if (r->e->reads == r)
        r->e->reads = NULL;
    vec_free(&r->places);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
