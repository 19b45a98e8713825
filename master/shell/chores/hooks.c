#include "hooks.h"

#include "buf.h"
#include "db_webhooks.h"
#include "hook_post.h"
#include "json.h"
#include "log.h"
#include "logpolicy.h"
#include "mem.h"
#include "pattern.h"
#include "shell.h"
#include "vec.h"

#include <inttypes.h>
#include <string.h>

enum { LOOK_MS = 1000, LINE_MAX_BYTES = 8192, AT_ONCE_MAX = 64 };

struct delivery {
    struct hooks *h;
    int64_t event, webhook;
    struct hook_post *post; /* NULL: what became of it is being written */
    struct delivery *next, **link;
};
struct trigger {
    int64_t id;
    struct pattern *pattern;
};
struct hooks {
    struct shell *sh;
    uv_timer_t timer;
    struct delivery *under_way;
    size_t n, asked; /* deliveries; statements that are out */
    VEC(struct trigger) triggers;
    bool looks, over; /* looks: for what is due */
};

static void forget_triggers(struct hooks *h)
{
    for (size_t i = 0; i < h->triggers.n; i++)
        pattern_destroy(h->triggers.v[i].pattern);
    h->triggers.n = 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct hooks *h = handle->data;
    forget_triggers(h);
    vec_free(&h->triggers);
    free(h);
}

/* A statement has ended; false: so has all. */
static bool has_come(struct hooks *h)
{
    h->asked--;
    if (h->over && h->asked == 0)
        uv_close((uv_handle_t *)&h->timer, on_closed);
    return !h->over;
}

static void delivery_free(struct delivery *d)
{
    *d->link = d->next;
    if (d->next)
        d->next->link = d->link;
    d->h->n--;
    free(d);
}

static void look_for_due(struct hooks *h);

static void on_written(void *arg, const struct db_result *r)
{
    struct delivery *d = arg;
    struct hooks *h = d->h;
    if (db_rc(r) < 0 && db_rc(r) != DET_EUNAVAIL)
        log_warning("webhook %" PRId64 ": %s", d->webhook, db_error(r)->text);
    if (db_rc(r) == 0 && db_rows(r) > 0 && db_bool(r, 0, 0))
        log_warning("webhook %" PRId64 ": an event was not taken for three days and is given up",
                    d->webhook);
    delivery_free(d);
    if (has_come(h) && db_rc(r) == 0)
        look_for_due(h);
}

static void on_posted(void *arg, const char *why)
{
    struct delivery *d = arg;
    struct hooks *h = d->h;
    d->post = NULL;
    h->asked++;
    if (!*why) {
        db_webhook_taken(h->sh->db, d->event, d->webhook, on_written, d);
        return;
    }
    log_info("webhook %" PRId64 ": %s; it is tried again", d->webhook, why);
    db_webhook_failed(h->sh->db, d->event, d->webhook, why, on_written, d);
}

static void send_event(struct hooks *h, const struct db_result *r, int row)
{
    struct delivery *d = det_zalloc(sizeof *d);
    struct hook_event e = {db_text(r, row, DUE_URL), db_text(r, row, DUE_TYPE),
                           db_text(r, row, DUE_PAYLOAD), db_text(r, row, DUE_KEY)};
    *d = (struct delivery){.h = h,
                           .event = db_i64(r, row, DUE_EVENT),
                           .webhook = db_i64(r, row, DUE_WEBHOOK),
                           .next = h->under_way,
                           .link = &h->under_way};
    if (d->next)
        d->next->link = &d->next;
    h->under_way = d;
    h->n++;
    d->post = hook_post(h->sh->loop, &e, on_posted, d);
}

static void on_due(void *arg, const struct db_result *r)
{
    struct hooks *h = arg;
    h->looks = false;
    if (!has_come(h))
        return;
    if (db_rc(r) < 0 && db_rc(r) != DET_EUNAVAIL)
        log_warning("webhooks: %s", db_error(r)->text);
    for (int i = 0; db_rc(r) == 0 && i < db_rows(r) && h->n < AT_ONCE_MAX; i++)
        send_event(h, r, i);
}

static void look_for_due(struct hooks *h)
{
    if (h->looks || h->n >= AT_ONCE_MAX)
        return;
    det_cleanup(buf_finish) struct buf busy = BUF_INIT;
    for (const struct delivery *d = h->under_way; d; d = d->next)
        buf_addf(&busy, "%s%" PRId64, busy.len ? "," : "{", d->webhook);
    buf_add_str(&busy, busy.len ? "}" : "{}");
    h->looks = true;
    h->asked++;
    db_webhook_due(h->sh->db, busy.p, on_due, h);
}

static void on_timer(uv_timer_t *t)
{
    look_for_due(t->data);
}

static void on_triggers(void *arg, const struct db_result *r)
{
    struct hooks *h = arg;
    struct det_err err;
    if (!has_come(h))
        return;
    if (db_rc(r) < 0) { /* the former ones count until the next look */
        log_warning("triggers of webhooks: %s", db_error(r)->text);
        return;
    }
    forget_triggers(h);
    for (int i = 0; i < db_rows(r); i++) {
        struct trigger t = {.id = db_i64(r, i, 0)};
        if (pattern_compile(db_text(r, i, 1), &t.pattern, &err) < 0)
            log_warning("trigger %" PRId64 " of a webhook does nothing: %s", t.id, err.text);
        else
            vec_push(&h->triggers, t);
    }
}

void hooks_changed(struct hooks *h)
{
    h->asked++;
    db_webhook_log_triggers(h->sh->db, on_triggers, h);
}

struct hooks *hooks_create(struct shell *sh)
{
    struct hooks *h = det_zalloc(sizeof *h);
    h->sh = sh;
    uv_timer_init(sh->loop, &h->timer);
    h->timer.data = h;
    uv_timer_start(&h->timer, on_timer, LOOK_MS, LOOK_MS);
    hooks_changed(h);
    return h;
}

void hooks_destroy(struct hooks *h)
{
    if (!h)
        return;
    h->over = true;
    uv_timer_stop(&h->timer);
    for (struct delivery *d = h->under_way, *next; d; d = next) {
        next = d->next;
        if (!d->post)
            continue; /* on_written() frees it */
        hook_post_cancel(d->post);
        delivery_free(d);
    }
    if (h->asked == 0)
        uv_close((uv_handle_t *)&h->timer, on_closed);
}

/* ---- logs ---- */

struct hit {
    db_done_cb *cb;
    void *arg;
};

static void on_hit(void *arg, const struct db_result *r)
{
    struct hit hit = *(struct hit *)arg;
    free(arg);
    hit.cb(hit.arg, db_rc(r), db_error(r));
}

static void tell_hit(struct hooks *h, const struct trigger *t, const struct db_log_line *line,
                     struct hit to)
{
    size_t len = line->log_len < LINE_MAX_BYTES ? line->log_len : LINE_MAX_BYTES;
    JSON_OWN text = json_lossy(line->log, len);
    struct hit *hit = det_memdup(&to, sizeof to);
    struct db_log_hit row = {t->id, line->task_id, line->agent_id, json_string_value(text)};
    db_webhook_log_hit(h->sh->db, &row, on_hit, hit);
}

/* The first line that it matches; n: none. */
static size_t find_line(const struct trigger *t, const struct db_log_line *lines, size_t n,
                        int64_t *steps)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = lines[i].log_len < LINE_MAX_BYTES ? lines[i].log_len : LINE_MAX_BYTES;
        while (len > 0 && strchr("\r\n", lines[i].log[len - 1]))
            len--;
        if (pattern_find(t->pattern, lines[i].log, len, steps))
            return i;
    }
    return n;
}

size_t hooks_match(struct hooks *h, const struct db_log_line *lines, size_t n, db_done_cb *cb,
                   void *arg)
{
    size_t found = 0;
    int64_t steps = LOGPOLICY_STEPS;
    for (size_t i = 0; h && i < h->triggers.n; i++) {
        size_t at = find_line(&h->triggers.v[i], lines, n, &steps);
        if (at == n)
            continue;
        found++;
        tell_hit(h, &h->triggers.v[i], &lines[at], (struct hit){cb, arg});
    }
    if (steps <= 0)
        log_warning("patterns of webhooks: matching took too long, some of %zu lines were not "
                    "looked at",
                    n);
    return found;
}
