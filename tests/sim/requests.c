/* Requests of harnesses: separate connections, so they are lost, late, doubled and overtaken. */
#include "sim.h"

#include <stdio.h>

struct request {
    struct core_event ev;
    int host;
    uint64_t task, token;
    double metric;
    char container[UUID_STR_MAX], uuid[48], alloc[];
};

struct sim_master *request_reach(struct sim *m, const struct task *t)
{
    struct sim_master *s = sim_master_leader(m);
    bool cut = hosts_cut_up(m, t->host) || hosts_cut_down(m, t->host) || hosts_is_deaf(m, t->host);
    return cut || !sim_master_serves(m, s) ? NULL : s;
}

static void launch(struct sim *m, const struct task *t, const struct core_event *ev, uint64_t token)
{
    size_t n = strlen(t->alloc) + 1;
    struct request *r = det_zalloc(sizeof *r + n);
    r->ev = *ev;
    r->host = t->host;
    r->task = t->uid;
    r->token = token;
    r->metric = t->metric;
    memcpy(r->alloc, t->alloc, n);
    memcpy(r->container, t->container, UUID_STR_MAX);
    if (ev->kind == CORE_EV_CHECKPOINT)
        snprintf(r->uuid, sizeof r->uuid, "cp-%lld-%lld", (long long)t->trial,
                 (long long)ev->checkpoint.steps);
    int64_t in_ms = 1 + (int64_t)sim_random(m, 15);
    if (sim_chance(m, 15))
        in_ms += (int64_t)sim_random(m, sim_random(m, 3) ? 3000 : 60000);
    sim_later(m, in_ms, (struct msg){.kind = M_REQUEST, .data = r});
}

void request_send(struct sim *m, const struct task *t, struct core_event ev, uint64_t token)
{
    if (sim_chance(m, 10) || hosts_cut_up(m, t->host) || hosts_is_deaf(m, t->host))
        return;
    launch(m, t, &ev, token);
    if (sim_chance(m, 10))
        launch(m, t, &ev, token);
}

/* Metrics and checkpoints are rows first; their fence is in the writing statement. */
static bool write_rows(struct sim *m, const struct request *r)
{
    const struct core_event *ev = &r->ev;
    if (ev->kind == CORE_EV_PROGRESS)
        return sim_store_write(m, ev->trial_id, ev->run_id, ev->units, false);
    if (ev->kind == CORE_EV_CHECKPOINT)
        return sim_store_write(m, ev->trial_id, ev->run_id, (double)ev->checkpoint.steps, true);
    return true;
}

/* Before the master notices that PostgreSQL hangs, PostgreSQL gets it and does it afterwards. */
static bool is_held_up(struct sim *m, const struct msg *msg)
{
    int64_t back = sim_store_back_ms(m);
    if (m->now_ms >= m->store.hung_until || sim_store_noticed(m))
        return false;
    sim_later(m, back - m->now_ms + (int64_t)sim_random(m, 100), *msg);
    return true;
}

void request_arrive(struct sim *m, struct msg *msg)
{
    if (is_held_up(m, msg))
        return;
    det_cleanup(freep) struct request *r = msg->data;
    struct sim_master *s = sim_master_leader(m);
    struct task *t = task_find(m, r->task);
    if (!sim_master_serves(m, s) || sim_store_back_ms(m) > m->now_ms)
        return;
    if (!write_rows(m, r)) {
        if (t && r->token)
            task_answer(m, t, r->token, DET_ESTALE);
        return;
    }
    JSON_OWN metric = json_real(r->metric);
    struct core_event ev = r->ev;
    ev.alloc_id = r->alloc;
    ev.container = r->container;
    if (ev.kind == CORE_EV_OP_COMPLETED)
        ev.op.metric = metric;
    if (ev.kind == CORE_EV_CHECKPOINT)
        ev.checkpoint.uuid = r->uuid;
    struct waiter w = {
        .token = r->token ? r->token : ++m->next_token, .host = -1, .task = r->token ? r->task : 0};
    if (!imap_get(s->waiters, w.token)) /* one that came twice is asked once */
        sim_master_post(m, s, &ev, w);
}
