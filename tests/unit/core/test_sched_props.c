/* What every decision of every scheduler keeps to, over thousands of random states: capacity, caps,
 * quotas, no idle slot that somebody may use, and the first in line is not delayed by back-filling.
 */
#include "agent.h"
#include "alloc.h"
#include "fit.h"
#include "queue.h"
#include "quota.h"
#include "scheduler.h"
#include "snapshot.h"

enum { ROUNDS = 1500, WAIT_MS = 60000 };

static struct group *group_of(const struct alloc *a)
{
    return a->kind == KIND_TRIAL ? a->exp->group : &a->pool->collections;
}

static void check_capacity(const struct sched *s)
{
    for (size_t i = 0; i < s->pool->agents.n; i++) {
        const struct agent *a = s->pool->agents.v[i];
        int64_t taken = 0, aux = 0;
        for (size_t k = 0; k < s->nodes.n; k++)
            if (s->nodes.v[k].agent == a) {
                taken += s->nodes.v[k].slots;
                aux += s->nodes.v[k].slots == 0;
            }
        assert_true(taken <= (int64_t)agent_slots(a).free);
        assert_true(aux == 0 || aux <= s->pool->o.max_aux_containers - agent_aux(a));
        assert_true(taken + aux == 0 || agent_is_usable(a));
    }
}

static void check_starts(const struct sched *s)
{
    for (size_t i = 0; i < s->starts.n; i++) {
        const struct sched_start *st = &s->starts.v[i];
        int64_t slots = 0;
        assert_int_equal(st->alloc->queued_as, QUEUE_PENDING);
        for (size_t k = 0; k < st->n; k++) {
            slots += s->nodes.v[st->first + k].slots;
            for (size_t x = 0; st->alloc->trial && x < st->alloc->trial->avoids.n; x++)
                assert_string_not_equal(st->alloc->trial->avoids.v[x].agent,
                                        s->nodes.v[st->first + k].agent->id);
        }
        assert_int_equal(slots, st->alloc->slots);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(s->starts.v[k].alloc, st->alloc);
    }
    for (size_t i = 0; i < s->releases.n; i++) {
        assert_int_equal(s->releases.v[i].alloc->queued_as, QUEUE_RUNNING);
        assert_true(alloc_is_preemptible(s->releases.v[i].alloc));
        assert_true(s->pool->o.scheduler == CORE_PRIORITY ||
                    s->releases.v[i].alloc->shield_ms == INT64_MAX);
    }
}

static int64_t started(const struct sched *s, const struct group *g, const struct user *u)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->starts.n; i++) {
        const struct alloc *a = s->starts.v[i].alloc;
        n += (g && group_of(a) == g) || (u && a->exp && a->exp->group->user == u) ? a->slots : 0;
    }
    return n;
}

static void check_limits(const struct sched *s)
{
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        const struct group *g = s->pool->groups.v[i];
        if (!g->exp || g->size == 0)
            continue;
        int64_t mine = started(s, g, NULL), all = started(s, NULL, g->user);
        int64_t max = g->max_slots;
        assert_true(mine == 0 || max < 0 || g->held + g->releasing + mine <= max);
        int64_t quota = quota_max(s->c, g->user->name, s->pool);
        assert_true(all == 0 || quota == INT64_MAX || g->user->used + all <= quota);
    }
}

/* Where nothing is on its way to somebody else, what may start and fits has been started. */
static void check_no_idle(struct sched *s)
{
    bool priority = s->pool->o.scheduler == CORE_PRIORITY;
    if (s->guarded || s->releases.n || s->blocks.n || (priority && s->pool->o.preemption))
        return;
    int level = 1000;
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        const struct group *g = s->pool->groups.v[i];
        if (g->next && g->size > 0 && queue_group_level(g) < level)
            level = queue_group_level(g);
    }
    for (size_t i = 0; i < s->pool->groups.n; i++) {
        struct group *g = s->pool->groups.v[i];
        if (!g->next || g->size == 0 || !sched_may(s, g) ||
            (priority && queue_group_level(g) > level) || s->pool->o.allow_heterogeneous_fits)
            continue;
        if (!sched_is_choosy(g->next))
            assert_false(fit_place(&s->pool->fit, g->next, &s->tmp));
    }
}

/* The first in line gets its room as soon as what was asked to stop has. */
static void check_kept_room(struct sched *s)
{
    struct fit *f = &s->pool->fit;
    if (!s->guarded || s->pool->o.allow_heterogeneous_fits)
        return; /* unequal agents are taken greedily: more of them may be worse */
    for (size_t i = 0; i < s->pool->groups.n; i++)
        for (struct alloc *a = s->pool->groups.v[i]->ending.first; a; a = a->next)
            fit_give(f, a);
    if (s->pool->o.scheduler == CORE_FIFO || s->pool->o.scheduler == CORE_FAIR_SHARE) {
        for (size_t i = 0; i < s->releases.n; i++)
            fit_give(f, s->releases.v[i].alloc);
        assert_true(fit_place(f, s->guarded, &s->tmp));
    }
    for (size_t i = 0; i < s->starts.n; i++) {
        const struct sched_start *st = &s->starts.v[i];
        for (size_t n = 0; st->is_backfill && n < st->n; n++)
            for (size_t k = 0; k < s->reserved.n; k++)
                assert_ptr_not_equal(s->nodes.v[st->first + n].agent, s->reserved.v[k]);
    }
}

static void one(uint64_t seed, const struct core_options *o)
{
    struct snapshot snap;
    struct sched s;
    snapshot_make(&snap, seed, o);
    struct core *c = snap.w.core;
    struct pool *pool = c->pools.v[0];
    for (size_t i = 0; i < pool->groups.n; i++)
        if (snapshot_random(&snap, 3) == 0)
            pool->groups.v[i]->waits_ms -= WAIT_MS;
    sched_decide(&s, c, pool);
    check_no_idle(&s);
    check_capacity(&s);
    check_starts(&s);
    check_limits(&s);
    size_t mark = fit_mark(&pool->fit);
    check_kept_room(&s);
    fit_undo(&pool->fit, mark);
    fit_undo(&pool->fit, 0);
    sched_finish(&s);
    snapshot_free(&snap);
}

static void run(enum core_scheduler scheduler, bool preemption)
{
    static const struct core_quota quotas[] = {{"*", NULL, 17}, {"*", "default", 16}};
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct core_options o = core_options_default;
        o.scheduler = scheduler;
        o.preemption = preemption;
        o.launch_error = false;
        o.starvation_wait_ms = seed % 3 ? WAIT_MS : 0;
        o.fitting = seed & 1 ? CORE_FIT_BEST : CORE_FIT_WORST;
        o.allow_heterogeneous_fits = seed % 5 == 0;
        o.quotas = quotas;
        o.quotas_n = seed % 4 == 0 ? 2 : 0;
        one(seed * 7919, &o);
    }
}

static void test_fair(void **state)
{
    run(CORE_FAIR_SHARE, false);
}

static void test_priority(void **state)
{
    run(CORE_PRIORITY, false);
    run(CORE_PRIORITY, true);
}

static void test_fifo(void **state)
{
    run(CORE_FIFO, false);
}

static void test_round_robin(void **state)
{
    run(CORE_ROUND_ROBIN, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fair),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_fifo),
        cmocka_unit_test(test_round_robin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
