#include "marks.h"

#include "buf.h"
#include "clk.h"
#include "fsx.h"
#include "progress.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#define TICK_MS 200

static void add_at(struct marks *m, const struct link_mark *mark)
{
    if (json_array_size(m->all) < LINK_MARKS_MAX)
        json_array_append_new(m->all, link_mark_json(mark));
}

/* at_ms is of the monotonic clock, which ranks and det-task share. */
static void add_mono(struct marks *m, const char *kind, int64_t at_ms, int64_t duration_ms)
{
    int64_t at_us = clk_wall_us() - 1000 * (clk_mono_ms() - at_ms);
    add_at(m, &(struct link_mark){kind, at_us, 1000 * duration_ms, ""});
}

/* The file is the rank's: what it says is believed only where it can be true. */
static bool is_sane(const struct marks *m, int64_t at_ms)
{
    return at_ms >= m->ranks_ms && at_ms <= clk_mono_ms();
}

static void read_marks(struct marks *m)
{
    struct progress p;
    if (m->fd < 0 || pread(m->fd, &p, sizeof p, 0) != (ssize_t)sizeof p ||
        p.magic != PROGRESS_MAGIC)
        return;
    if (!m->is_loaded && is_sane(m, p.loaded_mono_ms)) {
        m->is_loaded = true;
        add_mono(m, "compiled", p.loaded_mono_ms, p.loading_ms);
    }
    if (!m->has_batch && is_sane(m, p.first_batch_mono_ms)) {
        m->has_batch = true;
        add_mono(m, "first_batch", p.first_batch_mono_ms, p.first_batch_mono_ms - m->ranks_ms);
        det_closep(&m->fd);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct marks *m = timer->data;
    read_marks(m);
    if (m->told < json_array_size(m->all)) {
        m->told = json_array_size(m->all);
        m->on_news(m->arg);
    } else if (m->fd < 0) {
        uv_timer_stop(timer);
    }
}

void marks_init(struct marks *m, uv_loop_t *loop, void (*on_news)(void *arg), void *arg)
{
    *m = (struct marks){.all = json_array(), .fd = -1, .on_news = on_news, .arg = arg};
    uv_timer_init(loop, &m->timer);
    m->timer.data = m;
}

void marks_close(struct marks *m)
{
    uv_close((uv_handle_t *)&m->timer, NULL);
}

void marks_finish(struct marks *m)
{
    json_decref(m->all);
    det_closep(&m->fd);
    *m = (struct marks){.fd = -1};
}

void marks_add(struct marks *m, const char *kind, int64_t duration_ms, const char *fmt, ...)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    add_at(m, &(struct link_mark){kind, clk_wall_us(), 1000 * duration_ms, buf_str(&b)});
    if (!uv_is_active((uv_handle_t *)&m->timer))
        uv_timer_start(&m->timer, on_tick, TICK_MS, TICK_MS);
}

void marks_restore(struct marks *m, const json_t *kept)
{
    struct link_mark *v;
    size_t n;
    if (link_marks_decode(kept, &v, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        add_at(m, &v[i]);
    free(v);
}

void marks_ranks(struct marks *m, const struct taskspec *s)
{
    m->ranks_ms = clk_mono_ms();
    m->fd = fsx_open_beneath(s->dirfd, "run/progress.0", O_RDONLY | O_NOFOLLOW, 0, NULL);
    uv_timer_start(&m->timer, on_tick, TICK_MS, TICK_MS);
}

const json_t *marks_all(struct marks *m)
{
    read_marks(m);
    m->told = json_array_size(m->all);
    return m->all;
}
