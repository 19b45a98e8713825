#include "blocks.h"

#include "db_blocks.h"
#include "log.h"
#include "mem.h"
#include "shell.h"

enum { LOOK_MS = 5000, REST_MS = 60, WORK_MS = 20 };

struct blocks {
    struct shell *sh;
    uv_timer_t timer;
    int64_t from;           /* blocks of trials before this id are written down */
    bool is_found;          /* those of all are */
    bool is_alone;          /* one took too long: each is looked through alone */
    bool is_asked, is_over; /* a statement is out; destroyed */
};

static void on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void on_timer(uv_timer_t *timer);

/* An answer came: whether there is anything to do about it. */
static bool is_answer(struct blocks *b, const struct db_result *r)
{
    b->is_asked = false;
    if (b->is_over) {
        uv_close((uv_handle_t *)&b->timer, on_closed);
        return false;
    }
    if (db_rc(r) == 0)
        return true;
    if (db_rc(r) != DET_EUNAVAIL || db_state(r) == DB_STATE_OVERTIME)
        log_warning("the sums of trials go on in a while: %s", db_error(r)->text);
    uv_timer_start(&b->timer, on_timer, LOOK_MS, 0);
    return false;
}

static void go_on(struct blocks *b, bool has_more)
{
    uv_timer_start(&b->timer, on_timer, has_more ? REST_MS : LOOK_MS, 0);
}

static void on_found(void *arg, const struct db_result *r)
{
    struct blocks *b = arg;
    if (!is_answer(b, r))
        return;
    b->is_found = db_rows(r) != 1 || db_is_null(r, 0, BLOCKS_NEXT);
    if (!b->is_found)
        b->from = db_i64(r, 0, BLOCKS_NEXT);
    go_on(b, true);
}

static void on_kept(void *arg, const struct db_result *r)
{
    struct blocks *b = arg;
    b->is_alone = db_rc(r) < 0 && db_state(r) == DB_STATE_OVERTIME;
    if (is_answer(b, r))
        go_on(b, db_rows(r) == 1 && db_i64(r, 0, BLOCKS_LEFT) > 0);
}

static void on_kept_aside(void *arg, const struct db_result *r)
{
    struct blocks *b = arg;
    if (is_answer(b, r))
        go_on(b, true);
}

static void on_aside(void *arg, const struct db_result *r)
{
    struct blocks *b = arg;
    if (!is_answer(b, r))
        return;
    b->is_alone = db_rows(r) > 0;
    if (!b->is_alone) {
        go_on(b, false);
        return;
    }
    b->is_asked = true;
    db_blocks_keep_aside(b->sh->db, db_i64(r, 0, BLOCKS_EXPERIMENT), db_i64(r, 0, BLOCKS_BLOCK),
                         on_kept_aside, b);
}

static void on_timer(uv_timer_t *timer)
{
    struct blocks *b = timer->data;
    b->is_asked = true;
    if (!b->is_found)
        db_blocks_find(b->sh->db, b->from, on_found, b);
    else if (b->is_alone)
        db_blocks_set_aside(b->sh->db, on_aside, b);
    else
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
