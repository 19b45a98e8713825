/* Agents: the link, the tasks they know, orders; and how they break. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

#define SIM_AILS "XID 79"

struct order {
    bool kill, store, make;
    char *alloc, container[UUID_STR_MAX];
    json_t *task, *env;
    int64_t trial, run;
};
struct agent_event {
    uint64_t task;
    bool exit;
    enum core_task_state state;
};

static void order_free(struct order *o)
{
    free(o->alloc);
    json_decref(o->task);
    json_decref(o->env);
    free(o);
}

void hosts_msg_free(struct msg *msg)
{
    if (msg->kind == M_ORDER)
        order_free(msg->data);
    else if (msg->kind == M_ORPHAN)
        driver_orphan_free(msg->data);
    else
        free(msg->data);
}

bool hosts_cut_up(const struct sim *m, int index)
{
    return m->hosts[index].up_cut > m->now_ms;
}

bool hosts_cut_down(const struct sim *m, int index)
{
    return m->hosts[index].down_cut > m->now_ms;
}

int hosts_find(const struct sim *m, const char *id)
{
    long i = strncmp(id, "agent-", 6) == 0 ? strtol(id + 6, NULL, 10) : -1;
    if (i < 0 || i >= m->hosts_n || strcmp(m->hosts[i].id, id) != 0)
        sim_fail(m, "agent %s does not exist", id);
    return (int)i;
}

/* It tries its masters in turn: one that was replaced and does not know it yet may answer first. */
static int choose_master(struct sim *m)
{
    int other = (m->leader + 1 + (int)sim_random(m, MASTERS - 1)) % MASTERS;
    return master_serves(m, &m->masters[other]) && sim_random(m, 2) ? other : m->leader;
}

/* Breaks what there is and says hello in a while. */
void hosts_connect(struct sim *m, int index, int64_t in_ms)
{
    struct sim_host *h = &m->hosts[index];
    if (h->heard_conn && h->heard_conn == h->conn) /* the master hears of it, or notices silence */
        sim_later(m, (int64_t)sim_random(m, SILENCE_MS),
                  (struct msg){.kind = M_LINK_DOWN, .index = index, .conn = h->conn});
    h->connected = h->hello_sent = false;
    h->conn = ++m->next_conn;
    sim_later(m, in_ms, (struct msg){.kind = M_HELLO, .index = index, .conn = h->conn});
}

void hosts_break(struct sim *m, int index)
{
    if (!m->hosts[index].alive)
        return;
    m->got.faults++;
    sim_trace(m, "%s   loses its link", m->hosts[index].id);
    hosts_connect(m, index, sim_chance(m, 30) ? 60000 : (int64_t)sim_random(m, 9000));
}

/* The host is gone with all that ran on it; it may come back, empty. */
void hosts_die(struct sim *m, int index)
{
    struct sim_host *h = &m->hosts[index];
    if (!h->alive)
        return;
    m->got.faults++;
    sim_trace(m, "%s   dies with %zu tasks", h->id, h->tasks.n);
    hosts_connect(m, index, 0);
    while (h->tasks.n)
        task_free(m, h->tasks.v[h->tasks.n - 1]);
    h->alive = false;
    map_destroy(h->dropped);
    h->dropped = map_create();
    sim_later(m, (int64_t)sim_random(m, 90000), (struct msg){.kind = M_HOST_BACK, .index = index});
}

void hosts_back(struct sim *m, int index)
{
    if (m->hosts[index].alive)
        return;
    m->hosts[index].alive = true;
    hosts_connect(m, index, 100);
}

/* Whether its rank is silent just now: it decides nothing, and takes nothing from the seed. */
static struct core_silent silence_of(const struct sim *m, const struct task *t)
{
    bool is = (uint64_t)m->now_ms / 1000 % 3 == t->uid % 3 && t->has_run;
    return (struct core_silent){is && t->phase != P_ENDED ? "training" : NULL, t->node, 10000, 60000};
}

static void fill_task(const struct sim *m, struct core_task_in *in, const struct task *t)
{
    *in = (struct core_task_in){.alloc = t->alloc, .container = t->container, .exit = t->exit,
                                .state = t->stopped ? CORE_TASK_ENDED
                                         : t->has_run ? CORE_TASK_RUNNING
                                                      : CORE_TASK_STARTING};
    in->silent = silence_of(m, t);
}

static bool say_hello(struct sim *m, struct sim_host *h, struct master *s)
{
    VEC(struct core_slot_in) slots = {0};
    VEC(struct core_task_in) tasks = {0};
    VEC(struct core_slot_sight) unfit = {0};
    for (int i = 0; i < h->slots; i++) {
        vec_push(&slots, (struct core_slot_in){.id = i});
        if (h->unfit & 1u << i)
            vec_push(&unfit, (struct core_slot_sight){i, CORE_SLOT_AILING, SIM_AILS});
    }
    for (size_t i = 0; i < h->tasks.n; i++) {
        struct core_task_in in;
        fill_task(m, &in, h->tasks.v[i]);
        vec_push(&tasks, in);
    }
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = h->id};
    ev.hello = (struct core_hello){.version = "1", .pool = h->pool, .addr = h->id,
                                   .slots = slots.v, .slots_n = slots.n,
                                   .tasks = tasks.v, .tasks_n = tasks.n, .looks = h->looks,
                                   .judges = h->judges, .unfit = unfit.v, .unfit_n = unfit.n};
    h->watches = false;
    struct waiter w = {.token = ++m->next_token, .host = h->index, .conn = h->conn, .hello = true};
    bool heard = master_post(m, s, &ev, w);
    vec_free(&slots);
    vec_free(&tasks);
    vec_free(&unfit);
    return heard;
}

/* One that is not answered breaks the link after a while: task is 1. */
static void on_hello(struct sim *m, const struct msg *msg)
{
    struct sim_host *h = &m->hosts[msg->index];
    if (msg->conn != h->conn || !h->alive || h->connected)
        return;
    struct master *s = &m->masters[choose_master(m)];
    h->hello_sent = !msg->task && !hosts_cut_up(m, h->index) && say_hello(m, h, s);
    if (!h->hello_sent) {
        hosts_connect(m, h->index, 500 + (int64_t)sim_random(m, 2000));
        return;
    }
    h->heard_conn = h->conn;
    h->heard_by = h->master = s->index;
    sim_later(m, SILENCE_MS, (struct msg){.kind = M_HELLO, .index = h->index, .conn = h->conn,
                                          .task = 1});
}

static void on_link_down(struct sim *m, const struct msg *msg)
{
    struct sim_host *h = &m->hosts[msg->index];
    struct master *s = &m->masters[h->heard_by];
    if (h->heard_conn != msg->conn || !s->core)
        return;
    if (!master_serves(m, s)) {
        sim_later(m, 500, *msg);
        return;
    }
    h->heard_conn = 0;
    master_post(m, s, &(struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = h->id},
                (struct waiter){.host = -1});
}

void hosts_refused(struct sim *m, const struct waiter *w)
{
    struct sim_host *h = &m->hosts[w->host];
    if (h->conn != w->conn)
        return;
    if (w->hello)
        h->heard_conn = 0;
    hosts_break(m, h->index);
}

/* In order on the link; what a broken link loses comes again with the hello. */
void hosts_report(struct sim *m, struct task *t, bool exit, enum core_task_state state)
{
    struct sim_host *h = &m->hosts[t->host];
    if (!h->connected)
        return;
    int copies = sim_chance(m, 10) ? 2 : 1;
    for (int i = 0; i < copies; i++) {
        struct agent_event e = {t->uid, exit, state};
        sim_later(m, 1 + (int64_t)sim_random(m, 30),
                  (struct msg){.kind = M_AGENT_EVENT, .index = t->host, .conn = h->conn,
                               .data = det_memdup(&e, sizeof e)});
    }
}

static void on_event(struct sim *m, const struct msg *msg)
{
    det_cleanup(freep) struct agent_event *e = msg->data;
    struct sim_host *h = &m->hosts[msg->index];
    struct task *t = task_find(m, e->task);
    if (!t || !h->connected || msg->conn != h->conn)
        return;
    if (hosts_cut_up(m, h->index) || sim_chance(m, 5)) {
        hosts_break(m, h->index);
        return;
    }
    struct core_event ev = {.kind = e->exit ? CORE_EV_AGENT_EXIT : CORE_EV_AGENT_STATE,
                            .agent_id = h->id};
    ev.task = (struct core_task_in){.alloc = t->alloc, .container = t->container, .state = e->state,
                                    .exit = t->exit, .silent = silence_of(m, t)};
    struct waiter w = {.token = ++m->next_token, .host = h->index, .conn = h->conn,
                       .task = e->exit ? t->uid : 0};
    if (!master_post(m, &m->masters[h->master], &ev, w))
        hosts_connect(m, h->index, 500);
}

/* ---- The checkpoint store ---- */

static void report(struct sim *m, struct sim_host *h, struct core_event *ev)
{
    if (!h->connected) /* the hello begins anew */
        return;
    if (hosts_cut_up(m, h->index))
        hosts_break(m, h->index);
    else if (!master_post(m, &m->masters[h->master], ev, (struct waiter){.host = -1}))
        hosts_connect(m, h->index, 500);
}

static void report_slot(struct sim *m, struct sim_host *h, int slot)
{
    bool unfit = h->unfit & 1u << slot;
    struct core_event ev = {.kind = CORE_EV_AGENT_SLOT, .agent_id = h->id};
    ev.sight = (struct core_slot_sight){slot, unfit ? CORE_SLOT_AILING : CORE_SLOT_USABLE,
                                        unfit ? SIM_AILS : ""};
    report(m, h, &ev);
}

static void report_store(struct sim *m, struct sim_host *h, enum core_store_kind kind)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_STORE, .agent_id = h->id};
    ev.store = (struct core_store_in){SIM_STORE, m->marker, kind, ""};
    report(m, h, &ev);
}

static enum core_store_kind look(const struct sim *m, const struct sim_host *h)
{
    return h->mounted && m->marker[0] ? CORE_STORE_PRESENT : CORE_STORE_ABSENT;
}

/* What the master has committed: an exit is forgotten, a hello opens the link. */
void hosts_acked(struct sim *m, const struct waiter *w)
{
    struct sim_host *h = &m->hosts[w->host];
    if (w->conn != h->conn || !h->alive)
        return;
    for (size_t i = h->tasks.n; i-- > 0;)
        if (h->tasks.v[i]->stopped && h->tasks.v[i]->uid == w->task) {
            map_put(h->dropped, h->tasks.v[i]->container, h);
            task_free(m, h->tasks.v[i]);
        }
    if (!w->hello)
        return;
    h->connected = true;
    if (h->watches)
        report_store(m, h, look(m, h));
    for (int i = 0; h->judges && i < h->slots; i++)
        report_slot(m, h, i);
    for (size_t i = 0; i < h->tasks.n; i++) /* what changed since the hello was written */
        hosts_report(m, h->tasks.v[i], h->tasks.v[i]->stopped,
                    h->tasks.v[i]->has_run ? CORE_TASK_RUNNING : CORE_TASK_STARTING);
}

/* A stream keeps its order. A master that the host has left speaks to nobody. */
static bool send_order(struct sim *m, const struct master *s, int host, struct order o)
{
    struct sim_host *h = &m->hosts[host];
    struct order *copy = det_memdup(&o, sizeof o);
    if (h->heard_conn != h->conn || h->heard_by != s->index) {
        order_free(copy);
        return false;
    }
    int64_t at = m->now_ms + 1 + (int64_t)sim_random(m, 20);
    h->order_ms = at > h->order_ms ? at : h->order_ms;
    sim_later(m, h->order_ms - m->now_ms,
              (struct msg){.kind = M_ORDER, .index = host, .conn = h->conn, .data = copy});
    return true;
}

bool hosts_order_start(struct sim *m, const struct master *s, const struct core_start *in)
{
    struct order o = {.alloc = det_strdup(in->alloc_id),
                      .task = json_parse(in->task, strlen(in->task), NULL),
                      .env = json_parse(in->env, strlen(in->env), NULL),
                      .trial = in->trial_id, .run = in->run_id};
    memcpy(o.container, in->container, UUID_STR_MAX);
    return send_order(m, s, hosts_find(m, in->agent_id), o);
}

bool hosts_order_kill(struct sim *m, const struct master *s, const struct core_kill *in)
{
    struct order o = {.kill = true, .alloc = det_strdup(in->alloc_id)};
    memcpy(o.container, in->container, UUID_STR_MAX);
    return send_order(m, s, hosts_find(m, in->agent_id), o);
}

void hosts_order_store(struct sim *m, const struct master *s, const struct core_store_order *in)
{
    struct order o = {.store = true, .make = in->make};
    send_order(m, s, hosts_find(m, in->agent_id), o);
}

/* Where the file system is not mounted nothing can be made: the mount point is read-only. */
static void on_store_order(struct sim *m, struct sim_host *h, bool make)
{
    h->watches = true;
    if (make && h->mounted && !m->marker[0])
        snprintf(m->marker, sizeof m->marker, "00000000-0000-4000-8000-%012llx",
                 (unsigned long long)m->in.seed & 0xffffffffffff);
    report_store(m, h, make && !h->mounted ? CORE_STORE_FAILED : look(m, h));
}

void hosts_mount(struct sim *m, int index, bool mounted)
{
    struct sim_host *h = &m->hosts[index];
    if (h->mounted == mounted)
        return;
    h->mounted = mounted;
    sim_trace(m, "%s   has %s checkpoint store", h->id, mounted ? "its" : "no");
    if (h->alive && h->watches)
        report_store(m, h, look(m, h));
    if (!mounted)
        sim_later(m, (int64_t)sim_random(m, sim_random(m, 2) ? 20000 : 400000),
                  (struct msg){.kind = M_MOUNT, .index = index});
}

void hosts_ail(struct sim *m, int index, int slot, bool usable)
{
    struct sim_host *h = &m->hosts[index];
    if (!h->judges || usable != !!(h->unfit & 1u << slot))
        return;
    h->unfit ^= 1u << slot;
    sim_trace(m, "%s   slot %d is %s", h->id, slot, usable ? "usable again" : "not usable");
    if (h->alive)
        report_slot(m, h, slot);
    if (!usable)
        sim_later(m, (int64_t)sim_random(m, sim_random(m, 2) ? 20000 : 400000),
                  (struct msg){.kind = M_SLOT, .index = index, .task = (uint64_t)slot});
}

static void start(struct sim *m, int host, const struct order *o)
{
    if (task_of(m, host, o->alloc) || map_get(m->hosts[host].dropped, o->container))
        return; /* the acknowledgement of its end may overtake a start that was sent twice */
    if (map_get(m->started, o->container))
        sim_fail(m, "I1: container %s of %s is started again", o->container, o->alloc);
    struct task *t = task_create(m, host, o->alloc, o->container);
    t->trial = o->trial;
    t->run = o->run;
    t->gc = strcmp(json_str(o->task, "kind", ""), "TRIAL") != 0;
    t->has_store = json_str(o->env, "DET_STORE_ID", NULL) != NULL;
    t->node = (int)json_int(o->task, "node", 0);
    t->nodes = (int)json_int(o->task, "nodes", 1);
    const json_t *slots = json_arr(o->task, "slots");
    for (size_t i = 0; i < json_array_size(slots); i++)
        vec_push(&t->slots, (int)json_integer_value(json_array_get(slots, i)));
    const char *steps = json_str(o->env, "DET_STEPS_COMPLETED", "0");
    t->progress = (double)strtoll(steps, NULL, 10);
    sim_later(m, 5, (struct msg){.kind = M_TASK, .task = t->uid});
}

/* A kill for a task it never had: that is over. */
static void refuse_kill(struct sim *m, struct sim_host *h, const struct order *o)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_EXIT, .agent_id = h->id};
    ev.task = (struct core_task_in){.alloc = o->alloc, .container = o->container,
                                    .state = CORE_TASK_ENDED,
                                    .exit = {.reason = CORE_LOST, .rank = -1}};
    if (!hosts_cut_up(m, h->index))
        master_post(m, &m->masters[h->master], &ev, (struct waiter){.host = -1});
}

/* Between the order and its arrival the link may have opened only halfway: the hello's answer
 * follows. */
static void on_order(struct sim *m, const struct msg *msg)
{
    struct order *o = msg->data;
    struct sim_host *h = &m->hosts[msg->index];
    if (h->alive && msg->conn == h->conn && !hosts_cut_down(m, h->index)) {
        struct task *t = o->store ? NULL : task_of(m, msg->index, o->alloc);
        if (sim_chance(m, 10))
            hosts_break(m, msg->index);
        else if (o->store)
            on_store_order(m, h, o->make);
        else if (!o->kill)
            start(m, msg->index, o);
        else if (!t)
            refuse_kill(m, h, o);
        else if (!t->stopped)
            task_end(m, t, CORE_KILLED, 0);
    }
    order_free(o);
}

void hosts_on(struct sim *m, const struct msg *msg)
{
    if (msg->kind == M_HELLO)
        on_hello(m, msg);
    else if (msg->kind == M_LINK_DOWN)
        on_link_down(m, msg);
    else if (msg->kind == M_AGENT_EVENT)
        on_event(m, msg);
    else if (msg->kind == M_ORDER)
        on_order(m, msg);
    else if (msg->kind == M_SLOT)
        hosts_ail(m, msg->index, (int)msg->task, true);
    else if (msg->kind == M_MOUNT)
        hosts_mount(m, msg->index, true);
    else
        hosts_back(m, msg->index);
}
