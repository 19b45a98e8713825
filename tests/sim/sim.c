/* One run: what happens next, until the faults end and everything has come to its end. */
#include "sim.h"

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

static void on_user(struct sim *m)
{
    if (m->calm)
        return;
    user_act(m);
    sim_later(m, 200 + (int64_t)sim_random(m, 4000), (struct msg){.kind = M_USER});
}

static void on_fault(struct sim *m)
{
    if (m->calm)
        return;
    fault_strike(m);
    sim_later(m, 1000 + (int64_t)sim_random(m, 20000), (struct msg){.kind = M_FAULT});
}

static void handle(struct sim *m, struct msg *msg)
{
    struct task *t;
    m->now_ms = msg->at_ms;
    if (msg->kind == M_USER)
        on_user(m);
    else if (msg->kind == M_FAULT)
        on_fault(m);
    else if (msg->kind == M_CLIENTS)
        client_poll(m);
    else if (msg->kind <= M_TAKEOVER)
        sim_master_on(m, msg);
    else if (msg->kind <= M_DIAL_BY)
        links_on(m, msg);
    else if (msg->kind <= M_HOST_BACK)
        hosts_on(m, msg);
    else if (msg->kind == M_REQUEST)
        request_arrive(m, msg);
    else if (msg->kind == M_LIFE)
        life_on(m, msg);
    else if ((t = task_find(m, msg->task)))
        task_run(m, t);
}

static void init(struct sim *m, const struct sim_options *in)
{
    *m = (struct sim){.in = *in,
                      .rng = in->seed,
                      .tasks = imap_create(),
                      .by_alloc = map_create(),
                      .started = map_create(),
                      .placed = map_create(),
                      .given_up = map_create(),
                      .ending = map_create(),
                      .now_ms = 1000};
    sim_watch(m);
    sim_store_init(&m->store);
    setup_hosts(m);
    for (int i = 0; i < MASTERS; i++) {
        m->masters[i] = (struct sim_master){.index = i, .waiters = imap_create()};
        m->masters[i].links = det_zalloc((size_t)m->hosts_n * sizeof(struct sim_link));
        links_end(m, &m->masters[i]);
    }
    setup_options(m);
    sim_later(m, 0, (struct msg){.kind = M_TAKEOVER, .index = 0});
    sim_later(m, 2000, (struct msg){.kind = M_USER});
    sim_later(m, 3000, (struct msg){.kind = M_CLIENTS});
    sim_later(m, 5000, (struct msg){.kind = M_FAULT});
}

static bool is_quiet(struct sim *m)
{
    int64_t *ids;
    struct core_alloc_view a;
    struct core_agent_view v;
    struct sim_master *s = sim_master_leader(m);
    if (!s->core || s->batch.state != BATCH_IDLE || s->batch.queued || imap_size(m->tasks))
        return false;
    size_t n = core_jobs(s->core, NULL, &ids);
    free(ids);
    for (int i = 0; i < m->hosts_n; i++)
        if (!core_agent_get(s->core, m->hosts[i].id, &v) || !v.connected || v.slots_free != v.slots)
            return false;
    return n == 0 && !core_alloc_at(s->core, 0, &a);
}

static void step(struct sim *m)
{
    struct msg msg = next(m);
    handle(m, &msg);
}

enum { DEAF_MS = 1200000 };

static bool has_fellow(const struct sim *m, int host)
{
    for (int i = 0; i < m->hosts_n; i++)
        if (i != host && strcmp(m->hosts[i].pool, m->hosts[host].pool) == 0)
            return true;
    return false;
}

/* Of all faults this one may last: the other hosts of the pool do the work. */
static void deafen_one(struct sim *m)
{
    for (int i = 0; i < m->hosts_n; i++)
        m->hosts[i].deaf_until = 0;
    for (int i = 0; m->in.seed % 4 == 0 && i < m->hosts_n; i++)
        if (has_fellow(m, i)) {
            sim_trace(m, "host      %s lets no task's packets out until %.3f s", m->hosts[i].id,
                      (double)(m->now_ms + DEAF_MS) / 1000);
            hosts_deafen(m, i, m->now_ms + DEAF_MS);
            break;
        }
}

static void calm_begin(struct sim *m)
{
    m->calm = true;
    for (int i = 0; i < m->hosts_n; i++)
        hosts_mount(m, i, true);
    m->calm_at = m->now_ms;
    m->store.down_until = m->store.slow_until = m->store.hung_until = 0;
    for (int i = 0; i < m->hosts_n; i++) {
        m->hosts[i].up_cut = m->hosts[i].down_cut = 0;
        if (!m->hosts[i].alive)
            hosts_back(m, i);
        hosts_begin(m, i, 100);
    }
    for (int i = 0; i < MASTERS; i++)
        if (m->masters[i].frozen_until > m->now_ms + TAKEOVER_MS)
            m->masters[i].frozen_until = m->now_ms + TAKEOVER_MS;
    for (int i = 0; i < m->hosts_n; i++)
        m->hosts[i].broken_until = 0;
    deafen_one(m);
    sim_trace(m, "calm      the faults end");
}

/* Faults end; everything has to come to its end in good time. */
static void calm_down(struct sim *m)
{
    int64_t release = 0, begun = m->got.events;
    calm_begin(m);
    while (m->heap.n && m->now_ms < m->calm_at + CALM_MS) {
        step(m);
        if (m->got.events > begun + CALM_EVENTS + 100 * (int64_t)m->store.trials.n)
            sim_fail(m, "it goes on and on: %lld events since the faults ended",
                     (long long)(m->got.events - begun));
        if (!sim_master_serves(m, sim_master_leader(m)) || m->now_ms < release)
            continue;
        if (is_quiet(m))
            break;
        user_release(m);
        release = m->now_ms + 60000;
        sim_later(m, 60001, (struct msg){.kind = M_USER}); /* so that this comes again */
    }
    m->got.calm_ms = m->now_ms - m->calm_at;
    for (int64_t end = m->now_ms + 30000; m->heap.n && m->now_ms < end;)
        step(m);
    check_end(m);
}

static void finish(struct sim *m)
{
    sim_watch(NULL);
    for (size_t i = 0; i < m->heap.n; i++)
        links_msg_free(&m->heap.v[i]);
    for (int i = 0; i < MASTERS; i++)
        sim_master_finish(m, &m->masters[i]);
    for (int i = 0; i < m->hosts_n; i++)
        hosts_finish(&m->hosts[i]);
    sim_store_finish(&m->store);
    vec_free(&m->heap);
    imap_destroy(m->tasks);
    map_destroy(m->by_alloc);
    map_destroy(m->started);
    map_destroy(m->placed);
    map_destroy(m->given_up);
    map_destroy(m->ending);
    free(m->hosts);
    free(m->lines);
}

void sim_run(const struct sim_options *in, struct sim_result *ret)
{
    struct sim m;
    init(&m, in);
    while (m.heap.n && m.got.events < in->events)
        step(&m);
    calm_down(&m);
    m.got.exps = (int64_t)m.store.exps.n;
    m.got.trials = (int64_t)m.store.trials.n;
    m.got.runs = (int64_t)m.store.allocs.n;
    m.got.hours = m.now_ms / 3600000;
    for (int i = 0; i < MASTERS; i++)
        moves_note(&m.got, m.masters[i].core);
    *ret = m.got;
    finish(&m);
}
