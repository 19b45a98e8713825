/* The schedulers' decisions over thousands of random states: the same as the slow reference's, the
 * same each time, and leaving nothing behind when undone. */
#include "agent.h"
#include "fit.h"
#include "sched_ref.h"
#include "scheduler.h"
#include "snapshot.h"

enum { ROUNDS = 2500 };

static void same(const struct sched *s, const struct ref_out *r, uint64_t seed)
{
    bool more = s->starts.n > r->starts.n || s->releases.n > r->releases.n;
    bool fewer = s->starts.n < r->starts.n || s->releases.n < r->releases.n;
    if (fewer || (more && !r->is_begin))
        fail_msg("seed %llu: %zu starts and %zu releases, not %zu and %zu",
                 (unsigned long long)seed, s->starts.n, s->releases.n, r->starts.n, r->releases.n);
    for (size_t i = 0; i < r->starts.n; i++) {
        const struct sched_start *a = &s->starts.v[i];
        const struct ref_start *b = &r->starts.v[i];
        if (a->alloc != b->alloc || a->n != b->agents.n)
            fail_msg("seed %llu: start %zu is %s on %zu, not %s on %zu", (unsigned long long)seed,
                     i, a->alloc->id, a->n, b->alloc->id, b->agents.n);
        for (size_t k = 0; k < a->n; k++)
            if (s->nodes.v[a->first + k].agent != b->agents.v[k] ||
                s->nodes.v[a->first + k].slots != b->slots.v[k])
                fail_msg("seed %llu: start %zu, node %zu: %s, not %s", (unsigned long long)seed, i,
                         k, s->nodes.v[a->first + k].agent->id, b->agents.v[k]->id);
    }
    for (size_t i = 0; i < r->releases.n; i++)
        if (s->releases.v[i].alloc != r->releases.v[i])
            fail_msg("seed %llu: release %zu is %s, not %s", (unsigned long long)seed, i,
                     s->releases.v[i].alloc->id, r->releases.v[i]->id);
    for (size_t i = 0; i < r->offers.n; i++)
        assert_int_equal(r->offers.v[i].exp->group->offer, r->offers.v[i].slots);
}

/* The reference knows no back-filling: what stands behind the first that does not fit, it leaves.
 */
static void drop_backfill(struct sched *s)
{
    while (s->starts.n && s->starts.v[s->starts.n - 1].is_backfill)
        s->starts.n--;
    s->releases.n = 0;
}

static void one(uint64_t seed, const struct core_options *o)
{
    struct snapshot s;
    struct sched first, again;
    struct ref_out ref;
    snapshot_make(&s, seed, o);
    struct pool *pool = s.w.core->pools.v[0];
    int64_t idle = fit_free(&pool->fit);
    sched_decide(&first, s.w.core, pool);
    fit_undo(&pool->fit, 0);
    assert_int_equal(fit_free(&pool->fit), idle);
    sched_decide(&again, s.w.core, pool);
    fit_undo(&pool->fit, 0);
    ref_decide(s.w.core, pool, &ref);
    if (o->scheduler == CORE_FIFO) {
        drop_backfill(&first);
        drop_backfill(&again);
    }
    same(&first, &ref, seed);
    same(&again, &ref, seed);
    for (int64_t k = 1; k <= 20; k++) {
        assert_int_equal(fit_could_size(&pool->fit, k, NULL), ref_could(s.w.core, pool, k, false));
        assert_int_equal(fit_ever(&pool->fit, k), ref_could(s.w.core, pool, k, true));
    }
    ref_finish(&ref);
    sched_finish(&first);
    sched_finish(&again);
    snapshot_free(&s);
}

static void run(enum core_scheduler scheduler, bool preemption)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct core_options o = core_options_default;
        o.scheduler = scheduler;
        o.preemption = preemption;
        o.launch_error = false;
        o.fitting = seed & 1 ? CORE_FIT_BEST : CORE_FIT_WORST;
        o.allow_heterogeneous_fits = seed & 2;
        o.max_aux_containers = 1 + (int)(seed % 3);
        one(seed, &o);
    }
}

static void test_fair(void **state)
{
    run(CORE_FAIR_SHARE, false);
}

static void test_priority(void **state)
{
    run(CORE_PRIORITY, false);
}

static void test_preemption(void **state)
{
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
        cmocka_unit_test(test_fair),        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_preemption),  cmocka_unit_test(test_fifo),
        cmocka_unit_test(test_round_robin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
