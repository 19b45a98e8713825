/* Every edge of a det-task's life, and that no order of events breaks it or holds it up. */
#include "tasklife.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define STALL_MS 5000

static struct tasklife life;
static int64_t now_ms;

static int setup(void **state)
{
    now_ms = 1000;
    tasklife_init(&life, STALL_MS, now_ms);
    return 0;
}

static int teardown(void **state)
{
    tasklife_finish(&life);
    return 0;
}

static void step(struct tasklife_event e)
{
    tasklife_step(&life, &e, now_ms);
    tasklife_check(&life);
}

static void happens(enum tasklife_event_kind kind)
{
    step((struct tasklife_event){.kind = kind});
}

static void fails(enum tasklife_event_kind kind, enum link_exit_reason reason, int code,
                  const char *text)
{
    step((struct tasklife_event){.kind = kind, .exit = {reason, code, 0, 0, text, NULL, NULL}});
}

static void children(bool all, bool first)
{
    step(
        (struct tasklife_event){.kind = TASKLIFE_CHILDREN, .all_ended = all, .first_ended = first});
}

static void struck(bool is_gone)
{
    step((struct tasklife_event){.kind = TASKLIFE_STRUCK, .is_gone = is_gone});
}

/* The deadline comes, and not a moment before. */
static void waits(int64_t ms)
{
    assert_int_equal(life.deadline_ms, now_ms + ms);
    if (ms > 0) {
        enum task_phase before = life.phase;
        now_ms += ms - 1;
        happens(TASKLIFE_TICK);
        assert_int_equal(life.phase, before);
        assert_int_equal(life.effects.n, 0);
        now_ms++;
    }
    happens(TASKLIFE_TICK);
}

/* The next effect is this. */
static void does(enum tasklife_effect want)
{
    enum tasklife_effect got;
    assert_true(tasklife_take(&life, &got));
    assert_int_equal(got, want);
}

static void is_in(enum task_phase phase)
{
    assert_int_equal(life.phase, phase);
    assert_int_equal(life.effects.n, 0);
}

static void begin_step(const char *name)
{
    step((struct tasklife_event){.kind = TASKLIFE_STEP, .step = name});
    is_in(TASK_HOOKING);
}

static void run(void)
{
    happens(TASKLIFE_RANKS);
    is_in(TASK_RUNNING);
}

/* To TASK_KILLING by what has just been done, and on to PIPES. */
static void dies(void)
{
    does(TASKLIFE_STOP);
    is_in(TASK_KILLING);
    waits(0);
    does(TASKLIFE_STRIKE);
    struck(true);
    does(TASKLIFE_READ_PIPES);
    is_in(TASK_PIPES);
}

static void sends_reports(void)
{
    waits(300);
    does(TASKLIFE_SEND_REPORTS);
    is_in(TASK_REPORTS);
    assert_true(life.deadline_ms == TASKLIFE_NEVER);
}

static void tells(void)
{
    does(TASKLIFE_TELL_EXIT);
    does(TASKLIFE_SEND_REST);
    is_in(TASK_ENDED);
}

static void all_exit_well(void)
{
    children(true, true);
    does(TASKLIFE_SAY_EXIT);
    assert_int_equal(life.exit.reason, LINK_EXITED);
    assert_int_equal(life.exit.code, 0);
    assert_string_equal(life.exit.text, "");
    does(TASKLIFE_STOP);
    does(TASKLIFE_STRIKE); /* at once: they have ended */
    is_in(TASK_KILLING);
}

/* ---- */

static void test_a_good_task(void **state)
{
    begin_step("startup-hook.sh");
    begin_step("the search");
    run();
    happens(TASKLIFE_MET);
    all_exit_well();
    struck(true);
    does(TASKLIFE_READ_PIPES);
    happens(TASKLIFE_SILENT);
    waits(0);
    does(TASKLIFE_SEND_REPORTS);
    happens(TASKLIFE_REPORTED);
    does(TASKLIFE_SEND_LOG);
    is_in(TASK_LOG);
    happens(TASKLIFE_LOG_EMPTY);
    tells();
    happens(TASKLIFE_LOG_EMPTY);
    does(TASKLIFE_FINISH);
    is_in(TASK_FINISHED);
}

static void test_a_master_that_is_away(void **state)
{
    run();
    all_exit_well();
    struck(true);
    does(TASKLIFE_READ_PIPES);
    sends_reports();
    happens(TASKLIFE_REPORTED);
    does(TASKLIFE_SEND_LOG);
    waits(1500);
    tells();
    waits(86400000);
    does(TASKLIFE_FINISH);
    is_in(TASK_FINISHED);
}

static void test_the_rest_after_the_acknowledgement(void **state)
{
    run();
    all_exit_well();
    struck(true);
    does(TASKLIFE_READ_PIPES);
    happens(TASKLIFE_ACKED); /* means nothing yet */
    sends_reports();
    happens(TASKLIFE_REPORTED);
    does(TASKLIFE_SEND_LOG);
    happens(TASKLIFE_LOG_EMPTY);
    tells();
    happens(TASKLIFE_ACKED);
    waits(600000);
    does(TASKLIFE_FINISH);
}

static void test_it_cannot_start(void **state)
{
    fails(TASKLIFE_FAILED, LINK_START_FAILED, 0, "no room");
    does(TASKLIFE_SAY_EXIT);
    assert_string_equal(life.exit.text, "no room");
    dies();
    happens(TASKLIFE_RANKS);
    step((struct tasklife_event){.kind = TASKLIFE_STEP, .step = "late"});
    is_in(TASK_PIPES);
}

static void test_the_first_failure_decides(void **state)
{
    run();
    fails(TASKLIFE_RANK_FAILED, LINK_EXITED, 3, "rank 1 exited with code 3");
    does(TASKLIFE_SAY_EXIT);
    is_in(TASK_RUNNING);
    fails(TASKLIFE_RANK_FAILED, LINK_EXITED, 4, "rank 0 lost its peer");
    children(false, true);
    does(TASKLIFE_ASK_TO_END);
    is_in(TASK_ENDING);
    fails(TASKLIFE_RANK_FAILED, LINK_EXITED, 5, "later");
    fails(TASKLIFE_STALLED, LINK_STALLED, 0, "later");
    children(false, true);
    is_in(TASK_ENDING);
    waits(2000);
    dies();
    assert_int_equal(life.exit.code, 3);
    assert_string_equal(life.exit.text, "rank 1 exited with code 3");
}

static void test_all_end_within_the_grace(void **state)
{
    run();
    fails(TASKLIFE_RANK_FAILED, LINK_EXITED, 3, "rank 1");
    does(TASKLIFE_SAY_EXIT);
    children(false, false);
    does(TASKLIFE_ASK_TO_END);
    children(true, true);
    does(TASKLIFE_STOP);
    does(TASKLIFE_STRIKE);
    is_in(TASK_KILLING);
}

static void test_stragglers(void **state)
{
    run();
    children(false, true);
    assert_true(life.deadline_ms == TASKLIFE_NEVER); /* the others may not have met yet */
    happens(TASKLIFE_MET);
    children(false, true);
    int64_t by_ms = life.deadline_ms;
    now_ms += 700;
    children(false, true);
    assert_int_equal(life.deadline_ms, by_ms);
    waits(TASKLIFE_STRAGGLE_MS - 700);
    does(TASKLIFE_SAY_STRAGGLE);
    does(TASKLIFE_SAY_EXIT);
    does(TASKLIFE_ASK_TO_END);
    is_in(TASK_ENDING);
    assert_int_equal(life.exit.code, 0);
}

static void test_a_silent_step(void **state)
{
    begin_step("startup-hook.sh");
    now_ms += STALL_MS - 1;
    happens(TASKLIFE_SAID);
    waits(STALL_MS);
    does(TASKLIFE_SAY_EXIT);
    assert_int_equal(life.exit.reason, LINK_STALLED);
    assert_string_equal(life.exit.text, "startup-hook.sh stalled: it printed nothing for 5 s");
    dies();
}

static void test_a_step_without_a_limit(void **state)
{
    tasklife_init(&life, 0, now_ms);
    begin_step("startup-hook.sh");
    happens(TASKLIFE_SAID);
    assert_true(life.deadline_ms == TASKLIFE_NEVER);
}

static void stalls(void)
{
    run();
    fails(TASKLIFE_STALLED, LINK_STALLED, 0, "rank 0 stalled");
    does(TASKLIFE_SAY_EXIT);
    does(TASKLIFE_LOOK);
    children(true, true); /* the look is not over */
    is_in(TASK_TRACING);
}

static void test_a_stall(void **state)
{
    stalls();
    happens(TASKLIFE_LOOKED);
    dies();
    assert_int_equal(life.exit.reason, LINK_STALLED);
}

static void test_a_look_that_does_not_end(void **state)
{
    stalls();
    waits(15000);
    dies();
    happens(TASKLIFE_LOOKED);
    is_in(TASK_PIPES);
}

static void test_a_kill(void **state)
{
    run();
    happens(TASKLIFE_KILL);
    does(TASKLIFE_SAY_EXIT);
    assert_string_equal(life.exit.text, "killed");
    dies();
    assert_int_equal(life.hurry, TASKLIFE_KILLED);
    sends_reports();
    happens(TASKLIFE_KILL);
    does(TASKLIFE_HURRY_REPORTS);
    happens(TASKLIFE_REPORTED);
    does(TASKLIFE_SEND_LOG);
    waits(300);
    tells();
    happens(TASKLIFE_KILL);
    is_in(TASK_ENDED);
}

static void test_an_end_waits_for_nothing(void **state)
{
    begin_step("startup-hook.sh");
    happens(TASKLIFE_END);
    does(TASKLIFE_SAY_EXIT);
    assert_string_equal(life.exit.text, "ended with its agent");
    dies();
    sends_reports();
    happens(TASKLIFE_REPORTED);
    does(TASKLIFE_TELL_EXIT);
    does(TASKLIFE_FINISH);
    is_in(TASK_FINISHED);
}

static void test_an_end_of_what_has_ended(void **state)
{
    run();
    all_exit_well();
    struck(true);
    does(TASKLIFE_READ_PIPES);
    sends_reports();
    happens(TASKLIFE_REPORTED);
    does(TASKLIFE_SEND_LOG);
    happens(TASKLIFE_LOG_EMPTY);
    tells();
    happens(TASKLIFE_END);
    does(TASKLIFE_QUIT);
    is_in(TASK_FINISHED);
}

static void test_told_to_end(void **state)
{
    happens(TASKLIFE_TERM);
    does(TASKLIFE_SAY_EXIT);
    assert_int_equal(life.exit.reason, LINK_LOST);
    dies();
}

static void test_a_successor(void **state)
{
    fails(TASKLIFE_RECOVER, LINK_EXITED, 7, "what the first one left");
    does(TASKLIFE_SAY_EXIT);
    dies();
    assert_true(life.is_successor);
    assert_int_equal(life.exit.code, 7);
}

static void test_what_does_not_die(void **state)
{
    happens(TASKLIFE_KILL);
    does(TASKLIFE_SAY_EXIT);
    does(TASKLIFE_STOP);
    waits(0);
    for (int i = 0; i < 3332; i++) {
        does(TASKLIFE_STRIKE);
        struck(false);
        assert_false(tasklife_is_undying(&life));
        waits(3);
    }
    does(TASKLIFE_STRIKE);
    struck(false);
    does(TASKLIFE_SAY_UNDYING); /* after 10 s */
    assert_true(tasklife_is_undying(&life));
    waits(3);
    does(TASKLIFE_STRIKE);
    struck(false);
    children(false, false); /* something died: looked at once */
    does(TASKLIFE_STRIKE);
    struck(false);
    waits(1000);
    does(TASKLIFE_STRIKE);
    now_ms += 5;
    struck(true);
    does(TASKLIFE_READ_PIPES);
    assert_int_equal(life.killed_in_ms, 3333 * 3 + 1000 + 5);
}

/* ---- any order ---- */

static uint64_t seed;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static struct tasklife_event any_event(void)
{
    return (struct tasklife_event){.kind = draw(TASKLIFE_EVENT_COUNT),
                                   .step = "a step",
                                   .exit = {draw(LINK_EXIT_REASON_COUNT), 1, 0, 0, "x", NULL, NULL},
                                   .all_ended = draw(2),
                                   .first_ended = draw(2),
                                   .is_gone = draw(2)};
}

struct seen {
    bool moves[TASK_PHASE_COUNT][TASK_PHASE_COUNT];
    int done[TASKLIFE_EFFECT_COUNT];
};

/* What a step may move through without being seen: ENDED of a task that is in a hurry. */
static void note_move(struct seen *n, enum task_phase from, enum task_phase to)
{
    if (from == to)
        return;
    if (from < TASK_ENDED && to == TASK_FINISHED) {
        n->moves[from][TASK_ENDED] = n->moves[TASK_ENDED][to] = true;
        return;
    }
    n->moves[from][to] = true;
}

static void take_all(struct seen *n)
{
    enum tasklife_effect effect;
    while (tasklife_take(&life, &effect))
        n->done[effect]++;
}

static void step_and_note(struct seen *n, struct tasklife_event e)
{
    enum task_phase from = life.phase;
    step(e);
    note_move(n, from, life.phase);
    take_all(n);
}

/* All that is said once is said once; the exit is decided before it is told. */
static void check_done(const struct seen *n)
{
    assert_true(n->done[TASKLIFE_SAY_EXIT] <= 1);
    assert_true(n->done[TASKLIFE_STOP] <= 1);
    assert_true(n->done[TASKLIFE_READ_PIPES] <= 1);
    assert_true(n->done[TASKLIFE_SEND_REPORTS] <= 1);
    assert_true(n->done[TASKLIFE_TELL_EXIT] <= n->done[TASKLIFE_SAY_EXIT]);
    assert_true(n->done[TASKLIFE_FINISH] + n->done[TASKLIFE_QUIT] <= n->done[TASKLIFE_TELL_EXIT]);
}

/* Somebody kills it, and what was asked for is answered: it ends, by its deadlines. */
static void ends_when_killed(struct seen *n)
{
    step_and_note(n, (struct tasklife_event){.kind = TASKLIFE_KILL});
    for (int i = 0; i < 10 && life.phase != TASK_FINISHED; i++) {
        if (life.deadline_ms != TASKLIFE_NEVER)
            now_ms = life.deadline_ms;
        else
            step_and_note(n, (struct tasklife_event){.kind = TASKLIFE_REPORTED});
        step_and_note(n, (struct tasklife_event){.kind = TASKLIFE_TICK});
        step_and_note(n, (struct tasklife_event){.kind = TASKLIFE_STRUCK, .is_gone = true});
    }
    assert_int_equal(life.phase, TASK_FINISHED);
    assert_int_equal(n->done[TASKLIFE_TELL_EXIT], 1);
    assert_int_equal(n->done[TASKLIFE_FINISH] + n->done[TASKLIFE_QUIT], 1);
}

static void live_once(struct seen *all)
{
    struct seen n = {0};
    setup(NULL);
    for (unsigned left = draw(200); left > 0; left--) {
        now_ms += draw(3) ? draw(50) : draw(20000);
        step_and_note(&n, any_event());
        check_done(&n);
    }
    ends_when_killed(&n);
    teardown(NULL);
    for (int from = 0; from < TASK_PHASE_COUNT; from++)
        for (int to = 0; to < TASK_PHASE_COUNT; to++)
            all->moves[from][to] |= n.moves[from][to];
}

/* The edges that were seen are those of the table: none is missing, none is dead. */
static void test_any_order_of_events(void **state)
{
    struct seen all = {0};
    seed = 1;
    for (int i = 0; i < 20000; i++)
        live_once(&all);
    for (int from = 0; from < TASK_PHASE_COUNT; from++)
        for (int to = 0; to < TASK_PHASE_COUNT; to++)
            if (from != to && all.moves[from][to] != tasklife_may_move(from, to))
                fail_msg("%d to %d: seen %d", from, to, all.moves[from][to]);
    setup(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_a_good_task),
        CASE(test_a_master_that_is_away),
        CASE(test_the_rest_after_the_acknowledgement),
        CASE(test_it_cannot_start),
        CASE(test_the_first_failure_decides),
        CASE(test_all_end_within_the_grace),
        CASE(test_stragglers),
        CASE(test_a_silent_step),
        CASE(test_a_step_without_a_limit),
        CASE(test_a_stall),
        CASE(test_a_look_that_does_not_end),
        CASE(test_a_kill),
        CASE(test_an_end_waits_for_nothing),
        CASE(test_an_end_of_what_has_ended),
        CASE(test_told_to_end),
        CASE(test_a_successor),
        CASE(test_what_does_not_die),
        CASE(test_any_order_of_events),
    };
    return cmocka_run_group_tests_name("tasklife", tests, NULL, NULL);
}
