/* Work on passwords takes 25 ms of a processor: one at a time, so that libuv's other threads are
 * there for everybody else's requests however many log in. */
#include "auth_private.h"
#include "mem.h"
#include "shell.h"

#include <stdlib.h>

enum { WAITING_MAX = 200 };

static void start_next(struct auth_queue *q);

static void on_work(uv_work_t *w)
{
    struct auth_job *j = container_of(w, struct auth_job, uv);
    j->work(j);
}

static void on_done(uv_work_t *w, int status)
{
    struct auth_job *j = container_of(w, struct auth_job, uv);
    struct auth_queue *q = j->queue;
    q->busy = false;
    start_next(q);
    j->done(j, status);
}

static void start_next(struct auth_queue *q)
{
    struct auth_job *j = q->first;
    if (q->busy || !j)
        return;
    q->first = j->next;
    q->waiting--;
    q->busy = uv_queue_work(q->loop, &j->uv, on_work, on_done) == 0;
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
