#include "slow.h"

#include "mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* NICE: after all others, and yet a tenth of what a trial on the same host gets: people wait for
 * it. HEAP_LOOK_BYTES: more than its 64 KB, less than what is mapped by itself (main.c). */
enum { NICE = 10, THREADS_MAX = 4, HEAP_LOOK_BYTES = 128 << 10 };

struct slow {
    uv_loop_t *loop;
    struct slow_job *first;
    size_t waiting, running, running_max, waiting_max;
    bool is_ended;
    void (*on_drained)(void *arg); /* NULL: not asked to */
    void *arg;
};

struct slow *slow_create(uv_loop_t *loop, size_t running_max, size_t waiting_max)
{
    struct slow *q = det_zalloc(sizeof *q);
    q->loop = loop;
    q->running_max = running_max;
    q->waiting_max = waiting_max;
    return q;
}

static void free_when_over(struct slow *q)
{
    if (q->is_ended && !q->running && !q->waiting)
        free(q);
}

void slow_destroy(struct slow *q)
{
    if (!q)
        return;
    q->is_ended = true;
    free_when_over(q);
}

size_t slow_threads(void)
{
    size_t half = uv_available_parallelism() / 2;
    return half < 1 ? 1 : half > THREADS_MAX ? THREADS_MAX : half;
}

static void start_next(struct slow *q);

/* The end of this thread's part of the heap goes back to the system. glibc's malloc_trim() leaves
 * it, and it may be 64 MB: only a free of so many bytes in the thread itself lets it look. */
static void give_back_heap(void)
{
    void *volatile p = det_alloc(HEAP_LOOK_BYTES);
    free(p);
}

static void on_work(void *arg)
{
    struct slow_job *j = arg;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* of this thread alone, on Linux */
    j->work(j);
    give_back_heap();
    uv_async_send(&j->async);
}

static void on_closed(uv_handle_t *h)
{
    struct slow_job *j = h->data;
    struct slow *q = j->queue;
    q->running--;
    start_next(q);
    j->done(j, j->status);
    if (q->on_drained && !q->running)
        q->on_drained(q->arg); /* may be the end of q */
    else
        free_when_over(q);
}

static void on_async(uv_async_t *a)
{
    struct slow_job *j = a->data;
    uv_thread_join(&j->thread);
    uv_close((uv_handle_t *)a, on_closed);
}

static void start_next(struct slow *q)
{
    struct slow_job *j = q->first;
    if (q->running >= q->running_max || !j)
        return;
    q->first = j->next;
    q->waiting--;
    q->running++;
    uv_async_init(q->loop, &j->async, on_async); /* keeps the loop until it is done */
    j->async.data = j;
    j->status = uv_thread_create(&j->thread, on_work, j);
    if (j->status < 0)
        uv_close((uv_handle_t *)&j->async, on_closed);
}

int slow_push(struct slow *q, struct slow_job *j)
{
    struct slow_job **end = &q->first;
    if (q->waiting >= q->waiting_max || q->on_drained)
        return DET_EUNAVAIL;
    while (*end)
        end = &(*end)->next;
    j->queue = q;
    j->next = NULL;
    *end = j;
    q->waiting++;
    start_next(q);
    return 0;
}

int slow_push_first(struct slow *q, struct slow_job *j)
{
    if (q->on_drained)
        return DET_EUNAVAIL;
    j->queue = q;
    j->next = q->first;
    q->first = j;
    q->waiting++;
    start_next(q);
    return 0;
}

static void on_work_now(uv_work_t *w)
{
    struct slow_job *j = container_of(w, struct slow_job, now);
    j->work(j);
}

static void on_done_now(uv_work_t *w, int status)
{
    struct slow_job *j = container_of(w, struct slow_job, now);
    assert(status == 0); /* nobody cancels it */
    j->done(j, status);
}

void slow_do_now(uv_loop_t *loop, struct slow_job *j)
{
    int rc = uv_queue_work(loop, &j->now, on_work_now, on_done_now);
    assert(rc == 0); /* it refuses only what has nothing to do */
    (void)rc;
}

void slow_drain(struct slow *q, void (*cb)(void *arg), void *arg)
{
    q->on_drained = cb;
    q->arg = arg;
    while (q->first) {
        struct slow_job *j = q->first;
        q->first = j->next;
        q->waiting--;
        j->done(j, UV_ECANCELED);
    }
    if (!q->running)
        cb(arg);
}
