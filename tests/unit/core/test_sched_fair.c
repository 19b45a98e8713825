/* Fair share as time goes by: shares that gangs can use, idle slots that are lent, and, over random
 * jobs, agents and ends, that it comes to rest. */
#include "fit.h"
#include "model.h"
#include "world.h"

#include <stdio.h>

enum { WORLDS = 250, EVENTS = 24, TRIALS_MAX = 2000 };

static uint64_t random_below(uint64_t *state, uint64_t below)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}

/* n trials at once of k slots each, all together at most `max` (0: no cap). */
static int64_t job(struct world *w, int n, int k, double weight, int max)
{
    char config[256], cap[40] = "";
    if (max)
        snprintf(cap, sizeof cap, ",\"max_slots\":%d", max);
    snprintf(config, sizeof config,
             "{\"resources\":{\"slots_per_trial\":%d,\"weight\":%g%s},"
             "\"searcher\":{\"name\":\"random\",\"max_trials\":%d,\"max_concurrent_trials\":0}}",
             k, weight, cap, n);
    return world_create(w, config);
}

static int64_t held(const struct world *w, int64_t exp)
{
    struct core_exp_view v;
    return core_exp_get(w->core, exp, &v) ? v.slots_held : 0;
}

static bool can_move(const struct core_alloc_view *a)
{
    return a->state == ALLOC_ASSIGNED || a->state == ALLOC_TERMINATING || a->preempt;
}

/* Runs what is placed, ends what was asked to stop; true: it stopped. */
static bool move(struct world *w, const struct core_alloc_view *a)
{
    bool killed = a->state == ALLOC_TERMINATING;
    int64_t trial = a->trial_id;
    size_t n = a->containers;
    if (a->state == ALLOC_ASSIGNED) {
        world_run(w, trial);
        return false;
    }
    if (!killed)
        world_step(w, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION, .alloc_id = a->id});
    for (size_t i = 0; i < n; i++)
        world_exit(w, trial, i,
                   killed ? (struct core_exit){.reason = CORE_KILLED, .rank = -1} : EXIT_CODE(0));
    return true;
}

/* In any order, until nothing moves: nobody is stopped twice on the way. Returns the stops. */
static size_t settle(struct world *w, uint64_t *rng)
{
    bool stopped[TRIALS_MAX] = {0};
    size_t stops = 0;
    for (;;) {
        struct core_alloc_view a, pick = {0};
        uint64_t n = 0;
        for (size_t i = 0; core_alloc_at(w->core, i, &a); i++)
            if (can_move(&a) && random_below(rng, ++n) == 0)
                pick = a;
        if (n == 0)
            return stops;
        int64_t trial = pick.trial_id;
        if (!move(w, &pick))
            continue;
        assert_in_range(trial, 1, TRIALS_MAX - 1);
        assert_false(stopped[trial]);
        stopped[trial] = true;
        stops++;
    }
}

/* ---- In small ---- */

/* Two agents of so many slots, each request on the emptier. */
static void begin(struct world *w, int slots)
{
    struct core_options o = core_options_default;
    o.fitting = CORE_FIT_WORST;
    world_init(w, &o);
    world_hello(w, "a", slots, NULL, 0);
    world_hello(w, "b", slots, NULL, 0);
}

/* The share of a gang that fits nowhere is lent, and given back when that is of use to it. */
static void test_idle_is_lent(void **state)
{
    struct world w;
    uint64_t rng = 1;
    begin(&w, 2);
    int64_t spread = job(&w, 2, 1, 4, 0);
    settle(&w, &rng);
    int64_t gang = job(&w, 1, 2, 4, 0), small = job(&w, 2, 1, 0.01, 0);
    assert_int_equal(settle(&w, &rng), 0);
    assert_int_equal(held(&w, spread), 2);
    assert_int_equal(held(&w, gang), 0);
    assert_int_equal(held(&w, small), 2);
    world_complete(&w, 1, 1);
    assert_int_equal(settle(&w, &rng), 1);
    assert_int_equal(held(&w, gang), 2);
    assert_int_equal(held(&w, small), 1);
    world_finish(&w);
}

/* Who has to give back does so where a gang can use it, not here one and there one. */
static void test_gang_gets_its_share(void **state)
{
    struct world w;
    uint64_t rng = 1;
    begin(&w, 4);
    int64_t crowd = job(&w, 16, 1, 1, 0);
    settle(&w, &rng);
    assert_int_equal(held(&w, crowd), 8);
    int64_t gang = job(&w, 1, 4, 1, 0);
    assert_int_equal(settle(&w, &rng), 4);
    assert_int_equal(held(&w, gang), 4);
    assert_int_equal(held(&w, crowd), 4);
    world_finish(&w);
}

/* Nothing is asked back that helps nobody. */
static void test_no_useless_stop(void **state)
{
    struct world w;
    uint64_t rng = 1;
    begin(&w, 2);
    int64_t spread = job(&w, 2, 1, 8, 0), crowd = job(&w, 9, 1, 1, 0);
    settle(&w, &rng);
    assert_int_equal(held(&w, crowd), 2);
    int64_t gang = job(&w, 1, 2, 8, 0);
    assert_int_equal(settle(&w, &rng), 0);
    assert_int_equal(held(&w, spread), 2);
    assert_int_equal(held(&w, crowd), 2);
    assert_int_equal(held(&w, gang), 0);
    world_finish(&w);
}

/* ---- At random ---- */

static void check_no_idle(const struct world *w)
{
    struct pool *p = w->core->pools.v[0];
    struct placement tmp = {0};
    for (size_t i = 0; i < p->groups.n; i++) {
        struct group *g = p->groups.v[i];
        bool capped = g->max_slots >= 0 && g->held + g->size > g->max_slots;
        if (!capped && g->pending.first)
            assert_false(fit_place(&p->fit, g->pending.first, &tmp));
    }
    vec_free(&tmp.nodes);
}

static void add_job(struct world *w, uint64_t *rng)
{
    static const int sizes[] = {1, 1, 1, 2, 2, 3, 4, 4, 6, 8, 16};
    int n = 1 + (int)random_below(rng, 9), k = sizes[random_below(rng, DET_ARRAY_LEN(sizes))];
    double weight = 1 + (double)random_below(rng, 3);
    job(w, n, k, weight, random_below(rng, 5) ? 0 : k + (int)random_below(rng, 8));
}

static void complete_one(struct world *w, uint64_t *rng)
{
    struct core_alloc_view a;
    uint64_t n = 0;
    int64_t trial = 0;
    for (size_t i = 0; core_alloc_at(w->core, i, &a); i++)
        if (a.state == ALLOC_RUNNING && random_below(rng, ++n) == 0)
            trial = a.trial_id;
    if (trial)
        world_complete(w, trial, 1);
}

static void test_comes_to_rest(void **state)
{
    static const int sizes[] = {1, 2, 4, 4, 4, 8, 8, 3};
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct core_options o = core_options_default;
        struct world w;
        uint64_t rng = seed;
        o.launch_error = false;
        o.fitting = seed & 1 ? CORE_FIT_BEST : CORE_FIT_WORST;
        world_init(&w, &o);
        for (uint64_t n = 1 + random_below(&rng, 6); n > 0; n--)
            world_hello(&w, (char[]){(char)('a' + n), '\0'},
                        sizes[random_below(&rng, DET_ARRAY_LEN(sizes))], NULL, 0);
        for (int i = 0; i < EVENTS; i++) {
            if (i < 4 || random_below(&rng, 4) == 0)
                add_job(&w, &rng);
            else
                complete_one(&w, &rng);
            settle(&w, &rng);
            check_no_idle(&w);
        }
        world_finish(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_is_lent),
        cmocka_unit_test(test_gang_gets_its_share),
        cmocka_unit_test(test_no_useless_stop),
        cmocka_unit_test(test_comes_to_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
