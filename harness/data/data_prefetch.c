#include "data_prefetch.h"

#include "batch.h"
#include "mem.h"
#include "thread.h"
#include <pthread.h>
#include <string.h>

/*
 * slots[k % n] holds batch k. The reader holds batch `taken - 1`. A worker claims the next batch
 * while claimed < taken - 1 + n, so never the slot that the reader holds; it asks for the batch's
 * records under the lock, in the order of batches, and fills the slot without it. Past a batch that
 * failed, `failed`, none is claimed.
 */
struct slot {
    struct det_batch *batch;
    int64_t *records; /* capacity of them: the batch's own copy */
    size_t capacity;
    int64_t done; /* the batch that is in it, complete; -1: none */
    int rc;       /* 0, or why this batch is not there */
    struct det_err err;
};

struct prefetch {
    pthread_mutex_t lock;
    pthread_cond_t filled, room; /* what the reader and what the workers wait for */
    pthread_t threads[WORKERS_MAX];
    int n_threads;
    bool stop;
    struct data_order order;
    int64_t claimed, taken, failed;
    int n;
    struct slot *slots;
};

/* The records of batch k, copied: the order's own are good until the next batch is asked for. */
static int pick_records(struct prefetch *p, int64_t k, struct slot *s, struct data_pick *ret)
{
    int rc = p->order.pick(p->order.arg, k, ret, &s->err);
    if (rc < 0)
        return rc;
    if (ret->n > s->capacity) {
        free(s->records);
        s->records = det_try_alloc(sizeof *s->records * ret->n);
        s->capacity = s->records ? ret->n : 0;
        if (!s->records)
            return det_fail(&s->err, DET_ENOMEM, "batch: the order of %zu records", ret->n);
    }
    memcpy(s->records, ret->records, sizeof *s->records * ret->n);
    ret->records = s->records;
    return 0;
}

static bool may_claim(const struct prefetch *p)
{
    int64_t held = p->taken > 0 ? p->taken - 1 : 0;
    return p->claimed < held + p->n && p->claimed < p->failed;
}

/* The lock is held on entry and on return. */
static void fill_next(struct prefetch *p)
{
    int64_t k = p->claimed++;
    struct slot *s = &p->slots[k % p->n];
    struct data_pick pick;
    s->rc = pick_records(p, k, s, &pick);
    if (s->rc == 0) {
        pthread_mutex_unlock(&p->lock);
        s->rc = batch_fill(s->batch, &pick, p->order.seed, &s->err);
        pthread_mutex_lock(&p->lock);
    }
    if (s->rc < 0 && k < p->failed)
        p->failed = k;
    s->done = k;
    if (k == p->taken) /* a later one is of no use yet: each needless wake costs a switch or two */
        pthread_cond_signal(&p->filled);
}

static void *read_batches(void *arg)
{
    struct prefetch *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (may_claim(p))
            fill_next(p);
        else
            pthread_cond_wait(&p->room, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int start_thread(struct prefetch *p, struct det_err *err)
{
    int rc = thread_start(&p->threads[p->n_threads], NULL, read_batches, p);
    if (rc != 0)
        return det_fail_errno(err, DET_ENOMEM, rc, "data loader: start a thread");
    p->n_threads++;
    return 0;
}

int prefetch_create(const struct det_dataset *ds, int64_t capacity,
                    const struct det_loader_options *options, struct data_order order,
                    struct prefetch **ret, struct det_err *err)
{
    struct prefetch *p = det_zalloc(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->filled, NULL);
    pthread_cond_init(&p->room, NULL);
    p->order = order;
    p->failed = INT64_MAX;
    p->n = options->prefetch + 1;
    p->slots = det_zalloc(sizeof *p->slots * (size_t)p->n);
    int rc = 0;
    for (int i = 0; rc == 0 && i < p->n; i++) {
        p->slots[i].done = -1;
        if (!(p->slots[i].batch = batch_create(ds, capacity, options, err)))
            rc = DET_ENOMEM;
    }
    for (int i = 0; rc == 0 && i < options->workers; i++)
        rc = start_thread(p, err);
    if (rc < 0) {
        prefetch_destroy(p);
        return rc;
    }
    *ret = p;
    return 0;
}

int prefetch_next(struct prefetch *p, const struct det_batch **ret, struct det_err *err)
{
    pthread_mutex_lock(&p->lock);
    struct slot *s = &p->slots[p->taken % p->n];
    while (s->done != p->taken)
        pthread_cond_wait(&p->filled, &p->lock);
    int rc = s->rc;
    if (rc == 0) {
        p->taken++; /* a failed batch stays the next one: asking again says the same */
        pthread_cond_signal(&p->room);
    }
    pthread_mutex_unlock(&p->lock);
    if (rc < 0)
        return det_fail_as(err, rc, &s->err);
    *ret = s->batch;
    return 0;
}

void prefetch_destroy(struct prefetch *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->room);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n && p->slots[i].batch; i++)
        batch_cancel(p->slots[i].batch);
    for (int i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    for (int i = 0; i < p->n; i++) {
        batch_destroy(p->slots[i].batch);
        free(p->slots[i].records);
    }
    free(p->slots);
    pthread_cond_destroy(&p->filled);
    pthread_cond_destroy(&p->room);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
