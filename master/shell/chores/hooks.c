#include "hooks.h"

#include "buf.h"
#include "db_webhooks.h"
#include "hash.h"
#include "hook_post.h"
#include "json.h"
#include "log.h"
#include "logpolicy.h"
#include "masterconf.h"
#include "mem.h"
#include "pattern.h"
#include "shell.h"
#include "vec.h"
#include "webhooks.h"

#include <inttypes.h>
#include <string.h>

enum {
    LOOK_MS = 1000,
    SWEEP_MS = 60000,
    IDLE_MS = 30000, /* after which a connection is closed */
    LINE_MAX_BYTES = 8192,
    TRIALS_MAX = 16,     /* tests that are under way */
    REMEMBERED = 1 << 14 /* triggers of tasks that were told */
};

struct receiver {
    int64_t webhook;
    struct hook_line *line;
    uint64_t used_ms;
};
struct delivery {
    struct hooks *h;
    int64_t event, webhook;
    struct hook_post *post; /* NULL: what became of it is being written */
    struct delivery *next, **link;
};
/* A test that somebody waits for. */
struct attempt {
    struct hooks *h;
    struct hook_line *line;
    struct hook_post *post;
    hook_post_done *done;
    void *arg;
    struct attempt *next, **link;
};
struct trigger {
    int64_t id;
    struct pattern *pattern;
};
struct hooks {
    struct shell *sh;
    struct webhook_networks networks;
    uv_timer_t timer;
    uint64_t swept_ms;
    struct delivery *under_way; /* one of a webhook at most */
    struct attempt *attempts;
    size_t asked, tried; /* statements that are out; attempts */
    VEC(struct receiver) receivers;
    VEC(struct trigger) triggers;
    uint64_t told[REMEMBERED]; /* key_of(), where its last bits say */
    bool looks, over;          /* looks: for what is due */
    bool asks, is_stale;       /* asks: for the triggers; is_stale: they may be others by now */
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
    vec_free(&h->receivers);
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
    free(d);
}

static struct delivery *find_delivery(struct hooks *h, int64_t webhook)
{
    struct delivery *d = h->under_way;
    while (d && d->webhook != webhook)
        d = d->next;
    return d;
}

static struct receiver *find_receiver(struct hooks *h, int64_t webhook)
{
    for (size_t i = 0; i < h->receivers.n; i++)
        if (h->receivers.v[i].webhook == webhook)
            return &h->receivers.v[i];
    return NULL;
}

/* Only while nothing is sent there. */
static void close_receiver(struct hooks *h, struct receiver *r)
{
    hook_line_close(r->line);
    *r = h->receivers.v[--h->receivers.n];
}

static void close_idle(struct hooks *h)
{
    uint64_t now = uv_now(h->sh->loop);
    for (size_t i = h->receivers.n; i-- > 0;) {
        struct receiver *r = &h->receivers.v[i];
        if (!find_delivery(h, r->webhook) && now - r->used_ms > IDLE_MS)
            close_receiver(h, r);
    }
}

static struct hook_line *line_to(struct hooks *h, int64_t webhook, const char *url)
{
    struct receiver *r = find_receiver(h, webhook);
    if (!r) {
        struct hook_line *line = hook_line_open(h->sh->loop, url, &h->networks);
        vec_push(&h->receivers, ((struct receiver){.webhook = webhook, .line = line}));
        r = &h->receivers.v[h->receivers.n - 1];
    }
    r->used_ms = uv_now(h->sh->loop);
    return r->line;
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
    struct receiver *to = find_receiver(h, d->webhook);
    if (to) /* the next attempt looks its name up anew */
        close_receiver(h, to);
    log_info("webhook %" PRId64 ": %s; it is tried again", d->webhook, why);
    db_webhook_failed(h->sh->db, d->event, d->webhook, why, on_written, d);
}

static void send_event(struct hooks *h, const struct db_result *r, int row)
{
    struct delivery *d = det_zalloc(sizeof *d);
    struct hook_event e = {db_text(r, row, DUE_TYPE), db_text(r, row, DUE_PAYLOAD),
                           db_text(r, row, DUE_KEY)};
    *d = (struct delivery){.h = h,
                           .event = db_i64(r, row, DUE_EVENT),
                           .webhook = db_i64(r, row, DUE_WEBHOOK),
                           .next = h->under_way,
                           .link = &h->under_way};
    if (d->next)
        d->next->link = &d->next;
    h->under_way = d;
    d->post = hook_post(line_to(h, d->webhook, db_text(r, row, DUE_URL)), &e, on_posted, d);
}

static void on_due(void *arg, const struct db_result *r)
{
    struct hooks *h = arg;
    h->looks = false;
    if (!has_come(h))
        return;
    if (db_rc(r) < 0 && db_rc(r) != DET_EUNAVAIL)
        log_warning("webhooks: %s", db_error(r)->text);
    for (int i = 0; db_rc(r) == 0 && i < db_rows(r); i++)
        send_event(h, r, i);
}

static void look_for_due(struct hooks *h)
{
    if (h->looks)
        return;
    det_cleanup(buf_finish) struct buf busy = BUF_INIT;
    for (const struct delivery *d = h->under_way; d; d = d->next)
        buf_addf(&busy, "%s%" PRId64, busy.len ? "," : "{", d->webhook);
    buf_add_str(&busy, busy.len ? "}" : "{}");
    h->looks = true;
    h->asked++;
    db_webhook_due(h->sh->db, busy.p, on_due, h);
}

static void on_swept(void *arg, const struct db_result *r)
{
    if (!has_come(arg) || db_rc(r) == DET_EUNAVAIL)
        return;
    if (db_rc(r) < 0)
        log_warning("webhooks: %s", db_error(r)->text);
    else if (db_i64(r, 0, 0) > 0)
        log_warning("webhooks: %" PRId64 " events are given up, as more than %d waited for one",
                    db_i64(r, 0, 0), WEBHOOK_EVENTS_MAX);
}

static void ask_triggers(struct hooks *h);

static void on_triggers(void *arg, const struct db_result *r)
{
    struct hooks *h = arg;
    struct det_err err;
    h->asks = false;
    if (!has_come(h))
        return;
    if (db_rc(r) < 0) { /* the former ones count until on_timer() asks again */
        if (db_rc(r) != DET_EUNAVAIL)
            log_warning("triggers of webhooks: %s", db_error(r)->text);
        h->is_stale = true;
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
    ask_triggers(h);
}

/* One at a time: of two answers the older may come last. */
static void ask_triggers(struct hooks *h)
{
    if (!h->is_stale || h->asks)
        return;
    h->is_stale = false;
    h->asks = true;
    h->asked++;
    db_webhook_log_triggers(h->sh->db, on_triggers, h);
}

void hooks_changed(struct hooks *h)
{
    h->is_stale = true;
    ask_triggers(h);
}

static void on_timer(uv_timer_t *t)
{
    struct hooks *h = t->data;
    uint64_t now = uv_now(h->sh->loop);
    close_idle(h);
    ask_triggers(h);
    look_for_due(h);
    if (now - h->swept_ms < SWEEP_MS)
        return;
    h->swept_ms = now;
    h->asked++;
    db_webhook_sweep(h->sh->db, WEBHOOK_EVENTS_MAX, on_swept, h);
}

void hooks_deleted(struct hooks *h, int64_t webhook)
{
    struct delivery *d = find_delivery(h, webhook);
    struct receiver *r = find_receiver(h, webhook);
    if (d && d->post) {
        hook_post_cancel(d->post);
        delivery_free(d);
    }
    if (r)
        close_receiver(h, r);
    hooks_changed(h);
}

struct hooks *hooks_create(struct shell *sh)
{
    struct hooks *h = det_zalloc(sizeof *h);
    struct det_err err;
    h->sh = sh;
    if (webhook_read_networks(sh->conf->webhook_networks, &h->networks, &err) < 0)
        abort(); /* masterconf has looked */
    uv_timer_init(sh->loop, &h->timer);
    h->timer.data = h;
    uv_timer_start(&h->timer, on_timer, LOOK_MS, LOOK_MS);
    hooks_changed(h);
    return h;
}

const struct webhook_networks *hooks_networks(const struct hooks *h)
{
    static const struct webhook_networks nowhere = {.is_given = true};
    return h ? &h->networks : &nowhere;
}

static void stop_deliveries(struct hooks *h)
{
    for (struct delivery *d = h->under_way, *next; d; d = next) {
        next = d->next;
        if (!d->post)
            continue; /* on_written() frees it */
        hook_post_cancel(d->post);
        delivery_free(d);
    }
    while (h->receivers.n > 0)
        close_receiver(h, h->receivers.v);
}

static void attempt_end(struct attempt *t, const char *why)
{
    *t->link = t->next;
    if (t->next)
        t->next->link = t->link;
    t->h->tried--;
    t->done(t->arg, why);
    hook_line_close(t->line);
    free(t);
}

void hooks_destroy(struct hooks *h)
{
    if (!h)
        return;
    h->over = true;
    uv_timer_stop(&h->timer);
    stop_deliveries(h);
    while (h->attempts) {
        hook_post_cancel(h->attempts->post);
        attempt_end(h->attempts, "the master ends");
    }
    if (h->asked == 0)
        uv_close((uv_handle_t *)&h->timer, on_closed);
}

static void on_tried(void *arg, const char *why)
{
    attempt_end(arg, why);
}

void hooks_try(struct hooks *h, const char *url, const struct hook_event *e, hook_post_done *done,
               void *arg)
{
    if (!h || h->tried == TRIALS_MAX) {
        done(arg, h ? "too many others are under way" : "the master ends");
        return;
    }
    struct attempt *t = det_zalloc(sizeof *t);
    *t = (struct attempt){.h = h,
                          .line = hook_line_open(h->sh->loop, url, &h->networks),
                          .done = done,
                          .arg = arg,
                          .next = h->attempts,
                          .link = &h->attempts};
    if (t->next)
        t->next->link = &t->next;
    h->attempts = t;
    h->tried++;
    t->post = hook_post(t->line, e, on_tried, t);
}

/* ---- logs ---- */

struct hit {
    struct hooks *h;
    uint64_t key;
    db_done_cb *cb;
    void *arg;
};

static uint64_t key_of(int64_t trigger, const char *task)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    buf_addf(&b, "%" PRId64 "/%s", trigger, task);
    return hash_fnv64(b.p, b.len);
}

/* Lines are there whether webhooks are told of them or not: only a database that is away refuses
 * them, whose sender tries again. */
static void on_hit(void *arg, const struct db_result *r)
{
    struct hit hit = *(struct hit *)arg;
    int rc = db_rc(r);
    free(arg);
    if (rc == 0)
        hit.h->told[hit.key % REMEMBERED] = hit.key;
    else if (rc != DET_EUNAVAIL)
        log_warning("a webhook is not told of a line of a log: %s", db_error(r)->text);
    hit.cb(hit.arg, rc == DET_EUNAVAIL ? rc : 0, db_error(r));
    has_come(hit.h);
}

static void tell_hit(struct hooks *h, const struct trigger *t, const struct db_log_line *line,
                     struct hit to)
{
    size_t len = line->log_len < LINE_MAX_BYTES ? line->log_len : LINE_MAX_BYTES;
    JSON_OWN text = json_lossy(line->log, len);
    struct hit *hit = det_memdup(&to, sizeof to);
    struct db_log_hit row = {t->id, line->task_id, line->agent_id, json_string_value(text)};
    h->asked++;
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
        const struct trigger *t = &h->triggers.v[i];
        uint64_t key = key_of(t->id, lines[0].task_id);
        if (h->told[key % REMEMBERED] == key)
            continue;
        size_t at = find_line(t, lines, n, &steps);
        if (at == n)
            continue;
        found++;
        tell_hit(h, t, &lines[at], (struct hit){h, key, cb, arg});
    }
    if (steps <= 0)
        log_warning("patterns of webhooks: matching took too long, some of %zu lines were not "
                    "looked at",
                    n);
    return found;
}
