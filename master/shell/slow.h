/*
 * Work that takes long, in threads of its own that come after all others: passwords (25 ms of a
 * processor and 19 MiB each), large requests. So everybody else's requests wait neither for it nor
 * for a thread of libuv's, however much of it there is. In the order of its coming.
 */
#ifndef SHELL_SLOW_H
#define SHELL_SLOW_H

#include "det/err.h"
#include <stddef.h>
#include <uv.h>

struct slow;
/* One piece of work, by slow_push() or slow_do_now(). */
struct slow_job {
    void (*work)(struct slow_job *j);             /* in another thread */
    void (*done)(struct slow_job *j, int status); /* on the loop; status < 0: not done, libuv's */
    /* Its own: */
    struct slow_job *next;
    struct slow *queue;
    uv_thread_t thread;
    union {
        uv_async_t async;
        uv_work_t now;
    };
    int status;
};

/* running_max: at a time; waiting_max: beside those. */
struct slow *slow_create(uv_loop_t *loop, size_t running_max, size_t waiting_max);
/* For the end: what waits ends with UV_ECANCELED, nothing more is taken, and cb runs, maybe at
 * once, when what runs is done too. */
void slow_drain(struct slow *q, void (*cb)(void *arg), void *arg);
/* NULL ok. What waits and runs is done all the same. */
void slow_destroy(struct slow *q);
/* Half of the processors, 1 to 4. */
size_t slow_threads(void);
/* j is the caller's until done. DET_EUNAVAIL, without a text: too many wait. */
DET_MUST int slow_push(struct slow *q, struct slow_job *j);
/* The same at once, in a thread of libuv's, for what takes a moment only. It is always done: status
 * is 0. */
void slow_do_now(uv_loop_t *loop, struct slow_job *j);
/* The next to be done, however many wait: what gives back memory, before more is taken. Refused at
 * the end only. */
DET_MUST int slow_push_first(struct slow *q, struct slow_job *j);

#endif
