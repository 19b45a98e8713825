/* Hosts: the real core of an agent (agent/core/) in a process that comes and goes, what performs
 * its effects, and how hosts break. */
#include "host.h"
#include "sim.h"

#include <stdio.h>
#include <string.h>

#define SIM_AILS   "XID 79"
#define SIM_UNSEEN "not looked at yet"

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

const char *hosts_boot(struct sim *m, char out[UUID_STR_MAX])
{
    snprintf(out, UUID_STR_MAX, "b0070000-0000-4000-8000-%012llx",
             (unsigned long long)++m->next_conn & 0xffffffffffff);
    return out;
}

/* ---- what it looks at ---- */

/* One that its last task has just left is not known until it was looked at. */
static void report_slot(struct sim_host *h, int slot)
{
    bool unfit = h->unfit & 1u << slot;
    if (h->agent && h->judges && !(h->unseen & 1u << slot))
        host_on_slot(h->agent,
                     &(struct link_slot_sight){slot, unfit ? LINK_SLOT_AILING : LINK_SLOT_USABLE,
                                               unfit ? SIM_AILS : ""});
}

static void look_later(struct sim *m, struct sim_host *h, int slot)
{
    h->unseen |= 1u << slot;
    sim_later(m, 1 + (int64_t)sim_random(m, 2000),
              (struct msg){
                  .kind = M_LOOK, .index = h->index, .task = (uint64_t)slot, .conn = h->process});
}

static void on_look(struct sim *m, struct sim_host *h, int slot)
{
    h->unseen &= ~(1u << slot);
    report_slot(h, slot);
    hosts_perform(m, h);
}

void hosts_ail(struct sim *m, int index, int slot, bool usable)
{
    struct sim_host *h = &m->hosts[index];
    if (!h->judges || usable != !!(h->unfit & 1u << slot))
        return;
    h->unfit ^= 1u << slot;
    sim_trace(m, "%s   slot %d is %s", h->id, slot, usable ? "usable again" : "not usable");
    report_slot(h, slot);
    hosts_perform(m, h);
    if (!usable)
        sim_later(m, (int64_t)sim_random(m, sim_random(m, 2) ? 20000 : 400000),
                  (struct msg){.kind = M_SLOT, .index = index, .task = (uint64_t)slot});
}

static enum link_store_state look_at_store(const struct sim *m, const struct sim_host *h)
{
    return h->mounted && m->marker[0] ? LINK_STORE_PRESENT : LINK_STORE_ABSENT;
}

static void report_store(const struct sim *m, struct sim_host *h, enum link_store_state state)
{
    if (h->agent && h->watches)
        host_on_store(h->agent, &(struct link_store){SIM_STORE,
                                                     state == LINK_STORE_PRESENT ? m->marker : NULL,
                                                     state, ""});
}

/* Where the file system is not mounted nothing can be made: the mount point is read-only. */
static void watch_store(struct sim *m, struct sim_host *h, bool make)
{
    h->watches = true;
    if (make && h->mounted && !m->marker[0])
        snprintf(m->marker, sizeof m->marker, "00000000-0000-4000-8000-%012llx",
                 (unsigned long long)m->in.seed & 0xffffffffffff);
    report_store(m, h, make && !h->mounted ? LINK_STORE_FAILED : look_at_store(m, h));
}

void hosts_mount(struct sim *m, int index, bool mounted)
{
    struct sim_host *h = &m->hosts[index];
    if (h->mounted == mounted)
        return;
    h->mounted = mounted;
    sim_trace(m, "%s   has %s checkpoint store", h->id, mounted ? "its" : "no");
    report_store(m, h, look_at_store(m, h));
    hosts_perform(m, h);
    if (!mounted)
        sim_later(m, (int64_t)sim_random(m, sim_random(m, 2) ? 20000 : 400000),
                  (struct msg){.kind = M_MOUNT, .index = index});
}

/* ---- its effects ---- */

static void refuse_start(struct sim_host *h, const char *alloc)
{
    const struct link_exit e = {.reason = LINK_START_FAILED, .rank = -1, .text = "no room"};
    host_on_ended(h->agent, alloc, &e);
    host_on_gone(h->agent, alloc);
}

/* I4: who has a slot is alone on it. */
static void check_alone(const struct sim *m, const struct sim_host *h, const struct task *t)
{
    for (size_t i = 0; i < h->tasks.n; i++) {
        const struct task *o = h->tasks.v[i];
        for (size_t k = 0; o != t && !o->stopped && k < o->slots.n; k++)
            for (size_t j = 0; j < t->slots.n; j++)
                if (o->slots.v[k] == t->slots.v[j])
                    sim_fail(m, "I4: %s starts on slot %d of %s, where %s runs", t->alloc,
                             t->slots.v[j], h->id, o->alloc);
    }
}

static void start(struct sim *m, struct sim_host *h, const struct host_effect *e)
{
    const json_t *env = json_obj(e->task, "env"), *slots = json_arr(e->task, "slots");
    if (map_get(m->started, e->container))
        sim_fail(m, "I1: container %s of %s is started again", e->container, e->alloc);
    if (m->now_ms < h->broken_until && sim_random(m, 2)) {
        refuse_start(h, e->alloc);
        return;
    }
    struct task *t = task_create(m, h->index, e->alloc, e->container);
    t->trial = strtoll(json_str(env, "DET_TRIAL_ID", "0"), NULL, 10);
    t->run = json_int(e->task, "run_id", 0);
    t->gc = strcmp(json_str(e->task, "kind", ""), "TRIAL") != 0;
    t->has_store = json_str(env, "DET_STORE_ID", NULL) != NULL;
    t->node = (int)json_int(e->task, "node", 0);
    t->nodes = (int)json_int(e->task, "nodes", 1);
    for (size_t i = 0; i < json_array_size(slots); i++)
        vec_push(&t->slots, (int)json_integer_value(json_array_get(slots, i)));
    t->progress = (double)strtoll(json_str(env, "DET_STEPS_COMPLETED", "0"), NULL, 10);
    check_alone(m, h, t);
    if (sim_chance(m, 10)) /* the order dies with the server that was to fork */
        life_die(m, t);
    else
        task_begin(m, t);
}

/* Another det-task, in place of one that is gone. */
static void recover(struct sim *m, struct sim_host *h, const char *alloc)
{
    struct task *t = task_of(m, h->index, alloc);
    if (!t || !t->is_dead)
        sim_fail(m, "I1: a second det-task takes over %s on %s", alloc, h->id);
    if (t->has_begun)
        life_recover(m, t);
    else
        task_begin(m, t);
}

static void forget(struct sim *m, struct sim_host *h, const char *alloc)
{
    struct task *t = task_of(m, h->index, alloc);
    if (t && t->phase != P_ENDED)
        sim_fail(m, "I3: %s is forgotten on %s while it runs", alloc, h->id);
    if (t)
        task_free(m, t);
}

static void perform(struct sim *m, struct sim_host *h, const struct host_effect *e)
{
    struct task *t = task_of(m, h->index, e->alloc);
    switch (e->kind) {
    case HOST_START: start(m, h, e); break;
    case HOST_RECOVER: recover(m, h, e->alloc); break;
    case HOST_SIGNAL:
        if (t && !t->is_dead)
            task_end(m, t, CORE_KILLED, 0);
        break;
    case HOST_STACKS: break;
    case HOST_ACKED:
        if (t && !t->is_dead)
            life_step(m, t, (struct tasklife_event){.kind = TASKLIFE_ACKED});
        break;
    case HOST_FORGET: forget(m, h, e->alloc); break;
    case HOST_SETTLE: look_later(m, h, e->slot); break;
    case HOST_LOOK: watch_store(m, h, json_flag(e->task, "make", false)); break;
    case HOST_UNLOOK: h->watches = false; break;
    }
}

void hosts_perform(struct sim *m, struct sim_host *h)
{
    struct host_effect e;
    if (!h->agent || h->is_performing)
        return;
    h->is_performing = true;
    while (host_take(h->agent, &e)) {
        perform(m, h, &e);
        json_decref(e.task);
    }
    h->is_performing = false;
    host_check(h->agent);
    links_step(m, h);
}

/* ---- what det-tasks say ---- */

enum word { WORD_RUNNING, WORD_ENDED, WORD_GONE };

static void say(struct sim *m, const struct task *t, enum word word)
{
    sim_later(m, 1,
              (struct msg){.kind = M_WORD,
                           .index = t->host,
                           .task = t->uid,
                           .conn = m->hosts[t->host].process << 2 | word});
}

void hosts_hear_running(struct sim *m, const struct task *t)
{
    say(m, t, WORD_RUNNING);
}

void hosts_hear_ended(struct sim *m, const struct task *t)
{
    say(m, t, WORD_ENDED);
}

void hosts_hear_gone(struct sim *m, const struct task *t)
{
    say(m, t, WORD_GONE);
}

/* Whether its rank is silent just now: it decides nothing, and takes nothing from the seed. */
static void tell_silence(const struct sim *m, struct host *agent, const struct task *t)
{
    const struct link_silent s = {
        .phase = "training", .rank = t->node, .silent_ms = 10000, .timeout_ms = 60000};
    bool is = (uint64_t)m->now_ms / 1000 % 3 == t->uid % 3 && t->phase != P_ENDED;
    host_on_silent(agent, t->alloc, is ? &s : NULL);
}

enum { DEAF_TELL_MS = 4000, UNREACHED_MAX_MS = 200000 };

bool hosts_is_deaf(const struct sim *m, int index)
{
    return m->now_ms < m->hosts[index].deaf_until;
}

/* As long as it lasts, and once more. */
static void tell_deaf(struct sim *m, const struct sim_host *h)
{
    for (size_t i = 0; i < h->tasks.n; i++)
        if (!h->tasks.v[i]->is_dead && !h->tasks.v[i]->stopped && h->tasks.v[i]->has_run)
            say(m, h->tasks.v[i], WORD_RUNNING);
    if (hosts_is_deaf(m, h->index))
        sim_later(m, DEAF_TELL_MS, (struct msg){.kind = M_DEAF, .index = h->index});
}

void hosts_deafen(struct sim *m, int index, int64_t until)
{
    struct sim_host *h = &m->hosts[index];
    bool was = hosts_is_deaf(m, index);
    h->deaf_until = until;
    if (was)
        return;
    h->deaf_from = m->now_ms;
    sim_later(m, DEAF_TELL_MS, (struct msg){.kind = M_DEAF, .index = index});
}

/* What a task tells over one connection, without a word that is lost, ends it in time. */
static void check_unreached(const struct sim *m, const struct sim_host *h, struct task *t)
{
    bool is_heard = hosts_is_deaf(m, h->index) && h->dial.is_greeted &&
                    !hosts_cut_up(m, h->index) && !hosts_cut_down(m, h->index) &&
                    sim_store_back_ms(m) <= m->now_ms;
    if (!is_heard || t->unreached_conn != h->dial.conn)
        t->unreached_from = m->now_ms;
    t->unreached_conn = h->dial.conn;
    if (m->now_ms - t->unreached_from > UNREACHED_MAX_MS)
        sim_fail(m, "I3: %s has told for %lld s that it gets no answer, and runs", t->alloc,
                 (long long)(m->now_ms - t->unreached_from) / 1000);
}

static void tell_unreached(const struct sim *m, const struct sim_host *h, struct task *t)
{
    const struct link_unreached u = {"Permission denied", m->now_ms - h->deaf_from};
    check_unreached(m, h, t);
    host_on_unreached(h->agent, t->alloc, hosts_is_deaf(m, h->index) ? &u : NULL);
}

static void tell_marks(struct host *agent, const struct task *t)
{
    JSON_OWN marks = json_array();
    const struct link_mark mark = {.kind = "prepared", .at_us = t->begun_ms * 1000, .detail = ""};
    json_array_append_new(marks, link_mark_json(&mark));
    host_on_marks(agent, t->alloc, marks);
}

static void tell_ended(struct host *agent, const struct task *t)
{
    const struct link_exit e = {.reason = (enum link_exit_reason)t->exit.reason,
                                .code = t->exit.code,
                                .rank = t->exit.rank,
                                .text = "",
                                .exception = t->exit.exception,
                                .at = t->exit.at};
    host_on_ended(agent, t->alloc, &e);
}

static void on_word(struct sim *m, struct sim_host *h, const struct msg *msg)
{
    struct task *t = task_find(m, msg->task);
    enum word word = (enum word)(msg->conn & 3);
    if (!h->agent || !t || msg->conn >> 2 != h->process)
        return;
    if (word == WORD_RUNNING) {
        tell_marks(h->agent, t);
        tell_silence(m, h->agent, t);
        tell_unreached(m, h, t);
        host_on_running(h->agent, t->alloc);
    }
    if (word == WORD_ENDED || (word == WORD_GONE && t->stopped)) /* its state file says so */
        tell_ended(h->agent, t);
    if (word == WORD_GONE)
        host_on_gone(h->agent, t->alloc);
    hosts_perform(m, h);
}

/* ---- its process ---- */

int hosts_island(const struct sim_host *h, int slot)
{
    return h->wiring == WIRES_PAIRS ? slot / 2 : h->wiring == WIRES_APART ? slot % 2 : -1;
}

int hosts_numa(const struct sim_host *h, int slot)
{
    return h->wiring == WIRES_APART ? slot / 2 : h->wiring == WIRES_NODES ? slot % 2 : -1;
}

static struct host *create(struct sim *m, const struct sim_host *h)
{
    char boot[UUID_STR_MAX];
    VEC(struct link_slot) slots = {0};
    for (int i = 0; i < h->slots; i++)
        vec_push(&slots, (struct link_slot){
                             .id = i, .island = hosts_island(h, i), .numa = hosts_numa(h, i)});
    struct host *agent = host_create(hosts_boot(m, boot), h->pool, h->id, slots.v, slots.n);
    vec_free(&slots);
    return agent;
}

/* From the directories of tasks there are, and the state file of who has ended; each det-task says
 * how it is, or is gone. */
static void adopt(struct sim *m, struct sim_host *h)
{
    for (size_t i = 0; i < h->tasks.n; i++) {
        const struct task *t = h->tasks.v[i];
        host_adopt(h->agent, t->alloc, t->container, t->slots.v, t->slots.n);
        if (t->stopped)
            tell_ended(h->agent, t);
        if (t->is_dead)
            say(m, t, WORD_GONE);
        else if (t->stopped)
            say(m, t, WORD_ENDED);
        else if (t->has_run)
            say(m, t, WORD_RUNNING);
    }
}

static void begin(struct sim *m, struct sim_host *h, int64_t in_ms)
{
    h->process++;
    h->agent = create(m, h);
    for (int i = 0; h->judges && i < h->slots; i++) {
        host_on_slot(h->agent, &(struct link_slot_sight){i, LINK_SLOT_UNSEEN, SIM_UNSEEN});
        look_later(m, h, i);
    }
    adopt(m, h);
    h->dial.conn = ++m->next_conn;
    host_hello(h->agent, NULL);
    links_dial(m, h, in_ms);
    hosts_perform(m, h);
}

static void end(struct sim *m, struct sim_host *h)
{
    if (!h->agent)
        return;
    links_close(m, h);
    host_destroy(h->agent);
    h->agent = NULL;
    h->process++;
    h->watches = false;
    h->unseen = 0;
}

void hosts_begin(struct sim *m, int index, int64_t in_ms)
{
    struct sim_host *h = &m->hosts[index];
    if (h->alive && !h->agent)
        begin(m, h, in_ms);
}

void hosts_finish(struct sim_host *h)
{
    host_destroy(h->agent);
    vec_free(&h->tasks);
}

/* ---- how it breaks ---- */

void hosts_break(struct sim *m, int index)
{
    if (!m->hosts[index].agent)
        return;
    m->got.faults++;
    sim_trace(m, "%s   loses its link", m->hosts[index].id);
    links_down(m, index, sim_chance(m, 30) ? 60000 : (int64_t)sim_random(m, 9000));
}

/* Its tasks go on, and are found by the next one. */
void hosts_restart(struct sim *m, int index)
{
    struct sim_host *h = &m->hosts[index];
    if (!h->agent)
        return;
    m->got.faults++;
    sim_trace(m, "%s   its agent dies", h->id);
    end(m, h);
    sim_later(m, (int64_t)sim_random(m, sim_random(m, 4) ? 3000 : 60000),
              (struct msg){.kind = M_AGENT_BACK, .index = index});
}

/* The host is gone with all that ran on it; it may come back, with its disk or empty. */
void hosts_die(struct sim *m, int index)
{
    struct sim_host *h = &m->hosts[index];
    if (!h->alive)
        return;
    m->got.faults++;
    sim_trace(m, "%s   dies with %zu tasks", h->id, h->tasks.n);
    end(m, h);
    h->alive = false;
    if (sim_random(m, 2))
        while (h->tasks.n)
            task_free(m, h->tasks.v[h->tasks.n - 1]);
    for (size_t i = 0; i < h->tasks.n; i++)
        life_lose_power(h->tasks.v[i]);
    sim_later(m, (int64_t)sim_random(m, 90000), (struct msg){.kind = M_HOST_BACK, .index = index});
}

void hosts_back(struct sim *m, int index)
{
    m->hosts[index].alive = true;
    hosts_begin(m, index, 100);
}

void hosts_on(struct sim *m, const struct msg *msg)
{
    struct sim_host *h = &m->hosts[msg->index];
    if (msg->kind == M_WORD)
        on_word(m, h, msg);
    else if (msg->kind == M_LOOK && h->agent && msg->conn == h->process)
        on_look(m, h, (int)msg->task);
    else if (msg->kind == M_SLOT)
        hosts_ail(m, msg->index, (int)msg->task, true);
    else if (msg->kind == M_DEAF)
        tell_deaf(m, h);
    else if (msg->kind == M_MOUNT)
        hosts_mount(m, msg->index, true);
    else if (msg->kind == M_AGENT_BACK)
        hosts_begin(m, msg->index, 100);
    else if (msg->kind == M_HOST_BACK && !h->alive)
        hosts_back(m, msg->index);
}
