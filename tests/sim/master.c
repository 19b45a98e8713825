/* The masters: one leads, another takes over when it is silent; each is rebuilt from the store. */
#include "sim.h"

struct sim_master *sim_master_leader(struct sim *m)
{
    return &m->masters[m->leader];
}

bool sim_master_serves(const struct sim *m, const struct sim_master *s)
{
    return s->core && s->frozen_until <= m->now_ms;
}

/* What it knows of the time: its own monotonic clock, and a wall clock that may be anything. */
int64_t sim_master_wall_us(struct sim *m)
{
    uint64_t at = (uint64_t)m->now_ms;
    if (m->in.jumps) /* not from the seed's numbers: those must stay the same */
        at = (at / 7001 + 1) * UINT64_C(0x9e3779b97f4a7c15) % 100000000 + at % 7001;
    return 1700000000000000 + (int64_t)at * 1000;
}

void sim_master_arm_tick(struct sim *m, struct sim_master *s)
{
    int64_t at = core_deadline_ms(s->core);
    if (at != INT64_MAX)
        at -= s->offset_ms;
    if (at == INT64_MAX || (s->tick_at && s->tick_at <= at))
        return;
    s->tick_at = at;
    sim_later(m, at > m->now_ms ? at - m->now_ms : 0,
              (struct msg){.kind = M_TICK, .index = s->index, .conn = s->life});
}

bool sim_master_post(struct sim *m, struct sim_master *s, const struct core_event *ev,
                     struct waiter w)
{
    if (!sim_master_serves(m, s))
        return false;
    w.kind = ev->kind;
    w.id = ev->trial_id ? ev->trial_id : ev->exp_id;
    w.length = ev->kind == CORE_EV_OP_COMPLETED ? ev->op.length : 0;
    struct waiter *waits = w.token ? det_memdup(&w, sizeof w) : NULL;
    if (waits)
        imap_put(s->waiters, w.token, waits);
    m->got.events += w.host < 0; /* not those that only wait for others */
    sim_driver_post(m, s, ev, waits);
    return true;
}

/* Nothing of it is left but what was committed. */
void sim_master_end(struct sim *m, struct sim_master *s)
{
    uint64_t token;
    void *w;
    moves_note(&m->got, s->core);
    batch_finish(&s->batch);
    s->batch = (struct batch){0};
    s->checked = 0;
    s->is_promised = false;
    core_destroy(s->core);
    s->core = NULL;
    s->life++;
    s->tick_at = s->turn_at = s->frozen_until = 0;
    for (size_t it = 0; imap_next(s->waiters, &it, &token, &w);)
        free(w);
    imap_destroy(s->waiters);
    s->waiters = imap_create();
    links_end(m, s);
    for (int i = 0; i < m->hosts_n; i++)
        if (m->hosts[i].dial.master == s->index)
            links_down(m, i, 100 + (int64_t)sim_random(m, 5000));
}

void sim_master_finish(const struct sim *m, struct sim_master *s)
{
    uint64_t token;
    void *w;
    batch_finish(&s->batch);
    core_destroy(s->core);
    links_end(m, s);
    free(s->links);
    for (size_t it = 0; imap_next(s->waiters, &it, &token, &w);)
        free(w);
    imap_destroy(s->waiters);
}

static void leave(struct sim *m, struct sim_master *s)
{
    bool sent = s->batch.state == BATCH_IN_FLIGHT && m->now_ms >= m->store.down_until;
    if (sent && m->now_ms < m->store.hung_until)
        sim_driver_orphan(m, s);
    else if (sent && sim_random(m, 2))
        sim_driver_carry_out(m, s); /* the commit was on its way: it may have been carried out */
    sim_master_end(m, s);
    if (s->index == m->leader)
        sim_later(m, sim_random(m, 3) ? 1000 : (int64_t)sim_random(m, 40000),
                  (struct msg){
                      .kind = M_TAKEOVER, .index = (int)sim_random(m, MASTERS), .conn = s->life});
}

void sim_master_crash(struct sim *m, struct sim_master *s)
{
    m->got.crashes++;
    sim_trace(m, "master %d  crashes", s->index);
    leave(m, s);
}

void sim_master_stop(struct sim *m, struct sim_master *s)
{
    m->got.faults++;
    sim_trace(m, "master %d  is asked to end", s->index);
    sim_later(m, (int64_t)sim_random(m, 3000),
              (struct msg){.kind = M_STOP, .index = s->index, .conn = s->life});
    sim_driver_stop(m, s);
}

void sim_master_freeze(struct sim *m, struct sim_master *s, int64_t ms)
{
    m->got.faults++;
    s->frozen_until = m->now_ms + ms;
    sim_trace(m, "master %d  is stopped for %lld ms", s->index, (long long)ms);
    sim_later(m, ms, (struct msg){.kind = M_WAKE, .index = s->index, .conn = s->life});
    for (int i = 0; ms > TAKEOVER_MS && i < MASTERS; i++)
        if (i != s->index) /* each stands by; the first wins */
            sim_later(m, TAKEOVER_MS + (int64_t)sim_random(m, 1000),
                      (struct msg){.kind = M_TAKEOVER, .index = i, .conn = s->life});
}

enum { EVENTS_MAX = 20 };

static void boot(struct sim *m, struct sim_master *s)
{
    s->core = sim_store_rebuild(m, &m->o, 0);
    s->epoch = ++m->store.epoch;
    s->life++;
    s->offset_ms = (int64_t)sim_random(m, 1000000000);
    s->boot_ms = m->now_ms;
    m->leader = s->index;
    m->got.takeovers++;
    sim_trace(m, "master %d  leads, epoch %lld", s->index, (long long)s->epoch);
    struct core_effects owed = CORE_EFFECTS_INIT;
    batch_init(&s->batch, s->core, 1 + sim_random(m, EVENTS_MAX));
    m->store.number = 0;
    for (size_t i = 0; i < m->store.trials.n; i++)
        m->store.trials.v[i]->untold = false;
    core_restored(s->core, m->now_ms + s->offset_ms, sim_master_wall_us(m), &owed);
    core_check(s->core);
    batch_begin(&s->batch, &owed);
    sim_driver_do_all(m, s);
    if (!s->core) /* it crashed */
        return;
    for (int i = 0; i < m->hosts_n; i++)
        links_down(m, i, (int64_t)sim_random(m, 8000));
}

/* conn: the life of the leader that was missed. It may be back. */
static void on_takeover(struct sim *m, const struct msg *msg)
{
    struct sim_master *s = &m->masters[msg->index], *old = sim_master_leader(m);
    if (old->life != msg->conn || sim_master_serves(m, old))
        return;
    if (sim_store_back_ms(m) > m->now_ms || (s->core && s != old)) {
        sim_later(m, 500, *msg);
        return;
    }
    boot(m, s);
}

/* A message for it waits while it is stopped; one for an earlier life is void. */
static bool is_due(struct sim *m, const struct sim_master *s, const struct msg *msg)
{
    if (!s->core || s->life != msg->conn)
        return false;
    if (s->frozen_until > m->now_ms)
        sim_later(m, s->frozen_until - m->now_ms, *msg);
    return s->frozen_until <= m->now_ms;
}

/* It goes on where it was, and hears within a second whether it still leads. */
static void on_wake(struct sim *m, struct sim_master *s, const struct msg *msg)
{
    struct msg again = *msg;
    again.task = 1;
    if (s->epoch == m->store.epoch)
        return;
    if (!msg->task) {
        sim_later(m, 1000, again);
        return;
    }
    sim_trace(m, "master %d  finds that it was replaced and ends", s->index);
    sim_master_end(m, s);
}

static void on_tick(struct sim *m, struct sim_master *s)
{
    s->tick_at = 0;
    sim_master_post(m, s, &(struct core_event){.kind = CORE_EV_TICK}, (struct waiter){.host = -1});
}

void sim_master_on(struct sim *m, struct msg *msg)
{
    struct sim_master *s = &m->masters[msg->index];
    if (msg->kind == M_TAKEOVER) {
        on_takeover(m, msg);
    } else if (msg->kind == M_ORPHAN) {
        sim_driver_orphan_apply(m, msg);
    } else if (msg->kind == M_APPLY) { /* by the store: whether the master sleeps or not */
        if (s->core && s->life == msg->conn)
            sim_driver_apply(m, s);
    } else if (!is_due(m, s, msg)) {
        return;
    } else if (msg->kind == M_TURN) {
        s->turn_at = 0;
        sim_driver_turn(m, s);
    } else if (msg->kind == M_TOLD) {
        sim_driver_hear(m, s);
    } else if (msg->kind == M_TICK) {
        on_tick(m, s);
    } else if (msg->kind == M_WAKE) {
        on_wake(m, s, msg);
    } else if (msg->kind == M_PURGE) {
        sim_driver_purge(m, s, (int64_t)msg->task);
    } else if (msg->kind == M_STOP) {
        sim_trace(m, "master %d  ends", s->index);
        leave(m, s);
    }
}
