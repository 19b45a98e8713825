#include "driver.h"

#include "agents.h"
#include "clk.h"
#include "db.h"
#include "db_cluster.h"
#include "driver_event.h"
#include "driver_rows.h"
#include "failpoint.h"
#include "gc.h"
#include "hub.h"
#include "log.h"
#include "map.h"
#include "mem.h"
#include "trim.h"
#include "vec.h"
#include "waits.h"

#include <string.h>

enum { BATCH_EVENTS_MAX = 2048, RETRY_MS = 200, TRIM_EFFECTS = 1000 };

struct waiting { /* a request of the core */
    driver_cb *cb;
    void *arg;
};

struct driver {
    struct shell *sh;
    struct core *core;
    struct driver_event *head, **tail; /* not yet stepped */
    size_t queued;
    struct imap *requests; /* token -> struct waiting */
    uint64_t next_request;
    struct core_effects effects;      /* of the batch in hand */
    struct driver_payload **payloads; /* of the batch, freed when it is done */
    size_t payloads_n, payloads_cap;
    int64_t batch;                  /* number of the last one that is committed */
    bool numbered;                  /* the one in hand writes rows */
    bool started, committing, held; /* held: the commit waits for PostgreSQL */
    bool stopping;
    bool overdue; /* a commit failed and is tried again: held, or in flight once more */
    bool singly;  /* a row of the batch was refused: which is found out */
    struct driver_rows rows; /* singly: the statements in flight */
    struct driver_stats stats;
    uv_timer_t kick, deadline;
    int timers; /* not yet closed */
    void (*on_fatal)(void *arg);
    void *arg;
};

static void run(struct driver *d);
static void on_kick(uv_timer_t *t);

static void kick(struct driver *d)
{
    if (d->stopping || (d->started && !d->committing))
        uv_timer_start(&d->kick, on_kick, 0, 0);
}

struct driver *driver_create(struct shell *sh, struct core *core, void (*on_fatal)(void *arg),
                             void *arg)
{
    struct driver *d = det_zalloc(sizeof *d);
    d->sh = sh;
    d->core = core;
    d->tail = &d->head;
    d->requests = imap_create();
    d->next_request = 1;
    d->on_fatal = on_fatal;
    d->arg = arg;
    uv_timer_init(sh->loop, &d->kick);
    uv_timer_init(sh->loop, &d->deadline);
    d->kick.data = d->deadline.data = d;
    d->timers = 2;
    return d;
}

const struct core *driver_core(const struct driver *d)
{
    return d->core;
}

struct core *driver_core_to_try(struct driver *d)
{
    return d->core;
}

const char *driver_not_ready(const struct driver *d)
{
    if (d->stopping)
        return "the master is stopping";
    if (!d->started)
        return "the state is being rebuilt from the database";
    return d->overdue || !db_is_up(d->sh->db) ? "PostgreSQL is not reachable" : NULL;
}

void driver_stats(const struct driver *d, struct driver_stats *ret)
{
    *ret = d->stats;
    ret->queued = d->queued;
}

/* Answers. */

static void answer(struct driver *d, const struct core_reply *r)
{
    det_cleanup(freep) struct waiting *w = imap_del(d->requests, r->request);
    if (w)
        w->cb(w->arg, r);
}

static void refuse(driver_cb *cb, void *arg, const char *text)
{
    struct core_reply r = {.code = DET_EUNAVAIL, .text = text};
    if (cb)
        cb(arg, &r);
}

/* PostgreSQL is away, or hangs with a batch in its hands: what waits may be refused now. */
static bool is_blocked(const struct driver *d)
{
    return d->held || d->stopping || (d->committing && !db_is_up(d->sh->db));
}

/* Events that are refused while PostgreSQL is away wait for the next turn: a callback never runs
 * inside driver_post. They go through the queue like the others, marked by their kind. */
#define EV_REFUSED CORE_EVENT_KIND_COUNT

void driver_post(struct driver *d, const struct core_event *ev, driver_cb *cb, void *arg)
{
    struct driver_event *e = driver_event_copy(ev, cb, arg);
    if (cb && (d->stopping || d->held || !db_is_up(d->sh->db))) {
        if (ev->kind == CORE_EV_EXP_CREATE)
            driver_payload_free(ev->create.payload);
        e->ev.kind = EV_REFUSED;
    }
    *d->tail = e;
    d->tail = &e->next;
    d->queued++;
    if (e->ev.kind == EV_REFUSED && is_blocked(d))
        uv_timer_start(&d->kick, on_kick, 0, 0);
    else
        kick(d);
}

void driver_barrier(struct driver *d, driver_cb *cb, void *arg)
{
    driver_post(d, &(struct core_event){.kind = CORE_EV_TICK}, cb, arg);
}

/* Performing a batch, after its rows are durable. */

static void count(struct driver *d, const struct core_effect *f)
{
    struct core_alloc_view a;
    struct core_container_view first;
    d->stats.starts += f->kind == CORE_ORDER_START;
    d->stats.ends += f->kind == CORE_ALLOC_END;
    if (f->kind == CORE_ORDER_START && core_alloc_get(d->core, f->start.alloc_id, &a) &&
        core_alloc_container(d->core, f->start.alloc_id, 0, &first) &&
        strcmp(first.id, f->start.container) == 0)
        hist_add(&d->stats.queue_wait, clk_wall_us() - a.requested_us);
}

static void perform(struct driver *d, const struct core_effect *f)
{
    count(d, f);
    if (d->stopping && f->kind != CORE_REPLY)
        return; /* links and waits have ended; the next start repeats what is owed */
    switch (f->kind) {
    case CORE_REPLY:
        answer(d, &f->reply);
        break;
    case CORE_ORDER_START:
        agents_start(d->sh->agents, &f->start);
        break;
    case CORE_ORDER_KILL:
        agents_kill(d->sh->agents, &f->kill);
        break;
    case CORE_ORDER_STORE:
        agents_store(d->sh->agents, &f->store_order);
        break;
    case CORE_PREEMPT:
        waits_on_preempt(d->sh->waits, f->alloc_id);
        break;
    case CORE_SEARCH_WAKE:
        waits_on_search(d->sh->waits, f->exp_id);
        break;
    case CORE_RENDEZVOUS:
        waits_on_rendezvous(d->sh->waits, &f->rendezvous);
        break;
    case CORE_ALLOC_END:
        waits_on_alloc_end(d->sh->waits, f->alloc_id);
        break;
    case CORE_GC_WANTED:
        gc_wanted(d->sh, f->exp_id);
        break;
    case CORE_TASK_LOG:
        log_with(LOG_DEBUG, LOG_FIELDS("task", f->log.task_id, "allocation", f->log.alloc_id), "%s",
                 f->log.text);
        hub_notify(d->sh->hub, f->log.task_id);
        break;
    case CORE_SAVE_EXPERIMENT: /* rows are written already */
    case CORE_SAVE_EXP_STATE:
    case CORE_SAVE_SEARCH_EVENT:
    case CORE_SAVE_SEARCH_SNAPSHOT:
    case CORE_SAVE_TRIAL:
    case CORE_SAVE_ALLOCATION:
    case CORE_SAVE_AGENT:
    case CORE_SAVE_STORE:
    case CORE_SAVE_TIMELINE:
    case CORE_SAVE_PARKED:
    case CORE_DELETE_SEARCH_SNAPSHOT:
    case CORE_DELETE_EXPERIMENT:
    case CORE_NOTHING:
    case CORE_EFFECT_KIND_COUNT:
        break;
    }
}

static void batch_end(struct driver *d)
{
    bool was_large = d->effects.n > TRIM_EFFECTS;
    core_effects_finish(&d->effects);
    for (size_t i = 0; i < d->payloads_n; i++)
        driver_payload_free(d->payloads[i]);
    d->payloads_n = 0;
    d->committing = d->held = d->singly = false;
    driver_rows_finish(&d->rows);
    if (was_large)
        trim_soon(d->sh->trim); /* its orders took memory, too */
}

static void batch_perform(struct driver *d)
{
    FAILPOINT("driver.before_perform");
    for (size_t i = 0; i < d->effects.n; i++)
        perform(d, &d->effects.v[i]);
    agents_read_rows(d->sh->agents);
    FAILPOINT("driver.after_perform");
    batch_end(d);
    kick(d);
}

/* Deadlines. */

static void on_deadline(uv_timer_t *t)
{
    driver_post(t->data, &(struct core_event){.kind = CORE_EV_TICK}, NULL, NULL);
}

static void deadline_arm(struct driver *d)
{
    int64_t at = core_deadline_ms(d->core), now = clk_mono_ms();
    if (at == INT64_MAX)
        uv_timer_stop(&d->deadline);
    else
        uv_timer_start(&d->deadline, on_deadline, at > now ? (uint64_t)(at - now) : 0, 0);
}

/* Rows. */

static void commit(struct driver *d);

static void end_by(struct driver *d, const char *why)
{
    log_error("the database refused a row of the core: %s", why);
    d->stopping = true;
    d->on_fatal(d->arg);
}

/* Once more, each row by itself, to learn which it is; then without it, until all is taken. */
static void on_refused(struct driver *d, const struct db_result *r)
{
    char words[sizeof db_error(r)->text];
    snprintf(words, sizeof words, "%s", db_error(r)->text);
    size_t i = driver_rows_find(&d->rows, db_stmt_index(r));
    bool is_known = d->singly && i < d->rows.n;
    if (d->singly && (!is_known || !core_refused(d->core, &d->effects, i, words, clk_mono_ms(),
                                                 clk_wall_us()))) {
        end_by(d, words);
        return;
    }
    if (d->singly)
        log_error("the database refused a row, without which the others are written: %s", words);
    d->singly = true;
    deadline_arm(d);
    commit(d);
}

static void on_commit(void *arg, const struct db_result *r)
{
    struct driver *d = arg;
    int rc = db_batch_is_done(r) ? 0 : db_rc(r);
    if (rc == 0) {
        d->batch += d->numbered;
        d->overdue = false;
        FAILPOINT("driver.after_commit");
        batch_perform(d);
    } else if (d->stopping || rc == DET_ECANCELED) {
        d->committing = false; /* never performed: the rows tell the next start what is owed */
    } else if (rc == DET_EUNAVAIL) {
        d->held = true; /* driver_on_db tries again */
        if (!d->overdue)
            log_warning("a batch waits to be written: %s", db_error(r)->text);
        d->overdue = true;
        uv_timer_start(&d->kick, on_kick, RETRY_MS, 0);
    } else if (db_is_refused(r)) {
        on_refused(d, r);
    } else {
        end_by(d, db_error(r)->text);
    }
}

static void commit(struct driver *d)
{
    if (d->effects.n == 0) {
        batch_perform(d);
        return;
    }
    struct db_tx *tx = db_tx_begin(d->sh->db);
    db_begin_batch(tx, db_epoch(d->sh->db), d->batch + 1);
    driver_rows_finish(&d->rows);
    driver_rows_save(tx, &d->effects, d->singly ? &d->rows : NULL);
    d->numbered = db_tx_size(tx) > 1;
    if (!d->numbered) {
        db_tx_drop(tx);
        tx = db_tx_begin(d->sh->db);
        db_tx_fence(tx); /* an answer or an order without a row, too, is the leader's alone */
    }
    d->committing = true;
    d->held = false; /* two reasons to try again may come at once: it is in flight now */
    FAILPOINT("driver.before_commit");
    db_tx_commit(tx, on_commit, d);
}

/* Stepping. */

static void payload_keep(struct driver *d, struct driver_payload *p)
{
    if (d->payloads_n == d->payloads_cap) {
        d->payloads_cap = d->payloads_cap ? d->payloads_cap * 2 : 4;
        d->payloads = det_reallocarray(d->payloads, d->payloads_cap, sizeof(void *));
    }
    d->payloads[d->payloads_n++] = p;
}

int64_t driver_batch(const struct driver *d)
{
    return d->batch;
}

static void step(struct driver *d, struct driver_event *e)
{
    e->ev.now_ms = clk_mono_ms();
    e->ev.now_us = clk_wall_us();
    e->ev.request = 0;
    if (e->cb) {
        struct waiting *w = det_alloc(sizeof *w);
        *w = (struct waiting){e->cb, e->arg};
        e->ev.request = d->next_request++;
        imap_put(d->requests, e->ev.request, w);
    }
    d->stats.events++;
    if (e->ev.kind == CORE_EV_EXP_CREATE && e->ev.create.payload)
        payload_keep(d, e->ev.create.payload);
    if (core_step(d->core, &e->ev, &d->effects) < 0 && !e->cb) /* else the caller is told */
        log_warning("the core dropped a malformed event of kind %d", (int)e->ev.kind);
    if (DET_CHECKS && !e->ev.more)
        core_check(d->core);
}

static struct driver_event *pop(struct driver *d)
{
    struct driver_event *e = d->head;
    d->head = e->next;
    if (!d->head)
        d->tail = &d->head;
    d->queued--;
    return e;
}

/* One decision about what starts for all that came together: it looks at everything that waits. */
static void run(struct driver *d)
{
    for (int i = 0; i < BATCH_EVENTS_MAX && d->head; i++) {
        struct driver_event *e = pop(d);
        e->ev.more = i + 1 < BATCH_EVENTS_MAX && d->head && d->head->ev.kind != EV_REFUSED;
        if (e->ev.kind == EV_REFUSED)
            refuse(e->cb, e->arg, "PostgreSQL is not reachable; try again");
        else
            step(d, e);
        driver_event_free(e);
    }
    deadline_arm(d);
    commit(d);
}

/* While a batch is held, only refusals leave the queue. */
static void refuse_held(struct driver *d)
{
    struct driver_event **p = &d->head;
    while (*p) {
        struct driver_event *e = *p;
        if (!e->cb) {
            p = &e->next;
            continue;
        }
        *p = e->next;
        d->queued--;
        if (e->ev.kind == CORE_EV_EXP_CREATE)
            driver_payload_free(e->ev.create.payload);
        refuse(e->cb, e->arg, "PostgreSQL is not reachable; try again");
        driver_event_free(e);
    }
    d->tail = p;
}

static void on_kick(uv_timer_t *t)
{
    struct driver *d = t->data;
    if (is_blocked(d)) {
        refuse_held(d);
        if (d->held && !d->stopping && db_is_up(d->sh->db))
            commit(d);
        return;
    }
    if (!d->committing && d->head)
        run(d);
}

void driver_on_db(struct driver *d, bool up)
{
    if (!up || d->held)
        uv_timer_start(&d->kick, on_kick, 0, 0);
}

void driver_start(struct driver *d, struct core_effects *owed)
{
    d->started = true;
    d->effects = *owed;
    *owed = (struct core_effects)CORE_EFFECTS_INIT;
    deadline_arm(d);
    commit(d);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct driver *d = h->data;
    if (--d->timers == 0)
        free(d);
}

static void requests_refuse(struct driver *d)
{
    uint64_t key;
    void *v;
    for (size_t it = 0; imap_next(d->requests, &it, &key, &v);) {
        struct waiting *w = v;
        refuse(w->cb, w->arg, "the master is stopping");
        free(w);
    }
    imap_destroy(d->requests);
    d->requests = imap_create();
}

void driver_stop(struct driver *d)
{
    d->stopping = true;
    uv_timer_stop(&d->deadline);
    if (d->held)
        requests_refuse(d);
    kick(d);
}

void driver_destroy(struct driver *d)
{
    if (!d)
        return;
    d->stopping = true;
    refuse_held(d);
    while (d->head)
        driver_event_free(pop(d));
    requests_refuse(d);
    imap_destroy(d->requests);
    batch_end(d);
    free(d->payloads);
    core_destroy(d->core);
    uv_close((uv_handle_t *)&d->kick, on_timer_closed);
    uv_close((uv_handle_t *)&d->deadline, on_timer_closed);
}
