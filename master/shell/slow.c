/* Work on passwords takes 25 ms of a processor and 19 MiB: one at a time, in a thread of its own
 * that comes after all others, so that everybody else's requests neither wait for it nor for a
 * thread of libuv's, however many log in. */
#include "auth_private.h"
#include "mem.h"
#include "shell.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WAITING_MAX = 200, NICE = 10 };

static void start_next(struct auth_queue *q);

static void on_work(void *arg)
{
    struct auth_job *j = arg;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* of this thread alone, on Linux */
    j->work(j);
    uv_async_send(&j->async);
}

static void on_closed(uv_handle_t *h)
{
    struct auth_job *j = h->data;
    struct auth_queue *q = j->queue;
    q->busy = false;
    start_next(q);
    j->done(j, j->status);
}

static void on_async(uv_async_t *a)
{
    struct auth_job *j = a->data;
    uv_thread_join(&j->thread);
    uv_close((uv_handle_t *)a, on_closed);
}

static void start_next(struct auth_queue *q)
{
    struct auth_job *j = q->first;
    if (q->busy || !j)
        return;
    q->first = j->next;
    q->waiting--;
    q->busy = true;
    uv_async_init(q->loop, &j->async, on_async); /* keeps the loop until it is done */
    j->async.data = j;
    j->status = uv_thread_create(&j->thread, on_work, j);
    if (j->status < 0)
        uv_close((uv_handle_t *)&j->async, on_closed);
}

int auth_work(struct auth_queue *q, struct auth_job *j, struct det_err *err)
{
    struct auth_job **end = &q->first;
    if (q->waiting >= WAITING_MAX)
        return det_fail(err, DET_EUNAVAIL, "too many people log in at once; try again");
    while (*end)
        end = &(*end)->next;
    j->queue = q;
    j->next = NULL;
    *end = j;
    q->waiting++;
    start_next(q);
    return 0;
}
