#include "span.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

atomic_int span_listeners, span_waiters;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct span_listener *first;

void span_listen(struct span_listener *l)
{
    pthread_mutex_lock(&lock);
    l->next = first;
    first = l;
    atomic_fetch_add(&span_listeners, 1);
    atomic_fetch_add(&span_waiters, l->waits);
    pthread_mutex_unlock(&lock);
}

void span_unlisten(struct span_listener *l)
{
    pthread_mutex_lock(&lock);
    for (struct span_listener **at = &first; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next;
            atomic_fetch_sub(&span_listeners, 1);
            atomic_fetch_sub(&span_waiters, l->waits);
            break;
        }
    pthread_mutex_unlock(&lock);
}

int64_t span_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int own_tid(void)
{
    static _Thread_local int tid;
    if (tid == 0)
        tid = (int)syscall(SYS_gettid);
    return tid;
}

void span_tell(enum span_cat cat, const char *name, const char *detail, int64_t start_ns)
{
    const struct span s = {cat, name, detail, start_ns, span_now_ns(), own_tid()};
    pthread_mutex_lock(&lock);
    for (struct span_listener *l = first; l; l = l->next)
        l->on_span(l, &s);
    pthread_mutex_unlock(&lock);
}

void span_count(const char *name, int64_t value)
{
    int64_t now = span_now_ns();
    pthread_mutex_lock(&lock);
    for (struct span_listener *l = first; l; l = l->next)
        if (l->on_count)
            l->on_count(l, name, value, now);
    pthread_mutex_unlock(&lock);
}
