#include "blocks.h"

#include "db_blocks.h"
#include "log.h"
#include "mem.h"
#include "shell.h"

enum { LOOK_MS = 5000, REST_MS = 60, WORK_MS = 20 };

struct blocks {
    struct shell *sh;
    uv_timer_t timer;
    bool is_asked, is_over; /* a statement is out; destroyed */
};

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void on_timer(uv_timer_t *timer);

static void on_kept(void *arg, const struct db_result *r)
{
    struct blocks *b = arg;
    b->is_asked = false;
    if (b->is_over) {
        uv_close((uv_handle_t *)&b->timer, on_closed);
        return;
    }
    if (db_rc(r) < 0 && db_rc(r) != DET_EUNAVAIL)
        log_warning("the sums of trials go on in a while: %s", db_error(r)->text);
    bool has_more = db_rc(r) == 0 && db_rows(r) == 1 && db_i64(r, 0, BLOCKS_LEFT) > 0;
    uv_timer_start(&b->timer, on_timer, has_more ? REST_MS : LOOK_MS, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct blocks *b = timer->data;
    b->is_asked = true;
    db_blocks_keep(b->sh->db, WORK_MS, on_kept, b);
}

struct blocks *blocks_create(struct shell *sh)
{
    struct blocks *b = det_zalloc(sizeof *b);
    b->sh = sh;
    uv_timer_init(sh->loop, &b->timer);
    b->timer.data = b;
    uv_timer_start(&b->timer, on_timer, REST_MS, 0);
    return b;
}

void blocks_destroy(struct blocks *b)
{
    if (!b)
        return;
    b->is_over = true;
    uv_timer_stop(&b->timer);
    if (!b->is_asked)
        uv_close((uv_handle_t *)&b->timer, on_closed);
}
