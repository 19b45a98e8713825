#include "retention.h"

#include "db_audit.h"
#include "db_task_read.h"
#include "log.h"
#include "masterconf.h"
#include "mem.h"
#include "shell.h"

#include <inttypes.h>

enum { DAY_MS = 24 * 3600 * 1000, RETRY_MS = 5000, REST_MS = 50, PORTION_ROWS = 5000 };

struct due {
    int64_t trial_id;
    bool logs, metrics;
};

/* What goes by its age alone. */
enum aged { AGED_AUDIT, AGED_USES, AGED_KINDS };

struct retention {
    struct shell *sh;
    uv_timer_t timer;           /* fires for the next step of a round, or the next round */
    bool in_round, asked, over; /* asked: a statement is out; over: destroyed */
    bool was_last;              /* no trials after those in v */
    enum aged aged;             /* the next to be forgotten; AGED_KINDS: all are done */
    int64_t beyond;             /* looked at up to this trial */
    struct due *v;
    size_t n, at;
    enum db_retention_kind kind; /* of v[at], the next to delete */
    int64_t rows, trials;        /* deleted in this round; of how many */
};

struct db_retention retention_keep(const struct shell *sh)
{
    return (struct db_retention){sh->conf->log_retention_days, sh->conf->metric_retention_days};
}

static void on_timer(uv_timer_t *timer);

static void in_ms(struct retention *t, uint64_t ms)
{
    uv_timer_start(&t->timer, on_timer, ms, 0);
}

static void on_closed(uv_handle_t *h)
{
    struct retention *t = h->data;
    free(t->v);
    free(t);
}

/* An answer came; false: it is of no use, and what comes next is arranged. */
static bool has_come(struct retention *t, const struct db_result *r)
{
    t->asked = false;
    if (t->over) {
        uv_close((uv_handle_t *)&t->timer, on_closed);
        return false;
    }
    if (db_rc(r) == 0)
        return true;
    if (db_rc(r) != DET_EUNAVAIL)
        log_warning("the retention of logs and metrics goes on in a while: %s", db_error(r)->text);
    in_ms(t, RETRY_MS);
    return false;
}

static void round_end(struct retention *t)
{
    t->in_round = false;
    t->sh->counts.retention_rounds++;
    if (t->rows)
        log_info("retention: deleted %" PRId64 " rows of %" PRId64 " trials", t->rows, t->trials);
    in_ms(t, DAY_MS);
}

static void on_due(void *arg, const struct db_result *r)
{
    struct retention *t = arg;
    if (!has_come(t, r))
        return;
    free(t->v);
    t->v = det_zalloc(((size_t)db_rows(r) + 1) * sizeof *t->v);
    t->n = t->at = 0;
    t->kind = 0;
    for (int i = 0; i < db_rows(r); i++)
        if (!db_is_null(r, i, DUE_TRIAL))
            t->v[t->n++] = (struct due){db_i64(r, i, DUE_TRIAL), db_bool(r, i, DUE_LOGS),
                                        db_bool(r, i, DUE_METRICS)};
    t->trials += (int64_t)t->n;
    t->was_last = db_rows(r) == 0 || db_is_null(r, 0, DUE_NEXT);
    if (!t->was_last)
        t->beyond = db_i64(r, 0, DUE_NEXT);
    in_ms(t, 0);
}

static void on_deleted(void *arg, const struct db_result *r)
{
    struct retention *t = arg;
    if (!has_come(t, r))
        return;
    int64_t n = db_affected(r);
    t->rows += n;
    if (t->kind == RETENTION_LOGS)
        t->sh->counts.retention_logs += (uint64_t)n;
    else
        t->sh->counts.retention_metrics += (uint64_t)n;
    if (n < PORTION_ROWS)
        t->kind++;
    in_ms(t, n < PORTION_ROWS ? 0 : REST_MS);
}

/* The next kind that is due of the next trial that is; false: all of v is done. */
static bool find_due(struct retention *t)
{
    for (; t->at < t->n; t->at++, t->kind = 0)
        for (; t->kind < RETENTION_KINDS; t->kind++)
            if (t->kind == RETENTION_LOGS ? t->v[t->at].logs : t->v[t->at].metrics)
                return true;
    return false;
}

static void delete_due(struct retention *t, const struct db_retention *keep)
{
    struct db_retention_portion p = {.kind = t->kind,
                                     .trial_id = t->v[t->at].trial_id,
                                     .days = t->kind == RETENTION_LOGS ? keep->log_days
                                                                       : keep->metric_days,
                                     .rows = PORTION_ROWS};
    db_retention_delete(t->sh->db, &p, on_deleted, t);
}

static void on_forgotten(void *arg, const struct db_result *r)
{
    struct retention *t = arg;
    if (!has_come(t, r))
        return;
    if (db_affected(r) == 0)
        t->aged++;
    in_ms(t, REST_MS);
}

/* What has grown old beside trials: a statement is out; false: there is no more. */
static bool forget_aged(struct retention *t)
{
    static void (*const of[AGED_KINDS])(struct db *, int64_t, db_cb *, void *) = {db_audit_forget,
                                                                                  db_use_forget};
    const int64_t days[AGED_KINDS] = {t->sh->conf->audit_retention_days,
                                      t->sh->conf->slot_use_retention_days};
    while (t->aged < AGED_KINDS && days[t->aged] < 0)
        t->aged++;
    if (t->aged == AGED_KINDS)
        return false;
    t->asked = true;
    of[t->aged](t->sh->db, days[t->aged], on_forgotten, t);
    return true;
}

static void round_begin(struct retention *t)
{
    t->in_round = true;
    t->was_last = false;
    t->aged = 0;
    t->beyond = t->rows = t->trials = 0;
    t->n = t->at = 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct retention *t = timer->data;
    struct db_retention keep = retention_keep(t->sh);
    if (!t->in_round)
        round_begin(t);
    if (find_due(t)) {
        t->asked = true;
        delete_due(t, &keep);
    } else if (!t->was_last) {
        t->asked = true;
        db_retention_due(t->sh->db, &keep, t->beyond, on_due, t);
    } else if (!forget_aged(t)) {
        round_end(t);
    }
}

struct retention *retention_create(struct shell *sh)
{
    struct retention *t = det_zalloc(sizeof *t);
    t->sh = sh;
    uv_timer_init(sh->loop, &t->timer);
    t->timer.data = t;
    in_ms(t, 0);
    return t;
}

void retention_destroy(struct retention *t)
{
    if (!t)
        return;
    t->over = true;
    uv_timer_stop(&t->timer);
    if (!t->asked)
        uv_close((uv_handle_t *)&t->timer, on_closed);
}

void retention_now(struct retention *t)
{
    if (!t->in_round)
        in_ms(t, 0);
}
