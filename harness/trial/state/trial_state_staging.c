/*
 * The memory that snapshots are taken into and written from, kept from one to the next: fresh pages
 * would cost more than the copy. A thread touches it while training goes on, so that the first
 * snapshot finds it ready. What a snapshot has no room for here is in memory of its document, and
 * there is room for it in the next one.
 */
#include "mem.h"
#include "thread.h"
#include "trial_state_impl.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGN      64
#define HUGE_PAGE  ((size_t)2 << 20)
#define STAGED_MIN ((size_t)8 << 20) /* less is not worth a thread and memory of its own */

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void *touch_memory(void *arg)
{
    const struct state_staging *s = arg;
    for (size_t i = 0; i < PTH_ROOM + s->cap; i += 4096)
        ((volatile char *)s->room)[i] = 0;
    return NULL;
}

static void join_toucher(struct state_staging *s)
{
    if (s->touching)
        pthread_join(s->toucher, NULL);
    s->touching = false;
}

/* Without a thread the first snapshot is only slower. */
void state_staging_touch(struct state_staging *s)
{
    s->touching = s->room && thread_start(&s->toucher, NULL, touch_memory, s) == 0;
}

void state_staging_reset(struct state_staging *s)
{
    size_t wanted = s->wanted;
    join_toucher(s);
    s->wanted = 0;
    if (wanted <= s->cap || wanted < STAGED_MIN)
        return;
    size_t cap = round_up(wanted, HUGE_PAGE);
    free(s->room);
    s->room = aligned_alloc(HUGE_PAGE, PTH_ROOM + cap); /* without it, snapshots are only slower */
    s->cap = s->room ? cap : 0;
    if (s->room)
        madvise(s->room, PTH_ROOM + cap, MADV_HUGEPAGE);
}

void *state_staging_take(struct state_staging *s, size_t bytes)
{
    if (!s)
        return NULL;
    size_t at = s->wanted;
    s->wanted += round_up(bytes, ALIGN);
    return s->wanted <= s->cap && bytes > 0 ? s->room + PTH_ROOM + at : NULL;
}

void state_staging_finish(struct state_staging *s)
{
    join_toucher(s);
    free(s->room);
    *s = (struct state_staging){0};
}
