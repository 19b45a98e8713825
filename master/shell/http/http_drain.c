#include "http_drain.h"

/* 50 MB a second, of which a processor spends a tenth. */
enum { TURN_MS = 10, TURN_BYTES = 512 << 10, READ_BYTES = 4 << 10 };

static void resume_first(struct http_drain *d)
{
    struct http_drained *one = d->first;
    struct MHD_Connection *mhd = one->mhd;
    d->first = one->next;
    if (!d->first)
        d->last = NULL;
    one->mhd = NULL;
    MHD_resume_connection(mhd);
}

static void on_turn(uv_timer_t *t)
{
    struct http_drain *d = t->data;
    d->left = TURN_BYTES;
    for (int i = 0; i < TURN_BYTES / READ_BYTES && d->first; i++)
        resume_first(d);
    if (!d->first)
        uv_timer_stop(t);
    d->on_turn(d->arg);
}

void http_drain_init(struct http_drain *d, uv_loop_t *loop, void (*turn)(void *arg), void *arg)
{
    uv_timer_init(loop, &d->timer);
    d->timer.data = d;
    d->left = TURN_BYTES;
    d->on_turn = turn;
    d->arg = arg;
}

static void wait_turn(struct http_drain *d, struct http_drained *one, struct MHD_Connection *mhd)
{
    one->mhd = mhd;
    one->next = NULL;
    if (d->last)
        d->last->next = one;
    else
        d->first = one;
    d->last = one;
    MHD_suspend_connection(mhd);
    if (!uv_is_active((uv_handle_t *)&d->timer))
        uv_timer_start(&d->timer, on_turn, TURN_MS, TURN_MS);
}

bool http_drain_take(struct http_drain *d, struct http_drained *one, struct MHD_Connection *mhd,
                     size_t n)
{
    one->bytes += n;
    if (one->bytes > HTTP_DRAIN_MAX)
        return false;
    if (d->left >= n)
        d->left -= n;
    else if (!d->is_stopped && !one->mhd) /* several chunks of one read come in a row */
        wait_turn(d, one, mhd);
    return true;
}

void http_drain_stop(struct http_drain *d)
{
    d->is_stopped = true;
    uv_timer_stop(&d->timer);
    while (d->first)
        resume_first(d);
}
