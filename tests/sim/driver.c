/* What master/shell/drive/driver.c does: one transaction in flight, then its other effects, in
 * order. */
#include "sim.h"

static void later(struct sim *m, struct master *s, enum msg_kind kind, int64_t in_ms)
{
    sim_later(m, in_ms, (struct msg){.kind = kind, .index = s->index, .conn = s->life});
}

void driver_gather(struct sim *m, struct master *s)
{
    if (s->stage != STAGE_IDLE)
        return;
    s->stage = STAGE_DUE;
    later(m, s, M_COMMIT, (int64_t)sim_random(m, 4));
}

/* One of the rows of what is to be committed, and all that core_refused() lets follow from it. */
static void refuse_row(struct sim *m, struct master *s)
{
    size_t rows = 0;
    for (size_t i = 0; i < s->flight.n; i++)
        rows += CORE_EFFECT_IS_ROW(s->flight.v[i].kind);
    size_t nth = rows ? sim_random(m, rows) : 0;
    for (size_t i = 0; rows && i < s->flight.n; i++) {
        if (!CORE_EFFECT_IS_ROW(s->flight.v[i].kind) || nth-- > 0)
            continue;
        sim_trace(m, "store     refuses row %zu of master %d, of kind %d", i, s->index,
                  (int)s->flight.v[i].kind);
        m->got.parked += core_refused(s->core, &s->flight, i, "no such rows here",
                                      m->now_ms + s->offset_ms, master_wall_us(m));
        return;
    }
}

enum { REFUSED_PER_MILLE = 2 };

void driver_commit(struct sim *m, struct master *s)
{
    if (sim_chance(m, 2)) {
        master_crash(m, s);
        return;
    }
    s->flight = s->batch;
    s->batch = (struct core_effects)CORE_EFFECTS_INIT;
    if (s->flight.n == 0) { /* one without rows still asks whether its master leads */
        s->stage = STAGE_DURABLE;
        later(m, s, M_PERFORM, 0);
        return;
    }
    if (sim_chance(m, REFUSED_PER_MILLE))
        refuse_row(m, s);
    bool slow = m->now_ms < m->store.slow_until;
    s->stage = STAGE_IN_FLIGHT;
    later(m, s, M_APPLY, (int64_t)sim_random(m, slow ? 3000 : 3));
}

/* All rows or none: those of another epoch are refused. */
static bool apply(struct sim *m, int64_t epoch, const struct core_effects *flight)
{
    if (epoch != m->store.epoch) {
        m->got.refused++;
        return false;
    }
    for (size_t i = 0; i < flight->n; i++)
        if (CORE_EFFECT_IS_ROW(flight->v[i].kind)) {
            sim_mix_effect(m, &flight->v[i]);
            sim_trace_effect(m, &flight->v[i]);
            store_apply(m, &flight->v[i]);
        }
    return true;
}

void driver_apply(struct sim *m, struct master *s)
{
    int64_t back = store_back_ms(m);
    if (m->now_ms < m->store.hung_until && sim_chance(m, 300)) { /* it dies while it waits */
        master_crash(m, s);
        return;
    }
    if (back > m->now_ms) {
        later(m, s, M_APPLY, back - m->now_ms);
        return;
    }
    later(m, s, M_PERFORM, 0);
    s->stage = apply(m, s->epoch, &s->flight) ? STAGE_DURABLE : STAGE_REFUSED;
}

struct orphan {
    int64_t epoch;
    struct core_effects flight;
};

void driver_orphan(struct sim *m, struct master *s)
{
    struct orphan *o = det_alloc(sizeof *o);
    *o = (struct orphan){s->epoch, s->flight};
    s->flight = (struct core_effects)CORE_EFFECTS_INIT;
    sim_later(m, store_back_ms(m) - m->now_ms + (int64_t)sim_random(m, 1000),
              (struct msg){.kind = M_ORPHAN, .index = s->index, .data = o});
}

void driver_orphan_free(void *orphan)
{
    struct orphan *o = orphan;
    core_effects_finish(&o->flight);
    free(o);
}

void driver_orphan_apply(struct sim *m, struct msg *msg)
{
    struct orphan *o = msg->data;
    int64_t back = store_back_ms(m);
    if (back > m->now_ms) {
        sim_later(m, back - m->now_ms, *msg);
        return;
    }
    sim_trace(m, "store     does what master %d has left", msg->index);
    apply(m, o->epoch, &o->flight);
    driver_orphan_free(o);
}

static void perform_reply(struct sim *m, struct master *s, const struct core_reply *r)
{
    det_cleanup(freep) struct waiter *w = imap_del(s->waiters, r->request);
    if (!w)
        return;
    if (r->code == 0)
        check_answer(m, w);
    if (w->kind == CORE_EV_SEARCH_EVENTS && r->code == 0 && !sim_chance(m, 30))
        client_hear(m, w->id, r->data);
    if (w->host >= 0 && !host_cut_down(m, w->host))
        host_acked(m, w);
    struct task *t = w->host < 0 ? task_find(m, w->task) : NULL;
    if (t && !sim_chance(m, 10) && !host_cut_down(m, t->host)) /* else: the answer is lost */
        task_answer(m, t, w->token, r->code);
}

/* Tells the harnesses of an allocation. */
static void tell_tasks(struct sim *m, const char *alloc, bool preempt)
{
    for (struct task *t = map_get(m->by_alloc, alloc); t; t = t->next) {
        if (sim_chance(m, 20) || host_cut_down(m, t->host))
            continue;
        t->preempt |= preempt;
        t->met |= !preempt;
        sim_later(m, 1, (struct msg){.kind = M_TASK, .task = t->uid});
    }
}

static void perform(struct sim *m, struct master *s, const struct core_effect *e)
{
    sim_mix_effect(m, e);
    sim_trace_effect(m, e);
    switch (e->kind) {
    case CORE_ORDER_START:
        if (host_order_start(m, s, &e->start))
            check_start(m, &e->start);
        break;
    case CORE_ORDER_KILL:
        if (host_order_kill(m, s, &e->kill))
            check_kill(m, &e->kill);
        break;
    case CORE_ORDER_STORE:
        host_order_store(m, s, &e->store_order);
        break;
    case CORE_REPLY:
        perform_reply(m, s, &e->reply);
        break;
    case CORE_PREEMPT:
        tell_tasks(m, e->alloc_id, true);
        break;
    case CORE_RENDEZVOUS:
        tell_tasks(m, e->rendezvous.alloc_id, false);
        break;
    default:
        break;
    }
}

void driver_perform(struct sim *m, struct master *s)
{
    size_t cut = sim_chance(m, 2) ? sim_random(m, s->flight.n + 1) : SIZE_MAX;
    for (size_t i = 0; i <= s->flight.n; i++) {
        if (i == cut) {
            master_crash(m, s);
            return;
        }
        if (i < s->flight.n && !CORE_EFFECT_IS_ROW(s->flight.v[i].kind))
            perform(m, s, &s->flight.v[i]);
    }
    core_effects_finish(&s->flight);
    s->stage = STAGE_IDLE;
    if (s->batch.n)
        driver_gather(m, s);
    else
        check_rest(m, s);
}
