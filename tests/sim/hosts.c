/* Agents: the link, the tasks they know, orders; and how they break. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

void order_free(struct order *o)
{
    free(o->alloc);
    json_decref(o->task);
}

/* Breaks what there is and says hello in a while. */
void host_connect(struct sim *m, int agent, int64_t in_ms)
{
    struct host *h = &m->hosts[agent];
    h->connected = h->hello_sent = false;
    h->conn = ++m->next_conn;
    sim_later(m, in_ms, (struct msg){.kind = M_HELLO, .agent = agent, .conn = h->conn});
}

void host_break(struct sim *m, int agent)
{
    struct host *h = &m->hosts[agent];
    uint64_t old = h->conn;
    if (!h->alive)
        return;
    m->faults++;
    host_connect(m, agent, sim_chance(m, 30) ? 60000 : (int64_t)sim_random(m, 9000));
    sim_later(m, (int64_t)sim_random(m, 10000),
              (struct msg){.kind = M_LINK_DOWN, .agent = agent, .conn = old});
}

/* The host is gone with all that ran on it; it may come back, empty. */
void host_die(struct sim *m, int agent)
{
    struct host *h = &m->hosts[agent];
    if (!h->alive)
        return;
    m->faults++;
    uint64_t old = h->conn;
    for (size_t i = 0; i < h->tasks.n; i++) {
        imap_del(m->tasks, h->tasks.v[i]->uid);
        task_free(h->tasks.v[i]);
    }
    h->tasks.n = 0;
    h->alive = h->connected = false;
    h->conn = ++m->next_conn;
    sim_later(m, (int64_t)sim_random(m, 10000),
              (struct msg){.kind = M_LINK_DOWN, .agent = agent, .conn = old});
    sim_later(m, (int64_t)sim_random(m, 90000), (struct msg){.kind = M_HOST_BACK, .agent = agent});
}

static void fill_task(struct core_task_in *in, const struct task *t)
{
    *in = (struct core_task_in){.alloc = t->alloc, .container = t->container, .exit = t->exit,
                                .state = t->stopped ? CORE_TASK_ENDED
                                         : t->phase <= P_STARTING ? CORE_TASK_STARTING
                                                                  : CORE_TASK_RUNNING};
}

void host_hello(struct sim *m, int agent, uint64_t conn)
{
    struct host *h = &m->hosts[agent];
    if (conn != h->conn || !h->alive || h->hello_sent)
        return;
    struct core_slot_in slots[SLOTS_MAX] = {0};
    for (int i = 0; i < h->slots; i++)
        slots[i] = (struct core_slot_in){.id = i};
    VEC(struct core_task_in) tasks = {0};
    for (size_t i = 0; i < h->tasks.n; i++) {
        vec_reserve(&tasks, tasks.n + 1);
        fill_task(&tasks.v[tasks.n++], h->tasks.v[i]);
    }
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = h->id};
    ev.hello = (struct core_hello){.version = "1",
                                   .pool = "",
                                   .addr = h->id,
                                   .slots = slots,
                                   .slots_n = (size_t)h->slots,
                                   .tasks = tasks.v,
                                   .tasks_n = tasks.n};
    struct waiter w = {.token = ++m->next_token, .agent = agent, .conn = conn, .hello = true};
    h->hello_sent = master_post(m, &ev, w);
    if (!h->hello_sent)
        host_connect(m, agent, 500 + (int64_t)sim_random(m, 2000));
    vec_free(&tasks);
}

struct agent_event {
    uint64_t task;
    bool exit;
    enum core_task_state state;
};

/* In order on the link; what a broken link loses comes again with the hello. */
void host_report(struct sim *m, struct task *t, bool exit, enum core_task_state state)
{
    struct host *h = &m->hosts[t->agent];
    if (!h->connected)
        return;
    int copies = sim_chance(m, 10) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
        struct agent_event *e = det_zalloc(sizeof *e);
        *e = (struct agent_event){t->uid, exit, state};
        sim_later(
            m, 1 + (int64_t)sim_random(m, 30),
            (struct msg){.kind = M_AGENT_EVENT, .agent = t->agent, .conn = h->conn, .data = e});
    }
}

void host_event(struct sim *m, const struct msg *msg)
{
    det_cleanup(freep) struct agent_event *e = msg->data;
    struct host *h = &m->hosts[msg->agent];
    struct task *t = task_find(m, e->task);
    if (!t || !h->connected || msg->conn != h->conn)
        return;
    if (sim_chance(m, 5)) {
        host_break(m, msg->agent);
        return;
    }
    struct core_event ev = {.kind = e->exit ? CORE_EV_AGENT_EXIT : CORE_EV_AGENT_STATE,
                            .agent_id = h->id};
    ev.task = (struct core_task_in){.alloc = t->alloc, .container = t->container, .state = e->state,
                                    .exit = t->exit};
    struct waiter w = {.token = ++m->next_token, .agent = msg->agent, .conn = msg->conn,
                       .task = e->exit ? t->uid : 0};
    if (!master_post(m, &ev, w))
        host_connect(m, msg->agent, 500);
}

static void forget(struct sim *m, struct host *h, size_t i)
{
    struct task *t = h->tasks.v[i];
    vec_remove(&h->tasks, i);
    imap_del(m->tasks, t->uid);
    task_free(t);
}

/* What the master has committed: an exit is forgotten, a hello opens the link. */
void host_acked(struct sim *m, int agent, uint64_t conn, uint64_t task_uid, bool hello)
{
    struct host *h = &m->hosts[agent];
    if (conn != h->conn || !h->alive)
        return;
    for (size_t i = h->tasks.n; i-- > 0;) {
        struct task *t = h->tasks.v[i];
        if (t->stopped && t->uid == task_uid)
            forget(m, h, i);
    }
    if (!hello)
        return;
    h->connected = true;
    for (size_t i = 0; i < h->tasks.n; i++) /* what changed since the hello was written */
        host_report(m, h->tasks.v[i], h->tasks.v[i]->stopped,
                    h->tasks.v[i]->phase > P_STARTING ? CORE_TASK_RUNNING : CORE_TASK_STARTING);
}

static void start(struct sim *m, int agent, struct order *o)
{
    struct host *h = &m->hosts[agent];
    if (task_of(m, agent, o->alloc))
        return;
    if (map_get(m->started, o->container))
        sim_fail(m, "container %s of %s is started again", o->container, o->alloc);
    struct task *t = det_zalloc(sizeof *t);
    t->uid = ++m->next_uid;
    t->alloc = det_strdup(o->alloc);
    memcpy(t->container, o->container, UUID_STR_MAX);
    t->agent = agent;
    t->trial = o->trial;
    t->run = o->run;
    t->gc = strcmp(json_str(o->task, "kind", ""), "TRIAL") != 0;
    t->node = (int)json_int(o->task, "node", 0);
    t->nodes = (int)json_int(o->task, "nodes", 1);
    const json_t *slots = json_arr(o->task, "slots");
    for (size_t i = 0; i < json_array_size(slots); i++)
        t->slots[t->slots_n++] = (int)json_integer_value(json_array_get(slots, i));
    const char *steps = json_str(json_obj(o->task, "env"), "DET_STEPS_COMPLETED", "0");
    t->progress = (double)strtoll(steps, NULL, 10);
    vec_push(&h->tasks, t);
    imap_put(m->tasks, t->uid, t);
    sim_later(m, 5, (struct msg){.kind = M_TASK, .task = t->uid});
}

static void refuse_kill(struct sim *m, int agent, const struct order *o)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_EXIT, .agent_id = m->hosts[agent].id};
    ev.task = (struct core_task_in){.alloc = o->alloc, .container = o->container,
                                    .state = CORE_TASK_ENDED,
                                    .exit = {.reason = CORE_LOST, .rank = -1}};
    master_post(m, &ev, (struct waiter){.agent = -1});
}

void host_order(struct sim *m, const struct msg *msg)
{
    struct order *o = msg->data;
    struct host *h = &m->hosts[msg->agent];
    struct task *t = task_of(m, msg->agent, o->alloc);
    if (h->alive && h->connected && msg->conn == h->conn) {
        if (sim_chance(m, 10))
            host_break(m, msg->agent);
        else if (!o->kill)
            start(m, msg->agent, o);
        else if (!t)
            refuse_kill(m, msg->agent, o);
        else if (!t->stopped)
            task_end(m, t, CORE_KILLED, 0);
    }
    order_free(o);
    free(o);
}
