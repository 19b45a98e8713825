#include "sweeper.h"

#include "clk.h"
#include "taskdir.h"

static void sweep_tasks(uv_work_t *w)
{
    struct sweeper *s = w->data;
    taskdir_sweep(s->root_fd);
}

static void on_swept(uv_work_t *w, int status)
{
    struct sweeper *s = w->data;
    s->is_sweeping = false;
    if (s->again && !uv_is_closing((uv_handle_t *)&s->timer))
        sweeper_kick(s);
}

static void on_timer(uv_timer_t *t)
{
    struct sweeper *s = t->data;
    s->latest_ms = 0;
    s->again = s->is_sweeping;
    if (!s->is_sweeping)
        s->is_sweeping = uv_queue_work(t->loop, &s->work, sweep_tasks, on_swept) == 0;
}

void sweeper_init(struct sweeper *s, uv_loop_t *loop, int root_fd)
{
    *s = (struct sweeper){.root_fd = root_fd};
    uv_timer_init(loop, &s->timer);
    s->timer.data = s->work.data = s;
}

void sweeper_kick(struct sweeper *s)
{
    int64_t now = clk_mono_ms();
    if (s->latest_ms == 0)
        s->latest_ms = now + SWEEPER_LATEST_MS;
    int64_t left = s->latest_ms > now ? s->latest_ms - now : 0;
    uv_timer_start(&s->timer, on_timer,
                   (uint64_t)(left < SWEEPER_QUIET_MS ? left : SWEEPER_QUIET_MS), 0);
}

void sweeper_close(struct sweeper *s)
{
    uv_close((uv_handle_t *)&s->timer, NULL);
}
