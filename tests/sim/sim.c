#include "sim.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t seed_shown;

uint64_t sim_random(struct sim *m, uint64_t below)
{
    uint64_t x = m->rng += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}

bool sim_chance(struct sim *m, int per_mille)
{
    return !m->calm && sim_random(m, 1000) < (uint64_t)per_mille;
}

void sim_fail(const struct sim *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "sim: seed %llu, step %lld, %lld ms: ", (unsigned long long)seed_shown,
            (long long)m->steps, (long long)m->now_ms);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

static bool before(const struct msg *a, const struct msg *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

void sim_later(struct sim *m, int64_t in_ms, struct msg msg)
{
    msg.at_ms = m->now_ms + in_ms;
    msg.seq = ++m->seq;
    vec_push(&m->heap, msg);
    size_t i = m->heap.n - 1;
    for (; i > 0 && before(&msg, &m->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap.v[i] = m->heap.v[(i - 1) / 2];
    m->heap.v[i] = msg;
}

static struct msg next(struct sim *m)
{
    struct msg first = m->heap.v[0], last = m->heap.v[--m->heap.n];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < m->heap.n; i = k) {
        if (k + 1 < m->heap.n && before(&m->heap.v[k + 1], &m->heap.v[k]))
            k++;
        if (!before(&m->heap.v[k], &last))
            break;
        m->heap.v[i] = m->heap.v[k];
    }
    if (m->heap.n)
        m->heap.v[i] = last;
    return first;
}

static void on_fault(struct sim *m)
{
    if (m->calm)
        return;
    int agent = (int)sim_random(m, (uint64_t)m->hosts_n);
    uint64_t dice = sim_random(m, 10);
    if (dice < 5)
        host_break(m, agent); /* a link, or the agent's process: tasks live on */
    else if (dice < 7)
        host_die(m, agent);
    else if (dice < 8 && m->core)
        master_crash(m);
    sim_later(m, 2000 + (int64_t)sim_random(m, 20000), (struct msg){.kind = M_FAULT});
}

static void on_link_down(struct sim *m, const struct msg *msg)
{
    struct host *h = &m->hosts[msg->agent];
    if (!h->connected && !h->hello_sent) /* a newer connection makes it void */
        master_post(m, &(struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = h->id},
                    (struct waiter){.agent = -1});
}

static void on_host_back(struct sim *m, int agent)
{
    m->hosts[agent].alive = true;
    host_connect(m, agent, 100);
}

static void on_user(struct sim *m)
{
    if (m->calm)
        return;
    user_act(m);
    sim_later(m, 200 + (int64_t)sim_random(m, 4000), (struct msg){.kind = M_USER});
}

static void handle(struct sim *m, const struct msg *msg)
{
    struct task *t;
    m->now_ms = msg->at_ms;
    switch (msg->kind) {
    case M_USER:
        on_user(m);
        break;
    case M_COMMIT:
        master_commit(m);
        break;
    case M_PERFORM:
        master_perform(m);
        break;
    case M_BOOT:
        master_boot(m);
        break;
    case M_TICK:
        master_tick(m);
        break;
    case M_HELLO:
        host_hello(m, msg->agent, msg->conn);
        break;
    case M_LINK_DOWN:
        on_link_down(m, msg);
        break;
    case M_AGENT_EVENT:
        host_event(m, msg);
        break;
    case M_ORDER:
        host_order(m, msg);
        break;
    case M_TASK:
        if ((t = task_find(m, msg->task)))
            task_run(m, t);
        break;
    case M_FAULT:
        on_fault(m);
        break;
    case M_HOST_BACK:
        on_host_back(m, msg->agent);
        break;
    }
}

static void init(struct sim *m, uint64_t seed, int64_t events)
{
    static const int sizes[] = {1, 2, 2, 4, 4, 4, 2, 1};
    *m = (struct sim){.rng = seed,
                      .budget = events,
                      .tasks = imap_create(),
                      .started = map_create(),
                      .now_ms = 1000,
                      .o = core_options_default};
    store_init(&m->store);
    m->o.scheduler = (enum core_scheduler)sim_random(m, 3);
    m->o.preemption = sim_random(m, 2);
    m->o.fitting = (enum core_fitting)sim_random(m, 2);
    m->o.allow_heterogeneous_fits = sim_random(m, 2);
    m->o.preempt_timeout_ms = 60000;
    m->hosts_n = 2 + (int)sim_random(m, AGENTS_MAX - 2);
    for (int i = 0; i < m->hosts_n; i++) {
        struct host *h = &m->hosts[i];
        snprintf(h->id, sizeof h->id, "agent-%d", i);
        h->slots = sizes[sim_random(m, DET_ARRAY_LEN(sizes))];
        h->alive = true;
        host_connect(m, i, (int64_t)sim_random(m, 1000));
    }
    master_boot(m);
    sim_later(m, 2000, (struct msg){.kind = M_USER});
    sim_later(m, 5000, (struct msg){.kind = M_FAULT});
}

/* The decisions follow from configuration, seed and log alone. */
static void check_search(struct sim *m, const struct stored_exp *e)
{
    JSON_OWN config = json_parse(e->r.config, strlen(e->r.config), NULL);
    struct core *fresh = core_create(&m->o);
    struct core_effects fx = CORE_EFFECTS_INIT;
    struct core_event ev = {.kind = CORE_EV_EXP_CREATE, .now_ms = 1};
    ev.create = (struct core_create){.job_id = e->r.job_id, .config = config};
    core_step(fresh, &ev, &fx);
    size_t made = 0;
    for (size_t i = 0; i < fx.n; i++)
        made += fx.v[i].kind == CORE_SAVE_TRIAL;
    for (size_t i = 0, k = 0; i < m->store.trials.n && k < made; i++) {
        const struct row_trial *t = &m->store.trials.v[i]->r, *r = NULL;
        if (t->experiment_id != e->r.id)
            continue;
        for (size_t n = 0, at = 0; n < fx.n && !r; n++)
            if (fx.v[n].kind == CORE_SAVE_TRIAL && at++ == k)
                r = &fx.v[n].trial;
        k++;
        if (strcmp(t->request_id, r->request_id) != 0 || strcmp(t->hparams, r->hparams) != 0 ||
            t->seed != r->seed)
            sim_fail(m, "experiment %lld: trial %lld does not follow from its seed",
                     (long long)e->r.id, (long long)t->id);
    }
    core_effects_finish(&fx);
    core_destroy(fresh);
}

static void check_end(struct sim *m)
{
    struct core_agent_view a;
    struct core_alloc_view al;
    if (core_alloc_at(m->core, 0, &al))
        sim_fail(m, "allocation %s is left in state %s", al.id, alloc_state_text(al.state));
    for (size_t i = 0; core_agent_at(m->core, i, &a); i++)
        if (!a.connected || a.slots_free != a.slots)
            sim_fail(m, "agent %s: %zu of %zu slots are free", a.id, a.slots_free, a.slots);
    if (imap_size(m->tasks))
        sim_fail(m, "%zu tasks are left on agents", imap_size(m->tasks));
    for (size_t i = 0; i < m->store.exps.n; i++) {
        const struct stored_exp *e = m->store.exps.v[i];
        if (!exp_state_is_terminal(e->r.state) || e->r.state == EXP_DELETING)
            sim_fail(m, "experiment %lld is left in state %s", (long long)e->r.id,
                     exp_state_text(e->r.state));
        check_search(m, e);
    }
}

static bool is_quiet(const struct sim *m)
{
    int64_t *ids;
    struct core_alloc_view a;
    if (!m->core || m->commit_due || m->perform_due)
        return false;
    size_t n = core_jobs(m->core, NULL, &ids);
    free(ids);
    struct core_agent_view v;
    for (int i = 0; i < m->hosts_n; i++)
        if (!core_agent_get(m->core, m->hosts[i].id, &v) || !v.connected || v.slots_free != v.slots)
            return false;
    return n == 0 && !core_alloc_at(m->core, 0, &a) && imap_size(m->tasks) == 0;
}

/* Faults end; everything has to come to its end in good time. */
static void calm_down(struct sim *m)
{
    int64_t deadline = m->now_ms + 48 * 3600000ll, release = 0;
    m->calm = true;
    for (int i = 0; i < m->hosts_n; i++)
        if (!m->hosts[i].alive)
            on_host_back(m, i);
    while (m->heap.n && m->now_ms < deadline) {
        struct msg msg = next(m);
        handle(m, &msg);
        if (m->core && m->now_ms >= release) {
            if (is_quiet(m))
                break;
            user_release(m);
            release = m->now_ms + 60000;
            sim_later(m, 60001, (struct msg){.kind = M_USER}); /* so that this comes again */
        }
    }
    if (!m->core)
        sim_fail(m, "the master is down at the end");
    for (int64_t end = m->now_ms + 30000; m->heap.n && m->now_ms < end;) {
        struct msg msg = next(m);
        handle(m, &msg);
    }
    check_end(m);
}

static void finish(struct sim *m)
{
    for (size_t i = 0; i < m->heap.n; i++) {
        if (m->heap.v[i].kind == M_ORDER)
            order_free(m->heap.v[i].data);
        free(m->heap.v[i].data);
    }
    for (int i = 0; i < m->hosts_n; i++)
        vec_free(&m->hosts[i].tasks);
    core_effects_finish(&m->batch);
    core_effects_finish(&m->committed);
    core_destroy(m->core);
    store_finish(&m->store);
    vec_free(&m->waiters);
    vec_free(&m->heap);
    imap_destroy(m->tasks);
    map_destroy(m->started);
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL);
    int64_t events = 200000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--events") == 0)
            events = strtoll(argv[i + 1], NULL, 10);
    }
    struct sim m;
    seed_shown = seed;
    init(&m, seed, events);
    while (m.heap.n && m.steps < events) {
        struct msg msg = next(&m);
        handle(&m, &msg);
    }
    calm_down(&m);
    printf("sim: seed %llu: %lld events, %zu experiments, %zu trials, %zu runs, %lld crashes, "
           "%lld other faults, %lld virtual hours; trace %016llx\n",
           (unsigned long long)seed, (long long)m.steps, m.store.exps.n, m.store.trials.n,
           m.store.allocs.n, (long long)m.crashes, (long long)m.faults,
           (long long)(m.now_ms / 3600000), (unsigned long long)m.trace);
    finish(&m);
    return 0;
}
