/* What master/shell/drive/driver.c does around the rules of a batch (core/keep/batch.h): here with
 * a store, links and tasks that are models, and the crashes between any two of its deeds. */
#include "sim.h"

#include <string.h>

static void later(struct sim *m, struct sim_master *s, enum msg_kind kind, int64_t in_ms)
{
    sim_later(m, in_ms, (struct msg){.kind = kind, .index = s->index, .conn = s->life});
}

static int64_t clock_of(const struct sim *m, const struct sim_master *s)
{
    return m->now_ms + s->offset_ms;
}

/* At most a few milliseconds after it is due. */
static void arm_turn(struct sim *m, struct sim_master *s)
{
    int64_t at = batch_turn_ms(&s->batch), now = clock_of(m, s);
    bool is_held = s->batch.state == BATCH_HELD;
    if (at == INT64_MAX && is_held) /* until PostgreSQL is back, which it hears of */
        at = now + sim_store_back_ms(m) - m->now_ms;
    if (at == INT64_MAX)
        return;
    int64_t in_ms = at > now ? at - now : 0;
    if (s->turn_at && s->turn_at <= m->now_ms + in_ms)
        return;
    in_ms += (int64_t)sim_random(m, 4);
    s->turn_at = m->now_ms + in_ms;
    later(m, s, M_TURN, in_ms);
}

void sim_driver_db(struct sim *m, struct sim_master *s)
{
    batch_db(&s->batch, !sim_store_noticed(m), clock_of(m, s));
}

void sim_driver_post(struct sim *m, struct sim_master *s, const struct core_event *ev,
                     struct waiter *w)
{
    sim_driver_db(m, s);
    batch_post(&s->batch, ev, w);
    arm_turn(m, s);
}

/* ---- The store's side ---- */

/* One of the rows of what is to be committed is not to its liking; SIZE_MAX: none. */
static size_t draw_bad_row(struct sim *m, const struct core_effects *f)
{
    size_t rows = 0;
    for (size_t i = 0; i < f->n; i++)
        rows += CORE_EFFECT_IS_ROW(f->v[i].kind);
    size_t nth = rows ? sim_random(m, rows) : 0;
    for (size_t i = 0; rows && i < f->n; i++)
        if (CORE_EFFECT_IS_ROW(f->v[i].kind) && nth-- == 0)
            return i;
    return SIZE_MAX;
}

/* Of an experiment that is ending already; SIZE_MAX: there is none. */
static size_t find_ending_row(const struct core_effects *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].kind == CORE_SAVE_EXPERIMENT && sim_store_is_ending(f->v[i].experiment.state))
            return i;
    return SIZE_MAX;
}

enum { REFUSED_PER_MILLE = 2, ENDING_REFUSED_PER_MILLE = 30, STOPPED_PER_MILLE = 100 };
enum { LOCKED_MAX_MS = 12000 }; /* so long it is waited for (batch.c) */

/* How it refuses that row: for ever, and whether it says so; or for a while, as it is locked. */
static void choose_how(struct sim *m, struct sim_master *s)
{
    static const enum bad_row_kind kinds[] = {BAD_DATA, BAD_DATA, BAD_UNKNOWN, BAD_LOCKED};
    s->bad_kind = kinds[sim_random(m, DET_ARRAY_LEN(kinds))];
    s->bad_until =
        s->bad_kind == BAD_LOCKED ? m->now_ms + (int64_t)sim_random(m, LOCKED_MAX_MS) : INT64_MAX;
}

static size_t choose_bad_row(struct sim *m, const struct core_effects *f)
{
    size_t ending = find_ending_row(f);
    if (ending != SIZE_MAX && sim_chance(m, ENDING_REFUSED_PER_MILLE))
        return ending;
    return sim_chance(m, REFUSED_PER_MILLE) ? draw_bad_row(m, f) : SIZE_MAX;
}

/* With this fault one calm in so many begins: for one batch, whatever is in it, the store always
 * lacks something. No other fault is there, so that it shows how long it is tried. */
enum { NO_ROW_EVERY = 32, NO_ROW_MAX_MS = 30 * 60000 + 10000 };

static bool choose_no_row(struct sim *m, struct sim_master *s)
{
    if (!m->calm || m->in.seed % NO_ROW_EVERY != 3 || m->no_row_epoch || !s->batch.is_numbered)
        return false;
    m->no_row_epoch = s->epoch;
    s->bad_kind = BAD_NO_ROW;
    s->bad_row = 0;
    s->bad_from = m->now_ms;
    s->bad_until = INT64_MAX;
    return true;
}

static void commit(struct sim *m, struct sim_master *s)
{
    if (s->batch.is_overdue) {
        m->got.again++;
    } else if (!s->batch.is_singly && !choose_no_row(m, s)) {
        s->bad_row = choose_bad_row(m, &s->batch.effects);
        if (s->bad_row != SIZE_MAX)
            choose_how(m, s);
    }
    bool slow = m->now_ms < m->store.slow_until;
    s->sent_ms = m->now_ms;
    later(m, s, M_APPLY, (int64_t)sim_random(m, slow ? 3000 : 3));
}

/* All rows or none: those of another epoch are refused, and those of a batch that does not follow;
 * one that is there already is done. */
static enum batch_answer apply(struct sim *m, int64_t epoch, int64_t number,
                               const struct core_effects *f)
{
    if (epoch != m->store.epoch) {
        m->got.refused++;
        return BATCH_BROKEN;
    }
    if (number && number == m->store.number)
        return BATCH_COMMITTED;
    if (number && number != m->store.number + 1)
        sim_fail(m, "batch %lld does not follow batch %lld", (long long)number,
                 (long long)m->store.number);
    m->store.number = number ? number : m->store.number;
    for (size_t i = 0; i < f->n; i++)
        if (CORE_EFFECT_IS_ROW(f->v[i].kind)) {
            if (!number)
                sim_fail(m, "a row in a batch without a number");
            sim_mix_effect(m, &f->v[i]);
            sim_trace_effect(m, &f->v[i]);
            sim_store_apply(m, &f->v[i]);
        }
    return BATCH_COMMITTED;
}

static int64_t number_of(const struct sim_master *s)
{
    return s->batch.is_numbered ? s->batch.number + 1 : 0;
}

void sim_driver_carry_out(struct sim *m, struct sim_master *s)
{
    if (s->bad_row == SIZE_MAX)
        apply(m, s->epoch, number_of(s), &s->batch.effects);
}

static void tell(struct sim *m, struct sim_master *s, struct batch_told t)
{
    s->told = t;
    later(m, s, M_TOLD, 0);
}

/* PostgreSQL went away with it in its hands: done or not, nobody says. */
static void lose_answer(struct sim *m, struct sim_master *s)
{
    if (s->sent_ms < m->store.down_from && sim_random(m, 2))
        sim_driver_carry_out(m, s);
    sim_trace(m, "store     is away, and with it a batch of master %d", s->index);
    tell(m, s, (struct batch_told){.answer = BATCH_AWAY});
}

static void refuse_row(struct sim *m, struct sim_master *s)
{
    bool is_told = s->batch.is_singly && s->bad_kind != BAD_NO_ROW;
    size_t row = is_told ? s->bad_row : s->batch.effects.n;
    sim_trace(m, "store     refuses row %zu of master %d", s->bad_row, s->index);
    static const enum batch_doubt doubts[] = {
        [BAD_UNKNOWN] = BATCH_ODD, [BAD_LOCKED] = BATCH_LATE, [BAD_NO_ROW] = BATCH_STRAINED};
    tell(m, s,
         (struct batch_told){.answer = s->bad_kind == BAD_DATA ? BATCH_REFUSED : BATCH_DOUBTED,
                             .row = row,
                             .words = "no such rows here",
                             .doubt = doubts[s->bad_kind]});
}

void sim_driver_apply(struct sim *m, struct sim_master *s)
{
    if (s->bad_row != SIZE_MAX && m->now_ms >= s->bad_until)
        s->bad_row = SIZE_MAX;
    if (m->now_ms < m->store.hung_until && sim_chance(m, 300)) { /* it dies while it waits */
        sim_master_crash(m, s);
    } else if (m->now_ms < m->store.down_until) {
        lose_answer(m, s);
    } else if (m->now_ms < m->store.hung_until) {
        if (sim_store_noticed(m))
            sim_driver_db(m, s);
        arm_turn(m, s);
        later(m, s, M_APPLY, m->store.hung_until - m->now_ms);
    } else if (s->bad_row != SIZE_MAX && s->epoch == m->store.epoch) {
        refuse_row(m, s);
    } else {
        tell(m, s,
             (struct batch_told){.answer = apply(m, s->epoch, number_of(s), &s->batch.effects)});
    }
}

struct orphan {
    int64_t epoch, number;
    struct core_effects flight;
};

void sim_driver_orphan(struct sim *m, struct sim_master *s)
{
    struct orphan *o = det_alloc(sizeof *o);
    *o = (struct orphan){s->epoch, number_of(s), s->batch.effects};
    s->batch.effects = (struct core_effects)CORE_EFFECTS_INIT;
    sim_later(m, sim_store_back_ms(m) - m->now_ms + (int64_t)sim_random(m, 1000),
              (struct msg){.kind = M_ORPHAN, .index = s->index, .data = o});
}

void sim_driver_orphan_free(void *orphan)
{
    struct orphan *o = orphan;
    core_effects_finish(&o->flight);
    free(o);
}

void sim_driver_orphan_apply(struct sim *m, struct msg *msg)
{
    struct orphan *o = msg->data;
    int64_t back = sim_store_back_ms(m);
    if (back > m->now_ms) {
        sim_later(m, back - m->now_ms, *msg);
        return;
    }
    sim_trace(m, "store     does what master %d has left", msg->index);
    apply(m, o->epoch, o->number, &o->flight);
    sim_driver_orphan_free(o);
}

/* ---- The master's side ---- */

/* Whoever asked hears nothing, and asks again; a link breaks. */
static void refuse(struct sim *m, struct sim_master *s, struct batch_event *e)
{
    det_cleanup(freep) struct waiter *w = imap_del(s->waiters, ((struct waiter *)e->whose)->token);
    if (w->host >= 0)
        links_refused(m, w);
    m->got.unavailable++;
    batch_event_destroy(e);
}

static void perform_reply(struct sim *m, struct sim_master *s, const struct core_reply *r)
{
    det_cleanup(freep) struct waiter *w = imap_del(s->waiters, r->request);
    if (!w)
        return;
    if (r->code == 0)
        check_answer(m, w);
    if (w->kind == CORE_EV_SEARCH_EVENTS && r->code == 0 && !sim_chance(m, 30))
        client_hear(m, w->id, r->data);
    if (w->host >= 0)
        links_acked(m, w);
    struct task *t = w->host < 0 ? task_find(m, w->task) : NULL;
    if (t && !sim_chance(m, 10) && !hosts_cut_down(m, t->host)) /* else: the answer is lost */
        task_answer(m, t, w->token, r->code);
}

/* Tells the harnesses of an allocation. */
static void tell_tasks(struct sim *m, const char *alloc, bool preempt)
{
    for (struct task *t = map_get(m->by_alloc, alloc); t; t = t->next) {
        if (sim_chance(m, 20) || hosts_cut_down(m, t->host))
            continue;
        t->preempt |= preempt;
        t->met |= !preempt;
        sim_later(m, 1, (struct msg){.kind = M_TASK, .task = t->uid});
    }
}

static void later_purge(struct sim *m, const struct sim_master *s, int64_t exp_id, int64_t in_ms)
{
    sim_later(m, in_ms,
              (struct msg){
                  .kind = M_PURGE, .index = s->index, .conn = s->life, .task = (uint64_t)exp_id});
}

enum { PURGE_FAILS_PER_MILLE = 10, PORTION_TRIALS = 4, PORTION_MS = 3000 };

/* One portion, by who leads: another commits nothing. */
void sim_driver_purge(struct sim *m, struct sim_master *s, int64_t exp_id)
{
    struct stored_exp *e = sim_store_exp(&m->store, exp_id);
    int64_t back = sim_store_back_ms(m);
    if (s->epoch != m->store.epoch)
        return;
    if (back > m->now_ms) {
        later_purge(m, s, exp_id, back - m->now_ms + 1);
        return;
    }
    if (e->r.state != EXP_DELETING)
        sim_fail(m, "rows of experiment %lld go, which is %s", (long long)exp_id,
                 exp_state_text(e->r.state));
    bool fails = sim_chance(m, PURGE_FAILS_PER_MILLE);
    e->purged += fails ? 0 : 1 + sim_random(m, PORTION_TRIALS);
    e->is_purged = e->purged > e->trials.n;
    if (e->is_purged)
        e->purged = e->trials.n;
    sim_trace(m, "store     of exp %lld %zu of %zu trials are gone", (long long)exp_id, e->purged,
              e->trials.n);
    if (!fails && !e->is_purged)
        later_purge(m, s, exp_id, 1 + (int64_t)sim_random(m, PORTION_MS));
    else
        sim_master_post(m, s,
                        &(struct core_event){.kind = CORE_EV_EXP_PURGED,
                                             .exp_id = exp_id,
                                             .purge_failed = fails ? "refused" : NULL},
                        (struct waiter){.host = -1});
}

static void perform(struct sim *m, struct sim_master *s, const struct core_effect *e)
{
    sim_mix_effect(m, e);
    sim_trace_effect(m, e);
    switch (e->kind) {
    case CORE_ORDER_START:
        if (links_start(m, s, &e->start))
            check_start(m, &e->start);
        break;
    case CORE_ORDER_KILL:
        if (links_kill(m, s, &e->kill))
            check_kill(m, &e->kill);
        break;
    case CORE_ORDER_STORE: links_store(m, s, &e->store_order); break;
    case CORE_REPLY: perform_reply(m, s, &e->reply); break;
    case CORE_PREEMPT: tell_tasks(m, e->alloc_id, true); break;
    case CORE_RENDEZVOUS: tell_tasks(m, e->rendezvous.alloc_id, false); break;
    case CORE_PURGE: later_purge(m, s, e->exp_id, 1); break;
    case CORE_ANY_ROW: /* the store's; nobody here waits for the others */
    case CORE_ALLOC_END:
    case CORE_TASK_LOG:
    case CORE_SEARCH_WAKE:
    case CORE_GC_WANTED:
    case CORE_NOTHING:
    case CORE_EFFECT_KIND_COUNT: break;
    }
}

/* Reports that carry a run: is it one that was replaced? */
static bool is_stale(const struct sim_master *s, const struct core_event *ev)
{
    struct core_trial_view v;
    return ev->run_id && core_trial_get(s->core, ev->trial_id, &v) && v.run_id != ev->run_id;
}

enum { LATE_MS = 2000 };

/* From when on the core counts a host as lost. Time in which the master stood still, or could not
 * commit, counts towards no lease: one that ran out meanwhile begins anew. */
static void note_lost(struct sim *m, const struct sim_master *s, const struct core_event *ev)
{
    struct core_agent_view a;
    for (int i = 0; i < m->hosts_n && s->epoch == m->store.epoch; i++) {
        struct sim_host *h = &m->hosts[i];
        int64_t from = h->lost_ms > s->boot_ms ? h->lost_ms : s->boot_ms;
        bool is_known = core_agent_get(s->core, h->id, &a);
        bool is_late = m->now_ms - from > m->o.agent_reconnect_wait_ms + LATE_MS;
        if (is_known && a.connected
                ? ev->kind == CORE_EV_AGENT_LOST && strcmp(ev->agent_id, h->id) == 0
                : is_late) {
            h->lost_before_ms = from;
            h->lost_ms = m->now_ms;
        }
    }
}

static void note_checkpoint(struct sim *m, const struct core_event *ev)
{
    struct stored_trial *t = sim_store_trial(&m->store, ev->trial_id);
    t->untold &= ev->checkpoint.steps < t->r.latest_steps;
}

static void step(struct sim *m, struct sim_master *s, struct batch_event *e)
{
    const struct waiter *w = e->whose;
    bool stale = is_stale(s, &e->ev);
    size_t from = s->batch.effects.n;
    e->ev.now_ms = clock_of(m, s);
    e->ev.now_us = sim_master_wall_us(m);
    e->ev.request = w ? w->token : 0;
    sim_trace_event(m, s, &e->ev);
    note_lost(m, s, &e->ev);
    if (e->ev.kind == CORE_EV_CHECKPOINT)
        note_checkpoint(m, &e->ev);
    core_step(s->core, &e->ev, &s->batch.effects);
    s->is_promised = e->ev.more;
    check_step(m, s, &e->ev, stale, from);
    batch_event_destroy(e);
}

/* Another leads; or it cannot do without a row that the store refuses, and starts again. */
static void die(struct sim *m, struct sim_master *s)
{
    if (s->epoch == m->store.epoch) {
        sim_master_crash(m, s);
        return;
    }
    sim_trace(m, "master %d  was replaced and ends", s->index);
    sim_master_end(m, s);
}

static void begin_commit(struct sim *m, struct sim_master *s)
{
    if (s->is_promised)
        sim_fail(m, "a batch ends though its last event was told that another follows");
    commit(m, s);
}

static void end_batch(struct sim *m, struct sim_master *s)
{
    s->checked = 0;
    if (!s->batch.queued)
        check_rest(m, s);
}

/* False: it is no more. */
static bool do_one(struct sim *m, struct sim_master *s, const struct batch_do *what)
{
    switch (what->kind) {
    case BATCH_DO_STEP: step(m, s, what->event); break;
    case BATCH_DO_REFUSE: refuse(m, s, what->event); break;
    case BATCH_DO_COMMIT: begin_commit(m, s); break;
    case BATCH_DO_PERFORM: perform(m, s, what->effect); break;
    case BATCH_DO_END: end_batch(m, s); break;
    case BATCH_DO_DIE: die(m, s); return false;
    case BATCH_DO_FORGET: /* who asked hears no more, and asks the next master */
    case BATCH_DO_NOTHING: break;
    }
    return true;
}

static bool crashes_now(struct sim *m, struct sim_master *s, const struct batch_do *what,
                        size_t cut)
{
    bool is_cut = s->batch.done >= cut && s->batch.state == BATCH_PERFORMING;
    bool is_before = what->kind == BATCH_DO_COMMIT && sim_chance(m, 2);
    if (is_cut || is_before)
        sim_master_crash(m, s);
    return is_cut || is_before;
}

void sim_driver_do_all(struct sim *m, struct sim_master *s)
{
    struct batch_do what;
    size_t cut = s->batch.state == BATCH_PERFORMING && sim_chance(m, 2)
                     ? 1 + sim_random(m, s->batch.effects.n + 1)
                     : SIZE_MAX;
    while ((what = batch_next(&s->batch)).kind != BATCH_DO_NOTHING)
        if (crashes_now(m, s, &what, cut) || !do_one(m, s, &what))
            return;
    arm_turn(m, s);
    sim_master_arm_tick(m, s);
}

void sim_driver_turn(struct sim *m, struct sim_master *s)
{
    sim_driver_db(m, s);
    batch_turn(&s->batch, clock_of(m, s));
    sim_driver_do_all(m, s);
}

void sim_driver_stop(struct sim *m, struct sim_master *s)
{
    batch_stop(&s->batch);
    sim_driver_turn(m, s);
}

/* It must not be tried for ever: nothing else is written meanwhile. */
static void check_no_row(struct sim *m, const struct sim_master *s)
{
    if (m->now_ms - s->bad_from > NO_ROW_MAX_MS)
        sim_fail(m, "a batch that cannot be written holds up all others");
}

void sim_driver_hear(struct sim *m, struct sim_master *s)
{
    bool is_no_row = s->told.answer == BATCH_DOUBTED && s->bad_kind == BAD_NO_ROW;
    bool is_refused = s->told.answer == BATCH_REFUSED || s->told.answer == BATCH_DOUBTED;
    bool is_known = is_refused && s->batch.is_singly;
    batch_tell(&s->batch, &s->told, clock_of(m, s), sim_master_wall_us(m));
    if (is_known && s->batch.state == BATCH_SENDING) {
        if (s->bad_kind == BAD_LOCKED || is_no_row)
            sim_fail(m, "a row is left out though it was not at fault");
        s->bad_row = SIZE_MAX;
        m->got.parked++;
        m->got.doubted += s->bad_kind == BAD_UNKNOWN;
    }
    if (is_no_row && s->batch.state == BATCH_HELD)
        check_no_row(m, s);
    if (is_no_row && s->batch.is_broken) { /* the last of the faults has ended */
        m->got.unwritable++;
        m->calm_at = m->now_ms;
    }
    sim_driver_do_all(m, s);
    if (s->core && s->batch.state == BATCH_HELD && sim_chance(m, STOPPED_PER_MILLE))
        sim_master_stop(m, s); /* by who sees that nothing goes on */
}
