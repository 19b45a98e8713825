#include "driver.h"

#include "agents.h"
#include "batch.h"
#include "clk.h"
#include "db.h"
#include "db_cluster.h"
#include "driver_rows.h"
#include "failpoint.h"
#include "gc.h"
#include "hub.h"
#include "log.h"
#include "map.h"
#include "mem.h"
#include "purge.h"
#include "trim.h"
#include "vec.h"
#include "waits.h"

#include <assert.h>
#include <string.h>

enum { BATCH_EVENTS_MAX = 2048, TRIM_EFFECTS = 1000 };

struct waiting { /* a request of the core */
    driver_cb *cb;
    void *arg;
};

struct driver {
    struct shell *sh;
    struct core *core;
    struct batch batch;    /* decides what is done when; what follows here does it */
    struct imap *requests; /* token -> struct waiting */
    uint64_t next_request;
    struct exp_submission **submissions; /* of the batch, freed when it is done */
    size_t submissions_n, submissions_cap;
    struct driver_rows rows; /* singly: the statements in flight */
    struct driver_stats stats;
    uv_timer_t kick, deadline;
    int timers; /* not yet closed */
    void (*on_fatal)(void *arg);
    void *arg;
};

static void on_kick(uv_timer_t *t);

/* A turn of its own: a callback never runs inside driver_post. */
static void kick_turn(struct driver *d)
{
    int64_t at = batch_turn_ms(&d->batch), now = clk_mono_ms();
    if (at != INT64_MAX)
        uv_timer_start(&d->kick, on_kick, at > now ? (uint64_t)(at - now) : 0, 0);
}

struct driver *driver_create(struct shell *sh, struct core *core, void (*on_fatal)(void *arg),
                             void *arg)
{
    struct driver *d = det_zalloc(sizeof *d);
    d->sh = sh;
    d->core = core;
    batch_init(&d->batch, core, BATCH_EVENTS_MAX);
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
    if (d->batch.is_stopping)
        return "the master is stopping";
    if (d->batch.state == BATCH_REBUILDING)
        return "the state is being rebuilt from the database";
    return d->batch.is_overdue || !db_is_up(d->sh->db) ? "PostgreSQL is not reachable" : NULL;
}

void driver_stats(const struct driver *d, struct driver_stats *ret)
{
    *ret = d->stats;
    ret->queued = d->batch.queued;
}

/* Answers. */

static void answer_request(struct driver *d, const struct core_reply *r)
{
    det_cleanup(freep) struct waiting *w = imap_del(d->requests, r->request);
    if (w)
        w->cb(w->arg, r);
}

static void refuse_waiting(struct waiting *w, const char *text)
{
    struct core_reply r = {.code = DET_EUNAVAIL, .text = text};
    w->cb(w->arg, &r);
    free(w);
}

static void refuse_event(struct batch_event *e, const char *text)
{
    if (e->ev.kind == CORE_EV_EXP_CREATE)
        exp_submission_destroy(e->ev.create.submission);
    refuse_waiting(e->whose, text);
    batch_event_destroy(e);
}

void exp_submission_destroy(struct exp_submission *p)
{
    if (!p)
        return;
    free(p->original_config);
    free(p->model_def);
    free(p);
}

void driver_post(struct driver *d, const struct core_event *ev, driver_cb *cb, void *arg)
{
    struct waiting *w = cb ? det_alloc(sizeof *w) : NULL;
    if (w)
        *w = (struct waiting){cb, arg};
    if (w)
        batch_db(&d->batch, db_is_up(d->sh->db), clk_mono_ms());
    batch_post(&d->batch, ev, w);
    kick_turn(d);
}

void driver_barrier(struct driver *d, driver_cb *cb, void *arg)
{
    driver_post(d, &(struct core_event){.kind = CORE_EV_TICK}, cb, arg);
}

/* Performing a batch, after its rows are durable. */

static void count_effect(struct driver *d, const struct core_effect *f)
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

static void perform_effect(struct driver *d, const struct core_effect *f)
{
    count_effect(d, f);
    switch (f->kind) {
    case CORE_REPLY: answer_request(d, &f->reply); break;
    case CORE_ORDER_START: agents_start(d->sh->agents, &f->start); break;
    case CORE_ORDER_KILL: agents_kill(d->sh->agents, &f->kill); break;
    case CORE_ORDER_STORE: agents_store(d->sh->agents, &f->store_order); break;
    case CORE_PREEMPT: waits_on_preempt(d->sh->waits, f->alloc_id); break;
    case CORE_SEARCH_WAKE: waits_on_search(d->sh->waits, f->exp_id); break;
    case CORE_RENDEZVOUS: waits_on_rendezvous(d->sh->waits, &f->rendezvous); break;
    case CORE_ALLOC_END: waits_on_alloc_end(d->sh->waits, f->alloc_id); break;
    case CORE_GC_WANTED: gc_wanted(d->sh, f->exp_id); break;
    case CORE_PURGE: purge_wanted(d->sh->purge, f->exp_id); break;
    case CORE_TASK_LOG:
        log_with(LOG_DEBUG, LOG_FIELDS("task", f->log.task_id, "allocation", f->log.alloc_id), "%s",
                 f->log.text);
        hub_notify(d->sh->hub, f->log.task_id);
        break;
    case CORE_ANY_ROW: /* written already, and not performed */
    case CORE_NOTHING:
    case CORE_EFFECT_KIND_COUNT: break;
    }
}

static void forget_submissions(struct driver *d)
{
    for (size_t i = 0; i < d->submissions_n; i++)
        exp_submission_destroy(d->submissions[i]);
    d->submissions_n = 0;
}

static void end_batch(struct driver *d)
{
    agents_read_rows(d->sh->agents);
    FAILPOINT("driver.after_perform");
    forget_submissions(d);
    driver_rows_finish(&d->rows);
    if (d->batch.effects.n > TRIM_EFFECTS)
        trim_soon(d->sh->trim); /* its orders took memory, too */
}

/* Deadlines. */

static void on_deadline(uv_timer_t *t)
{
    driver_post(t->data, &(struct core_event){.kind = CORE_EV_TICK}, NULL, NULL);
}

static void arm_deadline(struct driver *d)
{
    int64_t at = core_deadline_ms(d->core), now = clk_mono_ms();
    if (at == INT64_MAX || d->batch.is_stopping)
        uv_timer_stop(&d->deadline);
    else
        uv_timer_start(&d->deadline, on_deadline, at > now ? (uint64_t)(at - now) : 0, 0);
}

/* Rows. */

static void do_all(struct driver *d);

static struct batch_told outcome_of(const struct driver *d, const struct db_result *r)
{
    int rc = db_batch_is_done(r) ? 0 : db_rc(r);
    if (rc == 0)
        return (struct batch_told){.answer = BATCH_COMMITTED};
    if (rc == DET_ECANCELED)
        return (struct batch_told){.answer = BATCH_CANCELED};
    enum db_blame blame = db_blame(r);
    if (blame == DB_BLAME_SERVER)
        return (struct batch_told){.answer = BATCH_AWAY};
    if (blame == DB_BLAME_LEADER || blame == DB_BLAME_SCHEMA)
        return (struct batch_told){.answer = BATCH_BROKEN};
    size_t row = driver_rows_find(&d->rows, db_stmt_index(r));
    return (struct batch_told){.answer = blame == DB_BLAME_DATA ? BATCH_REFUSED : BATCH_DOUBTED,
                               .row = row < d->rows.n ? row : d->batch.effects.n,
                               .doubt = blame == DB_BLAME_MOMENT   ? BATCH_LATE
                                        : blame == DB_BLAME_STRAIN ? BATCH_STRAINED
                                                                   : BATCH_ODD};
}

/* The statement stands in the log alone. */
static void log_told(const struct driver *d, const struct batch *was, const struct db_result *r)
{
    const char *words = db_error(r)->text, *in = db_statement(r);
    const char *between = *in ? ", in: " : "";
    if (d->batch.is_broken)
        log_error("the database refused a row of the core: %s%s%s", words, between, in);
    else if (d->batch.state == BATCH_HELD && !was->is_overdue)
        log_warning("a batch waits to be written: %s%s%s", words, between, in);
    else if (d->batch.state == BATCH_SENDING && was->is_singly)
        log_error("the database refused a row, without which the others are written: %s%s%s", words,
                  between, in);
}

static void on_commit(void *arg, const struct db_result *r)
{
    struct driver *d = arg;
    const struct batch was = d->batch;
    char words[sizeof db_error(r)->text];
    snprintf(words, sizeof words, "%s", db_error(r)->text);
    struct batch_told t = outcome_of(d, r);
    t.words = words;
    batch_tell(&d->batch, &t, clk_mono_ms(), clk_wall_us());
    log_told(d, &was, r);
    if (t.answer == BATCH_COMMITTED) {
        FAILPOINT("driver.after_commit");
        FAILPOINT("driver.before_perform");
    }
    do_all(d);
}

static void commit_batch(struct driver *d)
{
    struct db_tx *tx = db_tx_begin(d->sh->db);
    driver_rows_finish(&d->rows);
    if (d->batch.is_numbered) {
        db_begin_batch(tx, db_epoch(d->sh->db), d->batch.number + 1);
        int64_t limit_ms = batch_limit_ms(&d->batch);
        if (limit_ms)
            db_limit_statements(tx, limit_ms);
        driver_rows_save(tx, &d->batch.effects, d->batch.is_singly ? &d->rows : NULL);
        assert(db_tx_size(tx) > 1);
    } else {
        db_tx_fence(tx); /* an answer or an order without a row, too, is the leader's alone */
    }
    FAILPOINT("driver.before_commit");
    db_tx_commit(tx, on_commit, d);
}

/* Stepping. */

static void keep_submission(struct driver *d, struct exp_submission *p)
{
    if (d->submissions_n == d->submissions_cap) {
        d->submissions_cap = d->submissions_cap ? d->submissions_cap * 2 : 4;
        d->submissions = det_reallocarray(d->submissions, d->submissions_cap, sizeof(void *));
    }
    d->submissions[d->submissions_n++] = p;
}

int64_t driver_batch(const struct driver *d)
{
    return d->batch.number;
}

static void step_core(struct driver *d, struct batch_event *e)
{
    e->ev.now_ms = clk_mono_ms();
    e->ev.now_us = clk_wall_us();
    e->ev.request = e->whose ? d->next_request++ : 0;
    if (e->whose)
        imap_put(d->requests, e->ev.request, e->whose);
    d->stats.events++;
    if (e->ev.kind == CORE_EV_EXP_CREATE && e->ev.create.submission)
        keep_submission(d, e->ev.create.submission);
    if (core_step(d->core, &e->ev, &d->batch.effects) < 0 && !e->whose) /* else it is told */
        log_warning("the core dropped a malformed event of kind %d", (int)e->ev.kind);
    if (DET_CHECKS && !e->ev.more)
        core_check(d->core);
    batch_event_destroy(e);
}

static void forget_requests(struct driver *d)
{
    uint64_t key;
    void *v;
    for (size_t it = 0; imap_next(d->requests, &it, &key, &v);)
        refuse_waiting(v, "the master is stopping");
    imap_destroy(d->requests);
    d->requests = imap_create();
}

static void do_one(struct driver *d, const struct batch_do *what)
{
    switch (what->kind) {
    case BATCH_DO_STEP: step_core(d, what->event); break;
    case BATCH_DO_REFUSE:
        refuse_event(what->event, "PostgreSQL is not reachable; try again");
        break;
    case BATCH_DO_COMMIT:
        if (!d->batch.is_overdue) /* what is sent again changed nothing since */
            arm_deadline(d);
        commit_batch(d);
        break;
    case BATCH_DO_PERFORM: perform_effect(d, what->effect); break;
    case BATCH_DO_END:
        if (d->batch.effects.n == 0) /* else it was, when they were sent */
            arm_deadline(d);
        end_batch(d);
        break;
    case BATCH_DO_FORGET: forget_requests(d); break;
    case BATCH_DO_DIE: d->on_fatal(d->arg); break;
    case BATCH_DO_NOTHING: break;
    }
}

static void do_all(struct driver *d)
{
    struct batch_do what;
    while ((what = batch_next(&d->batch)).kind != BATCH_DO_NOTHING)
        do_one(d, &what);
    kick_turn(d);
}

static void on_kick(uv_timer_t *t)
{
    struct driver *d = t->data;
    batch_db(&d->batch, db_is_up(d->sh->db), clk_mono_ms());
    batch_turn(&d->batch, clk_mono_ms());
    do_all(d);
}

void driver_on_db(struct driver *d, bool up)
{
    batch_db(&d->batch, up, clk_mono_ms());
    kick_turn(d);
}

void driver_start(struct driver *d, struct core_effects *owed)
{
    batch_begin(&d->batch, owed);
    do_all(d);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct driver *d = h->data;
    if (--d->timers == 0)
        free(d);
}

void driver_stop(struct driver *d)
{
    batch_stop(&d->batch);
    uv_timer_stop(&d->deadline);
    kick_turn(d);
}

void driver_destroy(struct driver *d)
{
    if (!d)
        return;
    batch_stop(&d->batch);
    batch_turn(&d->batch, clk_mono_ms());
    do_all(d);
    forget_requests(d);
    imap_destroy(d->requests);
    batch_finish(&d->batch);
    forget_submissions(d);
    free(d->submissions);
    driver_rows_finish(&d->rows);
    core_destroy(d->core);
    uv_close((uv_handle_t *)&d->kick, on_timer_closed);
    uv_close((uv_handle_t *)&d->deadline, on_timer_closed);
}
