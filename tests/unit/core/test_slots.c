/* Slots that their agent does not hold usable: nothing is placed there, and it is said why. */
#include "world.h"

#include "why.h"
#include <stdio.h>

static struct world w;

static int setup(void **state)
{
    world_init(&w, NULL);
    w.keeps = true;
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

/* judges: it says of its slots whether they are usable; unfit of them are not, from slot 0. */
static void hello(const char *agent, int slots, bool judges, int unfit)
{
    struct core_slot_in s[8];
    struct core_slot_sight u[8];
    for (int i = 0; i < slots; i++) {
        s[i] = (struct core_slot_in){.id = i, .type = CORE_CUDA, .brand = "GPU", .uuid = ""};
        u[i] = (struct core_slot_sight){i, CORE_SLOT_FOREIGN, "held by process 7 (x)"};
    }
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = agent};
    ev.hello = (struct core_hello){.version = "1",
                                   .pool = "",
                                   .addr = agent,
                                   .slots = s,
                                   .slots_n = (size_t)slots,
                                   .judges = judges,
                                   .unfit = u,
                                   .unfit_n = (size_t)unfit};
    assert_int_equal(world_step(&w, ev), 0);
}

static int sees(const char *agent, int slot, enum core_slot_state state, const char *text)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_SLOT, .agent_id = agent};
    ev.sight = (struct core_slot_sight){slot, state, text};
    return world_step(&w, ev);
}

static void enable(const char *agent, int slot, bool on)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_SET};
    ev.agent_set = (struct core_agent_set){agent, slot, on, false};
    assert_int_equal(world_step(&w, ev), 0);
}

static struct core_slot_view slot(const char *agent, int i)
{
    struct core_slot_view v;
    assert_true(core_slot_at(w.core, agent, (size_t)i, &v));
    return v;
}

static size_t starts(void)
{
    return world_count(&w, CORE_ORDER_START);
}

static const char *why_text(int64_t trial)
{
    static char text[2000];
    JSON_OWN j = core_why_trial(w.core, trial, (struct core_now){w.now_ms, 0});
    snprintf(text, sizeof text, "%s", json_str(j, "text", ""));
    return text;
}

static void nothing_is_placed_on_one_that_is_not_usable(void **state)
{
    hello("a", 2, true, 1);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":2}}");
    assert_int_equal(starts(), 0);
    assert_non_null(strstr(why_text(1), "slot 0 of agent a is not usable: held by process 7 (x)"));
    JSON_OWN j = core_why_trial(w.core, 1, (struct core_now){w.now_ms, 0});
    const json_t *out = json_array_get(json_arr(j, "slotsOut"), 0);
    assert_string_equal(json_str(out, "agentId", ""), "a");
    assert_string_equal(json_str(out, "state", ""), "FOREIGN");
    world_create(&w, "{}");
    assert_int_equal(starts(), 1);
    assert_true(slot("a", 1).container && !slot("a", 0).container);
    world_run(&w, 2);
    world_complete(&w, 2, 1);
    assert_int_equal(sees("a", 0, CORE_SLOT_USABLE, NULL), 0);
    assert_int_equal(starts(), 1);
    assert_int_equal(world_trial(&w, 1).restarts, 0);
}

/* Whole agents of one size: one with a slot less is none of them. */
static void a_gang_goes_around_it(void **state)
{
    hello("a", 2, true, 0);
    hello("b", 2, true, 1);
    hello("c", 2, false, 0);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":4}}");
    assert_int_equal(starts(), 2);
    assert_true(!slot("b", 0).container && !slot("b", 1).container);
}

/* What runs goes on, and its log has a line. */
static void a_run_is_told_and_goes_on(void **state)
{
    hello("a", 1, true, 0);
    world_create(&w, "{}");
    world_run(&w, 1);
    assert_int_equal(sees("a", 0, CORE_SLOT_AILING, "XID 79: the GPU fell off the bus"), 0);
    assert_int_equal(world_count(&w, CORE_ORDER_KILL), 0);
    assert_true(world_logged(&w, "Slot 0 of agent a, which this run has: XID 79"));
    assert_non_null(strstr(why_text(1), "slot 0 of agent a is not usable: XID 79"));
    sees("a", 0, CORE_SLOT_AILING, "XID 79: the GPU fell off the bus");
    assert_false(world_logged(&w, "Slot 0"));
    world_complete(&w, 1, 1);
    world_create(&w, "{}");
    assert_int_equal(starts(), 0);
    sees("a", 0, CORE_SLOT_USABLE, "");
    assert_int_equal(starts(), 1);
}

/* Short programs of somebody else beside it are named one after the other: its log has a line. */
static void a_run_is_told_once_of_a_state(void **state)
{
    hello("a", 1, true, 0);
    world_create(&w, "{}");
    world_run(&w, 1);
    sees("a", 0, CORE_SLOT_FOREIGN, "held by process 7 (x)");
    assert_true(world_logged(&w, "which this run has: held by process 7 (x)"));
    sees("a", 0, CORE_SLOT_FOREIGN, "held by process 8 (y)");
    assert_false(world_logged(&w, "Slot 0"));
    assert_string_equal(slot("a", 0).why, "held by process 8 (y)");
    sees("a", 0, CORE_SLOT_AILING, "XID 79");
    assert_true(world_logged(&w, "which this run has: XID 79"));
}

/* A restarted agent looks anew: that is no news for who runs there. */
static void a_first_look_is_no_news(void **state)
{
    hello("a", 1, true, 0);
    world_create(&w, "{}");
    world_run(&w, 1);
    sees("a", 0, CORE_SLOT_UNSEEN, "not looked at yet");
    assert_false(world_logged(&w, "Slot 0"));
    sees("a", 0, CORE_SLOT_USABLE, "");
    assert_false(world_logged(&w, "Slot 0"));
}

static void an_administrator_has_it_used(void **state)
{
    hello("a", 1, true, 1);
    world_create(&w, "{}");
    assert_int_equal(starts(), 0);
    enable("a", 0, true);
    assert_int_equal(starts(), 1);
    assert_true(slot("a", 0).forced);
    assert_string_equal(world_effect(&w, CORE_SAVE_AGENT, 0)->agent.slots_forced, "[0]");
    sees("a", 0, CORE_SLOT_AILING, "row remapping has failed");
    assert_true(slot("a", 0).forced); /* until it was usable once */
    sees("a", 0, CORE_SLOT_USABLE, "");
    assert_false(slot("a", 0).forced);
    assert_string_equal(world_effect(&w, CORE_SAVE_AGENT, 0)->agent.slots_forced, "[]");
    world_run(&w, 1);
    world_complete(&w, 1, 1);
    sees("a", 0, CORE_SLOT_AILING, "XID 79");
    world_create(&w, "{}");
    assert_int_equal(starts(), 0);
    enable("a", 0, true);
    enable("a", 0, false);
    assert_false(slot("a", 0).forced);
}

/* Of what was not seen yet there is nothing to override. */
static void enabling_before_the_first_look_overrides_nothing(void **state)
{
    hello("a", 1, true, 0);
    sees("a", 0, CORE_SLOT_UNSEEN, "not looked at yet");
    enable("a", 0, false);
    enable("a", 0, true);
    assert_false(slot("a", 0).forced);
    world_create(&w, "{}");
    assert_int_equal(starts(), 0);
    sees("a", 0, CORE_SLOT_AILING, "the driver wants the GPU to be reset");
    assert_int_equal(starts(), 0);
    enable("a", 0, true);
    assert_int_equal(starts(), 1);
    sees("a", 0, CORE_SLOT_UNSEEN, "not looked at yet");
    enable("a", 0, true);
    assert_true(slot("a", 0).forced); /* as it was: that has not changed */
}

static void the_override_outlives_the_master(void **state)
{
    hello("a", 1, true, 1);
    enable("a", 0, true);
    world_restart(&w);
    hello("a", 1, true, 1);
    assert_true(slot("a", 0).forced);
    world_create(&w, "{}");
    assert_int_equal(starts(), 1);
}

static void an_agent_that_does_not_say_has_usable_slots(void **state)
{
    hello("a", 1, true, 1);
    hello("a", 1, false, 0); /* it was replaced by an older version */
    assert_int_equal(slot("a", 0).state, CORE_SLOT_USABLE);
    world_create(&w, "{}");
    assert_int_equal(starts(), 1);
}

static void nonsense_is_refused(void **state)
{
    hello("a", 1, true, 0);
    assert_int_equal(sees("a", 3, CORE_SLOT_AILING, "no such slot"), DET_ENOENT);
    assert_int_equal(sees("a", 0, CORE_SLOT_STATE_COUNT, "no such state"), DET_EINVAL);
    assert_int_equal(sees("z", 0, CORE_SLOT_AILING, "no such agent"), DET_ENOENT);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nothing_is_placed_on_one_that_is_not_usable),
        T(a_gang_goes_around_it),
        T(a_run_is_told_and_goes_on),
        T(a_run_is_told_once_of_a_state),
        T(a_first_look_is_no_news),
        T(an_administrator_has_it_used),
        T(enabling_before_the_first_look_overrides_nothing),
        T(the_override_outlives_the_master),
        T(an_agent_that_does_not_say_has_usable_slots),
        T(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
