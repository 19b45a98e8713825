#include "data_prefetch.h"

#include "batch.h"
#include "mem.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>

/* slots[k % n] holds batch k. The reader holds batch `taken - 1`; the thread fills batch `made`
 * while made < taken - 1 + n, so never the slot that the reader holds. */
struct slot {
    struct det_batch *batch;
    int rc; /* 0, or why this batch is not there */
    struct det_err err;
};

struct prefetch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool running, stop;
    struct data_order order;
    int64_t made, taken; /* batches so far; taken - 1 is in use */
    int n;
    struct slot slots[PREFETCH_MAX + 1];
};

static int fill_slot(struct prefetch *p, int64_t k, struct slot *s)
{
    const int64_t *records;
    size_t n;
    if (!p->order.records(p->order.arg, k, &records, &n))
        return det_fail(&s->err, DET_ENOENT, "data loader: no batch after the %lld.",
                        (long long)k);
    return batch_fill(s->batch, records, n, &s->err);
}

static bool may_fill(const struct prefetch *p)
{
    int64_t held = p->taken > 0 ? p->taken - 1 : 0;
    return p->made < held + p->n;
}

static void *fill_thread(void *arg)
{
    struct prefetch *p = arg;
    pthread_mutex_lock(&p->lock);
    for (bool last = false; !last;) {
        while (!p->stop && !may_fill(p))
            pthread_cond_wait(&p->changed, &p->lock);
        if (p->stop)
            break;
        int64_t k = p->made;
        struct slot *s = &p->slots[k % p->n];
        pthread_mutex_unlock(&p->lock);
        s->rc = fill_slot(p, k, s);
        last = s->rc < 0;
        pthread_mutex_lock(&p->lock);
        p->made++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals are the main thread's business. */
static int start_thread(struct prefetch *p, struct det_err *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&p->thread, NULL, fill_thread, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return det_fail(err, DET_ENOMEM, "data loader: start a thread: %s", strerror(rc));
    p->running = true;
    return 0;
}

int prefetch_create(const struct det_dataset *ds, int64_t capacity, int depth,
                    struct data_order order, struct prefetch **ret, struct det_err *err)
{
    struct prefetch *p = det_zalloc(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->order = order;
    p->n = depth + 1;
    int rc = 0;
    for (int i = 0; rc == 0 && i < p->n; i++)
        if (!(p->slots[i].batch = batch_create(ds, capacity, err)))
            rc = DET_ENOMEM;
    if (rc == 0)
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
    while (p->made <= p->taken)
        pthread_cond_wait(&p->changed, &p->lock);
    struct slot *s = &p->slots[p->taken % p->n];
    int rc = s->rc;
    if (rc == 0)
        p->taken++; /* a failed batch stays the next one: asking again says the same */
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (rc < 0)
        return det_fail(err, rc, "%s", s->err.text);
    *ret = s->batch;
    return 0;
}

void prefetch_destroy(struct prefetch *p)
{
    if (!p)
        return;
    if (p->running) {
        pthread_mutex_lock(&p->lock);
        p->stop = true;
        pthread_cond_broadcast(&p->changed);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (int i = 0; i < p->n; i++)
        batch_destroy(p->slots[i].batch);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
