/* The queue of jobs: places, pools, and how each pool is run. */
#include "world.h"

#include <stdio.h>

static int patch(struct world *w, int64_t exp, struct core_patch p)
{
    struct core_event ev = {.kind = CORE_EV_EXP_PATCH, .exp_id = exp, .patch = p};
    return world_step(w, ev);
}

static void assert_order(const struct world *w, const char *pool, const int64_t *want, size_t n)
{
    int64_t *ids;
    assert_int_equal(core_jobs(w->core, pool, &ids), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ids[i], want[i]);
        assert_int_equal(core_jobs_ahead(w->core, ids[i]), i);
    }
    free(ids);
}
#define ASSERT_ORDER(w, ...)                                                                       \
    assert_order(w, "default", (const int64_t[]){__VA_ARGS__},                                     \
                 sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static int64_t create_as(struct world *w, const char *owner, int slots, int priority,
                         const char *pool)
{
    char config[160];
    snprintf(config, sizeof config,
             "{\"resources\":{\"slots_per_trial\":%d,\"priority\":%d,\"resource_pool\":\"%s\"}}",
             slots, priority, pool);
    JSON_OWN j = world_config(config);
    struct core_event ev = {.kind = CORE_EV_EXP_CREATE};
    ev.create = (struct core_create){
        .job_id = "j", .owner = owner, .owner_id = owner[0], .config = j, .activate = true};
    assert_int_equal(world_step(w, ev), 0);
    return world_reply(w)->id;
}

static int64_t create(struct world *w, int slots, int priority, const char *pool)
{
    return create_as(w, "u", slots, priority, pool);
}

static void priority_world(struct world *w)
{
    struct core_options o = core_options_default;
    o.scheduler = CORE_PRIORITY;
    world_init(w, &o);
    for (int i = 0; i < 4; i++)
        create(w, 1, i < 3 ? 42 : 50, "");
}

static size_t starts(const struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->fx.n; i++)
        n += w->fx.v[i].kind == CORE_ORDER_START;
    return n;
}

/* Events that come together are decided together: after the last. */
static void test_together(void **state)
{
    struct world w;
    world_init(&w, NULL);
    int64_t a = create(&w, 1, 42, ""), b = create(&w, 1, 42, "");
    assert_int_equal(world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = b}),
                     0);
    world_hello(&w, "agent", 2, NULL, 0);
    assert_int_equal(starts(&w), 1);
    struct core_event ev = {.kind = CORE_EV_EXP_ACTIVATE, .exp_id = b, .more = true};
    ev.now_ms = w.now_ms;
    core_effects_finish(&w.fx);
    core_step(w.core, &ev, &w.fx);
    assert_int_equal(starts(&w), 0);
    assert_int_equal(world_step(&w, (struct core_event){.kind = CORE_EV_TICK}), 0);
    assert_int_equal(starts(&w), 1);
    struct core_exp_view v;
    assert_true(core_exp_get(w.core, a, &v) && v.slots_held == 1);
    assert_true(core_exp_get(w.core, b, &v) && v.slots_held == 1);
    world_finish(&w);
}

static void test_places(void **state)
{
    struct world w;
    struct core_exp_view v;
    priority_world(&w);
    ASSERT_ORDER(&w, 1, 2, 3, 4);
    assert_int_equal(patch(&w, 3, (struct core_patch){.ahead_of = 1}), 0);
    ASSERT_ORDER(&w, 3, 1, 2, 4);
    assert_int_equal(patch(&w, 3, (struct core_patch){.behind_of = 1}), 0);
    ASSERT_ORDER(&w, 1, 3, 2, 4);
    assert_int_equal(patch(&w, 1, (struct core_patch){.behind_of = 4}), 0); /* its level too */
    ASSERT_ORDER(&w, 3, 2, 4, 1);
    assert_true(core_exp_get(w.core, 1, &v));
    assert_int_equal(v.priority, 50);
    assert_int_equal(patch(&w, 1, (struct core_patch){.has_priority = true, .priority = 42}), 0);
    ASSERT_ORDER(&w, 1, 3, 2, 4); /* a priority of its own: back to where it was submitted */
    world_finish(&w);
}

/* Who is paused keeps the place and delays nobody. */
static void test_set_aside(void **state)
{
    struct world w;
    struct core_exp_view v;
    struct core_pool_view pool;
    priority_world(&w);
    assert_int_equal(world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = 1}),
                     0);
    assert_true(core_exp_get(w.core, 1, &v) && v.is_set_aside);
    assert_true(core_exp_get(w.core, 2, &v) && !v.is_set_aside);
    assert_int_equal(core_jobs_ahead(w.core, 2), 0);
    assert_int_equal(core_jobs_ahead(w.core, 3), 1);
    assert_true(core_pool_at(w.core, 0, &pool));
    assert_int_equal(pool.jobs_queued, 3);
    assert_int_equal(pool.jobs_paused, 1);
    assert_int_equal(world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = 1}),
                     0);
    ASSERT_ORDER(&w, 1, 2, 3, 4);
    world_finish(&w);
}

/* What is paused and still runs has its slots until it has stopped. */
static void test_set_aside_later(void **state)
{
    struct world w;
    struct core_exp_view v;
    world_init(&w, NULL);
    world_hello(&w, "agent", 1, NULL, 0);
    int64_t e = create(&w, 1, 42, "");
    assert_int_equal(world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = e}),
                     0);
    assert_true(core_exp_get(w.core, e, &v) && v.slots_held == 1 && !v.is_set_aside);
    world_finish(&w);
}

/* Halving a gap ends somewhere: then the level is numbered anew. */
static void test_many_moves(void **state)
{
    struct world w;
    priority_world(&w);
    for (int i = 0; i < 400; i++) {
        int64_t first = i % 2 ? 3 : 2, other = i % 2 ? 2 : 3;
        assert_int_equal(patch(&w, first, (struct core_patch){.behind_of = 1}), 0);
        ASSERT_ORDER(&w, 1, first, other, 4);
    }
    world_finish(&w);
}

static void test_refused(void **state)
{
    struct world w;
    priority_world(&w);
    assert_int_equal(patch(&w, 1, (struct core_patch){.ahead_of = 1}), DET_EINVAL);
    assert_int_equal(patch(&w, 1, (struct core_patch){.ahead_of = 99}), DET_ENOENT);
    assert_int_equal(patch(&w, 1, (struct core_patch){.pool = "moon"}), DET_ENOENT);
    world_finish(&w);
    world_init(&w, NULL);
    create(&w, 1, 42, "");
    create(&w, 1, 42, "");
    assert_int_equal(patch(&w, 1, (struct core_patch){.ahead_of = 2}), DET_EINVAL);
    assert_non_null(strstr(world_reply(&w)->text, "priority scheduler"));
    world_finish(&w);
}

static void hello(struct world *w, const char *agent, const char *pool)
{
    struct core_slot_in s[2] = {{.id = 0, .brand = "", .uuid = ""},
                                {.id = 1, .brand = "", .uuid = ""}};
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = agent};
    ev.hello =
        (struct core_hello){.version = "1", .pool = pool, .addr = agent, .slots = s, .slots_n = 2};
    assert_int_equal(world_step(w, ev), 0);
}

static const struct core_pool_options pools[] = {
    {.name = "gpu",
     .description = "fast",
     .scheduler = CORE_PRIORITY,
     .default_priority = 50,
     .max_aux_containers = 1,
     .agent_reconnect_wait_ms = 5000},
};

/* The default pool with an agent a, the pool gpu with an agent b, and one quota over both. */
static void begin_quota_world(struct world *w, const struct core_quota *q)
{
    struct core_options o = core_options_default;
    o.pools = pools;
    o.pools_n = 1;
    o.quotas = q;
    o.quotas_n = 1;
    world_init(w, &o);
    hello(w, "a", "");
    hello(w, "b", "gpu");
}

/* What a quota of all pools keeps waiting in one starts when his work in another ends, also where
 * he has had nothing yet. */
static void test_quota_over_pools(void **state)
{
    static const struct core_quota quota = {"*", NULL, 2};
    struct core_alloc_view a;
    struct world w;
    begin_quota_world(&w, &quota);
    int64_t first = create(&w, 2, 0, "");
    world_run(&w, 1);
    create(&w, 2, 0, "gpu");
    assert_true(core_alloc_at(w.core, 1, &a));
    assert_int_equal(a.wait, CORE_WAIT_QUOTA);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = first});
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_true(core_alloc_at(w.core, 0, &a));
    assert_int_equal(a.trial_id, 2);
    assert_int_equal(a.state, ALLOC_ASSIGNED);
    world_finish(&w);
}

/* Who is held back in one pool, by what he was given in another, holds nobody back there. */
static void test_quota_spent_elsewhere(void **state)
{
    static const struct core_quota quota = {"*", NULL, 3};
    struct core_alloc_view a;
    struct world w;
    begin_quota_world(&w, &quota);
    create_as(&w, "alice", 1, 10, "gpu");
    create_as(&w, "alice", 2, 10, "gpu"); /* needs what the first has */
    create_as(&w, "bob", 1, 90, "gpu");   /* less important: is kept back */
    assert_true(core_alloc_at(w.core, 2, &a));
    assert_int_equal(a.wait, CORE_WAIT_ROOM);
    create_as(&w, "alice", 2, 10, "");
    assert_true(core_alloc_at(w.core, 1, &a));
    assert_int_equal(a.wait, CORE_WAIT_QUOTA);
    assert_true(core_alloc_at(w.core, 2, &a));
    assert_int_equal(a.state, ALLOC_ASSIGNED);
    world_finish(&w);
}

/* A patch is checked as it will be once those before it are made. */
static void test_several(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    struct det_err err;
    o.pools = pools;
    o.pools_n = 1;
    world_init(&w, &o);
    create(&w, 1, 42, "");
    create(&w, 1, 42, "");
    struct core_event p[] = {
        {.exp_id = 1, .patch = {.pool = "gpu"}},  {.exp_id = 2, .patch = {.pool = "gpu"}},
        {.exp_id = 2, .patch = {.ahead_of = 1}},  {.exp_id = 2, .patch = {.pool = "default"}},
        {.exp_id = 1, .patch = {.behind_of = 2}}, {.exp_id = 9}};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(core_patch_check(w.core, p, i, &err), 0);
    assert_int_equal(core_patch_check(w.core, p, 4, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "is in pool default, not in gpu"));
    assert_int_equal(core_patch_check(w.core, p + 2, 0, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "priority scheduler"));
    assert_string_equal(core_patch_pool(w.core, p, 1), "default");
    assert_string_equal(core_patch_pool(w.core, p, 2), "gpu");
    assert_null(core_patch_pool(w.core, p, 5));
    world_finish(&w);
}

static void test_pools(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    struct core_pool_view v;
    struct core_exp_view e;
    o.pools = pools;
    o.pools_n = 1;
    world_init(&w, &o);
    assert_true(core_pool_at(w.core, 1, &v)); /* before any agent has named it */
    assert_string_equal(v.name, "gpu");
    assert_string_equal(v.o->description, "fast");
    assert_int_equal(core_pool_options(w.core, "default")->scheduler, CORE_FAIR_SHARE);
    hello(&w, "a", "gpu");
    int64_t id = create(&w, 1, 0, "gpu");
    assert_true(core_exp_get(w.core, id, &e));
    assert_int_equal(e.priority, 50);
    assert_int_equal(e.slots_held, 1);
    world_step(&w, (struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = "a"});
    assert_int_equal(core_deadline_ms(w.core), w.now_ms + 5000);
    world_finish(&w);
}

static void test_pool_move(void **state)
{
    struct world w;
    struct core_exp_view e;
    world_init(&w, NULL);
    hello(&w, "a", "");
    hello(&w, "b", "other");
    create(&w, 2, 0, "");
    int64_t second = create(&w, 2, 0, "");
    assert_int_equal(patch(&w, 1, (struct core_patch){.pool = "other"}), DET_ESTATE);
    assert_int_equal(patch(&w, second, (struct core_patch){.pool = "other"}), 0);
    assert_true(core_exp_get(w.core, second, &e));
    assert_string_equal(e.pool, "other");
    assert_int_equal(e.slots_held, 2); /* and it starts there in the same step */
    assert_int_equal(patch(&w, second, (struct core_patch){.pool = "default"}), DET_ESTATE);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_set_aside),
        cmocka_unit_test(test_set_aside_later),
        cmocka_unit_test(test_many_moves),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_quota_over_pools),
        cmocka_unit_test(test_quota_spent_elsewhere),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_pool_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
