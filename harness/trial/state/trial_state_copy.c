/*
 * The copies of a snapshot's tensors that lie in host memory: noted one by one, then made at once
 * by a few threads, each its share of all bytes. They are new threads, kept off this one's
 * processor: a sleeping thread of OpenMP's is often woken on it (a hypervisor's idle processors
 * look busy), and then the copy takes as long as with one thread.
 */
#include "thread.h"
#include "trial_state_impl.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define SHARE_MIN   ((size_t)16 << 20) /* less is not worth a thread */
#define THREADS_MAX 8                  /* memory is not faster for more */

struct share {
    const struct state_copies *copies;
    size_t from, to; /* of all bytes */
    pthread_t thread;
    bool threaded;
};

void state_copies_add(struct state_copies *s, void *to, const void *from, size_t bytes)
{
    vec_push(&s->v, (struct state_copy){to, from, bytes});
    s->bytes += bytes;
}

static size_t larger_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void *copy_share(void *arg)
{
    const struct share *s = arg;
    size_t at = 0;
    for (size_t i = 0; i < s->copies->v.n && at < s->to; i++) {
        const struct state_copy *c = &s->copies->v.v[i];
        size_t from = larger_of(s->from, at), end = at + c->bytes < s->to ? at + c->bytes : s->to;
        if (from < end)
            memcpy((char *)c->to + (from - at), (const char *)c->from + (from - at), end - from);
        at += c->bytes;
    }
    return NULL;
}

static void keep_off(pthread_attr_t *attr, int processor)
{
    cpu_set_t allowed;
    if (processor < 0 || sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return; /* more processors than the set has */
    CPU_CLR(processor, &allowed);
    if (CPU_COUNT(&allowed) > 0)
        pthread_attr_setaffinity_np(attr, sizeof allowed, &allowed);
}

/* A share without a thread is copied by this one. */
static void start_copies(struct share *s, int n)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    keep_off(&attr, sched_getcpu());
    for (int i = 0; i < n; i++)
        s[i].threaded = thread_start(&s[i].thread, &attr, copy_share, &s[i]) == 0;
    pthread_attr_destroy(&attr);
}

void state_copies_run(struct state_copies *c, int threads)
{
    struct share s[THREADS_MAX];
    size_t most = larger_of(c->bytes / SHARE_MIN, 1);
    size_t n = threads < THREADS_MAX ? (size_t)threads : THREADS_MAX;
    n = n < most ? n : most;
    for (size_t i = 0; i < n; i++)
        s[i] = (struct share){.copies = c,
                              .from = c->bytes / n * i,
                              .to = i + 1 < n ? c->bytes / n * (i + 1) : c->bytes};
    start_copies(s + 1, (int)n - 1);
    copy_share(&s[0]);
    for (size_t i = 1; i < n; i++)
        if (s[i].threaded)
            pthread_join(s[i].thread, NULL);
        else
            copy_share(&s[i]);
    c->bytes = c->v.n = 0;
}

void state_copies_finish(struct state_copies *s)
{
    vec_free(&s->v);
    *s = (struct state_copies){0};
}
