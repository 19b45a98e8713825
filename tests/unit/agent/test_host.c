#include "host.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct link_slot slots[] = {{0, LINK_CPU, "x", "", -1, -1},
                                         {1, LINK_CPU, "x", "", -1, -1}};

static struct host *make(void)
{
    return host_create("boot-1", "", "127.0.0.1", slots, 2);
}

static void order_text(struct host *h, const char *text)
{
    struct link_order o;
    struct det_err err = {0};
    if (link_order_decode(text, strlen(text), &o, &err) < 0)
        fail_msg("%s", err.text);
    host_on_order(h, &o);
    link_order_finish(&o);
    host_check(h);
}

static void order_start(struct host *h, const char *alloc, const char *slot_list, int n)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"seq\":1,\"order\":\"start\",\"alloc\":\"%s\",\"container\":\"c-%s\",\"task\":{"
             "\"task_id\":\"t\","
             "\"kind\":\"TRIAL\",\"slots\":[%s],\"slot_counts\":[%d],\"entrypoint\":\"x\",\"env\":{"
             "},\"token\":\"t\"}}",
             alloc, alloc, slot_list, n);
    order_text(h, text);
}

static void order_kill(struct host *h, const char *alloc)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"seq\":2,\"order\":\"signal\",\"alloc\":\"%s\",\"signal\":\"KILL\"}", alloc);
    order_text(h, text);
}

static void order_stacks(struct host *h, const char *alloc)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"seq\":3,\"order\":\"stacks\",\"alloc\":\"%s\",\"container\":\"c-%s\"}", alloc,
             alloc);
    order_text(h, text);
}

static void expect(struct host *h, enum host_effect_kind kind, const char *alloc)
{
    struct host_effect e;
    assert_true(host_take(h, &e));
    assert_int_equal(e.kind, kind);
    assert_string_equal(e.alloc, alloc);
    json_decref(e.task);
}

static void expect_nothing(struct host *h)
{
    struct host_effect e;
    assert_false(host_take(h, &e));
    host_check(h);
}

static struct link_events batch(struct host *h)
{
    struct link_events e;
    struct det_err err = {0};
    det_cleanup(freep) char *text = host_batch(h);
    if (link_events_decode(text, strlen(text), &e, &err) < 0)
        fail_msg("%s: %s", err.text, text);
    host_check(h);
    return e;
}

/* Greets, and acknowledges it. */
static struct host *connected(void)
{
    struct host *h = make();
    host_hello(h, NULL);
    struct link_events e = batch(h);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.v[0].kind, LINK_EV_HELLO);
    assert_false(host_is_greeted(h));
    host_on_ack(h, e.v[0].seq);
    assert_true(host_is_greeted(h));
    assert_false(host_has_news(h));
    link_events_finish(&e);
    return h;
}

static const struct link_exit code3 = {
    LINK_EXITED, 3, 0, 1, "rank 1 exited with code 3", "KeyError: 'lr'", "a.py, line 3, in f"};

static void test_life(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0,1", 2);
    order_start(h, "a.1", "0,1", 2); /* a repeat */
    expect(h, HOST_START, "a.1");
    expect_nothing(h);
    assert_int_equal(host_count(h).slots_used, 2);
    order_stacks(h, "a.1"); /* no rank yet */
    host_on_running(h, "a.1");
    host_on_running(h, "a.1");
    order_stacks(h, "a.1");
    expect(h, HOST_STACKS, "a.1");
    order_stacks(h, "a.2");
    expect_nothing(h);
    order_kill(h, "a.1");
    expect(h, HOST_SIGNAL, "a.1");
    host_on_ended(h, "a.1", &code3);
    host_on_ended(h, "a.1", &code3);
    assert_int_equal(host_count(h).slots_used, 0);
    struct link_events e = batch(h);
    assert_int_equal(e.n, 3);
    assert_int_equal(e.v[0].task.state, LINK_STARTING);
    assert_int_equal(e.v[1].task.state, LINK_RUNNING);
    assert_int_equal(e.v[2].kind, LINK_EV_EXIT);
    assert_int_equal(e.v[2].task.exit.code, 3);
    host_on_ack(h, e.v[1].seq);
    expect_nothing(h);
    host_on_ack(h, e.v[2].seq);
    expect(h, HOST_ACKED, "a.1");
    host_on_gone(h, "a.1");
    expect(h, HOST_FORGET, "a.1");
    expect_nothing(h);
    link_events_finish(&e);
    host_destroy(h);
}

static void say_marks(struct host *h, const char *kinds)
{
    JSON_OWN all = json_array();
    for (const char *k = kinds; *k; k++) {
        char kind[] = {*k, 0};
        struct link_mark m = {kind, 1000 + *k, 5, "why"};
        json_array_append_new(all, link_mark_json(&m));
    }
    host_on_marks(h, "a.1", all);
    host_on_running(h, "a.1");
}

/* The kinds that the last event of the next batch carries; acknowledges when asked to. */
static void expect_marks(struct host *h, const char *kinds, bool ack)
{
    struct link_events e = batch(h);
    assert_true(e.n > 0);
    const struct link_task *t = &e.v[e.n - 1].task;
    assert_int_equal(t->marks_n, strlen(kinds));
    for (size_t i = 0; i < t->marks_n; i++)
        assert_int_equal(t->marks[i].kind[0], kinds[i]);
    if (ack)
        host_on_ack(h, e.v[e.n - 1].seq);
    link_events_finish(&e);
}

/* Each mark goes with an event until the master has it, also through a new connection. */
static void test_marks(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0", 1);
    say_marks(h, "p");
    expect_marks(h, "p", true);
    say_marks(h, "p");
    assert_false(host_has_news(h));
    say_marks(h, "pc");
    expect_marks(h, "c", false);
    say_marks(h, "pcf");
    expect_marks(h, "cf", false);
    host_hello(h, NULL);
    expect_marks(h, "cf", true);
    assert_false(host_has_news(h));
    host_on_ended(h, "a.1", &code3);
    expect_marks(h, "", true);
    host_destroy(h);
}

/* A hello by which a task ends has all that the master does not know: it hears of it no more. */
static void test_marks_of_an_ended_task(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0", 1);
    say_marks(h, "p");
    expect_marks(h, "p", true);
    say_marks(h, "pc");
    host_on_ended(h, "a.1", &code3);
    order_start(h, "a.2", "1", 1);
    host_hello(h, NULL);
    struct link_events e = batch(h);
    assert_int_equal(e.v[0].kind, LINK_EV_HELLO);
    assert_int_equal(e.v[0].hello.tasks_n, 2);
    assert_int_equal(e.v[0].hello.tasks[0].marks_n, 1);
    assert_string_equal(e.v[0].hello.tasks[0].marks[0].kind, "c");
    assert_int_equal(e.v[0].hello.tasks[1].marks_n, 0);
    link_events_finish(&e);
    host_destroy(h);
}

/* One that the master would refuse for its size would be said again for ever. */
static void test_a_hello_stays_small(void **state)
{
    enum { TASKS = 800 };
    struct host *h = connected();
    char alloc[16], why[200];
    memset(why, 'y', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    JSON_OWN all = json_array();
    for (int i = 0; i < LINK_MARKS_MAX; i++)
        json_array_append_new(all, link_mark_json(&(struct link_mark){"pulled", 1000 + i, 5, why}));
    for (int i = 0; i < TASKS; i++) {
        snprintf(alloc, sizeof alloc, "a.%d", i);
        order_start(h, alloc, "0", 1);
        host_on_marks(h, alloc, all);
        host_on_ended(h, alloc, &code3);
    }
    host_hello(h, NULL);
    det_cleanup(freep) char *text = host_batch(h);
    assert_true(strlen(text) < LINK_BODY_MAX);
    struct link_events e;
    assert_int_equal(link_events_decode(text, strlen(text), &e, NULL), 0);
    assert_int_equal(e.v[0].hello.tasks_n, TASKS);
    assert_int_equal(e.v[0].hello.tasks[0].marks_n, LINK_MARKS_MAX);
    assert_int_equal(e.v[0].hello.tasks[TASKS - 1].marks_n, 0);
    link_events_finish(&e);
    host_destroy(h);
}

/* The text of the first of many tasks that ended with it, in the hello that follows. */
static size_t text_in_large_hello(char c)
{
    enum { TASKS = 3000 };
    struct host *h = connected();
    char alloc[16], text[LINK_TEXT_MAX];
    memset(text, c, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct link_exit end = {.reason = LINK_EXITED, .code = 3, .rank = 0, .text = text};
    for (int i = 0; i < TASKS; i++) {
        snprintf(alloc, sizeof alloc, "a.%d", i);
        order_start(h, alloc, "0", 1);
        host_on_ended(h, alloc, &end);
    }
    host_hello(h, NULL);
    det_cleanup(freep) char *body = host_batch(h);
    assert_true(strlen(body) < LINK_BODY_MAX);
    struct link_events e;
    assert_int_equal(link_events_decode(body, strlen(body), &e, NULL), 0);
    assert_int_equal(e.v[0].hello.tasks_n, TASKS);
    size_t len = strlen(e.v[0].hello.tasks[TASKS - 1].exit.text);
    assert_int_equal(e.v[0].hello.tasks[TASKS - 1].exit.code, 3);
    link_events_finish(&e);
    host_destroy(h);
    return len;
}

static void test_a_hello_is_shortened(void **state)
{
    assert_int_equal(text_in_large_hello('y'), 200);
    assert_int_equal(text_in_large_hello('\1'), 0); /* six bytes each */
}

/* What det-task says of a silent rank; ms 0: that none is. */
static void say_silent(struct host *h, int64_t ms)
{
    char phase[] = "training";
    const struct link_silent s = {phase, 1, 40, ms, 600000};
    host_on_silent(h, "a.1", ms ? &s : NULL);
    memset(phase, 'x', sizeof phase - 1); /* it was copied */
    host_on_running(h, "a.1");
    host_check(h);
}

/* The one event of the next batch says this; acknowledges. */
static void expect_silent(struct host *h, int64_t ms)
{
    struct link_events e = batch(h);
    assert_int_equal(e.n, 1);
    const struct link_task *t = e.v[0].kind == LINK_EV_HELLO ? e.v[0].hello.tasks : &e.v[0].task;
    assert_int_equal(t->silent.phase != NULL, ms > 0);
    if (ms > 0)
        assert_string_equal(t->silent.phase, "training");
    assert_int_equal(t->silent.silent_ms, ms);
    host_on_ack(h, e.v[0].seq);
    link_events_finish(&e);
}

/* A silence is told when it begins, grows and ends, and by a hello; the end takes it away. */
static void test_silent(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0", 1);
    expect_silent(h, 0);
    say_silent(h, 0);
    expect_silent(h, 0); /* it runs */
    say_silent(h, 0);
    assert_false(host_has_news(h));
    say_silent(h, 10000);
    expect_silent(h, 10000);
    say_silent(h, 10000);
    assert_false(host_has_news(h));
    say_silent(h, 60000);
    expect_silent(h, 60000);
    host_hello(h, NULL);
    expect_silent(h, 60000);
    say_silent(h, 0);
    expect_silent(h, 0);
    say_silent(h, 10000);
    host_on_ended(h, "a.1", &code3);
    struct link_events e = batch(h);
    assert_null(e.v[e.n - 1].task.silent.phase);
    link_events_finish(&e);
    host_destroy(h);
}

static bool say_unreached(struct host *h, int64_t ms)
{
    const struct link_unreached u = {"Connection refused", ms};
    bool first = host_on_unreached(h, "a.1", ms ? &u : NULL);
    host_on_running(h, "a.1");
    host_check(h);
    return first;
}

static void expect_unreached(struct host *h, int64_t ms)
{
    struct link_events e = batch(h);
    const struct link_task *t = &e.v[e.n - 1].task;
    assert_int_equal(t->unreached.text != NULL, ms > 0);
    assert_int_equal(t->unreached.for_ms, ms);
    host_on_ack(h, e.v[e.n - 1].seq);
    link_events_finish(&e);
}

/* What a task cannot reach is told when it was heard thrice while the master greets this agent, as
 * long as it goes on; whatever was heard while the link was down counts for nothing. */
static void test_unreached(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0", 1);
    say_unreached(h, 5000);
    expect_unreached(h, 0); /* it runs */
    say_unreached(h, 10000);
    say_unreached(h, 10000); /* the same, with other news */
    assert_false(host_has_news(h));
    assert_true(say_unreached(h, 15000));
    expect_unreached(h, 15000);
    assert_false(say_unreached(h, 20000));
    expect_unreached(h, 20000);
    host_hello(h, NULL); /* the master was away */
    for (int i = 0; i < 10; i++)
        say_unreached(h, 25000 + i * 5000);
    expect_unreached(h, 0);
    assert_true(host_is_greeted(h));
    say_unreached(h, 80000);
    say_unreached(h, 85000);
    assert_false(host_has_news(h));
    assert_true(say_unreached(h, 90000));
    expect_unreached(h, 90000);
    say_unreached(h, 0);
    expect_unreached(h, 0);
    say_unreached(h, 0);
    assert_false(host_has_news(h));
    host_destroy(h);
}

static void test_slots_are_kept(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0", 1);
    expect(h, HOST_START, "a.1");
    order_start(h, "c.1", "7", 1);
    expect_nothing(h);
    struct link_events e = batch(h);
    assert_int_equal(e.n, 2);
    assert_int_equal(e.v[1].task.exit.reason, LINK_START_FAILED);
    assert_non_null(strstr(e.v[1].task.exit.text, "no slot 7"));
    host_on_ack(h, e.v[1].seq);
    expect(h, HOST_FORGET, "c.1");
    link_events_finish(&e);
    host_destroy(h);
}

/* The master gave slots away while the agent was out of reach: the old task still dies on them. */
static void test_start_waits_for_slots(void **state)
{
    struct host *h = connected();
    const int both[] = {0, 1};
    host_adopt(h, "a.1", "c-1", both, 2);
    order_kill(h, "a.1");
    expect(h, HOST_SIGNAL, "a.1");
    order_start(h, "b.2", "0", 1);
    order_start(h, "c.1", "1", 1);
    order_start(h, "d.1", "0", 1);
    expect_nothing(h);
    host_on_gone(h, "a.1"); /* its det-task was killed: what it left still holds the slots */
    expect(h, HOST_RECOVER, "a.1");
    expect(h, HOST_SIGNAL, "a.1"); /* one that was not begun is run by the successor */
    expect_nothing(h);
    order_kill(h, "c.1");
    host_on_ended(h, "a.1", &code3);
    expect(h, HOST_START, "b.2");
    expect_nothing(h);
    assert_int_equal(host_count(h).slots_used, 1);
    host_on_ended(h, "b.2", &code3);
    expect(h, HOST_START, "d.1");
    struct link_events e = batch(h);
    assert_int_equal(e.n, 6); /* three starting, c.1 killed, a.1 and b.2 ended */
    assert_int_equal(e.v[3].task.exit.reason, LINK_KILLED);
    host_on_ack(h, e.v[3].seq);
    expect(h, HOST_FORGET, "c.1");
    expect_nothing(h);
    link_events_finish(&e);
    host_destroy(h);
}

/* Found when the agent starts again: one ended before the other took its slot, but has not said so
 * yet. */
static void test_adopted(void **state)
{
    struct host *h = connected();
    const int slot = 0;
    host_adopt(h, "a.1", "c-1", &slot, 1);
    host_adopt(h, "b.2", "c-2", &slot, 1);
    host_on_running(h, "b.2");
    order_start(h, "c.1", "0", 1);
    host_check(h);
    host_on_ended(h, "a.1", &code3);
    expect_nothing(h);
    host_check(h);
    host_on_ended(h, "b.2", &code3);
    expect(h, HOST_START, "c.1");
    host_check(h);
    host_destroy(h);
}

static void test_recovery(void **state)
{
    struct host *h = connected();
    const int held[] = {1};
    host_adopt(h, "a.1", "c-1", held, 1);
    assert_int_equal(host_count(h).slots_used, 1);
    host_on_gone(h, "a.1");
    expect(h, HOST_RECOVER, "a.1");
    host_on_gone(h, "a.1");
    expect(h, HOST_RECOVER, "a.1");
    host_on_gone(h, "a.1");
    expect_nothing(h);
    struct link_events e = batch(h);
    assert_int_equal(e.v[0].task.exit.reason, LINK_LOST);
    host_on_ack(h, e.v[0].seq);
    expect(h, HOST_FORGET, "a.1");
    link_events_finish(&e);
    host_destroy(h);
}

static void test_unknown_signal_is_answered(void **state)
{
    struct host *h = connected();
    order_kill(h, "z.9");
    struct link_events e = batch(h);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.v[0].kind, LINK_EV_EXIT);
    assert_int_equal(e.v[0].task.exit.reason, LINK_LOST);
    link_events_finish(&e);
    expect_nothing(h);
    host_destroy(h);
}

/* What was sent keeps its number; what was not is replaced by the hello; exits are told again. */
static void test_reconnect(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0", 1);
    struct link_events e = batch(h); /* starting: sent, never acknowledged */
    link_events_finish(&e);
    host_on_running(h, "a.1");
    host_on_ended(h, "a.1", &code3);
    host_hello(h, NULL);
    e = batch(h);
    assert_int_equal(e.n, 3);
    assert_int_equal(e.v[0].seq, 2);
    assert_int_equal(e.v[0].kind, LINK_EV_STATE);
    assert_int_equal(e.v[1].kind, LINK_EV_HELLO);
    assert_int_equal(e.v[1].hello.tasks_n, 1);
    assert_int_equal(e.v[1].hello.tasks[0].exit.code, 3);
    assert_int_equal(e.v[2].kind, LINK_EV_EXIT);
    host_on_ack(h, 3);
    assert_true(host_is_greeted(h));
    link_events_finish(&e);
    host_hello(h, "boot-2");
    e = batch(h);
    assert_string_equal(e.boot, "boot-2");
    assert_int_equal(e.n, 2);
    assert_int_equal(e.v[0].seq, 1);
    host_on_ack(h, 99); /* nonsense of the other side */
    link_events_finish(&e);
    host_destroy(h);
}

static void sees(struct host *h, const char *text)
{
    host_on_slot(h, &(struct link_slot_sight){1, LINK_SLOT_FOREIGN, text});
}

/* However often a slot has news: one event of it at a time, and the last of them is told. */
static void test_news_of_a_slot_does_not_pile_up(void **state)
{
    struct host *h = make();
    struct link_events e;
    sees(h, "process 1");
    host_hello(h, NULL);
    for (int i = 2; i < 50; i++) {
        char text[32];
        snprintf(text, sizeof text, "process %d", i);
        sees(h, text);
        e = batch(h); /* it is sent, and nobody answers */
        assert_int_equal(e.n, 2);
        link_events_finish(&e);
    }
    host_on_ack(h, 1);
    e = batch(h);
    assert_int_equal(e.n, 1);
    assert_string_equal(e.v[0].sight.text, "process 2");
    link_events_finish(&e);
    host_on_ack(h, 2);
    e = batch(h);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.v[0].seq, 3);
    assert_string_equal(e.v[0].sight.text, "process 49");
    link_events_finish(&e);
    host_on_ack(h, 3);
    assert_false(host_has_news(h));
    sees(h, "process 50");
    sees(h, "process 51");
    host_hello(h, NULL); /* says it; the number of what was never sent is its own */
    e = batch(h);
    assert_int_equal(e.n, 1);
    assert_int_equal(e.v[0].seq, 4);
    assert_string_equal(e.v[0].hello.unfit[0].text, "process 51");
    link_events_finish(&e);
    sees(h, "process 52"); /* no event of it is on its way */
    e = batch(h);
    assert_int_equal(e.n, 2);
    assert_string_equal(e.v[1].sight.text, "process 52");
    link_events_finish(&e);
    host_hello(h, "boot-2");
    sees(h, "process 53");
    e = batch(h);
    assert_int_equal(e.n, 2);
    assert_int_equal(e.v[1].seq, 2);
    assert_string_equal(e.v[1].sight.text, "process 53");
    link_events_finish(&e);
    host_destroy(h);
}

static void all_usable(struct host *h)
{
    for (int slot = 0; slot < 2; slot++)
        host_on_slot(h, &(struct link_slot_sight){slot, LINK_SLOT_USABLE, NULL});
}

static void expect_settle(struct host *h, const char *alloc, int slot)
{
    struct host_effect e;
    assert_true(host_take(h, &e));
    assert_int_equal(e.kind, HOST_SETTLE);
    assert_string_equal(e.alloc, alloc);
    assert_int_equal(e.slot, slot);
}

/* The master has the slots back with the exit: it is to know before that they are not looked at. */
static void test_slots_are_looked_at_after_a_task(void **state)
{
    struct host *h = make();
    all_usable(h);
    host_hello(h, NULL);
    order_start(h, "a.1", "0,1", 2);
    expect(h, HOST_START, "a.1");
    host_on_slot(h, &(struct link_slot_sight){1, LINK_SLOT_FOREIGN, "process 7"});
    host_on_ack(h, 0);
    host_on_ended(h, "a.1", &code3);
    struct link_events e = batch(h); /* hello, starting, foreign; none of them acknowledged */
    assert_int_equal(e.n, 6);
    for (int slot = 0; slot < 2; slot++) {
        assert_int_equal(e.v[3 + slot].kind, LINK_EV_SLOT);
        assert_int_equal(e.v[3 + slot].sight.slot, slot);
        assert_int_equal(e.v[3 + slot].sight.state, LINK_SLOT_UNSEEN);
        expect_settle(h, "a.1", slot);
    }
    assert_int_equal(e.v[5].kind, LINK_EV_EXIT);
    link_events_finish(&e);
    order_start(h, "b.1", "0", 1); /* of an older wish: it waits for the look */
    expect_nothing(h);
    assert_false(host_slot_has_task(h, 0));
    host_on_slot(h, &(struct link_slot_sight){0, LINK_SLOT_USABLE, NULL});
    expect(h, HOST_START, "b.1");
    order_start(h, "c.1", "1", 1);
    order_kill(h, "c.1"); /* it had no slot yet */
    expect_nothing(h);
    host_on_ack(h, 6);
    expect(h, HOST_ACKED, "a.1");
    host_destroy(h);
}

/* Each hello says all that are not usable; in between, what is news is told. */
static void test_slots_that_are_not_usable(void **state)
{
    struct host *h = make();
    host_on_slot(h, &(struct link_slot_sight){0, LINK_SLOT_USABLE, NULL});
    host_on_slot(h, &(struct link_slot_sight){1, LINK_SLOT_UNSEEN, "not looked at yet"});
    host_hello(h, NULL);
    host_on_slot(h, &(struct link_slot_sight){1, LINK_SLOT_FOREIGN, "process 7"});
    host_on_slot(h, &(struct link_slot_sight){1, LINK_SLOT_FOREIGN, "process 7"});
    struct link_events e = batch(h);
    assert_int_equal(e.n, 2);
    assert_true(e.v[0].hello.judges && e.v[0].hello.unfit_n == 1);
    assert_int_equal(e.v[0].hello.unfit[0].state, LINK_SLOT_UNSEEN);
    assert_int_equal(e.v[1].kind, LINK_EV_SLOT);
    assert_string_equal(e.v[1].sight.text, "process 7");
    link_events_finish(&e);
    host_on_ack(h, 2);
    host_hello(h, NULL);
    e = batch(h);
    assert_int_equal(e.n, 1);
    assert_string_equal(e.v[0].hello.unfit[0].text, "process 7");
    link_events_finish(&e);
    order_start(h, "a.1", "1", 1);
    assert_true(host_slot_has_task(h, 1) && !host_slot_has_task(h, 0));
    host_destroy(h);
    h = make(); /* nobody looks */
    host_hello(h, NULL);
    e = batch(h);
    assert_false(e.v[0].hello.judges);
    link_events_finish(&e);
    host_destroy(h);
}

/* The acknowledgement of an exit may overtake a start that was sent twice: nothing starts again. */
static void test_late_start(void **state)
{
    struct host *h = connected();
    order_start(h, "a.1", "0", 1);
    struct host_effect e;
    while (host_take(h, &e))
        json_decref(e.task);
    host_on_ended(h, "a.1", &code3);
    host_on_gone(h, "a.1");
    struct link_events told = batch(h);
    host_on_ack(h, told.v[told.n - 1].seq);
    link_events_finish(&told);
    while (host_take(h, &e))
        assert_int_equal(e.kind, HOST_FORGET);
    order_start(h, "a.1", "0", 1);
    assert_false(host_take(h, &e));
    expect_nothing(h);
    host_destroy(h);
}

static void test_refuse(void **state)
{
    struct host *h = connected();
    host_refuse(h, "a.1", "c-1", "task.slots: missing");
    struct link_events e = batch(h);
    assert_int_equal(e.v[0].task.exit.reason, LINK_START_FAILED);
    link_events_finish(&e);
    host_destroy(h);
}

/* A thousand random steps keep the invariants. */
static void test_random(void **state)
{
    for (unsigned seed = 1; seed <= 50; seed++) {
        struct host *h = make();
        unsigned r = seed;
        for (int i = 0; i < 300; i++) {
            char alloc[16];
            struct host_effect e;
            snprintf(alloc, sizeof alloc, "a.%d", rand_r(&r) % 6);
            switch (rand_r(&r) % 9) {
            case 0: order_start(h, alloc, rand_r(&r) % 2 ? "0" : "1", 1); break;
            case 1: order_kill(h, alloc); break;
            case 2: host_on_running(h, alloc); break;
            case 3: host_on_ended(h, alloc, &code3); break;
            case 4: host_on_gone(h, alloc); break;
            case 5: host_hello(h, rand_r(&r) % 4 ? NULL : "boot-x"); break;
            case 6: host_on_ack(h, rand_r(&r) % 40); break;
            case 7: sees(h, alloc); break;
            default: free(host_batch(h)); break;
            }
            host_check(h);
            while (host_take(h, &e))
                json_decref(e.task);
        }
        host_destroy(h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_slots_are_kept),
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_unknown_signal_is_answered),
        cmocka_unit_test(test_reconnect),
        cmocka_unit_test(test_slots_that_are_not_usable),
        cmocka_unit_test(test_slots_are_looked_at_after_a_task),
        cmocka_unit_test(test_news_of_a_slot_does_not_pile_up),
        cmocka_unit_test(test_late_start),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_start_waits_for_slots),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_marks_of_an_ended_task),
        cmocka_unit_test(test_a_hello_stays_small),
        cmocka_unit_test(test_a_hello_is_shortened),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_unreached),
        cmocka_unit_test(test_adopted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
