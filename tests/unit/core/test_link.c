/* Agents: hello against what is owed, leases, switching off, gangs that lose a member. */
#include "world.h"

#include <stdio.h>

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

static void link_down(const char *agent)
{
    assert_int_equal(
        world_step(&w, (struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = agent}), 0);
}

/* What the agent runs of a trial, as its hello says it. Strings live until the next change. */
static struct core_task_in task_of(int64_t trial, enum core_task_state s)
{
    struct core_container_view k;
    struct core_trial_view t = world_trial(&w, trial);
    assert_true(core_alloc_container(w.core, t.alloc_id, 0, &k));
    return (struct core_task_in){.alloc = t.alloc_id, .container = k.id, .state = s};
}

static void test_back_in_time(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    struct core_task_in task = task_of(1, CORE_TASK_RUNNING);
    link_down("a");
    world_wait(&w, 24000);
    world_hello(&w, "a", 2, &task, 1);
    world_wait(&w, 100000);
    assert_int_equal(world_trial(&w, 1).run_id, 1);
    world_complete(&w, 1, 1);
}

static void test_lease_over(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    det_cleanup(freep) char *old = det_strdup(world_trial(&w, 1).alloc_id);
    struct core_task_in task = {.alloc = old, .container = "c", .state = CORE_TASK_RUNNING};
    link_down("a");
    world_wait(&w, 25000);
    assert_int_equal(world_trial(&w, 1).run_id, 2); /* fenced and queued again */
    assert_int_equal(world_trial(&w, 1).restarts, 0);
    struct core_agent_view v;
    assert_false(core_agent_get(w.core, "a", &v));
    world_hello(&w, "a", 2, &task, 1);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1); /* of the old run */
    assert_string_equal(world_effect(&w, CORE_ORDER_KILL, 0)->kill.alloc_id, old);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1); /* of the new one */
}

/* Time in which the master itself stood still does not count. */
static void test_late_master(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    struct core_task_in task = task_of(1, CORE_TASK_RUNNING);
    link_down("a");
    world_wait(&w, 300000);
    assert_int_equal(world_trial(&w, 1).run_id, 1);
    world_hello(&w, "a", 2, &task, 1);
    assert_int_equal(world_trial(&w, 1).run_id, 1);
}

static void test_start_that_never_arrived(void **state)
{
    world_create(&w, "{}");
    world_hello(&w, "a", 2, NULL, 0);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
    world_wait(&w, 60000);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
    world_run(&w, 1);
    world_wait(&w, 600000);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
}

static void test_task_that_vanished(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    world_hello(&w, "a", 2, NULL, 0);
    assert_int_equal(world_trial(&w, 1).run_id, 2);
    assert_int_equal(world_trial(&w, 1).restarts, 0);
}

static void test_end_told_by_hello(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    struct core_task_in task = task_of(1, CORE_TASK_ENDED);
    task.exit = EXIT_CODE(4);
    world_hello(&w, "a", 2, &task, 1);
    assert_int_equal(world_trial(&w, 1).restarts, 1);
}

static void timeline_is(size_t i, const char *kind, int node, const char *detail)
{
    const struct row_timeline r = world_effect(&w, CORE_SAVE_TIMELINE, i)->timeline;
    assert_string_equal(r.kind, kind);
    assert_string_equal(r.detail, detail);
    assert_int_equal(r.node, node);
    assert_int_equal(r.trial_id, 1);
    assert_int_equal(r.run_id, 1);
}

static void test_timeline(void **state)
{
    world_create(&w, "{}");
    timeline_is(0, "queued", -1, "1 slot in pool default");
    timeline_is(1, "placed", -1, "a");
    world_run(&w, 1);
    const struct core_mark marks[] = {{"prepared", "", 17, 3}, {"stalled", "rank 0", 18, 0}};
    struct core_event ev = {.kind = CORE_EV_AGENT_STATE, .agent_id = "a"};
    ev.task = task_of(1, CORE_TASK_RUNNING);
    ev.task.marks = marks;
    ev.task.marks_n = 2;
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_count(&w, CORE_SAVE_TIMELINE), 2);
    timeline_is(0, "prepared", 0, "");
    timeline_is(1, "stalled", 0, "rank 0");
    assert_int_equal(world_effect(&w, CORE_SAVE_TIMELINE, 0)->timeline.at_us, 17);
    assert_int_equal(world_effect(&w, CORE_SAVE_TIMELINE, 0)->timeline.duration_us, 3);
    world_exit(&w, 1, 0, EXIT_CODE(4));
    timeline_is(0, "end", -1, "rank 0 exited with code 4");
    timeline_is(1, "restart", -1, "1 of 2, from its beginning");
    assert_string_equal(world_effect(&w, CORE_SAVE_TIMELINE, 2)->timeline.kind, "queued");
}

/* What happened while nobody heard its agent: the hello that tells of the end is the only word. */
static void test_marks_told_by_hello(void **state)
{
    const struct core_mark marks[] = {{"first_batch", "", 21, 4}};
    world_create(&w, "{}");
    world_run(&w, 1);
    struct core_task_in task = task_of(1, CORE_TASK_ENDED);
    task.exit = EXIT_CODE(4);
    task.marks = marks;
    task.marks_n = 1;
    world_hello(&w, "a", 2, &task, 1);
    timeline_is(0, "first_batch", 0, "");
    timeline_is(1, "end", -1, "rank 0 exited with code 4");
}

/* What a task says of its end is said once; without a word of its own there is a sentence too. */
static void test_end_is_said_once(void **state)
{
    static const struct {
        struct core_exit e;
        const char *want;
    } rows[] = {
        {{CORE_STALLED, 0, 9, 1, "rank 1 stalled: no batch for 5.0 s", NULL, NULL},
         "rank 1 stalled: no batch for 5.0 s"},
        {{CORE_STALLED, 0, 9, -1, "startup-hook.sh stalled: it printed nothing for 5 s", NULL,
          NULL},
         "startup-hook.sh stalled: it printed nothing for 5 s"},
        {{CORE_STALLED, 0, 9, 1, "", NULL, NULL}, "rank 1 stalled"},
        {{CORE_EXITED, 139, 11, 0, NULL, NULL, NULL}, "rank 0 exited by signal 11"},
        {{CORE_EXITED, 3, 0, 2, "rank 2 exited with code 3", NULL, NULL},
         "rank 2 exited with code 3"},
        {{CORE_LOST, 0, 0, -1, "det-task was killed", NULL, NULL},
         "the task was lost: det-task was killed"},
    };
    world_create(&w, "{\"max_restarts\": 10}");
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        world_run(&w, 1);
        world_exit(&w, 1, 0, rows[i].e);
        const struct row_timeline *r = &world_effect(&w, CORE_SAVE_TIMELINE, 0)->timeline;
        assert_string_equal(r->kind, "end");
        assert_string_equal(r->detail, rows[i].want);
    }
}

static void test_disable_agent(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    struct core_event ev = {.kind = CORE_EV_AGENT_SET};
    ev.agent_set = (struct core_agent_set){.agent_id = "a", .slot = -1, .drain = true};
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
    assert_true(world_effect(&w, CORE_SAVE_AGENT, 0)->agent.draining);
    ev.agent_set.drain = false;
    world_step(&w, ev);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
    struct core_agent_view v;
    assert_true(core_agent_get(w.core, "a", &v));
    assert_true(v.slots_disabled == 2 && v.slots_free == 0 && !v.enabled);
    ev.agent_set.enabled = true;
    world_step(&w, ev);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
    assert_int_equal(world_trial(&w, 1).restarts, 0);
}

static void test_disable_slot(void **state)
{
    world_create(&w, "{}");
    struct core_event ev = {.kind = CORE_EV_AGENT_SET};
    ev.agent_set = (struct core_agent_set){.agent_id = "a", .slot = 0};
    world_step(&w, ev);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    assert_string_equal(world_effect(&w, CORE_SAVE_AGENT, 0)->agent.slots_disabled, "[0]");
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    struct core_container_view k;
    assert_true(core_alloc_container(w.core, world_trial(&w, 1).alloc_id, 0, &k));
    assert_int_equal(k.slots[0], 1);
    ev.agent_set.slot = 7;
    assert_int_equal(world_step(&w, ev), DET_ENOENT);
    ev.agent_set.agent_id = "z";
    assert_int_equal(world_step(&w, ev), DET_ENOENT);
}

/* When one member is lost, what the others die of is not the trial's fault. */
static void test_gang_loses_a_member(void **state)
{
    world_hello(&w, "b", 2, NULL, 0);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":4}}");
    world_run(&w, 1);
    const struct core_rendezvous *r = &world_effect(&w, CORE_RENDEZVOUS, 0)->rendezvous;
    assert_true(r->n == 2 && r->slots[0] == 2 && r->slots[1] == 2);
    world_exit(&w, 1, 1, EXIT_CODE(1));
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, EXIT_LOST);
    assert_int_equal(world_trial(&w, 1).restarts, 0);
    assert_int_equal(world_trial(&w, 1).run_id, 2);
}

static void test_gang_member_fails(void **state)
{
    world_hello(&w, "b", 2, NULL, 0);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":4}}");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(1));
    world_exit(&w, 1, 1, (struct core_exit){.reason = CORE_EXITED, .signal = 9, .rank = 1});
    assert_int_equal(world_trial(&w, 1).restarts, 1);
}

static void test_malformed(void **state)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = ""};
    assert_int_equal(world_step(&w, ev), DET_EINVAL);
    struct core_slot_in bad = {.id = -1};
    ev.agent_id = "x";
    ev.hello = (struct core_hello){.slots = &bad, .slots_n = 1};
    assert_int_equal(world_step(&w, ev), DET_EINVAL);
    struct core_agent_view v;
    assert_false(core_agent_get(w.core, "x", &v));
    ev.kind = CORE_EV_AGENT_LOST;
    assert_int_equal(world_step(&w, ev), DET_ENOENT);
    ev.kind = CORE_EVENT_KIND_COUNT;
    assert_int_equal(world_step(&w, ev), DET_EINVAL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
/* Two clusters on one host run experiment 1 of one seed: by their containers' ids their processes
 * are found and ended. */
static void test_containers_of_clusters(void **state)
{
    static const char *const clusters[] = {"one", "two"};
    char ids[2][64];
    for (int i = 0; i < 2; i++) {
        struct world w;
        struct core_options o = core_options_default;
        o.cluster_id = clusters[i];
        world_init(&w, &o);
        world_hello(&w, "a", 1, NULL, 0);
        world_create(&w, "{}");
        const struct core_effect *f = world_effect(&w, CORE_ORDER_START, 0);
        snprintf(ids[i], sizeof ids[i], "%s", f->start.container);
        world_finish(&w);
    }
    assert_string_not_equal(ids[0], ids[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_back_in_time),
        TEST(test_lease_over),
        TEST(test_late_master),
        TEST(test_start_that_never_arrived),
        TEST(test_task_that_vanished),
        TEST(test_end_told_by_hello),
        TEST(test_marks_told_by_hello),
        TEST(test_timeline),
        TEST(test_end_is_said_once),
        TEST(test_disable_agent),
        TEST(test_disable_slot),
        TEST(test_gang_loses_a_member),
        TEST(test_gang_member_fails),
        TEST(test_malformed),
        cmocka_unit_test(test_containers_of_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
