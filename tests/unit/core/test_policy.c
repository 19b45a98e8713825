/* Log policies: what a matching line does to the trial that printed it. */
#include "world.h"

static struct world w;

static int setup(void **state)
{
    world_init(&w, NULL);
    world_hello(&w, "a", 1, NULL, 0);
    world_hello(&w, "b", 1, NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

static void matched(enum core_policy_action action, const char *agent)
{
    struct core_event ev = {.kind = CORE_EV_LOG_POLICY, .trial_id = 1, .agent_id = agent};
    ev.policy = (struct core_policy){.action = action, .pattern = "out of m\\w+"};
    assert_int_equal(world_step(&w, ev), 0);
}

static const struct row_trial *saved(void)
{
    const struct core_effect *e = NULL;
    for (size_t i = 0; world_effect(&w, CORE_SAVE_TRIAL, i); i++)
        e = world_effect(&w, CORE_SAVE_TRIAL, i);
    assert_non_null(e);
    return &e->trial;
}

static bool said(const char *text)
{
    for (size_t i = 0; world_effect(&w, CORE_TASK_LOG, i); i++)
        if (strstr(world_effect(&w, CORE_TASK_LOG, i)->log.text, text))
            return true;
    return false;
}

/* Of the trial's allocation; "" when it has no place. */
static const char *place(void)
{
    struct core_container_view k;
    struct core_trial_view t = world_trial(&w, 1);
    if (!t.alloc_id || !core_alloc_container(w.core, t.alloc_id, 0, &k))
        return "";
    return strcmp(k.agent_id, "a") == 0 ? "a" : "b";
}

static const char *other(const char *agent)
{
    return *agent == 'a' ? "b" : "a";
}

static void fail_run(void)
{
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(3));
}

static void test_cancel_retries(void **state)
{
    world_create(&w, "{}");
    matched(CORE_CANCEL_RETRIES, "a");
    assert_true(said("cancel_retries"));
    matched(CORE_CANCEL_RETRIES, "a"); /* told again: nothing to write, nothing to say */
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    assert_int_equal(world_count(&w, CORE_TASK_LOG), 0);
    fail_run();
    assert_int_equal(saved()->state, TRIAL_ERROR);
    assert_int_equal(saved()->restarts, 0);
    assert_true(said("is not restarted: its log matched \"out of m\\w+\""));
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
}

/* A run that is lost is no failure of the trial, a clean end is none either. */
static void test_only_failures_are_final(void **state)
{
    world_create(&w, "{}");
    matched(CORE_CANCEL_RETRIES, NULL);
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_LOST);
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
    world_run(&w, 1);
    world_complete(&w, 1, 0.5);
    assert_int_equal(saved()->state, TRIAL_COMPLETED);
}

static void test_exclude_node(void **state)
{
    world_create(&w, "{\"max_restarts\":9}");
    const char *bad = place();
    matched(CORE_EXCLUDE_NODE, bad);
    assert_true(said("exclude_node"));
    matched(CORE_EXCLUDE_NODE, bad);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    for (int i = 0; i < 8; i++) {
        fail_run();
        assert_string_equal(place(), other(bad));
    }
    assert_string_equal(place(), other(bad));
    assert_int_equal(world_trial(&w, 1).restarts, 8);
}

static void test_unknown_agents_are_not_kept(void **state)
{
    world_create(&w, "{}");
    matched(CORE_EXCLUDE_NODE, "no-such-agent");
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    matched(CORE_EXCLUDE_NODE, NULL);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
}

static void test_no_agent_is_left(void **state)
{
    world_create(&w, "{}");
    matched(CORE_EXCLUDE_NODE, place());
    fail_run();
    matched(CORE_EXCLUDE_NODE, place());
    fail_run();
    assert_int_equal(saved()->state, TRIAL_ERROR);
    assert_int_equal(saved()->restarts, 2);
    assert_true(said("without the 2 agents that its log policies exclude"));
}

/* A switched off agent may be switched on again: the trial waits for it. */
static void test_agents_that_are_off_count(void **state)
{
    world_create(&w, "{}");
    const char *bad = place();
    struct core_event off = {.kind = CORE_EV_AGENT_SET};
    off.agent_set = (struct core_agent_set){.agent_id = other(bad), .slot = -1};
    assert_int_equal(world_step(&w, off), 0);
    matched(CORE_EXCLUDE_NODE, bad);
    fail_run();
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
    assert_string_equal(place(), "");
    off.agent_set.enabled = true;
    assert_int_equal(world_step(&w, off), 0);
    assert_string_equal(place(), other(bad));
}

/* Too few agents for all slots, though some are left. */
static void test_too_few_for_a_gang(void **state)
{
    world_create(&w, "{\"resources\":{\"slots_per_trial\":2}}");
    matched(CORE_EXCLUDE_NODE, "b");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(3));
    world_exit(&w, 1, 1, EXIT_CODE(3));
    assert_int_equal(saved()->state, TRIAL_ERROR);
}

/* The line came late: its run has ended, the next one waits for the agent it must not have. */
static void test_while_it_waits(void **state)
{
    for (int i = 0; i < 3; i++)
        world_create(&w, "{}"); /* two of them run, the third has to wait */
    struct core_event ev = {.kind = CORE_EV_LOG_POLICY, .trial_id = 3, .agent_id = "a"};
    ev.policy = (struct core_policy){.action = CORE_EXCLUDE_NODE, .pattern = "x"};
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_trial(&w, 3).state, TRIAL_ACTIVE);
    ev.agent_id = "b";
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(saved()->id, 3);
    assert_int_equal(saved()->state, TRIAL_ERROR);
}

static void test_resume_without_agents(void **state)
{
    int64_t id = world_create(&w, "{}");
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = id});
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    matched(CORE_EXCLUDE_NODE, "a"); /* without an allocation it has a log all the same */
    assert_true(said("exclude_node"));
    matched(CORE_EXCLUDE_NODE, "b");
    assert_int_equal(world_trial(&w, 1).state, TRIAL_PAUSED);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = id});
    assert_int_equal(saved()->state, TRIAL_ERROR);
}

/* Replaces the core by one that is rebuilt from the rows of a trial that a policy keeps away from
 * its agent. Only that agent is back. */
static const char *rebuild(void)
{
    world_create(&w, "{}");
    struct core_effects made = w.fx;
    w.fx = (struct core_effects)CORE_EFFECTS_INIT;
    const char *bad = place();
    matched(CORE_EXCLUDE_NODE, bad);
    matched(CORE_CANCEL_RETRIES, bad);
    struct core *c = core_create(&w.o);
    struct core_effects owed = CORE_EFFECTS_INIT;
    struct row_trial t = *saved();
    for (size_t i = 0; i < made.n; i++) {
        const struct core_effect *e = &made.v[i];
        if (e->kind == CORE_SAVE_EXPERIMENT)
            assert_int_equal(core_restore_experiment(c, &e->experiment, NULL), 0);
        if (e->kind == CORE_SAVE_TRIAL) {
            t.hparams = e->trial.hparams;
            assert_int_equal(core_restore_trial(c, &t, NULL), 0);
        }
        if (e->kind == CORE_SAVE_ALLOCATION)
            assert_int_equal(core_restore_allocation(c, &e->allocation, NULL), 0);
    }
    assert_int_equal(core_restored(c, w.now_ms, 1, &owed), 0);
    core_effects_finish(&owed);
    core_effects_finish(&made);
    core_destroy(w.core);
    w.core = c;
    assert_string_equal(place(), bad);
    struct core_container_view k;
    struct core_trial_view v = world_trial(&w, 1);
    assert_true(core_alloc_container(c, v.alloc_id, 0, &k));
    struct core_task_in task = {.alloc = v.alloc_id, .container = k.id, .state = CORE_TASK_RUNNING};
    world_hello(&w, bad, 1, &task, 1);
    return bad;
}

static void test_restored(void **state)
{
    const char *bad = rebuild();
    matched(CORE_EXCLUDE_NODE, bad);
    matched(CORE_CANCEL_RETRIES, bad);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0); /* both are known */
    world_exit(&w, 1, 0, EXIT_LOST);
    assert_string_equal(place(), ""); /* the other agent may yet come back */
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
    world_hello(&w, other(bad), 1, NULL, 0);
    assert_string_equal(place(), other(bad));
    fail_run();
    assert_int_equal(saved()->state, TRIAL_ERROR);
    assert_int_equal(saved()->restarts, 0);
}

static void test_restored_and_alone(void **state)
{
    rebuild();
    world_wait(&w, 25000);
    world_exit(&w, 1, 0, EXIT_LOST);
    assert_int_equal(saved()->state, TRIAL_ERROR);
}

/* Judged too early it waits, and is judged again. */
static void test_restored_and_waiting(void **state)
{
    rebuild();
    world_exit(&w, 1, 0, EXIT_LOST);
    world_wait(&w, 24999);
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
    world_wait(&w, 1);
    assert_int_equal(saved()->state, TRIAL_ERROR);
    assert_true(said("cannot run again"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cancel_retries),        TEST(test_only_failures_are_final),
        TEST(test_exclude_node),          TEST(test_unknown_agents_are_not_kept),
        TEST(test_no_agent_is_left),      TEST(test_agents_that_are_off_count),
        TEST(test_too_few_for_a_gang),    TEST(test_while_it_waits),
        TEST(test_resume_without_agents), TEST(test_restored),
        TEST(test_restored_and_alone),    TEST(test_restored_and_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
