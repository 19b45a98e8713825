#include "silence.h"

#include "db_unmanaged.h"
#include "log.h"
#include "masterconf.h"
#include "mem.h"
#include "shell.h"

#include <inttypes.h>

enum { PARTS = 10, LOOK_MS_MIN = 100 };

struct silence {
    struct shell *sh;
    uv_timer_t timer;
    bool asked, over; /* asked: a statement is out; over: destroyed */
    bool was_away;    /* the database, at the last look */
};

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void on_timer(uv_timer_t *timer);

static void in_ms(struct silence *s, int64_t ms)
{
    uv_timer_start(&s->timer, on_timer, (uint64_t)(ms > LOOK_MS_MIN ? ms : LOOK_MS_MIN), 0);
}

static void on_looked(void *arg, const struct db_result *r)
{
    struct silence *s = arg;
    s->asked = false;
    if (s->over) {
        uv_close((uv_handle_t *)&s->timer, on_closed);
        return;
    }
    int64_t n = db_rc(r) == 0 ? db_i64(r, 0, 0) : 0;
    s->was_away = db_rc(r) == DET_EUNAVAIL;
    if (db_rc(r) < 0 && db_rc(r) != DET_EUNAVAIL)
        log_warning("silent trials of unmanaged experiments: %s", db_error(r)->text);
    if (n > 0)
        log_info("%" PRId64 " trials that run elsewhere were given up: no heartbeat", n);
    in_ms(s, n > 0 ? 0 : s->sh->conf->unmanaged_timeout_ms / PARTS);
}

static void on_timer(uv_timer_t *timer)
{
    struct silence *s = timer->data;
    bool is_up = db_is_up(s->sh->db);
    if (!is_up || s->was_away) {
        s->was_away = !is_up;
        in_ms(s, s->sh->conf->unmanaged_timeout_ms / (is_up ? 1 : PARTS));
        return;
    }
    s->asked = true;
    db_unmanaged_silent(s->sh->db, s->sh->conf->unmanaged_timeout_ms / 1000, on_looked, s);
}

struct silence *silence_create(struct shell *sh)
{
    struct silence *s = det_zalloc(sizeof *s);
    s->sh = sh;
    uv_timer_init(sh->loop, &s->timer);
    s->timer.data = s;
    in_ms(s, sh->conf->unmanaged_timeout_ms);
    return s;
}

void silence_destroy(struct silence *s)
{
    if (!s)
        return;
    s->over = true;
    uv_timer_stop(&s->timer);
    if (!s->asked)
        uv_close((uv_handle_t *)&s->timer, on_closed);
}
