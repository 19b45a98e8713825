/* A row that the database refuses costs the trial or the experiment it is of, and no other. */
#include "world.h"

static struct world w;

#define TWO_TRIALS                                                                                 \
    "{\"searcher\": {\"name\": \"random\", \"max_trials\": 2, \"max_concurrent_trials\": 2}}"

static int setup(void **state)
{
    world_init(&w, NULL);
    world_hello(&w, "a", 4, NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

/* The first row of that kind in the step just made. */
static size_t row(enum core_effect_kind kind)
{
    size_t i = 0;
    while (i < w.fx.n && w.fx.v[i].kind != kind)
        i++;
    assert_true(i < w.fx.n);
    return i;
}

static bool refuse(enum core_effect_kind kind)
{
    bool go_on = core_refused(
        w.core, &w.fx, &(struct core_refusal){row(kind), false, "value too odd"}, w.now_ms, 1);
    core_check(w.core);
    return go_on;
}

static const struct row_parked *parked(void)
{
    assert_int_equal(world_count(&w, CORE_SAVE_PARKED), 1);
    return &world_effect(&w, CORE_SAVE_PARKED, 0)->parked;
}

/* Its run is killed, what it asked is refused, the words are in its log; the other one goes on. */
static void test_trial(void **state)
{
    world_create(&w, TWO_TRIALS);
    world_run(&w, 1);
    world_run(&w, 2);
    world_op(&w, 1, 100, 0.5);
    assert_true(refuse(CORE_SAVE_TRIAL));
    assert_int_equal(world_reply(&w)->code, DET_EINVAL);
    assert_non_null(strstr(world_reply(&w)->text, "trial 1"));
    assert_non_null(strstr(world_reply(&w)->text, "value too odd"));
    assert_true(world_logged(&w, "value too odd"));
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 1);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    assert_int_equal(world_count(&w, CORE_SAVE_ALLOCATION), 0);
    assert_int_equal(parked()->trial_id, 1);
    assert_false(parked()->has_ended);
    assert_int_equal(world_trial(&w, 1).state, TRIAL_STOPPING_ERROR);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_true(parked()->has_ended); /* and the search hears of it in the same transaction */
    assert_true(world_count(&w, CORE_SAVE_SEARCH_EVENT) > 0);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    assert_int_equal(world_count(&w, CORE_SAVE_ALLOCATION), 0);
    world_complete(&w, 2, 0.5);
    assert_int_equal(world_effect(&w, CORE_SAVE_EXPERIMENT, 0)->experiment.state, EXP_COMPLETED);
}

/* What was to start without a row does not. */
static void test_allocation(void **state)
{
    world_create(&w, "{}");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_CODE(1)); /* and again */
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1);
    assert_true(refuse(CORE_SAVE_ALLOCATION));
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
    assert_int_equal(parked()->trial_id, 1);
}

static void test_experiment(void **state)
{
    int64_t id = world_create(&w, TWO_TRIALS);
    world_run(&w, 1);
    world_run(&w, 2);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = id});
    assert_true(refuse(CORE_SAVE_EXPERIMENT));
    assert_int_equal(world_reply(&w)->code, DET_EINVAL);
    assert_int_equal(parked()->experiment_id, id);
    assert_int_equal(parked()->trial_id, 0);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 2);
    world_exit(&w, 1, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    world_exit(&w, 2, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_true(parked()->has_ended);
    assert_int_equal(world_count(&w, CORE_SAVE_EXPERIMENT), 0);
}

/* Refused at its own request: no row of it is left, nor anything that follows from one. */
static void test_creation(void **state)
{
    world_create(&w, "{}");
    assert_true(refuse(CORE_SAVE_TRIAL)); /* without which its search is not what it was */
    assert_int_equal(world_reply(&w)->code, DET_EINVAL);
    assert_int_equal(world_count(&w, CORE_SAVE_EXPERIMENT), 0);
    assert_int_equal(world_count(&w, CORE_SAVE_TRIAL), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
}

/* No state is in these; and a setting that is not kept is not called so. */
static void test_rows_of_nobody(void **state)
{
    world_create(&w, "{}");
    assert_true(refuse(CORE_SAVE_TIMELINE));
    assert_int_equal(world_count(&w, CORE_SAVE_PARKED), 0);
    assert_int_equal(world_reply(&w)->code, 0);
    world_step(&w, (struct core_event){.kind = CORE_EV_AGENT_SET,
                                       .agent_set = {.agent_id = "a", .slot = -1}});
    assert_true(refuse(CORE_SAVE_AGENT));
    assert_int_equal(world_reply(&w)->code, DET_EINVAL);
}

static void test_the_last_row(void **state)
{
    world_create(&w, "{}");
    world_step(&w, (struct core_event){.kind = CORE_EV_TRIAL_KILL, .trial_id = 1});
    assert_true(refuse(CORE_SAVE_TRIAL));
    assert_false(refuse(CORE_SAVE_PARKED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_trial, setup, teardown),
        cmocka_unit_test_setup_teardown(test_allocation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_experiment, setup, teardown),
        cmocka_unit_test_setup_teardown(test_creation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rows_of_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_last_row, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
