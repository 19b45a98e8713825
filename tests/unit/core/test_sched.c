/* Fair share, priority, first in first out. */
#include "world.h"

#include <stdio.h>

/* A random search of n trials at once, k slots each, all run as soon as they are placed. */
static int64_t job(struct world *w, int n, int k, double weight, int priority)
{
    char config[256];
    snprintf(config, sizeof config,
             "{\"resources\":{\"slots_per_trial\":%d,\"weight\":%g,\"priority\":%d},"
             "\"searcher\":{\"name\":\"random\",\"max_trials\":%d,\"max_concurrent_trials\":0}}",
             k, weight, priority, n);
    return world_create(w, config);
}

static int64_t held(const struct world *w, int64_t exp)
{
    struct core_exp_view v;
    return core_exp_get(w->core, exp, &v) ? v.slots_held : 0;
}

/* Runs what is placed; lets whatever is asked to stop do so; until nothing changes. */
static void settle(struct world *w)
{
    struct core_alloc_view a;
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; !again && core_alloc_at(w->core, i, &a); i++) {
            again = true;
            if (a.state == ALLOC_ASSIGNED)
                world_run(w, a.trial_id);
            else if (a.state == ALLOC_TERMINATING)
                world_exit(w, a.trial_id, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
            else if (a.preempt) {
                world_step(w,
                           (struct core_event){.kind = CORE_EV_ACK_PREEMPTION, .alloc_id = a.id});
                world_exit(w, a.trial_id, 0, EXIT_CODE(0));
            } else
                again = false;
        }
    }
}

struct share {
    int slots;
    struct {
        int n, k;
        double weight;
        int want;
    } jobs[4];
};
static const struct share shares[] = {
    {8, {{8, 1, 1, 4}, {8, 1, 1, 4}}},
    {8, {{8, 1, 3, 6}, {8, 1, 1, 2}}},
    {8, {{2, 1, 1, 2}, {8, 1, 1, 6}}},
    {9, {{9, 1, 1, 3}, {9, 1, 1, 3}, {9, 1, 1, 3}}},
    {4, {{4, 2, 1, 2}, {4, 2, 1, 2}, {4, 2, 1, 0}}}, /* the youngest cannot use its share */
    {5, {{9, 1, 1, 3}, {2, 2, 1, 2}}},               /* no slot idles */
    {4, {{1, 4, 1, 0}, {4, 1, 1, 4}}}, /* half of it is too little for a gang of four */
    {2, {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 0}}},
    {6, {{6, 1, 1, 2}, {6, 1, 1, 2}, {1, 2, 1, 2}}},
    /* a fair share of six helps none of those who wait; what it leaves helps the last */
    {6, {{1, 4, 3, 4}, {2, 4, 1, 0}, {2, 4, 1, 0}, {4, 2, 1, 2}}},
};

/* Also when the pool was full before the others came: pending work counts. */
static void test_fair_share(void **state)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(shares); i++) {
        const struct share *s = &shares[i];
        struct world w;
        int64_t ids[4];
        int total = 0;
        world_init(&w, NULL);
        world_hello(&w, "a", s->slots, NULL, 0);
        int n = 0;
        for (; n < 4 && s->jobs[n].n; n++) {
            ids[n] = job(&w, s->jobs[n].n, s->jobs[n].k, s->jobs[n].weight, 0 + 42);
            settle(&w);
        }
        for (int k = 0; k < n; k++) {
            if (held(&w, ids[k]) != s->jobs[k].want)
                fail_msg("share %zu: job %d holds %lld slots, not %d", i, k,
                         (long long)held(&w, ids[k]), s->jobs[k].want);
            total += s->jobs[k].want;
        }
        assert_true(total <= s->slots);
        for (int64_t t = 1; t <= 4; t++) /* nobody was charged for giving way */
            assert_int_equal(world_trial(&w, t).restarts, 0);
        world_finish(&w);
    }
}

static void test_max_slots(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 8, NULL, 0);
    int64_t id = job(&w, 8, 1, 1, 42);
    settle(&w);
    assert_int_equal(held(&w, id), 8);
    struct core_event ev = {.kind = CORE_EV_EXP_PATCH, .exp_id = id};
    ev.patch = (struct core_patch){.has_max_slots = true, .max_slots = 3};
    assert_int_equal(world_step(&w, ev), 0);
    settle(&w);
    assert_int_equal(held(&w, id), 3);
    ev.patch.max_slots = 0;
    assert_int_equal(world_step(&w, ev), DET_EINVAL);
    ev.patch.max_slots = -1;
    assert_int_equal(world_step(&w, ev), 0);
    settle(&w);
    assert_int_equal(held(&w, id), 8);
    world_finish(&w);
}

static void with_scheduler(struct world *w, enum core_scheduler s, bool preemption)
{
    struct core_options o = core_options_default;
    o.scheduler = s;
    o.preemption = preemption;
    world_init(w, &o);
    world_hello(w, "a", 4, NULL, 0);
}

static void test_priority(void **state)
{
    struct world w;
    with_scheduler(&w, CORE_PRIORITY, false);
    int64_t low = job(&w, 4, 1, 1, 50);
    settle(&w);
    int64_t high = job(&w, 2, 1, 1, 10), mid = job(&w, 4, 1, 1, 42);
    settle(&w);
    assert_int_equal(held(&w, low), 4); /* no preemption */
    int64_t *ids;
    assert_int_equal(core_jobs(w.core, "default", &ids), 3);
    assert_true(ids[0] == high && ids[1] == mid && ids[2] == low);
    free(ids);
    for (int64_t t = 1; t <= 2; t++)
        world_complete(&w, t, 1);
    assert_int_equal(held(&w, high), 2);
    world_complete(&w, 3, 1);
    assert_int_equal(held(&w, mid), 1);
    world_finish(&w);
}

static void test_priority_preempts(void **state)
{
    struct world w;
    with_scheduler(&w, CORE_PRIORITY, true);
    int64_t low = job(&w, 4, 1, 1, 50);
    settle(&w);
    int64_t high = job(&w, 1, 2, 1, 10);
    settle(&w);
    assert_int_equal(held(&w, high), 2);
    assert_int_equal(held(&w, low), 2); /* no more than needed */
    int64_t back = job(&w, 1, 4, 1, 10);
    settle(&w);
    assert_int_equal(held(&w, high), 2); /* ahead of it in its level */
    assert_int_equal(held(&w, back), 0);
    assert_int_equal(held(&w, low), 2); /* and what releasing cannot help is not released */
    world_finish(&w);
}

/* A gang waits for two hosts, whose work ends one after the other: what ends first must not be
 * filled with work that would have to be released again. */
static void test_priority_room_is_kept(void **state)
{
    struct world w;
    struct core_options o = core_options_default;
    o.scheduler = CORE_PRIORITY;
    o.preemption = true;
    world_init(&w, &o);
    world_hello(&w, "a", 1, NULL, 0);
    world_hello(&w, "b", 1, NULL, 0);
    int64_t low = job(&w, 4, 1, 1, 50);
    settle(&w);
    int64_t high = job(&w, 1, 2, 1, 10);
    for (int64_t t = 1; t <= 2; t++) {
        struct core_trial_view v = world_trial(&w, t);
        det_cleanup(freep) char *id = det_strdup(v.alloc_id);
        world_step(&w, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION, .alloc_id = id});
        world_exit(&w, t, 0, EXIT_CODE(0));
        assert_int_equal(held(&w, low), t == 1 ? 1 : 0);
    }
    assert_int_equal(held(&w, high), 2);
    world_finish(&w);
}

/* More requests than slots in an idle pool: the first ones start. */
static void test_priority_overfull(void **state)
{
    struct world w;
    with_scheduler(&w, CORE_PRIORITY, true);
    int64_t a = job(&w, 3, 4, 1, 42);
    settle(&w);
    assert_int_equal(held(&w, a), 4);
    world_finish(&w);
}

static void test_fifo(void **state)
{
    struct world w;
    with_scheduler(&w, CORE_FIFO, false);
    int64_t a = job(&w, 1, 3, 1, 42), b = job(&w, 1, 2, 1, 42), c = job(&w, 1, 1, 1, 42);
    settle(&w);
    assert_int_equal(held(&w, a), 3);
    assert_int_equal(held(&w, b), 0);
    assert_int_equal(held(&w, c), 1); /* fills the gap until b could start without it */
    world_complete(&w, 1, 1);
    settle(&w);
    assert_int_equal(held(&w, b), 2);
    assert_int_equal(held(&w, c), 1);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fair_share),
        cmocka_unit_test(test_max_slots),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_priority_preempts),
        cmocka_unit_test(test_priority_room_is_kept),
        cmocka_unit_test(test_priority_overfull),
        cmocka_unit_test(test_fifo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
