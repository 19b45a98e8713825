/* Experiments and their searchers: custom's client, many trials at once, what stays in the log. */
#include "world.h"

#include "searcher.h"
#include <stdio.h>

#define ID_A   "11111111-1111-4111-8111-111111111111"
#define CUSTOM "{\"searcher\":{\"name\":\"custom\",\"metric\":\"loss\",\"unit\":\"epochs\"}}"

static int post(struct world *w, int64_t exp, int64_t ack, const char *ops)
{
    JSON_OWN j = json_parse(ops, strlen(ops), NULL);
    struct core_event ev = {.kind = CORE_EV_SEARCH_OPS, .exp_id = exp};
    ev.search.ack = ack;
    ev.search.operations = j;
    return world_step(w, ev);
}

static const char *events(struct world *w, int64_t exp)
{
    assert_int_equal(
        world_step(w, (struct core_event){.kind = CORE_EV_SEARCH_EVENTS, .exp_id = exp}), 0);
    return world_reply(w)->data;
}

static void test_custom_life(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 2, NULL, 0);
    int64_t e = world_create(&w, CUSTOM);
    assert_int_equal(world_count(&w, CORE_SEARCH_WAKE), 1);
    assert_string_equal(events(&w, e), "[{\"id\":1,\"initialOperations\":{}}]");
    assert_int_equal(post(&w, e, 7, "[]"), DET_EINVAL);
    assert_int_equal(post(&w, e, 1,
                          "[{\"createTrial\":{\"requestId\":\"" ID_A "\",\"hyperparams\":\"{}\"}},"
                          "{\"trialOperation\":{\"validateAfter\":{\"requestId\":\"" ID_A
                          "\",\"length\":5}}}]"),
                     0);
    assert_int_equal(world_trial(&w, 1).op_length, 5);
    world_run(&w, 1);
    struct core_event progress = {.kind = CORE_EV_PROGRESS, .trial_id = 1, .run_id = 1};
    progress.units = 2;
    assert_int_equal(world_step(&w, progress), 0);
    assert_int_equal(world_count(&w, CORE_SAVE_SEARCH_EVENT), 1);
    assert_int_equal(world_op(&w, 1, 5, 0.5), 0);
    assert_non_null(strstr(events(&w, e), "\"validateAfterLength\":\"5\""));
    assert_int_equal(post(&w, e, 4, "[{\"closeTrial\":{\"requestId\":\"" ID_A "\"}}]"), 0);
    assert_string_equal(events(&w, e), "[]");
    world_exit(&w, 1, 0, EXIT_CODE(0));
    assert_string_equal(events(&w, e), "[{\"id\":5,\"trialClosed\":{\"requestId\":\"" ID_A "\"}}]");
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = e});
    assert_non_null(strstr(events(&w, e), "STATE_PAUSED"));
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = e});
    assert_int_equal(post(&w, e, 5, "[{\"shutDown\":{}}]"), 0);
    struct core_exp_view v;
    assert_false(core_exp_get(w.core, e, &v));
    assert_int_equal(world_count(&w, CORE_SAVE_SEARCH_SNAPSHOT), 1); /* its last, kept */
    assert_int_equal(world_count(&w, CORE_SAVE_SEARCH_EVENT), 1);
    world_finish(&w);
}

static void test_not_custom(void **state)
{
    struct world w;
    world_init(&w, NULL);
    int64_t e = world_create(&w, "{}");
    assert_int_equal(post(&w, e, 0, "[]"), DET_ESTATE);
    assert_int_equal(
        world_step(&w, (struct core_event){.kind = CORE_EV_SEARCH_EVENTS, .exp_id = e}),
        DET_ESTATE);
    world_finish(&w);
}

/* A trial without work that is told to close ends. */
static void test_close_without_work(void **state)
{
    struct world w;
    world_init(&w, NULL);
    int64_t e = world_create(&w, CUSTOM);
    post(&w, e, 1, "[{\"createTrial\":{\"requestId\":\"" ID_A "\",\"hyperparams\":\"{}\"}}]");
    assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
    post(&w, e, 0, "[{\"closeTrial\":{\"requestId\":\"" ID_A "\"}}]");
    assert_non_null(strstr(events(&w, e), "trialClosed"));
    world_finish(&w);
}

/* Its client's reason is the end of its log, also where the master starts again before the trial's
 * process has ended. */
static void test_reason(void **state)
{
    struct world w;
    struct core_container_view k;
    world_init(&w, NULL);
    w.keeps = true;
    world_hello(&w, "a", 1, NULL, 0);
    int64_t e = world_create(&w, CUSTOM);
    post(&w, e, 1,
         "[{\"createTrial\":{\"requestId\":\"" ID_A "\",\"hyperparams\":\"{}\"}},"
         "{\"trialOperation\":{\"validateAfter\":{\"requestId\":\"" ID_A "\",\"length\":5}}}]");
    world_run(&w, 1);
    world_op(&w, 1, 5, 0.5);
    post(&w, e, 0,
         "[{\"closeTrial\":{\"requestId\":\"" ID_A "\",\"reason\":\" worse\\nthan 0.3. \"}}]");
    world_restart(&w);
    struct core_trial_view t = world_trial(&w, 1);
    assert_true(core_alloc_container(w.core, t.alloc_id, 0, &k));
    struct core_task_in task = {.alloc = t.alloc_id, .container = k.id, .state = CORE_TASK_RUNNING};
    world_hello(&w, "a", 1, &task, 1);
    world_exit(&w, 1, 0, EXIT_CODE(0));
    assert_true(world_logged(
        &w, "ended: the client of its search closed it after 5 epochs: worse?than 0.3."));
    world_finish(&w);
}

/* 1,200 trials at once: 500 in a step, the rest in the next ones, as if all were made at once. */
static void test_many_at_once(void **state)
{
    struct world w;
    world_init(&w, NULL);
    int64_t e = world_create(
        &w, "{\"searcher\":{\"name\":\"random\",\"max_trials\":1200,\"max_concurrent_trials\":0}}");
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 500);
    assert_int_equal(core_deadline_ms(w.core), w.now_ms + 1);
    world_wait(&w, 1);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 500);
    world_wait(&w, 1);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 200);
    assert_int_equal(world_trial(&w, 1200).op_length, 100);
    struct core_exp_view v;
    assert_true(core_exp_get(w.core, e, &v));
    assert_int_equal(v.trials_open, 1200);
    world_wait(&w, 1);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    world_finish(&w);
}

/* One search's trials take a whole step, and the other has to wait for its first. */
static void test_two_with_many(void **state)
{
    static const char many[] =
        "{\"searcher\":{\"name\":\"random\",\"max_trials\":1200,\"max_concurrent_trials\":0}}";
    struct world w;
    struct core_exp_view v;
    world_init(&w, NULL);
    world_create(&w, many);
    w.now_ms++;
    int64_t b = world_create(&w, many);
    assert_true(core_exp_get(w.core, b, &v));
    assert_int_equal(v.trials_open, 0);
    for (int i = 0; i < 5; i++)
        world_wait(&w, 1);
    assert_true(core_exp_get(w.core, b, &v));
    assert_int_equal(v.trials_open, 1200);
    world_finish(&w);
}

static void test_killed_before_all_are_made(void **state)
{
    struct world w;
    world_init(&w, NULL);
    int64_t e = world_create(
        &w, "{\"searcher\":{\"name\":\"random\",\"max_trials\":1200,\"max_concurrent_trials\":0}}");
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = e});
    struct core_exp_view v;
    assert_false(core_exp_get(w.core, e, &v));
    world_wait(&w, 5);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    world_finish(&w);
}

/* Rows as a database would hand them back. */
static void restore_row(struct world *w, struct core *c, size_t made)
{
    struct det_err err = {0};
    for (size_t i = 0; i < w->fx.n; i++) {
        struct core_effect *x = &w->fx.v[i];
        int rc = 0;
        if (x->kind == CORE_SAVE_EXPERIMENT)
            rc = core_restore_experiment(c, &x->experiment, &err);
        if (x->kind == CORE_SAVE_TRIAL && made-- > 0)
            rc = core_restore_trial(c, &x->trial, &err);
        if (x->kind == CORE_SAVE_ALLOCATION)
            rc = core_restore_allocation(c, &x->allocation, &err);
        if (rc < 0)
            fail_msg("%s", err.text);
    }
}

/* Killed after the first commit: the others are made after the restart, the same ones. */
static void test_restart_before_all_are_made(void **state)
{
    static const char config[] = "{\"searcher\":{\"name\":\"random\",\"max_trials\":700,"
                                 "\"max_concurrent_trials\":0}}";
    struct world w, again;
    world_init(&w, NULL);
    world_init(&again, NULL);
    world_create(&w, config);
    struct core *c = core_create(&w.o);
    restore_row(&w, c, 500);
    core_destroy(again.core);
    again.core = c;
    again.now_ms = w.now_ms;
    core_restored(c, w.now_ms, 0, &again.fx);
    core_check(c);
    world_wait(&again, 1);
    world_wait(&w, 1);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 200);
    assert_int_equal(world_count(&again, CORE_SAVE_TRIAL), 200);
    for (size_t i = 0; i < 200; i++) {
        const struct row_trial *a = &world_effect(&w, CORE_SAVE_TRIAL, i)->trial;
        const struct row_trial *b = &world_effect(&again, CORE_SAVE_TRIAL, i)->trial;
        assert_int_equal(a->id, b->id);
        assert_string_equal(a->request_id, b->request_id);
        assert_int_equal(a->seed, b->seed);
    }
    world_finish(&w);
    world_finish(&again);
}

/* The answer to a completed operation was lost, and by the time it is sent again the search has
 * given the trial a longer one. */
static void test_repeat_of_an_earlier_operation(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 2, NULL, 0);
    world_create(&w, "{\"searcher\":{\"name\":\"async_halving\",\"num_rungs\":2,\"max_trials\":1,"
                     "\"stop_once\":true}}");
    world_run(&w, 1);
    assert_int_equal(world_op(&w, 1, 25, 0.5), 0);
    assert_int_equal(world_trial(&w, 1).op_length, 100);
    assert_int_equal(world_op(&w, 1, 25, 0.5), 0);
    assert_int_equal(world_count(&w, CORE_SAVE_SEARCH_EVENT), 0);
    assert_int_equal(world_op(&w, 1, 24, 0.5), DET_EINVAL);
    assert_false(world_trial(&w, 1).op_completed);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_custom_life),
        cmocka_unit_test(test_not_custom),
        cmocka_unit_test(test_close_without_work),
        cmocka_unit_test(test_reason),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_two_with_many),
        cmocka_unit_test(test_killed_before_all_are_made),
        cmocka_unit_test(test_restart_before_all_are_made),
        cmocka_unit_test(test_repeat_of_an_earlier_operation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
