#include "trim.h"

#include "mem.h"

#include <malloc.h>
#include <stdlib.h>

enum { SOON_MS = 1000, PAUSE_MS = 5000 };

struct trim {
    uv_timer_t timer;
    uint64_t after_ms; /* the loop's time */
};

static void on_timer(uv_timer_t *t)
{
    struct trim *trim = t->data;
    malloc_trim(0);
    trim->after_ms = uv_now(t->loop) + PAUSE_MS;
}

struct trim *trim_create(uv_loop_t *loop)
{
    struct trim *t = det_zalloc(sizeof *t);
    uv_timer_init(loop, &t->timer);
    t->timer.data = t;
    uv_unref((uv_handle_t *)&t->timer); /* nobody waits for it at the end */
    return t;
}

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

void trim_destroy(struct trim *t)
{
    if (t)
        uv_close((uv_handle_t *)&t->timer, on_closed);
}

void trim_soon(struct trim *t)
{
    if (!t || uv_is_active((uv_handle_t *)&t->timer))
        return;
    uint64_t now = uv_now(t->timer.loop);
    uint64_t ms = t->after_ms > now + SOON_MS ? t->after_ms - now : SOON_MS;
    uv_timer_start(&t->timer, on_timer, ms, 0);
}
