/*
 * The memory that snapshots are taken into, kept from one to the next: fresh pages would cost more
 * than the copy. What a snapshot had no room for here is in memory of its document, and there is
 * room for it in the next one.
 */
#include "mem.h"
#include "trial_state_impl.h"

#include <stdlib.h>
#include <sys/mman.h>

#define ALIGN 64
#define HUGE_PAGE ((size_t)2 << 20)

static size_t rounded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

void state_staging_reset(struct state_staging *s)
{
    if (s->wanted > s->cap) {
        size_t cap = rounded(s->wanted, HUGE_PAGE);
        free(s->p);
        s->p = aligned_alloc(HUGE_PAGE, cap); /* without it, snapshots are only slower */
        s->cap = s->p ? cap : 0;
        if (s->p)
            madvise(s->p, cap, MADV_HUGEPAGE);
    }
    s->wanted = 0;
}

void *state_staging_take(struct state_staging *s, size_t bytes)
{
    if (!s)
        return NULL;
    size_t at = s->wanted;
    s->wanted += rounded(bytes, ALIGN);
    return s->wanted <= s->cap && bytes > 0 ? s->p + at : NULL;
}

void state_staging_finish(struct state_staging *s)
{
    free(s->p);
    *s = (struct state_staging){0};
}
