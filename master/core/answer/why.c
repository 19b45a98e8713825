#include "why.h"

#include "agent.h"
#include "alloc.h"
#include "avoid.h"
#include "exp.h"
#include "queue.h"
#include "quota.h"
#include "scheduler.h"
#include "store.h"
#include "trial.h"
#include "trial_said.h"
#include "why_eta.h"
#include "why_slots.h"
#include "why_try.h"
#include <inttypes.h>

enum { BLOCKERS_MAX = 20, AWAITED_MAX = 20 };

struct answer {
    struct core *c;
    struct core_now now;
    json_t *j;
};

static void set_text(json_t *j, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void set_text(json_t *j, const char *key, const char *fmt, ...)
{
    va_list ap;
    struct buf b = BUF_INIT;
    va_start(ap, fmt);
    buf_vaddf(&b, fmt, ap);
    va_end(ap);
    json_set(j, key, json_string(buf_str(&b)));
    buf_finish(&b);
}

static const char *plural_suffix(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* Every answer has these. */
static json_t *blank_answer(void)
{
    return json_make("{s:b,s:s,s:s,s:[],s:i,s:[],s:n}", "waiting", 0, "reason", "", "text", "",
                     "blockers", "blockersTotal", 0, "suggestions", "expectedStart");
}

/* What passes write into the core is scratch, or is put back. */
static struct answer begin_answer(struct core *c, struct core_now now)
{
    return (struct answer){c, now, blank_answer()};
}

json_t *core_why_ended(const char *state)
{
    json_t *j = blank_answer();
    json_set(j, "reason", json_string("ENDED"));
    set_text(j, "text", "it has ended: %s", state);
    return j;
}

void core_why_undeleted(json_t *j, int64_t exp_id, const char *why)
{
    set_text(j, "text", "it could not be deleted: %s", why);
    det_cleanup(freep) char *cmd = det_asprintf("det experiment delete %" PRId64, exp_id);
    json_array_append_new(json_object_get(j, "suggestions"),
                          json_make("{s:s,s:s}", "text",
                                    "once that is mended, delete it again: that goes on with what "
                                    "is left",
                                    "command", cmd));
}

/* ---- What the pool is like ---- */

struct room {
    int64_t slots, free, off, away;
};

static struct room room_of(const struct pool *p)
{
    struct room r = {0};
    for (size_t i = 0; i < p->agents.n; i++) {
        struct agent_slots n = agent_slots(p->agents.v[i]);
        r.slots += (int64_t)n.total;
        if (p->agents.v[i]->state == AGENT_LOST)
            r.away += (int64_t)n.total;
        else
            r.off += p->agents.v[i]->off ? (int64_t)n.total : (int64_t)n.off;
    }
    r.free = fit_free(&p->fit);
    return r;
}

static json_t *pool_json(const struct pool *p)
{
    struct room r = room_of(p);
    return json_make("{s:s,s:I,s:I,s:I,s:I,s:I}", "name", p->name, "slots", (json_int_t)r.slots,
                     "free", (json_int_t)r.free, "switchedOff", (json_int_t)r.off, "away",
                     (json_int_t)r.away, "waiting", (json_int_t)p->pending_n);
}

/* ---- Why a request waits ---- */

static void why_agents(const struct answer *w, const struct group *g)
{
    struct room r = room_of(g->pool);
    const char *pool = g->pool->name;
    if (g->pool->agents.n == 0)
        set_text(w->j, "text", "no agent of pool %s is connected", pool);
    else if (r.off + r.away > 0 && fit_ever(&g->pool->fit, g->size))
        set_text(w->j, "text",
                 "%" PRId64 " slot%s would fit pool %s, but of its %" PRId64 " slots %" PRId64
                 " are switched off or not usable and %" PRId64 " belong to agents that are away",
                 g->size, plural_suffix(g->size), pool, r.slots, r.off, r.away);
    else
        set_text(w->j, "text",
                 "%" PRId64
                 " slot%s fit no set of the agents of pool %s, even idle: all on one agent, "
                 "or whole agents of one size",
                 g->size, plural_suffix(g->size), pool);
}

static void why_room(const struct answer *w, const struct group *g)
{
    struct room r = room_of(g->pool);
    if (r.free < g->size)
        set_text(w->j, "text",
                 "it asks for %" PRId64 " slot%s; %" PRId64 " of the %" PRId64
                 " of pool %s %s free",
                 g->size, plural_suffix(g->size), r.free, r.slots, g->pool->name,
                 r.free == 1 ? "is" : "are");
    else
        set_text(w->j, "text",
                 "%" PRId64 " slots of pool %s are free, but not so that %" PRId64
                 " go together: all on one agent, or whole idle agents of one size",
                 r.free, g->pool->name, g->size);
}

static int64_t jobs_ahead(const struct group *g)
{
    int64_t n = 0;
    for (size_t i = 0; i < g->pool->groups.n; i++) {
        const struct group *o = g->pool->groups.v[i];
        n += o != g && o->pending.n && queue_group_cmp(o, g) < 0;
    }
    return n;
}

static void why_quota(const struct answer *w, const struct group *g)
{
    const struct exp *e = g->exp;
    int64_t max = quota_max(w->c, e->owner, g->pool);
    set_text(w->j, "text",
             "the quota of %s is %" PRId64 " slot%s, and %" PRId64 " more would exceed it",
             e->owner ? e->owner : "its owner", max, plural_suffix(max), g->size);
}

/* Fair share has no line: it keeps what is free for what found its room first. */
static void why_order(const struct answer *w, const struct group *g)
{
    int64_t n = jobs_ahead(g);
    if (g->pool->o.scheduler == CORE_FAIR_SHARE)
        set_text(w->j, "text",
                 "the free slots of pool %s are kept for another request, for which more are "
                 "being freed: a larger one within its fair share, or one that has waited too long",
                 g->pool->name);
    else
        set_text(w->j, "text", "%" PRId64 " job%s come%s first in pool %s, and %s would be delayed",
                 n, plural_suffix(n), n == 1 ? "s" : "", g->pool->name, n == 1 ? "it" : "they");
}

static const char *const wait_names[] = {
    [CORE_WAIT_NONE] = "NONE",           [CORE_WAIT_HOLD] = "HOLD",   [CORE_WAIT_QUOTA] = "QUOTA",
    [CORE_WAIT_MAX_SLOTS] = "MAX_SLOTS", [CORE_WAIT_SHARE] = "SHARE", [CORE_WAIT_ORDER] = "ORDER",
    [CORE_WAIT_AGENTS] = "AGENTS",       [CORE_WAIT_ROOM] = "ROOM",   [CORE_WAIT_STORE] = "STORE",
};

/* It fits what is free: then only its place in line holds it back. */
static bool is_held_back(const struct group *g, enum core_wait wait)
{
    struct placement p = {0};
    bool fits = wait == CORE_WAIT_ROOM && fit_place(&g->pool->fit, g->pending.first, &p);
    vec_free(&p.nodes);
    return fits;
}

static void why_store(const struct answer *w, const struct store *s, const struct pool *p)
{
    struct buf text = BUF_INIT;
    store_explain(s, p, &text);
    json_set(w->j, "reason", json_string(wait_names[CORE_WAIT_STORE]));
    set_text(w->j, "text", "%s", buf_str(&text));
    buf_finish(&text);
}

static void why_group(const struct answer *w, struct group *g)
{
    enum core_wait wait = sched_wait(w->c, g);
    if (is_held_back(g, wait))
        wait = CORE_WAIT_ORDER;
    json_set(w->j, "reason", json_string(wait_names[wait]));
    switch (wait) {
    case CORE_WAIT_QUOTA: why_quota(w, g); break;
    case CORE_WAIT_MAX_SLOTS:
        set_text(w->j, "text",
                 "its experiment holds %" PRId64 " slot%s of the %" PRId64
                 " that its max_slots allows",
                 g->held + g->releasing, plural_suffix(g->held + g->releasing), g->max_slots);
        break;
    case CORE_WAIT_SHARE:
        set_text(w->j, "text",
                 "it asks for %" PRId64 " slot%s; its experiment holds %" PRId64
                 ", its fair share of pool %s is %" PRId64
                 " now, and no other experiment leaves as many of its share unused",
                 g->size, plural_suffix(g->size), g->held, g->pool->name, g->offer);
        break;
    case CORE_WAIT_ORDER: why_order(w, g); break;
    case CORE_WAIT_AGENTS: why_agents(w, g); break;
    case CORE_WAIT_STORE: why_store(w, g->store, g->pool); break;
    case CORE_WAIT_NONE:
    case CORE_WAIT_HOLD:
    case CORE_WAIT_ROOM: why_room(w, g); break;
    }
}

/* ---- Who is in the way ---- */

static json_t *blocker_json(const struct answer *w, const struct alloc *a)
{
    JSON_OWN agents = json_array();
    for (size_t i = 0; i < a->containers.n; i++)
        json_array_append_new(agents, json_string(a->containers.v[i]->agent_id));
    int64_t left = eta_of(a, w->now.ms);
    json_t *j = json_make(
        "{s:s,s:I,s:I,s:I,s:I,s:O,s:b,s:b}", "allocationId", a->id, "experimentId",
        (json_int_t)a->exp_id, "trialId", (json_int_t)(a->trial ? a->trial->id : 0), "ownerId",
        (json_int_t)a->owner_id, "slots", (json_int_t)a->slots, "agents", agents, "ending",
        a->queued_as == QUEUE_ENDING, "preemptible", alloc_is_preemptible(a));
    if (a->exp && a->exp->owner)
        json_set(j, "owner", json_string(a->exp->owner));
    json_set(j, "secondsLeft", left < 0 ? json_null() : json_double((double)left / 1000));
    return j;
}

static void list_blockers(const struct answer *w, const struct group *g)
{
    json_t *list = json_array();
    size_t total = 0;
    for (size_t i = 0; i < w->c->allocs.n; i++) {
        const struct alloc *a = w->c->allocs.v[i];
        if (a->pool != g->pool || a->slots == 0 || a->containers.n == 0 ||
            a->queued_as == QUEUE_PENDING || a->queued_as == QUEUE_NONE)
            continue;
        if (total++ < BLOCKERS_MAX)
            json_array_append_new(list, blocker_json(w, a));
    }
    json_set(w->j, "blockers", list);
    json_set(w->j, "blockersTotal", json_integer((json_int_t)total));
}

/* ---- The answer ---- */

static void explain_waiting(const struct answer *w, const struct alloc *a)
{
    struct group *g = a->exp ? a->exp->group : NULL;
    const struct store *store = store_of_alloc(a);
    json_set(w->j, "waiting", json_true());
    json_set(w->j, "pool", pool_json(a->pool));
    json_set(w->j, "slots", json_integer(a->slots));
    if (a->queued_as != QUEUE_PENDING || !g) {
        int64_t s = a->hold_ms == INT64_MAX ? 0 : (a->hold_ms - w->now.ms + 999) / 1000;
        if (store && store_is_nowhere(store, a->pool)) {
            why_store(w, store, a->pool);
            return;
        }
        json_set(w->j, "reason", json_string("HOLD"));
        if (a->trial && a->trial->start_rounds > 0)
            set_text(w->j, "text", "no agent could start it: try %d of %d is in %" PRId64 " s",
                     a->trial->start_rounds + 1, AVOID_ROUNDS, s < 0 ? 0 : s);
        else
            set_text(w->j, "text",
                     "its last %d runs ended by no fault of its own (%s): the next is "
                     "tried in %" PRId64 " s",
                     a->trial ? a->trial->transients : 0,
                     a->trial && a->trial->lost ? a->trial->lost : "its log says why",
                     s < 0 ? 0 : s);
        return;
    }
    int64_t waited = w->now.us - a->start_us;
    json_set(w->j, "queuedSeconds", json_double(waited > 0 ? (double)waited / 1e6 : 0));
    why_try(w->c, g); /* a pass: it leaves what holds the group back */
    why_group(w, g);
    size_t ahead = 0;
    for (const struct alloc *x = g->pending.first; x && x != a; x = x->next)
        ahead++;
    json_set(w->j, "sameExperimentAhead", json_integer((json_int_t)ahead));
    list_blockers(w, g);
    why_suggest(w->c, g, json_object_get(w->j, "suggestions"));
    json_set(w->j, "expectedStart", eta_start(w->c, g, w->now.ms));
    why_try(w->c, g); /* what the groups wait for is as it was before things were tried */
    why_slots_of_pool(a->pool, w->j);
}

/* Its store went away meanwhile: the next checkpoint waits for it. */
static void why_holds(const struct answer *w, const struct alloc *a)
{
    const struct store *s = store_of_alloc(a);
    const struct agent *host = a->containers.n ? a->containers.v[0]->agent : NULL;
    const struct sight *x = s && host ? store_sight(s, host) : NULL;
    if (!x || x->kind == CORE_STORE_UNSEEN || store_is_on(s, host) || alloc_is_ending(a))
        return;
    set_text(w->j, "text",
             "it runs on agent %s, where its checkpoint store %s is away (%s): it holds "
             "at its next checkpoint until the store is mounted there again",
             host->id, s->place, x->text);
}

/* Its container whose rank has been silent for longest, as far as its agent is there to say so. */
static const struct container *silent_of(const struct alloc *a)
{
    const struct container *found = NULL;
    for (size_t i = 0; i < a->containers.n; i++) {
        const struct container *k = a->containers.v[i];
        if (k->silent.phase[0] && k->agent && k->agent->state == AGENT_UP &&
            (!found || k->silent.since_ms < found->silent.since_ms))
            found = k;
    }
    return found;
}

static void why_silent(const struct answer *w, const struct container *k)
{
    int64_t ms = w->now.ms - k->silent.since_ms;
    set_text(w->j, "text",
             "it runs on agent %s; rank %d: no batch for %" PRId64 " s (%s), a verdict "
             "comes at %" PRId64 " s",
             k->agent_id, k->silent.rank, ms / 1000, k->silent.phase, k->silent.timeout_ms / 1000);
}

static const struct container *unreached_of(const struct alloc *a)
{
    for (size_t i = 0; i < a->containers.n; i++) {
        const struct container *k = a->containers.v[i];
        if (k->unreached.text[0] && k->agent && k->agent->state == AGENT_UP)
            return k;
    }
    return NULL;
}

static void why_unreached(const struct answer *w, const struct container *k)
{
    int64_t left = k->unreached.since_ms + ALLOC_UNREACHED_MS - w->now.ms;
    set_text(w->j, "text",
             "its processes on agent %s get no answer from the master, though the agent "
             "does (%s): in %" PRId64 " s the run ends as one that could not be started there",
             k->agent_id, k->unreached.text, left > 0 ? (left + 999) / 1000 : 0);
}

static void explain_placed(const struct answer *w, const struct alloc *a)
{
    int64_t left = eta_of(a, w->now.ms);
    const char *agent = a->containers.n ? a->containers.v[0]->agent_id : "";
    const struct container *silent = silent_of(a), *unreached = unreached_of(a);
    json_set(w->j, "reason", json_string(alloc_is_ending(a) ? "ENDING" : "RUNNING"));
    json_set(w->j, "pool", pool_json(a->pool));
    json_set(w->j, "slots", json_integer(a->slots));
    if (alloc_is_ending(a))
        set_text(w->j, "text", "it was asked to stop and is ending on agent %s", agent);
    else if (unreached)
        why_unreached(w, unreached);
    else if (silent)
        why_silent(w, silent);
    else if (!a->is_ready)
        set_text(w->j, "text", "it is starting on agent %s", agent);
    else if (left >= 0)
        set_text(w->j, "text", "it runs on agent %s; about %" PRId64 " s of its operation are left",
                 agent, (left + 999) / 1000);
    else
        set_text(w->j, "text", "it runs on agent %s", agent);
    why_holds(w, a);
    why_slots_of_alloc(a, w->j);
}

/* Trials of its rung whose metric it waits for. */
static json_t *list_awaited(const struct exp *e, const struct search_place *mine)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < e->trials.n && json_array_size(ids) < AWAITED_MAX; i++) {
        struct search_place p;
        const struct trial *t = e->trials.v[i];
        if (!trial_state_is_terminal(t->state) && search_place_of(e->search, t->request_id, &p) &&
            p.stand == SEARCH_TRAINS && p.bracket == mine->bracket && p.rung == mine->rung)
            json_array_append_new(ids, json_integer(t->id));
    }
    return ids;
}

/* It waits, but for no slot. */
static void why_searcher(const struct answer *w, const struct trial *t)
{
    struct search_place p;
    struct buf text = BUF_INIT;
    struct search_names names = exp_search_names(t->exp);
    trial_said(t, &text);
    json_set(w->j, "reason", json_string("SEARCHER"));
    if (search_place_of(t->exp->search, t->request_id, &p)) {
        json_t *ids = list_awaited(t->exp, &p);
        for (size_t i = 0; i < json_array_size(ids); i++)
            buf_addf(&text, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "; it waits for trial ",
                     json_integer_value(json_array_get(ids, i)));
        json_t *place = search_place_json(&p, &names);
        json_set(place, "awaited", ids);
        json_set(w->j, "search", place);
    }
    set_text(w->j, "text", "%s", buf_str(&text));
    buf_finish(&text);
}

static void why_paused(const struct answer *w, const struct exp *e)
{
    json_set(w->j, "reason", json_string("PAUSED"));
    json_set(w->j, "held", json_boolean(e->held != NULL));
    if (e->held)
        set_text(w->j, "text", "its search is held (paused): %s", e->held);
    else
        set_text(w->j, "text", "its experiment is paused");
    det_cleanup(freep) char *cmd = det_asprintf("det experiment activate %" PRId64, e->id);
    json_array_append_new(
        json_object_get(w->j, "suggestions"),
        json_make("{s:s,s:s}", "text", "activate the experiment", "command", cmd));
}

static void without_allocation(const struct answer *w, const struct exp *e, const struct trial *t)
{
    if (e->state == EXP_PAUSED)
        why_paused(w, e);
    else if (trial_op_done(t))
        why_searcher(w, t);
    else {
        json_set(w->j, "reason", json_string("STOPPING"));
        set_text(w->j, "text", "it is %s", trial_state_text(t->state));
    }
}

json_t *core_why_trial(struct core *c, int64_t trial_id, struct core_now now)
{
    const struct trial *t = trial_find(c, trial_id);
    if (!t || trial_state_is_terminal(t->state))
        return NULL;
    struct answer w = begin_answer(c, now);
    json_set(w.j, "trialId", json_integer(t->id));
    json_set(w.j, "experimentId", json_integer(t->exp->id));
    json_set(w.j, "avoids", avoid_json(t));
    if (!t->alloc)
        without_allocation(&w, t->exp, t);
    else if (t->alloc->state == ALLOC_PENDING)
        explain_waiting(&w, t->alloc);
    else
        explain_placed(&w, t->alloc);
    return w.j;
}

/* The trial that speaks for the experiment: the first that waits, else the first that runs. */
static const struct trial *find_speaker(const struct exp *e)
{
    const struct trial *found = NULL;
    for (size_t i = 0; i < e->trials.n; i++) {
        const struct trial *t = e->trials.v[i];
        if (trial_state_is_terminal(t->state))
            continue;
        if (t->alloc && t->alloc->state == ALLOC_PENDING)
            return t;
        if (!found || (t->alloc && !found->alloc))
            found = t;
    }
    return found;
}

static void no_trial(const struct answer *w, const struct exp *e)
{
    set_text(w->j, "text",
             e->state == EXP_PAUSED ? "it is paused, and has no trial yet"
                                    : "its searcher has asked for no trial%s",
             e->conf.search.kind == SEARCH_CUSTOM ? ": its client has to" : "");
}

static json_t *why_deleting(struct answer w, const struct exp *e)
{
    set_text(w.j, "text", "it is being deleted: %s",
             e->is_purging ? "its rows go, some thousand at a time; what it has left of trials "
                             "tells how far that is"
                           : "its checkpoints go first, by a task on an agent; then its rows");
    json_set(w.j, "trialId", json_null());
    json_set(w.j, "experimentId", json_integer(e->id));
    json_set(w.j, "reason", json_string("DELETING"));
    return w.j;
}

json_t *core_why_exp(struct core *c, int64_t exp_id, struct core_now now)
{
    const struct exp *e = exp_find(c, exp_id);
    if (e && e->state == EXP_DELETING)
        return why_deleting(begin_answer(c, now), e);
    if (!e || exp_state_is_terminal(e->state))
        return NULL;
    const struct trial *t = e->held ? NULL : find_speaker(e); /* that is the experiment's */
    json_t *j = t ? core_why_trial(c, t->id, now) : NULL;
    size_t running = e->group->running.n + e->group->ending.n, waits = e->group->pending.n;
    if (!j) {
        struct answer w = begin_answer(c, now);
        j = w.j;
        json_set(j, "trialId", json_null());
        json_set(j, "experimentId", json_integer(e->id));
        json_set(j, "reason", json_string("NO_WORK"));
        if (e->held)
            why_paused(&w, e);
        else
            no_trial(&w, e);
    }
    json_set(j, "trialsRunning", json_integer((json_int_t)running));
    json_set(j, "trialsWaiting", json_integer((json_int_t)waits));
    return j;
}
