/* When a standby takes the leader's place, and when it must not. */
#include "lead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int64_t now;

/* Looks every step_ms for ms; how long until it wants the place, or -1. */
static int64_t look_for(struct lead_watch *w, struct lead_seen seen, int64_t ms, int64_t step_ms)
{
    for (int64_t t = 0; t <= ms; t += step_ms, now += step_ms)
        if (lead_watch_look(w, now, &seen))
            return t;
    return -1;
}

static const struct lead_seen held = {.epoch = 3, .beat = 7};
static const struct lead_seen vacant = {.epoch = 3, .beat = 7, .vacant = true, .refused = true};
static const struct lead_seen listens = {.epoch = 3, .beat = 7, .vacant = true};

static void test_first_look(void **state)
{
    struct lead_watch w = {0};
    assert_true(lead_watch_look(&w, 5, &vacant));
    w = (struct lead_watch){0};
    assert_false(lead_watch_look(&w, 5, &held));
    w = (struct lead_watch){0};
    assert_false(lead_watch_look(&w, 5, &listens));
}

static void test_dead(void **state)
{
    struct lead_watch w = {0};
    assert_false(lead_watch_look(&w, now, &held));
    now += LEAD_POLL_MS;
    int64_t t = look_for(&w, vacant, 60000, LEAD_POLL_MS);
    assert_in_range(t, LEAD_GONE_MS, LEAD_GONE_MS + 2 * LEAD_POLL_MS);
}

/* A leader that lost its sessions for a moment (they were ended) keeps its place. */
static void test_blink(void **state)
{
    struct lead_watch w = {0};
    struct lead_seen s = held;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(look_for(&w, s, 400, LEAD_POLL_MS), -1);
        s.vacant = true;
        assert_int_equal(look_for(&w, s, LEAD_GONE_MS - LEAD_POLL_MS, LEAD_POLL_MS), -1);
        s.vacant = false;
        s.beat++;
    }
}

/* Its sessions are gone and its process is there: silence alone decides. */
static void test_listens(void **state)
{
    struct lead_watch w = {0};
    assert_false(lead_watch_look(&w, now, &held));
    int64_t t = look_for(&w, listens, 60000, LEAD_POLL_MS);
    assert_in_range(t, LEAD_SILENT_MS, LEAD_SILENT_MS + 2 * LEAD_POLL_MS);
}

/* After a restart of PostgreSQL nobody's session is there, and the first look is no proof. */
static void test_new_session(void **state)
{
    struct lead_watch w = {0};
    assert_false(lead_watch_look(&w, now, &held));
    lead_watch_reset(&w);
    int64_t t = look_for(&w, vacant, 60000, LEAD_POLL_MS);
    assert_in_range(t, LEAD_GONE_MS, LEAD_GONE_MS + 2 * LEAD_POLL_MS);
}

static void test_stopped(void **state)
{
    struct lead_watch w = {0};
    int64_t t = look_for(&w, held, 60000, LEAD_POLL_MS);
    assert_in_range(t, LEAD_SILENT_MS, LEAD_SILENT_MS + 2 * LEAD_POLL_MS);
}

static void test_beats(void **state)
{
    struct lead_watch w = {0};
    struct lead_seen s = held;
    for (int i = 0; i < 1000; i++, s.beat++)
        assert_int_equal(look_for(&w, s, LEAD_BEAT_MS, LEAD_POLL_MS), -1);
}

/* The standby or the database was stopped for an hour: that is no silence of the leader. */
static void test_gap(void **state)
{
    struct lead_watch w = {0};
    assert_int_equal(look_for(&w, held, 1000, LEAD_POLL_MS), -1);
    now += 3600 * 1000;
    assert_false(lead_watch_look(&w, now, &held));
    now -= 7200 * 1000;
    assert_false(lead_watch_look(&w, now, &held));
    assert_true(w.silent_ms < 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_look),  cmocka_unit_test(test_dead),
        cmocka_unit_test(test_blink),       cmocka_unit_test(test_listens),
        cmocka_unit_test(test_new_session), cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_beats),       cmocka_unit_test(test_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
