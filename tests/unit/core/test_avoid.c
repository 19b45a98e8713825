/* Hosts that cannot start a trial: left out, tried again, and what happens when none is left. */
#include "world.h"

#include "avoid.h"
#include "json.h"
#include "why.h"

static struct world w;

static int setup(void **state)
{
    world_init(&w, NULL);
    w.keeps = true;
    world_hello(&w, "a", 1, NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

static void fail_start_as(enum core_exit_reason reason, const char *text)
{
    world_exit(&w, 1, 0, (struct core_exit){.reason = reason, .rank = -1, .text = text});
}

static void fail_start(void)
{
    fail_start_as(CORE_START_FAILED, "no such user: det");
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
    return k.agent_id;
}

static json_t *why(void)
{
    json_t *j = core_why_trial(w.core, 1, (struct core_now){w.now_ms, w.now_ms * 1000});
    assert_non_null(j);
    return j;
}

/* In the last step; what has ended is no longer in the core. */
static bool has_ended(void)
{
    const struct core_effect *e = NULL;
    for (size_t i = 0; world_effect(&w, CORE_SAVE_TRIAL, i); i++)
        e = world_effect(&w, CORE_SAVE_TRIAL, i);
    return e && e->trial.state == TRIAL_ERROR && e->trial.restarts == 0;
}

/* Fails every start until it ends, or none is tried for so long; how many that were. */
static int fail_while_tried(int64_t patience_ms)
{
    int n = 0;
    for (int64_t waited = 0; waited <= patience_ms; waited += 1000) {
        if (!*place()) {
            world_wait(&w, 1000);
            continue;
        }
        fail_start();
        n++;
        if (has_ended())
            return n;
        waited = 0;
    }
    return n;
}

static void test_another_host_takes_it_at_once(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_create(&w, "{\"max_restarts\":0}");
    det_cleanup(freep) char *bad = det_strdup(place());
    fail_start();
    assert_true(said("could not start trial 1"));
    assert_string_not_equal(place(), bad);
    assert_string_not_equal(place(), "");
    JSON_OWN j = why();
    const json_t *v = json_array_get(json_arr(j, "avoids"), 0);
    assert_string_equal(json_str(v, "agent", ""), bad);
    assert_non_null(strstr(json_str(v, "text", ""), "no such user: det"));
    assert_true(json_flag(v, "out", false));
    world_exit(&w, 1, 0, EXIT_LOST); /* and still not there */
    assert_string_not_equal(place(), bad);
}

static void test_a_host_comes_back_by_a_hello(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_create(&w, "{}");
    det_cleanup(freep) char *bad = det_strdup(place());
    fail_start();
    det_cleanup(freep) char *good = det_strdup(place());
    struct core_event off = {.kind = CORE_EV_AGENT_SET};
    off.agent_set = (struct core_agent_set){.agent_id = good, .slot = -1};
    assert_int_equal(world_step(&w, off), 0);
    world_exit(&w, 1, 0, EXIT_LOST);
    assert_string_equal(place(), "");
    world_hello(&w, bad, 1, NULL, 0);
    assert_string_equal(place(), bad);
}

static void test_a_host_comes_back_after_a_while(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_create(&w, "{}");
    det_cleanup(freep) char *bad = det_strdup(place());
    fail_start();
    struct core_event off = {.kind = CORE_EV_AGENT_SET};
    off.agent_set = (struct core_agent_set){.agent_id = place(), .slot = -1};
    assert_int_equal(world_step(&w, off), 0);
    world_exit(&w, 1, 0, EXIT_LOST);
    world_wait(&w, AVOID_MS - 1);
    assert_string_equal(place(), "");
    world_wait(&w, 1);
    assert_string_equal(place(), bad);
}

/* max_restarts 0 is no licence to try for ever. */
static void test_without_a_host_it_ends(void **state)
{
    world_create(&w, "{\"max_restarts\":0}");
    assert_int_equal(fail_while_tried(60000), AVOID_ROUNDS);
    assert_true(has_ended());
    assert_true(said("agent a: the task could not be started: no such user: det (8 times)"));
}

static void test_pauses_grow_and_are_told(void **state)
{
    world_create(&w, "{}");
    fail_start(); /* the first time: at once */
    assert_string_equal(place(), "a");
    int number = 3;
    for (int64_t s = 1; s <= 4; s *= 2, number++) {
        char text[80];
        snprintf(text, sizeof text, "no agent could start it: try %d of 8 is in %lld s", number,
                 (long long)s);
        fail_start();
        assert_string_equal(place(), "");
        JSON_OWN j = why();
        assert_string_equal(json_str(j, "reason", ""), "HOLD");
        assert_non_null(strstr(json_str(j, "text", ""), text));
        world_wait(&w, s * 1000 - 1);
        assert_string_equal(place(), "");
        world_wait(&w, 1);
        assert_string_equal(place(), "a");
    }
}

/* What is not its fault is held too, and its row keeps for what. */
static void test_a_full_store_is_named(void **state)
{
    const struct core_exit full = {.reason = CORE_STORE_AWAY,
                                   .rank = 0,
                                   .text = "agent a: write /ckpt/x: No space left on device"};
    world_create(&w, "{\"max_restarts\":0}");
    world_exit(&w, 1, 0, full);
    assert_string_equal(place(), "a");
    for (int i = 0; i < 2; i++) {
        world_exit(&w, 1, 0, full);
        JSON_OWN j = why();
        assert_string_equal(json_str(j, "reason", ""), "HOLD");
        const char *text = json_str(j, "text", "");
        assert_non_null(strstr(text, i ? "last 3 runs" : "last 2 runs"));
        assert_non_null(strstr(text, "(rank 0 ended without its checkpoint store: agent a: "));
        assert_non_null(strstr(text, "/ckpt/x: No space left on device"));
        if (i == 0)
            world_wait(&w, 1000);
    }
    world_restart(&w);
    JSON_OWN j = why();
    assert_non_null(strstr(json_str(j, "text", ""), "/ckpt/x: No space left on device"));
}

static void test_several_broken_hosts(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_hello(&w, "c", 1, NULL, 0);
    world_create(&w, "{}");
    assert_int_equal(fail_while_tried(60000), 3 * AVOID_ROUNDS);
    assert_true(has_ended());
}

/* What a configuration names and no host has is asked for once on each. */
static void test_what_all_lack_ends_it(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_create(&w, "{}");
    fail_start_as(CORE_ABSENT, "there is no python0");
    assert_false(has_ended());
    assert_string_not_equal(place(), "");
    fail_start_as(CORE_ABSENT, "there is no python0");
    assert_true(has_ended());
    assert_true(said("agent a: the task could not be started: there is no python0 (1 time)"));
    assert_true(said("agent b: the task could not be started: there is no python0 (1 time)"));
}

/* A host that fails for a reason of its own may have it. */
static void test_one_that_may_have_it_is_tried(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_create(&w, "{}");
    fail_start_as(CORE_ABSENT, "there is no python0");
    int n = 1 + fail_while_tried(60000);
    assert_int_equal(n, 2 * AVOID_ROUNDS);
    assert_true(has_ended());
}

/* What it was run by was there once: its mount may come later than its host. */
static void test_one_that_has_run_is_tried(void **state)
{
    for (int is_restarted = 0; is_restarted < 2; is_restarted++) {
        if (is_restarted)
            assert_int_equal(teardown(state) | setup(state), 0);
        world_create(&w, "{}");
        world_run(&w, 1);
        struct core_event ev = {.kind = CORE_EV_PROGRESS, .trial_id = 1, .units = 1};
        ev.run_id = world_trial(&w, 1).run_id;
        assert_int_equal(world_step(&w, ev), 0);
        if (is_restarted) { /* both are away at once: the run is lost by the hello */
            world_restart(&w);
            world_hello(&w, "a", 1, NULL, 0);
            world_wait(&w, AVOID_MS);
        } else {
            world_exit(&w, 1, 0, EXIT_LOST);
        }
        for (int n = 1; n < AVOID_ROUNDS; n++) {
            fail_start_as(CORE_ABSENT, "there is no /mnt/env");
            assert_false(has_ended());
            world_wait(&w, 30000);
            assert_string_equal(place(), "a");
        }
        fail_start_as(CORE_ABSENT, "there is no /mnt/env");
        assert_true(has_ended());
    }
}

/* A master that starts anew knows who said so. */
static void test_what_a_host_lacks_outlasts_the_master(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_create(&w, "{}");
    det_cleanup(freep) char *first = det_strdup(place());
    fail_start_as(CORE_ABSENT, "there is no python0");
    JSON_OWN before = why();
    world_restart(&w);
    JSON_OWN after = why();
    const json_t *was = json_array_get(json_arr(before, "avoids"), 0);
    const json_t *is = json_array_get(json_arr(after, "avoids"), 0);
    assert_string_equal(json_str(is, "agent", ""), first);
    assert_true(json_flag(was, "absent", false) && json_equal(was, is));
}

/* So may one that is switched off. */
static void test_what_one_that_is_off_may_have(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    struct core_event off = {.kind = CORE_EV_AGENT_SET};
    off.agent_set = (struct core_agent_set){.agent_id = "b", .slot = -1};
    assert_int_equal(world_step(&w, off), 0);
    world_create(&w, "{}");
    fail_start_as(CORE_ABSENT, "there is no python0");
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
}

/* A host that is switched off could have it: what ends a trial waits for that one. */
static void test_a_host_that_is_off_may_have_it(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    struct core_event off = {.kind = CORE_EV_AGENT_SET};
    off.agent_set = (struct core_agent_set){.agent_id = "b", .slot = -1};
    assert_int_equal(world_step(&w, off), 0);
    world_create(&w, "{}");
    assert_int_equal(fail_while_tried(60000), AVOID_ROUNDS);
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
    off.agent_set.enabled = true;
    assert_int_equal(world_step(&w, off), 0);
    assert_string_equal(place(), "b");
}

static void test_progress_counts_anew(void **state)
{
    world_create(&w, "{}");
    for (int i = 0; i < 3 * AVOID_ROUNDS; i++) {
        fail_start();
        world_wait(&w, 30000);
        struct core_event ev = {.kind = CORE_EV_PROGRESS, .trial_id = 1, .units = i};
        ev.run_id = world_trial(&w, 1).run_id;
        assert_int_equal(world_step(&w, ev), 0);
    }
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
}

/* The master's restarts do not begin the count anew. */
static void test_counts_outlast_the_master(void **state)
{
    world_create(&w, "{}");
    int n = 0;
    for (; n < 100; n++) {
        fail_start();
        if (has_ended())
            break;
        world_restart(&w);
        world_hello(&w, "a", 1, NULL, 0);
        world_wait(&w, AVOID_MS);
        assert_string_equal(place(), "a");
    }
    assert_int_equal(n + 1, AVOID_ROUNDS);
}

/* Of a gang only the host that failed is left out. */
static void test_the_host_of_a_gang(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_hello(&w, "c", 1, NULL, 0);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":2}}");
    struct core_container_view k;
    assert_true(core_alloc_container(w.core, world_trial(&w, 1).alloc_id, 1, &k));
    det_cleanup(freep) char *bad = det_strdup(k.agent_id);
    world_exit(&w, 1, 1,
               (struct core_exit){.reason = CORE_START_FAILED, .rank = -1, .text = "disk"});
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    for (size_t i = 0; i < 2; i++) {
        assert_true(core_alloc_container(w.core, world_trial(&w, 1).alloc_id, i, &k));
        assert_string_not_equal(k.agent_id, bad);
    }
}

/* Nothing is placed of a trial that has ended: no host need come back for it. */
static void test_a_trial_that_ended_is_left_alone(void **state)
{
    world_hello(&w, "b", 1, NULL, 0);
    world_create(&w, "{\"searcher\":{\"name\":\"random\",\"max_trials\":2,"
                     "\"max_concurrent_trials\":1}}");
    det_cleanup(freep) char *bad = det_strdup(place());
    fail_start();
    world_run(&w, 1);
    world_complete(&w, 1, 0.5);
    assert_int_equal(world_trial(&w, 1).state, TRIAL_COMPLETED);
    assert_int_equal(world_trial(&w, 2).state, TRIAL_ACTIVE);
    world_hello(&w, bad, 1, NULL, 0);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    world_restart(&w);
    world_hello(&w, bad, 1, NULL, 0);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    world_wait(&w, AVOID_MS);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
}

/* Its agent says so, while its own link is up; NULL: it was answered. */
static void say_unreached(const char *text)
{
    struct core_container_view k;
    struct core_trial_view t = world_trial(&w, 1);
    assert_true(core_alloc_container(w.core, t.alloc_id, 0, &k));
    struct core_event ev = {.kind = CORE_EV_AGENT_STATE, .agent_id = "a"};
    ev.task = (struct core_task_in){
        .alloc = t.alloc_id, .container = k.id, .state = CORE_TASK_RUNNING, .unreached = {text}};
    assert_int_equal(world_step(&w, ev), 0);
}

static bool why_says(const char *text)
{
    JSON_OWN j = core_why_trial(w.core, 1, (struct core_now){w.now_ms, 0});
    return strstr(json_str(j, "text", ""), text);
}

/* A task that the master cannot answer, though it does its agent: said at once, and after a while
 * its host could not start it. An answer, or a link that was down between, begins anew. */
static void test_unreached(void **state)
{
    world_create(&w, "{\"max_restarts\": 0}");
    world_run(&w, 1);
    for (int i = 0; i < 3; i++) {
        say_unreached("GET http://m:1: Connection refused");
        assert_true(said("agent a gets no answer from the master: GET http://m:1: Connection"));
        assert_true(why_says("get no answer from the master") && why_says("Connection refused"));
        world_wait(&w, 100000);
        say_unreached("GET http://m:1: Connection refused");
        assert_false(said("Connection refused"));
        assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
        if (i == 0)
            say_unreached(NULL);
        else if (i == 1)
            world_step(&w, (struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = "a"});
        if (i == 1) {
            struct core_container_view k;
            struct core_trial_view t = world_trial(&w, 1);
            assert_true(core_alloc_container(w.core, t.alloc_id, 0, &k));
            struct core_task_in task = {
                .alloc = t.alloc_id, .container = k.id, .state = CORE_TASK_RUNNING};
            world_hello(&w, "a", 1, &task, 1);
        }
        assert_int_equal(why_says("no answer"), i == 2);
    }
    world_wait(&w, 20000);
    say_unreached("GET http://m:1: Connection refused");
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_trial(&w, 1).restarts, 0);
    assert_true(said("could not be started: its processes on agent a get no answer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unreached, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_host_takes_it_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_host_comes_back_by_a_hello, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_host_comes_back_after_a_while, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_host_it_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pauses_grow_and_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_full_store_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_broken_hosts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_host_that_is_off_may_have_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_all_lack_ends_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_may_have_it_is_tried, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_one_that_is_off_may_have, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_has_run_is_tried, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_a_host_lacks_outlasts_the_master, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_progress_counts_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counts_outlast_the_master, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_host_of_a_gang, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_trial_that_ended_is_left_alone, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
