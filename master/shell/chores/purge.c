#include "purge.h"

#include "clk.h"
#include "db_rows.h"
#include "driver.h"
#include "log.h"
#include "mem.h"
#include "shell.h"
#include "vec.h"

#include <inttypes.h>

enum { PORTION_ROWS = 2000, LEAST_ROWS = 20, REST_MIN_MS = 10, RETRY_MS = 2000, TRIES = 5 };

struct purged {
    int64_t exp_id, rows; /* of its next portion */
    int failures;         /* in a row, of its own */
    bool is_told;         /* that PostgreSQL is away, or something holds its rows */
};

struct purge {
    struct shell *sh;
    uv_timer_t timer;
    VEC(struct purged) waiting; /* the first is in hand */
    int64_t asked_ms;
    bool asked, over; /* asked: a statement is out; over: destroyed */
};

static void on_timer(uv_timer_t *timer);

static void in_ms(struct purge *p, int64_t ms)
{
    uv_timer_start(&p->timer, on_timer, (uint64_t)ms, 0);
}

static void on_closed(uv_handle_t *h)
{
    struct purge *p = h->data;
    vec_free(&p->waiting);
    free(p);
}

/* Nothing is left to be done of the one in hand; failure NULL: nor of its rows. */
static void end_first(struct purge *p, const char *failure)
{
    struct core_event ev = {.kind = CORE_EV_EXP_PURGED, .exp_id = p->waiting.v[0].exp_id};
    ev.purge_failed = failure;
    vec_remove(&p->waiting, 0);
    driver_post(p->sh->driver, &ev, NULL, NULL);
}

/* The next one's turn. */
static void rotate_waiting(struct purge *p)
{
    struct purged first = p->waiting.v[0];
    vec_remove(&p->waiting, 0);
    vec_push(&p->waiting, first);
}

/* PostgreSQL is away, or somebody holds a row: not of its own making, so it waits as long as that
 * lasts. */
static void on_absence(struct purged *e, const struct db_result *r)
{
    if (!e->is_told)
        log_warning("rows of experiment %" PRId64 " cannot be deleted as yet: %s", e->exp_id,
                    db_error(r)->text);
    e->is_told = true;
}

/* Whatever it was, the others have their turn. */
static void on_failure(struct purge *p, const struct db_result *r)
{
    struct purged *e = &p->waiting.v[0];
    if (db_blame(r) == DB_BLAME_SERVER) {
        on_absence(e, r);
        rotate_waiting(p);
        in_ms(p, RETRY_MS);
        return;
    }
    e->rows = e->rows / 4 > LEAST_ROWS ? e->rows / 4 : LEAST_ROWS;
    bool is_last = ++e->failures >= TRIES;
    log_warning("rows of experiment %" PRId64 " cannot be deleted: %s; %s", e->exp_id,
                db_error(r)->text, is_last ? "it is left as it is" : "it is tried again");
    in_ms(p, db_blame(r) == DB_BLAME_DATA ? RETRY_MS : (int64_t)RETRY_MS << e->failures);
    if (is_last)
        end_first(p, db_error(r)->text);
    else
        rotate_waiting(p);
}

static void on_success(struct purge *p, const struct db_result *r)
{
    struct purged *e = &p->waiting.v[0];
    log_debug("experiment %" PRId64 " is being deleted: %" PRId64 " trials are left", e->exp_id,
              db_i64(r, 0, DELETION_TRIALS_LEFT));
    e->failures = 0;
    e->is_told = false;
    e->rows = e->rows * 2 < PORTION_ROWS ? e->rows * 2 : PORTION_ROWS;
    if (db_bool(r, 0, DELETION_LAST))
        end_first(p, NULL);
    else
        rotate_waiting(p);
}

static void on_portion(void *arg, const struct db_result *r)
{
    struct purge *p = arg;
    int64_t took = clk_mono_ms() - p->asked_ms;
    p->asked = false;
    if (p->over) {
        uv_close((uv_handle_t *)&p->timer, on_closed);
        return;
    }
    if (db_rc(r) < 0) {
        on_failure(p, r);
        return;
    }
    on_success(p, r);
    in_ms(p, took > REST_MIN_MS ? took : REST_MIN_MS);
}

static void on_timer(uv_timer_t *timer)
{
    struct purge *p = timer->data;
    if (p->asked || !p->waiting.n)
        return;
    p->asked = true;
    p->asked_ms = clk_mono_ms();
    db_delete_portion(p->sh->db, p->waiting.v[0].exp_id, p->waiting.v[0].rows, on_portion, p);
}

void purge_wanted(struct purge *p, int64_t exp_id)
{
    if (!p)
        return;
    vec_push(&p->waiting, ((struct purged){.exp_id = exp_id, .rows = PORTION_ROWS}));
    if (p->waiting.n == 1 && !p->asked)
        in_ms(p, 0);
}

struct purge *purge_create(struct shell *sh)
{
    struct purge *p = det_zalloc(sizeof *p);
    p->sh = sh;
    uv_timer_init(sh->loop, &p->timer);
    p->timer.data = p;
    return p;
}

void purge_destroy(struct purge *p)
{
    if (!p)
        return;
    p->over = true;
    uv_timer_stop(&p->timer);
    if (!p->asked)
        uv_close((uv_handle_t *)&p->timer, on_closed);
}
