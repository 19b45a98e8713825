/* A search is held where the first of its trials to fail all failed of the same; others are not. */
#include "world.h"

#include "why.h"
#include <stdio.h>

#define AT "model_def.py, line 3, in build"
#define SAID                                                                                       \
    "Experiment 1 is held (paused): the first 8 of its trials to fail all failed of the same: "

static struct world w;

static struct core_exit raised(const char *exception, const char *at)
{
    struct core_exit e = EXIT_CODE(1);
    e.text = "rank 0 exited with code 1";
    e.exception = exception;
    e.at = at;
    return e;
}

static void search_as(int trials, int restarts, bool holds)
{
    char config[300];
    snprintf(config, sizeof config,
             "{\"max_restarts\":%d,\"hold_failing_search\":%s,\"searcher\":{\"name\":"
             "\"random\",\"max_trials\":%d,\"max_concurrent_trials\":%d}}",
             restarts, holds ? "true" : "false", trials, trials < 16 ? trials : 16);
    world_init(&w, NULL);
    w.keeps = true;
    world_hello(&w, "a", 32, NULL, 0);
    world_create(&w, config);
}

static void search(int trials, int restarts)
{
    search_as(trials, restarts, true);
}

static void fail_of(int64_t trial, const char *exception, const char *at)
{
    world_run(&w, trial);
    world_exit(&w, trial, 0, raised(exception, at));
    core_check(w.core);
}

/* Trials from..to, each with another number in its message. */
static void fail_alike(int64_t from, int64_t to)
{
    for (int64_t id = from; id <= to; id++) {
        char text[80];
        snprintf(text, sizeof text, "ValueError: lr %g at 0x%llx", (double)id / 7,
                 (unsigned long long)id * 1234567);
        fail_of(id, text, AT);
    }
}

static enum exp_state state_of(void)
{
    struct core_exp_view v;
    assert_true(core_exp_get(w.core, 1, &v));
    return v.state;
}

static void expect_why(const char *text, bool is_held)
{
    JSON_OWN j = core_why_exp(w.core, 1, (struct core_now){w.now_ms, w.now_ms * 1000});
    assert_non_null(strstr(json_str(j, "text", ""), text));
    assert_int_equal(json_flag(j, "held", false), is_held);
}

static void held(void **state)
{
    search(16, 0);
    fail_alike(1, 7);
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(8, 8);
    assert_int_equal(state_of(), EXP_PAUSED);
    assert_true(world_logged(&w, SAID "ValueError: lr 1.14286 at 0x96b438 (" AT ")"));
    expect_why("to fail all failed of the same: ValueError: lr 1.14286", true);
    world_restart(&w);
    expect_why("to fail all failed of the same: ValueError: lr 1.14286", true);
    assert_int_equal(world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = 1}),
                     0);
    world_finish(&w);
}

/* Whoever goes on is not held again, with restarts too. */
static void goes_on(void **state)
{
    search(10, 1);
    fail_alike(1, 8);
    assert_int_equal(state_of(), EXP_PAUSED);
    for (int64_t id = 1; id <= 10; id++) /* those about to start are killed */
        if (id != 8)
            world_exit(&w, id, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = 1});
    fail_alike(1, 8);
    fail_alike(9, 10);
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(9, 10);
    struct core_exp_view v;
    assert_false(core_exp_get(w.core, 1, &v) && v.state == EXP_ACTIVE); /* every trial failed */
    world_finish(&w);
}

static void killed(void **state)
{
    search(16, 2);
    fail_alike(1, 8);
    assert_int_equal(state_of(), EXP_PAUSED);
    assert_int_equal(world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = 1}), 0);
    core_check(w.core);
    world_finish(&w);
}

static void not_held(void **state)
{
    static const struct {
        const char *exception, *at;
    } others[] = {{"ValueError: lr", AT},          /* another message */
                  {"KeyError: lr 0.5 at 0x1", AT}, /* another type */
                  {"ValueError: lr 0.5 at 0x1", "b.py, line 3, in build"},
                  {"ValueError: lr 0.5 at 0x1", "model_def.py, line 4, in build"},
                  {NULL, NULL}}; /* none is known */
    for (size_t i = 0; i < DET_ARRAY_LEN(others); i++)
        for (int64_t at = 1; at <= 8; at += 7) {
            search(16, 0);
            fail_alike(1, at - 1);
            fail_of(at, others[i].exception, others[i].at);
            fail_alike(at + 1, 9);
            assert_int_equal(state_of(), EXP_ACTIVE);
            world_finish(&w);
        }
}

/* One that has got somewhere: what fails after it is no mistake of all. */
static void one_succeeds(void **state)
{
    search(16, 0);
    world_run(&w, 1);
    world_complete(&w, 1, 0.5);
    fail_alike(2, 10);
    assert_int_equal(state_of(), EXP_ACTIVE);
    world_finish(&w);
}

/* Eight that say what they say by turns. */
static enum exp_state after_saying(const char *one, const char *another)
{
    search(16, 0);
    for (int64_t id = 1; id <= 8; id++)
        fail_of(id, id % 2 ? one : another, AT);
    enum exp_state state = state_of();
    world_finish(&w);
    return state;
}

static void numbers_are_no_part_of_words(void **state)
{
    static const struct {
        const char *one, *another;
        bool is_same;
    } rows[] = {
        {"KeyError: 'conv1'", "KeyError: 'conv2'", false},
        {"KeyError: 'lr_1'", "KeyError: 'lr_2'", false},
        {"KeyError: '\xc3\xa9t\xc3\xa9"
         "1'",
         "KeyError: '\xc3\xa9t\xc3\xa9"
         "2'",
         false},
        {"E: 3rd of 8", "E: 4th of 8", false},
        {"E: row 3.", "E: row 17.", true},
        {"E: row 3", "E: row x", false},
        {"E: layers.0.weight", "E: layers.12.weight", true},
        {"E: shapes (64x784 and 128x10)", "E: shapes (32x784 and 256x10)", true},
        {"E: shapes (3, 4)", "E: shapes (3, 4, 5)", false},
        {"E: 10.00MiB", "E: 9.5MiB", true},
        {"E: 10MiB", "E: 10GiB", false},
        {"E: -0.5 < 1e-05", "E: 2 < 1E+20", true},
        {"E: <a at 0x7f3a>", "E: <a at 0x99b>", true},
        {"E: 1e", "E: 2e", true},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(rows); i++) {
        bool is_held = after_saying(rows[i].one, rows[i].another) == EXP_PAUSED;
        if (is_held != rows[i].is_same)
            fail_msg("%s and %s", rows[i].one, rows[i].another);
    }
}

/* They are the first to fail, but others train. */
static void another_trains(void **state)
{
    for (int i = 0; i < 2; i++) {
        search(16, 0);
        world_run(&w, 9);
        if (i)
            world_step(&w, (struct core_event){
                               .kind = CORE_EV_PROGRESS, .trial_id = 9, .run_id = 1, .units = 5});
        fail_alike(1, 8);
        assert_int_equal(state_of(), i ? EXP_ACTIVE : EXP_PAUSED);
        world_finish(&w);
    }
}

/* Eight of sixteen, whatever their numbers: number 3 waits all the while. Those that fail after it
 * went on do not hold it again. */
static void whichever_fail_first(void **state)
{
    search(16, 0);
    fail_alike(1, 2);
    fail_alike(4, 7);
    fail_alike(16, 16);
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(11, 11);
    assert_int_equal(state_of(), EXP_PAUSED);
    assert_true(world_logged(&w, SAID "ValueError: lr 1.57143 at 0xcf37cd (" AT ")"));
    for (int64_t id = 3; id <= 15; id++) /* those about to start are killed */
        if (id == 3 || (id > 7 && id != 11))
            world_exit(&w, id, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = 1});
    fail_alike(3, 3);
    fail_alike(8, 10);
    assert_int_equal(state_of(), EXP_ACTIVE);
    world_finish(&w);
}

/* A master that is started anew knows who counts. */
static void counts_after_restart(void **state)
{
    search(16, 0);
    fail_alike(1, 7);
    world_restart(&w);
    core_check(w.core);
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(9, 9);
    assert_int_equal(state_of(), EXP_PAUSED);
    world_finish(&w);
}

static void set_paused(bool is_paused)
{
    enum core_event_kind kind = is_paused ? CORE_EV_EXP_PAUSE : CORE_EV_EXP_ACTIVATE;
    assert_int_equal(world_step(&w, (struct core_event){.kind = kind, .exp_id = 1}), 0);
}

/* Trials from..to are about to start; a pause kills them. */
static void end_starts(int64_t from, int64_t to)
{
    for (int64_t id = from; id <= to; id++)
        world_exit(&w, id, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
}

static void go_on_after_restart(void)
{
    world_restart(&w);
    world_hello(&w, "a", 32, NULL, 0);
    set_paused(false);
}

/* Judged by the first that fails when it has gone on, and once: over a new start of the master. */
static void eighth_fails_while_paused(void **state)
{
    search(16, 0);
    fail_alike(1, 6);
    world_run(&w, 7);
    world_run(&w, 8);
    set_paused(true);
    world_exit(&w, 7, 0, raised("ValueError: lr 7 at 0x0", AT));
    world_exit(&w, 8, 0, raised("ValueError: lr 8 at 0x0", AT));
    end_starts(9, 16);
    go_on_after_restart();
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(9, 9);
    assert_int_equal(state_of(), EXP_PAUSED);
    expect_why("the first 9 of its trials to fail all failed of the same", true);
    end_starts(10, 16);
    go_on_after_restart();
    fail_alike(10, 12);
    assert_int_equal(state_of(), EXP_ACTIVE);
    world_finish(&w);
}

/* Rows as a master wrote them that did not say whether a search was judged. */
static void forget_judged(void)
{
    for (size_t i = 0; i < w.kept.n; i++)
        for (size_t k = 0; k < w.kept.v[i].n; k++) {
            struct core_effect *e = &w.kept.v[i].v[k];
            const char *core = e->kind == CORE_SAVE_EXPERIMENT ? e->experiment.core : NULL;
            char *at = core ? strstr((char *)(uintptr_t)core, "\"judged\"") : NULL;
            if (at)
                memcpy(at, "\"before\"", strlen("\"before\""));
        }
}

static void upgrade(void)
{
    world_step(&w, (struct core_event){.kind = CORE_EV_TICK}); /* the last rows are kept, too */
    forget_judged();
    world_restart(&w);
    world_hello(&w, "a", 32, NULL, 0);
}

/* A search that an older master held is not held again: whether a person activated it before the
 * new one came, or did so after. */
static void held_before_upgrade(void **state)
{
    for (int is_late = 0; is_late < 2; is_late++) {
        search(16, 0);
        fail_alike(1, 8);
        end_starts(9, 16);
        if (is_late)
            upgrade();
        set_paused(false);
        assert_int_equal(state_of(), EXP_ACTIVE);
        if (!is_late)
            upgrade();
        fail_alike(9, 12);
        assert_int_equal(state_of(), EXP_ACTIVE);
        world_finish(&w);
    }
}

/* One that goes on, and is still to be judged, is so after a new start as well. */
static void judged_after_restart(void **state)
{
    search(16, 0);
    fail_alike(1, 7);
    world_run(&w, 8);
    set_paused(true);
    world_exit(&w, 8, 0, raised("ValueError: lr 8 at 0x0", AT));
    end_starts(9, 16);
    set_paused(false);
    world_restart(&w);
    world_hello(&w, "a", 32, NULL, 0);
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(9, 9);
    assert_int_equal(state_of(), EXP_PAUSED);
    world_finish(&w);
}

/* Each counts once: the second failure of one is not the eighth trial. */
static void counts_trials(void **state)
{
    search(16, 1);
    fail_alike(2, 8);
    fail_alike(2, 2);
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(9, 9);
    assert_int_equal(state_of(), EXP_PAUSED);
    world_finish(&w);
}

/* What goes on from its beginning is counted anew. */
static void counts_anew(void **state)
{
    search(9, 0);
    fail_alike(1, 8);
    assert_int_equal(state_of(), EXP_PAUSED);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = 1});
    world_exit(&w, 9, 0, (struct core_exit){.reason = CORE_KILLED, .rank = -1});
    assert_int_equal(world_continue(&w, 1, NULL), 0);
    fail_alike(1, 7);
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(8, 8);
    assert_int_equal(state_of(), EXP_PAUSED);
    world_finish(&w);
}

static void not_if_told(void **state)
{
    search_as(16, 0, false);
    fail_alike(1, 9);
    assert_int_equal(state_of(), EXP_ACTIVE);
    world_finish(&w);
}

/* The system's failures do not count, and change nothing. */
static void losses_do_not_count(void **state)
{
    search(16, 0);
    for (int64_t id = 1; id <= 8; id++) {
        world_run(&w, id);
        world_exit(&w, id, 0, EXIT_LOST);
    }
    assert_int_equal(state_of(), EXP_ACTIVE);
    fail_alike(1, 8);
    assert_int_equal(state_of(), EXP_PAUSED);
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(held),
                                       cmocka_unit_test(goes_on),
                                       cmocka_unit_test(killed),
                                       cmocka_unit_test(not_held),
                                       cmocka_unit_test(one_succeeds),
                                       cmocka_unit_test(numbers_are_no_part_of_words),
                                       cmocka_unit_test(another_trains),
                                       cmocka_unit_test(whichever_fail_first),
                                       cmocka_unit_test(counts_after_restart),
                                       cmocka_unit_test(eighth_fails_while_paused),
                                       cmocka_unit_test(held_before_upgrade),
                                       cmocka_unit_test(judged_after_restart),
                                       cmocka_unit_test(counts_trials),
                                       cmocka_unit_test(counts_anew),
                                       cmocka_unit_test(not_if_told),
                                       cmocka_unit_test(losses_do_not_count)};
    return cmocka_run_group_tests_name("alike", tests, NULL, NULL);
}
