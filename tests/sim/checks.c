/* The invariants, checked while it runs; numbered as in ARCHITECTURE.md. */
#include "sim.h"

#include <string.h>

enum { SETTLED_MS = 120000, SHADOW_EVERY = 61, PARTS = 4 };

static const struct core_reply *reply_of(const struct core_effects *fx, size_t from, uint64_t token)
{
    for (size_t i = from; i < fx->n; i++)
        if (fx->v[i].kind == CORE_REPLY && fx->v[i].reply.request == token)
            return &fx->v[i].reply;
    return NULL;
}

/* I1: what a replaced run reports is refused. And every request is answered once, in its step. */
static void check_reply(struct sim *m, struct sim_master *s, const struct core_event *ev,
                        bool stale, size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < s->batch.effects.n; i++)
        n += s->batch.effects.v[i].kind == CORE_REPLY;
    if (n != (ev->request != 0))
        sim_fail(m, "a request is answered %zu times", n);
    const struct core_reply *r = reply_of(&s->batch.effects, from, ev->request);
    if (stale && r && r->code == 0 && ev->kind != CORE_EV_CHECKPOINT) /* the store judges those */
        sim_fail(m, "I1: run %lld of trial %lld was replaced, but its report %d is accepted",
                 (long long)ev->run_id, (long long)ev->trial_id, (int)ev->kind);
}

/* I7: a run goes on from the newest checkpoint there is. */
static void check_resume(struct sim *m, const struct core_start *o)
{
    const struct stored_trial *t = sim_store_trial(&m->store, o->trial_id);
    JSON_OWN env = json_parse(o->env, strlen(o->env), NULL);
    const char *text = json_str(env, "DET_STEPS_COMPLETED", "0");
    int64_t steps = strtoll(text, NULL, 10);
    int64_t newest = t && t->r.latest_checkpoint ? t->r.latest_steps : 0;
    bool first = t && t->started_run < o->run_id; /* not sent again */
    if (first && steps != newest && !(t->untold && steps < newest))
        sim_fail(m, "I7: run %lld of trial %lld starts from step %lld, its checkpoint is at %lld",
                 (long long)o->run_id, (long long)o->trial_id, (long long)steps, (long long)newest);
}

static bool has(const char *json, const char *what)
{
    return json && strstr(json, what);
}

/* I9: a run is given up for its agent's silence only after a whole lease of it, counted while this
 * master served. An agent may have come and gone again later in the same batch. */
static void check_given_up(struct sim *m, const struct sim_master *s,
                           const struct row_allocation *r)
{
    if (!has(r->core, "\"unconfirmed\":true") || map_put(m->given_up, r->id, m))
        return;
    JSON_OWN core = json_parse(r->core, strlen(r->core), NULL);
    const json_t *all = json_arr(core, "containers");
    int64_t longest = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const struct sim_host *h =
            &m->hosts[hosts_find(m, json_str(json_array_get(all, i), "agent", ""))];
        int64_t lost = h->lost_ms < m->now_ms ? h->lost_ms : h->lost_before_ms;
        int64_t from = lost > s->boot_ms ? lost : s->boot_ms;
        if (m->now_ms - from > longest)
            longest = m->now_ms - from;
    }
    if (longest < m->o.agent_reconnect_wait_ms)
        sim_fail(m, "I9: %s is given up after %lld ms of silence", r->id, (long long)longest);
}

static int64_t exp_of(const struct core_effect *e)
{
    return e->kind == CORE_SAVE_EXPERIMENT   ? e->experiment.id
           : e->kind == CORE_SAVE_TRIAL      ? e->trial.experiment_id
           : e->kind == CORE_SAVE_ALLOCATION ? e->allocation.experiment_id
                                             : 0;
}

/* I4, and whatever can be seen from inside: of all that the step has touched, and in turn of the
 * rest. */
static void check_inside(struct sim *m, const struct sim_master *s, size_t from)
{
    int64_t last = 0;
    for (size_t i = from; i < s->batch.effects.n; i++) {
        int64_t id = exp_of(&s->batch.effects.v[i]);
        if (id && id != last)
            core_check_exp(s->core, id);
        last = id ? id : last;
    }
    core_check_part(s->core, (size_t)m->got.events % PARTS, PARTS);
}

void check_step(struct sim *m, struct sim_master *s, const struct core_event *ev, bool stale,
                size_t from)
{
    check_reply(m, s, ev, stale, from);
    if (ev->more) /* what follows from it is decided with the next */
        return;
    from = s->checked < from ? s->checked : from;
    s->checked = s->batch.effects.n;
    for (size_t i = from; i < s->batch.effects.n && s->epoch == m->store.epoch; i++)
        if (s->batch.effects.v[i].kind == CORE_ORDER_START)
            check_resume(m, &s->batch.effects.v[i].start);
        else if (s->batch.effects.v[i].kind == CORE_SAVE_ALLOCATION)
            check_given_up(m, s, &s->batch.effects.v[i].allocation);
    check_neighbours(m, s, from);
    check_inside(m, s, from);
}

static void check_exp_answer(struct sim *m, const struct waiter *w)
{
    const struct stored_exp *e = sim_store_exp(&m->store, w->id);
    enum exp_state s = e ? e->r.state : EXP_DELETED;
    bool ended = exp_state_is_terminal(s) || s == EXP_DELETING;
    bool bad = false;
    if (w->kind == CORE_EV_EXP_KILL)
        bad = !ended && s != EXP_STOPPING_KILLED && s != EXP_STOPPING_ERROR;
    else if (w->kind == CORE_EV_EXP_CANCEL || w->kind == CORE_EV_EXP_PAUSE)
        bad = s == EXP_ACTIVE;
    if (bad)
        sim_fail(m, "I2: request %d about experiment %lld is acknowledged, but it is %s",
                 (int)w->kind, (long long)w->id, exp_state_text(s));
}

static void check_trial_answer(struct sim *m, const struct waiter *w)
{
    const struct stored_trial *t = sim_store_trial(&m->store, w->id);
    if (!t || trial_state_is_terminal(t->r.state))
        return;
    if (w->kind == CORE_EV_TRIAL_KILL && t->r.state != TRIAL_STOPPING_KILLED &&
        t->r.state != TRIAL_STOPPING_ERROR)
        sim_fail(m, "I2: the kill of trial %lld is acknowledged, but it is %s", (long long)w->id,
                 trial_state_text(t->r.state));
    JSON_OWN core = json_parse(t->r.core, strlen(t->r.core), NULL);
    if (w->kind == CORE_EV_OP_COMPLETED && json_int(core, "op_length", -1) == w->length &&
        json_int(core, "op_last", 0) != w->length)
        sim_fail(m, "I2: trial %lld: an operation is acknowledged, but not in its row",
                 (long long)w->id);
}

/* I2: what is acknowledged is in the store. Requests that follow at once may have undone it: only
 * what cannot be undone is asked for. */
void check_answer(struct sim *m, const struct waiter *w)
{
    if (w->kind == CORE_EV_EXP_KILL)
        check_exp_answer(m, w);
    else if (w->kind == CORE_EV_TRIAL_KILL || w->kind == CORE_EV_OP_COMPLETED)
        check_trial_answer(m, w);
}

static bool is_over_by_row(const struct stored_alloc *a, const char *container)
{
    JSON_OWN core = json_parse(a->r.core, strlen(a->r.core), NULL);
    const json_t *all = json_arr(core, "containers");
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *k = json_array_get(all, i);
        if (strcmp(json_str(k, "id", ""), container) == 0)
            return strcmp(json_str(k, "state", ""), alloc_state_text(ALLOC_TERMINATED)) == 0;
    }
    return false;
}

/* One of a gang that goes on, or ends, elsewhere. A hello that was never answered is said as it was
 * to the next master too, and tells of one that has ended since as running. */
static bool has_ended(const struct sim *m, const struct stored_alloc *a, const struct core_kill *k)
{
    const struct task *t = task_of(m, hosts_find(m, k->agent_id), k->alloc_id);
    return (!t || t->stopped) && is_over_by_row(a, k->container);
}

/* I9: nobody is killed whose end was not decided, and durably so. */
void check_kill(struct sim *m, const struct core_kill *k)
{
    const struct stored_alloc *a = map_get(m->store.alloc_by_id, k->alloc_id);
    if (a && a->r.state < ALLOC_TERMINATING && !has_ended(m, a, k))
        sim_fail(m, "I9: %s is %s, but its container is ordered to be killed", k->alloc_id,
                 alloc_state_text(a->r.state));
}

/* I2: what is started is committed; and a run never after a later one. */
void check_start(struct sim *m, const struct core_start *o)
{
    const struct stored_alloc *a = map_get(m->store.alloc_by_id, o->alloc_id);
    struct stored_trial *t = sim_store_trial(&m->store, o->trial_id);
    if (!a || a->r.state == ALLOC_PENDING)
        sim_fail(m, "I2: %s is started, but the store does not know it", o->alloc_id);
    if (!t)
        return;
    if (o->run_id < t->started_run)
        sim_fail(m, "I1: trial %lld: run %lld is started after run %lld", (long long)o->trial_id,
                 (long long)o->run_id, (long long)t->started_run);
    t->started_run = o->run_id;
}

/* ---- When everything it decided is committed: is a rebuilt core the same? (I2, I5) ---- */

static void same_exps(struct sim *m, const struct core *a, const struct core *b)
{
    struct core_exp_view x, y;
    int64_t *ids, *other;
    size_t n = core_jobs(a, NULL, &ids), k = core_jobs(b, NULL, &other);
    bool same = n == k;
    for (size_t i = 0; same && i < n; i++) {
        same = ids[i] == other[i] && core_exp_get(a, ids[i], &x) && core_exp_get(b, ids[i], &y) &&
               x.state == y.state && x.priority == y.priority && x.weight == y.weight &&
               x.max_slots == y.max_slots && x.trials_open == y.trials_open &&
               x.owner_id == y.owner_id && strcmp(x.pool, y.pool) == 0;
        if (!same)
            sim_fail(m, "I2: experiment %lld is not rebuilt as it was", (long long)ids[i]);
    }
    free(ids);
    free(other);
    if (!same)
        sim_fail(m, "I2: %zu jobs are rebuilt, there were %zu", k, n);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void same_trials(struct sim *m, const struct core *a, const struct core *b)
{
    struct core_trial_view x, y;
    for (size_t i = 0; i < m->store.exps.n; i++)
        for (size_t k = 0; k < m->store.exps.v[i]->trials.n; k++) {
            int64_t id = m->store.exps.v[i]->trials.v[k];
            if (!core_trial_get(a, id, &x))
                break;
            if (!core_trial_get(b, id, &y) || x.state != y.state || x.run_id != y.run_id ||
                x.restarts != y.restarts || x.has_op != y.has_op || x.op_length != y.op_length ||
                x.op_completed != y.op_completed || !same_text(x.alloc_id, y.alloc_id) ||
                (!trial_state_is_terminal(x.state) && !m->store.trials.v[id - 1]->untold &&
                 !same_text(x.latest_checkpoint, y.latest_checkpoint)))
                sim_fail(m, "I2: trial %lld is not rebuilt as it was", (long long)id);
        }
}

static bool same_containers(const struct core *a, const struct core *b, const char *alloc)
{
    struct core_container_view x, y;
    for (size_t i = 0; core_alloc_container(a, alloc, i, &x); i++)
        if (!core_alloc_container(b, alloc, i, &y) || x.state != y.state ||
            !same_text(x.agent_id, y.agent_id) || x.slots_n != y.slots_n ||
            (x.slots_n && memcmp(x.slots, y.slots, x.slots_n * sizeof *x.slots) != 0))
            return false;
    return true;
}

/* In the same order: it decides who is first. */
static void same_allocs(struct sim *m, const struct core *a, const struct core *b)
{
    struct core_alloc_view x, y;
    size_t i = 0;
    for (; core_alloc_at(a, i, &x); i++)
        if (!core_alloc_at(b, i, &y) || !same_text(x.id, y.id) || x.state != y.state ||
            x.is_ready != y.is_ready || x.preempt != y.preempt || !same_text(x.pool, y.pool) ||
            x.slots != y.slots || x.containers != y.containers || !same_containers(a, b, x.id))
            sim_fail(m, "I2: allocation %s is not rebuilt as it was, or in another order", x.id);
    if (core_alloc_at(b, i, &y))
        sim_fail(m, "I2: allocation %s is rebuilt, but was not there", y.id);
}

/* One whose first row was refused is in no row, and ends once its host says that nothing of it
 * runs: an experiment, or a collection. One of whose a later row was is over in its row, a
 * collection also of what ended long ago. */
static bool is_any_refused(const struct sim *m, const struct core *c)
{
    int64_t *ids;
    struct core_alloc_view a;
    size_t n = core_jobs(c, NULL, &ids);
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any |= (size_t)ids[i] > m->store.exps.n || m->store.exps.v[ids[i] - 1]->deleted;
    free(ids);
    for (size_t i = 0; !any && core_alloc_at(c, i, &a); i++)
        any = a.state == ALLOC_TERMINATING &&
              (!map_get(m->store.alloc_by_id, a.id) ||
               m->store.exps.v[a.exp_id - 1]->parked == m->store.epoch);
    return any;
}

/* What is parked is over in the rows before it is so in the core, and whether all of it was is not
 * known to a rebuilt one. */
static bool is_any_parked(const struct sim *m)
{
    for (size_t i = 0; i < m->store.exps.n; i++) {
        const struct stored_exp *e = m->store.exps.v[i];
        if (sim_store_is_live(e) && e->parked == m->store.epoch)
            return true;
        for (size_t k = 0; sim_store_is_live(e) && k < e->trials.n; k++)
            if (m->store.trials.v[e->trials.v[k] - 1]->parked == m->store.epoch)
                return true;
    }
    return false;
}

/* What is compared does not depend on the searches: it is enough to play one of them. */
static void check_rebuild(struct sim *m, struct sim_master *s)
{
    struct core *shadow = sim_store_rebuild(m, &m->o, m->store.searched);
    same_exps(m, s->core, shadow);
    same_trials(m, s->core, shadow);
    same_allocs(m, s->core, shadow);
    core_destroy(shadow);
}

/* Nothing is left to commit or to perform. */
void check_rest(struct sim *m, struct sim_master *s)
{
    if (s->epoch != m->store.epoch)
        return;
    if (m->seq % SHADOW_EVERY == 0) {
        core_check(s->core);
        if (!is_any_parked(m) && !is_any_refused(m, s->core))
            check_rebuild(m, s);
        check_quotas(m, s->core);
    }
    if (!m->calm || m->now_ms < m->calm_at + SETTLED_MS)
        return;
    check_calm(m, s);
}
