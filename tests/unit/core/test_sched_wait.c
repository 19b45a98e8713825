/* Quotas, back-filling, and the bound on how long anything waits. */
#include "world.h"

#include <stdio.h>

enum { WAIT_MS = 60000 };

static int64_t weighted_job(struct world *w, const char *owner, int n, int k, int weight)
{
    char config[200];
    snprintf(
        config, sizeof config,
        "{\"resources\":{\"slots_per_trial\":%d,\"weight\":%d},\"searcher\":{\"name\":\"random\","
        "\"max_trials\":%d,\"max_concurrent_trials\":0}}",
        k, weight, n);
    JSON_OWN j = world_config(config);
    struct core_event ev = {.kind = CORE_EV_EXP_CREATE};
    ev.create = (struct core_create){
        .job_id = "j", .owner = owner, .owner_id = owner[0], .config = j, .activate = true};
    return world_step(w, ev) < 0 ? 0 : world_reply(w)->id;
}

static int64_t job(struct world *w, const char *owner, int n, int k)
{
    return weighted_job(w, owner, n, k, 1);
}

static int64_t held(const struct world *w, int64_t exp)
{
    struct core_exp_view v;
    return core_exp_get(w->core, exp, &v) ? v.slots_held : 0;
}

static bool move(struct world *w, const struct core_alloc_view *a)
{
    if (a->state == ALLOC_ASSIGNED) {
        world_run(w, a->trial_id);
    } else if (a->state == ALLOC_TERMINATING) {
        world_exit(w, a->trial_id, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    } else if (a->preempt) {
        world_step(w, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION, .alloc_id = a->id});
        world_exit(w, a->trial_id, 0, EXIT_CODE(0));
    } else {
        return false;
    }
    return true;
}

/* Runs what is placed, ends what is asked to stop, until nothing changes. */
static void settle(struct world *w)
{
    struct core_alloc_view a;
    for (size_t i = 0; core_alloc_at(w->core, i, &a);)
        i = move(w, &a) ? 0 : i + 1;
}

static enum core_wait waits(const struct world *w, int64_t exp)
{
    struct core_alloc_view a;
    for (size_t i = 0; core_alloc_at(w->core, i, &a); i++)
        if (a.exp_id == exp && a.wait != CORE_WAIT_NONE)
            return a.wait;
    return CORE_WAIT_NONE;
}

static void test_quota(void **state)
{
    static const enum core_scheduler all[] = {CORE_FAIR_SHARE, CORE_PRIORITY, CORE_FIFO,
                                              CORE_ROUND_ROBIN};
    static const struct core_quota quotas[] = {{"alice", NULL, 3}, {"*", NULL, 5}};
    for (size_t i = 0; i < DET_ARRAY_LEN(all); i++) {
        struct core_options o = core_options_default;
        struct world w;
        o.scheduler = all[i];
        o.quotas = quotas;
        o.quotas_n = 2;
        world_init(&w, &o);
        world_hello(&w, "a", 16, NULL, 0);
        int64_t a = job(&w, "alice", 4, 1), b = job(&w, "alice", 4, 1), c = job(&w, "carl", 9, 1);
        settle(&w);
        assert_int_equal(held(&w, a) + held(&w, b), 3);
        assert_int_equal(held(&w, c), 5);
        assert_int_equal(waits(&w, b), CORE_WAIT_QUOTA);
        assert_int_equal(waits(&w, c), CORE_WAIT_QUOTA);
        assert_int_equal(job(&w, "alice", 1, 4), 0);
        assert_non_null(strstr(world_reply(&w)->text, "quota of user alice"));
        world_complete(&w, 1, 1); /* one ends, the next may */
        settle(&w);
        assert_int_equal(held(&w, a) + held(&w, b), 3);
        world_finish(&w);
    }
}

/* Under fair share a user's experiments share his quota. */
static void test_quota_is_shared(void **state)
{
    static const struct core_quota quotas[] = {{"*", "default", 4}};
    struct core_options o = core_options_default;
    struct world w;
    o.quotas = quotas;
    o.quotas_n = 1;
    world_init(&w, &o);
    world_hello(&w, "a", 16, NULL, 0);
    int64_t a = job(&w, "u", 2, 1), b = job(&w, "u", 8, 1);
    settle(&w);
    assert_int_equal(held(&w, a), 2);
    assert_int_equal(held(&w, b), 2);
    world_finish(&w);
}

/* What is his by quota but of no use to a heavy gang, as another user holds the rest, is for his
 * other experiments; never more than the quota. */
static void test_quota_is_not_wasted(void **state)
{
    static const struct core_quota quotas[] = {{"*", NULL, 4}};
    struct core_options o = core_options_default;
    struct world w;
    o.quotas = quotas;
    o.quotas_n = 1;
    world_init(&w, &o);
    world_hello(&w, "a", 5, NULL, 0);
    int64_t other = job(&w, "v", 2, 1);
    settle(&w);
    int64_t gang = weighted_job(&w, "u", 2, 4, 3), small = job(&w, "u", 9, 2);
    settle(&w);
    assert_int_equal(held(&w, other), 2);
    assert_int_equal(held(&w, gang), 0);
    assert_int_equal(held(&w, small), 2);
    world_hello(&w, "b", 5, NULL, 0);
    settle(&w);
    assert_int_equal(held(&w, other), 2);
    assert_int_equal(held(&w, gang) + held(&w, small), 4);
    world_finish(&w);
}

static enum core_job_state job_state(const struct world *w, int64_t exp)
{
    struct core_exp_view v;
    assert_true(core_exp_get(w->core, exp, &v));
    return v.job_state;
}

static void test_backfill(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.scheduler = CORE_FIFO;
    world_init(&w, &o);
    world_hello(&w, "a", 4, NULL, 0);
    int64_t a = job(&w, "u", 1, 2), head = job(&w, "u", 1, 4), c = job(&w, "u", 2, 1);
    settle(&w);
    assert_int_equal(held(&w, c), 2); /* the gap that the first in line cannot use */
    assert_int_equal(job_state(&w, a), CORE_JOB_SCHEDULED);
    assert_int_equal(job_state(&w, c), CORE_JOB_BACKFILLED);
    world_complete(&w, 1, 1);
    settle(&w); /* now it could start without them */
    assert_int_equal(held(&w, head), 4);
    assert_int_equal(held(&w, c), 0);
    world_finish(&w);
}

/* Four slots, a crowd of small trials, and gangs of four that fair share never has room for. */
static void test_no_starvation(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.starvation_wait_ms = WAIT_MS;
    world_init(&w, &o);
    world_hello(&w, "a", 4, NULL, 0);
    int64_t crowd = job(&w, "u", 9, 1), gangs[3];
    settle(&w);
    for (int i = 0; i < 3; i++)
        gangs[i] = job(&w, "u", 1, 4);
    settle(&w);
    assert_int_equal(held(&w, crowd), 4);
    for (int i = 0; i < 3; i++) { /* each after those that have waited longer */
        world_wait(&w, core_deadline_ms(w.core) - w.now_ms);
        settle(&w);
        assert_true(w.now_ms <= 1000 + (1 + i) * WAIT_MS);
        assert_int_equal(held(&w, gangs[i]), 4);
        world_wait(&w, WAIT_MS / 2); /* its turn is not cut short */
        settle(&w);
        assert_int_equal(held(&w, gangs[i]), 4);
    }
    world_finish(&w);
}

/* Nobody is asked to stop under round robin: the agents drain for the gang. */
static void test_no_starvation_without_preemption(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.scheduler = CORE_ROUND_ROBIN;
    o.starvation_wait_ms = WAIT_MS;
    world_init(&w, &o);
    world_hello(&w, "a", 2, NULL, 0);
    int64_t crowd = job(&w, "u", 6, 1), gang = job(&w, "u", 1, 2);
    settle(&w);
    world_complete(&w, 1, 1);
    settle(&w);
    assert_int_equal(held(&w, crowd), 2); /* a small one came before it */
    world_wait(&w, WAIT_MS);
    for (int64_t t = 2; t <= 3; t++) {
        world_complete(&w, t, 1);
        settle(&w);
    }
    assert_int_equal(held(&w, gang), 2);
    world_finish(&w);
}

/* Every agent comes back with what it ran. */
static void come_back(struct world *w, const char *agent, int slots)
{
    struct core_task_in tasks[64];
    char ids[64][2][128];
    size_t n = 0;
    struct core_alloc_view a;
    struct core_container_view k;
    for (size_t i = 0; core_alloc_at(w->core, i, &a); i++)
        for (size_t j = 0; core_alloc_container(w->core, a.id, j, &k); j++) {
            snprintf(ids[n][0], sizeof ids[n][0], "%s", a.id);
            snprintf(ids[n][1], sizeof ids[n][1], "%s", k.id);
            tasks[n] = (struct core_task_in){
                .alloc = ids[n][0], .container = ids[n][1], .state = CORE_TASK_RUNNING};
            n++;
        }
    world_hello(w, agent, slots, tasks, n);
}

/* On a machine that has been up for long, too: nobody has waited since its start. */
static void test_waits_begin_anew(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.starvation_wait_ms = WAIT_MS;
    world_init(&w, &o);
    w.keeps = true;
    w.now_ms = 100 * WAIT_MS;
    world_hello(&w, "a", 4, NULL, 0);
    int64_t crowd = job(&w, "u", 9, 1), gang = job(&w, "u", 1, 4);
    settle(&w);
    world_restart(&w);
    come_back(&w, "a", 4);
    settle(&w);
    assert_int_equal(held(&w, crowd), 4);
    world_wait(&w, WAIT_MS);
    settle(&w);
    assert_int_equal(held(&w, gang), 4);
    world_finish(&w);
}

/* Who had his turn after a long wait keeps it over a restart, and for no longer. */
static void test_turn_outlives_a_restart(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.starvation_wait_ms = 10 * WAIT_MS;
    world_init(&w, &o);
    w.keeps = true;
    world_hello(&w, "a", 4, NULL, 0);
    int64_t crowd = job(&w, "u", 9, 1), gang = job(&w, "u", 1, 4);
    settle(&w);
    world_wait(&w, o.starvation_wait_ms);
    settle(&w);
    assert_int_equal(held(&w, gang), 4);
    world_wait(&w, o.start_resend_ms); /* no deadline but its turn's is left */
    world_restart(&w);
    come_back(&w, "a", 4);
    settle(&w);
    assert_int_equal(held(&w, gang), 4);
    world_wait(&w, o.starvation_wait_ms);
    world_restart(&w);
    come_back(&w, "a", 4);
    settle(&w);
    assert_int_equal(held(&w, crowd), 4);
    world_finish(&w);
}

/* A restart forgets at most what came after the wait was last written down. */
static void test_wait_outlives_a_restart(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.starvation_wait_ms = 600000;
    world_init(&w, &o);
    w.keeps = true;
    world_hello(&w, "a", 4, NULL, 0);
    job(&w, "u", 9, 1);
    int64_t gang = job(&w, "u", 1, 4);
    settle(&w);
    world_wait(&w, 300000);
    world_restart(&w);
    come_back(&w, "a", 4);
    settle(&w);
    assert_int_equal(held(&w, gang), 0);
    world_wait(&w, 300000);
    settle(&w);
    assert_int_equal(held(&w, gang), 4);
    world_finish(&w);
}

/* First in, first out: what once was back-filled is not stopped for what came after it. */
static void test_backfill_keeps_its_place(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.scheduler = CORE_FIFO;
    world_init(&w, &o);
    world_hello(&w, "x", 4, NULL, 0);
    world_hello(&w, "y", 1, NULL, 0);
    job(&w, "u", 1, 2);
    settle(&w);
    int64_t head = job(&w, "u", 1, 4), filler = job(&w, "u", 1, 1);
    settle(&w);
    assert_int_equal(held(&w, filler), 1);
    world_complete(&w, 1, 1);
    settle(&w);
    assert_int_equal(held(&w, head), 4);
    int64_t later = job(&w, "u", 1, 1);
    settle(&w);
    assert_int_equal(world_trial(&w, 3).run_id, 1);
    assert_int_equal(held(&w, later), 0);
    world_finish(&w);
}

static int64_t job_of(struct world *w, int priority, int n)
{
    char config[200];
    snprintf(config, sizeof config,
             "{\"resources\":{\"priority\":%d},\"searcher\":{\"name\":\"random\","
             "\"max_trials\":%d,\"max_concurrent_trials\":0}}",
             priority, n);
    return world_create(w, config);
}

/* However long it waits, a less important job does not pass what waits of a more important one. */
static void test_guard_keeps_levels(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.scheduler = CORE_PRIORITY;
    o.starvation_wait_ms = WAIT_MS;
    world_init(&w, &o);
    world_hello(&w, "a", 2, NULL, 0);
    int64_t first = job_of(&w, 10, 4), second = job_of(&w, 50, 1);
    settle(&w);
    world_wait(&w, 2 * WAIT_MS);
    world_complete(&w, 1, 1);
    settle(&w);
    assert_int_equal(held(&w, first), 2);
    assert_int_equal(held(&w, second), 0);
    world_complete(&w, 2, 1);
    settle(&w);
    world_complete(&w, 3, 1);
    settle(&w);
    assert_int_equal(held(&w, second), 1);
    world_finish(&w);
}

/* Weights that no double can sum up still deal every slot. */
static void test_huge_weights(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 4, NULL, 0);
    static const char config[] =
        "{\"resources\":{\"weight\":1e308},\"searcher\":{\"name\":\"random\","
        "\"max_trials\":9,\"max_concurrent_trials\":0}}";
    int64_t a = world_create(&w, config), b = world_create(&w, config);
    settle(&w);
    assert_int_equal(held(&w, a) + held(&w, b), 4);
    struct core_event ev = {.kind = CORE_EV_EXP_PATCH, .exp_id = a};
    ev.patch.has_weight = true;
    ev.patch.weight = 1e308 * 10;
    assert_int_equal(world_step(&w, ev), DET_EINVAL);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota),
        cmocka_unit_test(test_quota_is_shared),
        cmocka_unit_test(test_quota_is_not_wasted),
        cmocka_unit_test(test_backfill),
        cmocka_unit_test(test_no_starvation),
        cmocka_unit_test(test_wait_outlives_a_restart),
        cmocka_unit_test(test_no_starvation_without_preemption),
        cmocka_unit_test(test_waits_begin_anew),
        cmocka_unit_test(test_turn_outlives_a_restart),
        cmocka_unit_test(test_backfill_keeps_its_place),
        cmocka_unit_test(test_guard_keeps_levels),
        cmocka_unit_test(test_huge_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
