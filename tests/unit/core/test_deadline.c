/* Whatever waits for a machine has a deadline, and something happens at it. */
#include "world.h"

static struct world w;

static int setup(void **state)
{
    world_init(&w, NULL);
    world_hello(&w, "a", 2, NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

static void starts(int64_t trial, bool rendezvous)
{
    struct core_trial_view t = world_trial(&w, trial);
    struct core_container_view k;
    assert_true(core_alloc_container(w.core, t.alloc_id, 0, &k));
    struct core_event ev = {.kind = CORE_EV_AGENT_STATE, .agent_id = k.agent_id};
    ev.task =
        (struct core_task_in){.alloc = t.alloc_id, .container = k.id, .state = CORE_TASK_RUNNING};
    assert_int_equal(world_step(&w, ev), 0);
    struct core_event r = {.kind = CORE_EV_RENDEZVOUS, .alloc_id = t.alloc_id, .container = k.id};
    if (rendezvous)
        assert_int_equal(world_step(&w, r), 0);
}

/* Its agent says that it runs, and then it never arrives. */
static void test_never_ready(void **state)
{
    world_create(&w, "{}");
    starts(1, false);
    world_wait(&w, 1799000);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
    world_wait(&w, 1500);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_trial(&w, 1).run_id, 2);
    assert_int_equal(world_trial(&w, 1).restarts, 0); /* not its fault */
}

static void test_ready_in_time(void **state)
{
    world_create(&w, "{}");
    starts(1, true);
    for (int i = 0; i < 10; i++) {
        world_wait(&w, 1800000);
        assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
    }
}

/* A master that stood still has not heard what happened meanwhile. */
static void test_late_timer_begins_again(void **state)
{
    world_create(&w, "{}");
    starts(1, false);
    world_wait(&w, 3 * 1800000);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
    world_wait(&w, 1800000);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
}

/* Its operation is complete and it says that it will stop: and then it does not. */
static void test_done_but_stays(void **state)
{
    world_create(&w, "{}");
    starts(1, true);
    assert_int_equal(world_op(&w, 1, 100, 0.5), 0);
    world_wait(&w, 3600000);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_trial(&w, 1).restarts, 0);
}

static void test_kill_is_sent_again(void **state)
{
    int64_t exp = world_create(&w, "{}");
    starts(1, true);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = exp});
    for (int i = 0; i < 5; i++) {
        world_wait(&w, 30000);
        assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_never_ready),
        TEST(test_ready_in_time),
        TEST(test_late_timer_begins_again),
        TEST(test_done_but_stays),
        TEST(test_kill_is_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
