/* The master's shell: batches, commits, performs; crashes and is rebuilt. */
#include "sim.h"

#include "hash.h"
#include <string.h>

static void post_commit(struct sim *m)
{
    if (m->commit_due || m->perform_due)
        return;
    m->commit_due = true;
    sim_later(m, (int64_t)sim_random(m, 4), (struct msg){.kind = M_COMMIT});
}

static void arm_tick(struct sim *m)
{
    int64_t at = core_deadline_ms(m->core);
    if (at == INT64_MAX || (m->tick_at && m->tick_at <= at))
        return;
    m->tick_at = at;
    sim_later(m, at > m->now_ms ? at - m->now_ms : 0, (struct msg){.kind = M_TICK});
}

bool master_post(struct sim *m, struct core_event *ev, struct waiter w)
{
    if (!m->core)
        return false;
    ev->now_ms = m->now_ms;
    ev->now_us = 1700000000000000 + m->now_ms * 1000;
    ev->request = w.token;
    if (w.token)
        vec_push(&m->waiters, w);
    core_step(m->core, ev, &m->batch);
    if (m->steps < 20000 || m->steps % 16 == 0)
        core_check(m->core);
    m->steps++;
    post_commit(m);
    arm_tick(m);
    return true;
}

static void trace(struct sim *m, const struct core_effect *e)
{
    uint64_t h = m->trace ^ (uint64_t)e->kind;
    if (e->kind == CORE_SAVE_TRIAL)
        h ^= hash_fnv64(e->trial.core, strlen(e->trial.core)) + (uint64_t)e->trial.state;
    if (e->kind == CORE_SAVE_ALLOCATION)
        h ^= hash_fnv64(e->allocation.core, strlen(e->allocation.core));
    m->trace = h * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

void master_commit(struct sim *m)
{
    if (!m->core || !m->commit_due)
        return;
    m->commit_due = false;
    if (sim_chance(m, 2)) { /* before the commit: the batch never was */
        master_crash(m);
        return;
    }
    for (size_t i = 0; i < m->batch.n; i++)
        if (CORE_EFFECT_IS_ROW(m->batch.v[i].kind)) {
            trace(m, &m->batch.v[i]);
            store_apply(m, &m->batch.v[i]);
        }
    m->committed = m->batch;
    m->batch = (struct core_effects)CORE_EFFECTS_INIT;
    m->perform_due = true;
    sim_later(m, 0, (struct msg){.kind = M_PERFORM});
}

static int agent_of(const struct sim *m, const char *id)
{
    for (int i = 0; i < m->hosts_n; i++)
        if (strcmp(m->hosts[i].id, id) == 0)
            return i;
    sim_fail(m, "an order for agent %s, which does not exist", id);
}

static void send_order(struct sim *m, const char *agent, struct order o)
{
    int i = agent_of(m, agent);
    struct host *h = &m->hosts[i];
    if (!h->connected) {
        order_free(&o);
        return;
    }
    struct order *copy = det_memdup(&o, sizeof o);
    int64_t at = m->now_ms + 1 + (int64_t)sim_random(m, 20); /* a stream keeps its order */
    h->order_ms = at > h->order_ms ? at : h->order_ms;
    sim_later(m, h->order_ms - m->now_ms,
              (struct msg){.kind = M_ORDER, .agent = i, .conn = h->conn, .data = copy});
}

static void perform_start(struct sim *m, const struct core_start *s)
{
    struct order o = {.alloc = det_strdup(s->alloc_id), .task = json_incref(s->task),
                      .trial = s->trial_id, .run = s->run_id};
    memcpy(o.container, s->container, UUID_STR_MAX);
    send_order(m, s->agent_id, o);
}

static void perform_kill(struct sim *m, const struct core_kill *k)
{
    struct order o = {.kill = true, .alloc = det_strdup(k->alloc_id)};
    memcpy(o.container, k->container, UUID_STR_MAX);
    send_order(m, k->agent_id, o);
}

static void perform_reply(struct sim *m, const struct core_reply *r)
{
    for (size_t i = 0; i < m->waiters.n; i++) {
        struct waiter w = m->waiters.v[i];
        if (w.token != r->request)
            continue;
        vec_remove(&m->waiters, i);
        if (w.agent >= 0) {
            host_acked(m, w.agent, w.conn, w.task, w.hello);
            return;
        }
        struct task *t = task_find(m, w.task);
        if (t && t->waiting == w.token && !sim_chance(m, 10)) { /* else: the answer is lost */
            t->answered = true;
            t->answer = r->code;
            sim_later(m, 1, (struct msg){.kind = M_TASK, .task = t->uid});
        }
        return;
    }
}

/* Tells the harnesses of an allocation. */
static void tell_tasks(struct sim *m, const char *alloc, bool preempt)
{
    for (int i = 0; i < m->hosts_n; i++) {
        struct task *t = task_of(m, i, alloc);
        if (!t || sim_chance(m, 20))
            continue;
        t->preempt |= preempt;
        t->met |= !preempt;
        sim_later(m, 1, (struct msg){.kind = M_TASK, .task = t->uid});
    }
}

void master_perform(struct sim *m)
{
    if (!m->core || !m->perform_due)
        return;
    m->perform_due = false;
    size_t cut = sim_chance(m, 2) ? sim_random(m, m->committed.n + 1) : SIZE_MAX;
    for (size_t i = 0; i < m->committed.n; i++) {
        const struct core_effect *e = &m->committed.v[i];
        if (i == cut) {
            master_crash(m);
            return;
        }
        if (e->kind == CORE_ORDER_START)
            perform_start(m, &e->start);
        else if (e->kind == CORE_ORDER_KILL)
            perform_kill(m, &e->kill);
        else if (e->kind == CORE_REPLY)
            perform_reply(m, &e->reply);
        else if (e->kind == CORE_PREEMPT)
            tell_tasks(m, e->alloc_id, true);
        else if (e->kind == CORE_RENDEZVOUS)
            tell_tasks(m, e->rendezvous.alloc_id, false);
    }
    core_effects_finish(&m->committed);
    if (m->batch.n)
        post_commit(m);
}

void master_crash(struct sim *m)
{
    m->crashes++;
    core_effects_finish(&m->batch);
    core_effects_finish(&m->committed);
    core_destroy(m->core);
    m->core = NULL;
    m->commit_due = m->perform_due = false;
    m->waiters.n = 0;
    m->tick_at = 0;
    for (int i = 0; i < m->hosts_n; i++)
        if (m->hosts[i].alive)
            host_connect(m, i, 100 + (int64_t)sim_random(m, 5000));
    sim_later(m, (int64_t)sim_random(m, 20000), (struct msg){.kind = M_BOOT});
}

void master_boot(struct sim *m)
{
    if (m->core)
        return;
    m->boots++;
    m->core = store_rebuild(m, &m->o);
    core_restored(m->core, m->now_ms, 1700000000000000 + m->now_ms * 1000, &m->batch);
    core_check(m->core);
    post_commit(m);
    arm_tick(m);
}

void master_tick(struct sim *m)
{
    m->tick_at = 0;
    if (m->core)
        master_post(m, &(struct core_event){.kind = CORE_EV_TICK}, (struct waiter){.agent = -1});
}
