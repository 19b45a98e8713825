/* The invariants that core.h lists, asserted. */
#include "agent.h"
#include "alloc.h"
#include "exp.h"
#include "fit.h"
#include "trial.h"
#include <assert.h>

static void check_container(const struct container *k)
{
    if (k->state == ALLOC_TERMINATED) {
        assert(!k->agent && !k->silent.phase[0] && !k->unreached.text[0]);
        return;
    }
    assert(k->agent && k->agent->state != AGENT_ABSENT);
    size_t listed = 0, held = 0;
    for (size_t i = 0; i < k->agent->containers.n; i++)
        listed += k->agent->containers.v[i] == k;
    for (size_t i = 0; i < k->agent->slots.n; i++)
        held += k->agent->slots.v[i].holder == k;
    assert(listed == 1 && held == k->slots.n);
}

/* Every state in which the core waits for a machine has a deadline. None have: PENDING, which waits
 * for room; a run that is ready and has work, which its host's stall watch and its agent's lease
 * look after. */
static void check_deadlines(const struct alloc *a)
{
    bool is_placed = a->state > ALLOC_PENDING && a->state < ALLOC_TERMINATING;
    assert((a->state == ALLOC_TERMINATING) == (a->kill_ms != INT64_MAX));
    assert((is_placed && !a->is_ready) == (a->ready_ms != INT64_MAX));
    assert(alloc_should_end(a) == (a->done_ms != INT64_MAX));
    assert(!is_placed || !a->preempt || a->preempt_ms != INT64_MAX);
    const int64_t all[] = {a->hold_ms, a->preempt_ms, a->kill_ms, a->start_ms,
                           a->exit_ms, a->ready_ms,   a->done_ms, a->shield_ms};
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < DET_ARRAY_LEN(all); i++)
        first = all[i] < first ? all[i] : first;
    assert((first != INT64_MAX) == (a->timer.pos != 0));
    assert(first == INT64_MAX || a->timer.at_ms == first);
}

static void check_alloc(const struct core *c, const struct alloc *a)
{
    size_t live = 0;
    for (size_t i = 0; i < a->containers.n; i++) {
        live += a->containers.v[i]->state != ALLOC_TERMINATED;
        check_container(a->containers.v[i]);
    }
    assert(live == a->live && a->state != ALLOC_TERMINATED && !a->dirty && !a->is_new);
    bool pending = a->state == ALLOC_PENDING, held_back = a->hold_ms != INT64_MAX;
    assert(a->queued_as == (pending              ? held_back ? QUEUE_NONE : QUEUE_PENDING
                            : alloc_is_ending(a) ? QUEUE_ENDING
                                                 : QUEUE_RUNNING));
    assert(pending ? live == 0 : live > 0);
    assert(alloc_find(c, a->id) == a && (a->kind == KIND_GC || a->trial->alloc == a));
    assert(a->kind == KIND_TRIAL || !a->exp || a->exp->gc == a);
    if (a->kill != KILL_NONE)
        assert(a->state == ALLOC_TERMINATING && a->kill_ms != INT64_MAX);
    else if (a->preempt)
        assert(a->preempt_ms != INT64_MAX);
    if (a->state == ALLOC_ASSIGNED && !a->kill)
        assert(a->start_ms != INT64_MAX);
    check_deadlines(a);
}

/* A trial that is to stop has a run that ends, or will by a deadline. */
static void check_stopping(const struct trial *t)
{
    bool stops = t->state != TRIAL_ACTIVE && !trial_state_is_terminal(t->state);
    if (stops && t->alloc)
        assert(alloc_is_ending(t->alloc) || alloc_should_end(t->alloc));
}

static void check_trial(const struct trial *t)
{
    check_stopping(t);
    assert(!t->dirty && !t->is_new);
    if (trial_state_is_terminal(t->state)) {
        assert(!t->alloc);
        return;
    }
    if (t->alloc)
        assert(t->alloc->run_id == t->run_id);
    else
        assert(t->state == TRIAL_PAUSED || (t->state == TRIAL_ACTIVE && trial_op_done(t)));
    assert(t->restarts <= t->exp->conf.max_restarts);
}

/* Somebody works for it, or for a trial of it; a custom search may wait for a person. */
static void check_progress(const struct exp *e)
{
    size_t runs = 0, open = 0;
    for (size_t i = 0; i < e->trials.n; i++) {
        runs += e->trials.v[i]->alloc != NULL;
        open += !trial_state_is_terminal(e->trials.v[i]->state);
    }
    if (e->state == EXP_ACTIVE && e->conf.search.kind != SEARCH_CUSTOM)
        assert(runs > 0 || e->more.pos);
    else if (e->state != EXP_ACTIVE && e->state != EXP_PAUSED && e->state != EXP_DELETING)
        assert(runs == open);
}

/* Somebody still has something of it. */
static bool has_collection(const struct core *c, const struct exp *e)
{
    for (size_t i = 0; i < c->allocs.n; i++)
        if (c->allocs.v[i]->kind == KIND_GC && c->allocs.v[i]->exp_id == e->id)
            return true;
    return false;
}

static void check_exp(const struct core *c, const struct exp *e)
{
    size_t open = 0, mistaken = 0;
    for (size_t i = 0; i < e->trials.n; i++) {
        check_trial(e->trials.v[i]);
        open += !trial_state_is_terminal(e->trials.v[i]->state);
        mistaken += e->trials.v[i]->mistake != NULL;
    }
    assert(open == e->open && mistaken == e->mistaken && !exp_has_ended(e) && !e->dirty);
    assert(e->progress >= 0 && e->progress <= 1);
    assert(!e->held || e->state == EXP_PAUSED);
    check_progress(e);
    if (e->state == EXP_DELETING)
        assert(has_collection(c, e) != e->is_purging && (!e->gc || e->gc->exp == e));
    else
        assert(open > 0 || e->more.pos || e->conf.search.kind == SEARCH_CUSTOM);
    assert((e->todo_at < e->todo.ops.n) == (e->more.pos != 0));
}

static void check_agent(const struct agent *a)
{
    struct agent_slots n = agent_slots(a);
    assert(n.free + n.used + n.disabled == n.total);
    for (size_t i = 0; i < a->containers.n; i++)
        assert(a->containers.v[i]->agent == a);
    if (a->state == AGENT_ABSENT)
        assert(a->slots.n == 0 && a->containers.n == 0 && !a->pool);
    assert((a->state == AGENT_LOST) == (a->lease.pos != 0));
}

static void check_list(const struct group *g, const struct alloc_list *l, enum queue_as as)
{
    size_t n = 0;
    for (const struct alloc *a = l->first; a; a = a->next, n++) {
        assert(a->queued_as == as && a->slots == g->size && a->pool == g->pool);
        assert(!a->next || (a->next->seq > a->seq && a->next->prev == a));
    }
    assert(n == l->n);
}

/* The queue's sums, and slots given out as the index of agents has them. */
static void check_pool(const struct pool *p)
{
    size_t pending = 0;
    int64_t idle = 0;
    assert(!p->dirty && p->fit.journal.n == 0 && !p->fit.is_frozen);
    for (size_t i = 0; i < p->groups.n; i++) {
        const struct group *g = p->groups.v[i];
        assert(g->id == (g->exp ? g->exp->id : 0) && (!g->exp || g->exp->group == g));
        assert(g->pool == p && g->pending.n + g->running.n + g->ending.n > 0);
        assert(i == 0 || p->groups.v[i - 1]->id < g->id);
        check_list(g, &g->pending, QUEUE_PENDING);
        check_list(g, &g->running, QUEUE_RUNNING);
        check_list(g, &g->ending, QUEUE_ENDING);
        assert(g->held == (int64_t)g->running.n * g->size);
        assert(g->releasing == (int64_t)g->ending.n * g->size);
        pending += g->pending.n;
    }
    for (size_t i = 0; i < p->agents.n; i++) {
        const struct agent *a = p->agents.v[i];
        struct agent_slots n = agent_slots(a);
        assert(a->counted_in == p && a->listed == agent_is_usable(a) && a->total == (int)n.total);
        if (!a->listed)
            continue;
        assert(a->free == (int)n.free && a->whole == (int)(n.total - n.off));
        assert(a->aux_free == p->o.max_aux_containers - agent_aux(a));
        idle += a->free;
    }
    assert(pending == p->pending_n && idle == fit_free(&p->fit));
}

/* What quotas are compared with. */
static void check_user(const struct core *c, const struct user *u)
{
    int64_t used = 0, in_pools = 0;
    for (size_t i = 0; i < c->allocs.n; i++) {
        const struct alloc *a = c->allocs.v[i];
        bool placed = a->queued_as == QUEUE_RUNNING || a->queued_as == QUEUE_ENDING;
        used += a->kind == KIND_TRIAL && placed && a->exp->group->user == u ? a->slots : 0;
    }
    for (size_t i = 0; i < u->pools.n; i++)
        in_pools += u->pools.v[i].used;
    assert(u->used == used && in_pools == used);
}

void core_check_part(const struct core *c, size_t k, size_t n)
{
    uint64_t id;
    void *user;
    for (size_t it = 0, i = 0; imap_next(c->users, &it, &id, &user); i++)
        if (i % n == k)
            check_user(c, user);
    for (size_t i = k; i < c->exps.n; i += n)
        check_exp(c, c->exps.v[i]);
    for (size_t i = k; i < c->allocs.n; i += n)
        check_alloc(c, c->allocs.v[i]);
    for (size_t i = k; i < c->agents.n; i += n)
        check_agent(c->agents.v[i]);
    for (size_t i = k; i < c->pools.n; i += n)
        check_pool(c->pools.v[i]);
}

void core_check(const struct core *c)
{
    core_check_part(c, 0, 1);
}

void core_check_exp(const struct core *c, int64_t exp_id)
{
    const struct exp *e = exp_find(c, exp_id);
    if (!e)
        return;
    check_exp(c, e);
    for (size_t i = 0; i < e->trials.n; i++)
        if (e->trials.v[i]->alloc)
            check_alloc(c, e->trials.v[i]->alloc);
    if (e->gc)
        check_alloc(c, e->gc);
}
