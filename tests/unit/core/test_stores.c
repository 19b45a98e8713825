/* Checkpoint stores: who makes one, where runs go, and what is said where a store is away. */
#include "world.h"

#include "why.h"
#include <stdio.h>

#define ID    "0b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"
#define OTHER "1b0e6a3c-5d0a-4c5e-9d3c-6a8f1c2d3e4f"
#define PLACE "/tmp" /* of world_config() */

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

/* An agent that can look. */
static void hello(const char *agent, int slots)
{
    struct core_slot_in s[8];
    for (int i = 0; i < slots; i++)
        s[i] = (struct core_slot_in){.id = i, .brand = "cpu", .uuid = ""};
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = agent};
    ev.hello = (struct core_hello){.version = "1",
                                   .pool = "",
                                   .addr = agent,
                                   .slots = s,
                                   .slots_n = (size_t)slots,
                                   .looks = true};
    assert_int_equal(world_step(&w, ev), 0);
}

static int sees(const char *agent, enum core_store_kind kind, const char *id, const char *text)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_STORE, .agent_id = agent};
    ev.store = (struct core_store_in){PLACE, id, kind, text};
    return world_step(&w, ev);
}

static const struct core_store_order *order(size_t i)
{
    return &world_effect(&w, CORE_ORDER_STORE, i)->store_order;
}

static size_t orders(void)
{
    return world_count(&w, CORE_ORDER_STORE);
}

static size_t starts(void)
{
    return world_count(&w, CORE_ORDER_START);
}

/* Two agents, of which a has made the store; b sees what it is told to. */
static void two_agents(enum core_store_kind b)
{
    hello("a", 1);
    hello("b", 4);
    world_create(&w, "{}");
    assert_int_equal(starts(), 0);
    assert_int_equal(orders(), 2);
    sees("a", CORE_STORE_ABSENT, NULL, "nothing there");
    sees("a", CORE_STORE_PRESENT, ID, "");
    sees("b", b, b == CORE_STORE_OTHER || b == CORE_STORE_PRESENT ? ID : NULL, "no marker");
    sees("a", CORE_STORE_PRESENT, ID, "");
}

static void why_says(int64_t trial, const char *reason, const char *text)
{
    JSON_OWN j = core_why_trial(w.core, trial, (struct core_now){w.now_ms, 0});
    assert_string_equal(json_str(j, "reason", ""), reason);
    if (!strstr(json_str(j, "text", ""), text))
        fail_msg("\"%s\" is not in \"%s\"", text, json_str(j, "text", ""));
}

/* Lines of the last step. */
static int logs(const char *text)
{
    int n = 0;
    for (size_t i = 0; i < world_count(&w, CORE_TASK_LOG); i++)
        n += strstr(world_effect(&w, CORE_TASK_LOG, i)->log.text, text) != NULL;
    return n;
}

static void one_agent_makes_it(void **state)
{
    hello("a", 1);
    hello("b", 1);
    world_create(&w, "{}");
    assert_int_equal(world_count(&w, CORE_SAVE_STORE), 1);
    assert_null(world_effect(&w, CORE_SAVE_STORE, 0)->store.id);
    assert_int_equal(orders(), 2); /* both look, nobody makes */
    assert_false(order(0)->make || order(1)->make);
    why_says(1, "STORE", "has not said yet");
    sees("b", CORE_STORE_ABSENT, NULL, "nothing there");
    assert_int_equal(orders(), 1);
    assert_true(order(0)->make);
    assert_string_equal(order(0)->agent_id, "b");
    sees("a", CORE_STORE_ABSENT, NULL, "nothing there");
    assert_int_equal(orders(), 0);      /* b has the word */
    assert_int_equal(logs("Waits"), 0); /* it is being made: nothing is wrong */
    assert_int_equal(starts(), 0);
    sees("b", CORE_STORE_PRESENT, ID, "");
    assert_string_equal(world_effect(&w, CORE_SAVE_STORE, 0)->store.id, ID);
    assert_int_equal(orders(), 2); /* both look for it from now on */
    assert_string_equal(order(0)->id, ID);
    sees("b", CORE_STORE_PRESENT, ID, "");
    assert_int_equal(starts(), 1);
    assert_string_equal(world_effect(&w, CORE_ORDER_START, 0)->start.agent_id, "b");
    assert_string_equal(world_env(&w, "DET_STORE_ID"), ID);
}

static void the_word_goes_on(void **state)
{
    hello("a", 1);
    hello("b", 1);
    world_create(&w, "{}");
    sees("a", CORE_STORE_ABSENT, NULL, "nothing there");
    sees("b", CORE_STORE_ABSENT, NULL, "nothing there");
    world_step(&w, (struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = "a"});
    assert_int_equal(orders(), 1);
    assert_true(order(0)->make);
    assert_string_equal(order(0)->agent_id, "b");
    hello("a", 1);
    sees("a", CORE_STORE_ABSENT, NULL, "nothing there");
    assert_int_equal(orders(), 0);
    world_wait(&w, 31000); /* b hangs */
    assert_int_equal(orders(), 1);
    assert_string_equal(order(0)->agent_id, "a");
    assert_int_equal(logs("Waits"), 0);
    world_wait(&w, 31000); /* and so does a: nobody is left to make it */
    assert_int_equal(logs("Waits: checkpoint store /tmp is on no agent"), 1);
}

/* The run itself says best why it cannot keep checkpoints. */
static void what_cannot_be_made_is_the_trials_matter(void **state)
{
    hello("a", 1);
    world_create(&w, "{}");
    sees("a", CORE_STORE_ABSENT, NULL, "nothing there");
    sees("a", CORE_STORE_FAILED, NULL, "mkdir /tmp: Read-only file system");
    assert_int_equal(starts(), 1);
    assert_null(world_env(&w, "DET_STORE_ID"));
}

static void a_run_goes_where_its_store_is(void **state)
{
    two_agents(CORE_STORE_ABSENT);
    assert_int_equal(starts(), 1);
    assert_string_equal(world_effect(&w, CORE_ORDER_START, 0)->start.agent_id, "a");
    world_create(&w, "{\"resources\":{\"slots_per_trial\":4}}"); /* b would have room */
    assert_int_equal(starts(), 0);
    why_says(2, "STORE", "agent b: no marker");
    why_says(2, "STORE", "det store adopt " PLACE);
    assert_int_equal(world_count(&w, CORE_PREEMPT), 0); /* nobody is asked to make room for it */
    sees("b", CORE_STORE_PRESENT, ID, "");
    assert_int_equal(starts(), 1);
    assert_string_equal(world_effect(&w, CORE_ORDER_START, 0)->start.agent_id, "b");
}

/* Started where it is away, it uses up no restart and waits. */
static void a_store_that_goes_away_costs_no_restart(void **state)
{
    hello("a", 1);
    world_create(&w, "{\"max_restarts\":0}");
    sees("a", CORE_STORE_ABSENT, NULL, "");
    sees("a", CORE_STORE_PRESENT, ID, "");
    sees("a", CORE_STORE_PRESENT, ID, "");
    for (int i = 0; i < 5; i++) {
        world_run(&w, 1);
        struct core_exit away = {.reason = CORE_STORE_AWAY,
                                 .code = 1,
                                 .rank = 0,
                                 .text = "agent a: checkpoint store /tmp is away"};
        world_exit(&w, 1, 0, away);
        assert_int_equal(logs("not the trial's fault"), 1);
        int said = logs("Waits: checkpoint store /tmp is on no agent");
        assert_int_equal(world_trial(&w, 1).state, TRIAL_ACTIVE);
        assert_int_equal(world_trial(&w, 1).restarts, 0);
        why_says(1, "STORE", ": agent a: checkpoint store /tmp is away"); /* held or not */
        world_wait(&w, 31000);                                            /* held at most so long */
        said += logs("Waits: checkpoint store /tmp is on no agent");
        why_says(1, "STORE", "agent a: ");
        assert_int_equal(starts(), 0);
        sees("a", CORE_STORE_ABSENT, NULL, "/tmp has no .det-store");
        assert_int_equal(starts(), 0);
        assert_int_equal(said, 1); /* once a run */
        why_says(1, "STORE", "agent a: /tmp has no .det-store");
        sees("a", CORE_STORE_PRESENT, ID, "");
        assert_int_equal(starts(), 1);
    }
}

static void a_running_one_is_told_to_hold(void **state)
{
    two_agents(CORE_STORE_ABSENT);
    world_run(&w, 1);
    why_says(1, "RUNNING", "it runs on agent a");
    sees("a", CORE_STORE_OTHER, OTHER, "another store is mounted there");
    why_says(1, "RUNNING", "another store is mounted there");
    why_says(1, "RUNNING", "holds at its next checkpoint");
}

static void collection_waits_too(void **state)
{
    two_agents(CORE_STORE_ABSENT);
    sees("a", CORE_STORE_ABSENT, NULL, "gone");
    JSON_OWN config = world_config("{}");
    JSON_OWN elsewhere = world_config("{\"checkpoint_storage\":{\"container_path\":\"/x\"}}");
    JSON_OWN uuids = json_make("[s]", OTHER);
    struct core_event ev = {.kind = CORE_EV_EXP_GC};
    ev.gc = (struct core_gc){.exp_id = 1, .config = config, .uuids = uuids};
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(starts(), 0);
    ev.gc.config = elsewhere; /* what waits for its own store holds nobody up */
    assert_int_equal(world_step(&w, ev), 0);
    struct core_event at_x = {.kind = CORE_EV_AGENT_STORE, .agent_id = "a"};
    at_x.store = (struct core_store_in){"/x", OTHER, CORE_STORE_PRESENT, ""};
    world_step(&w, at_x);
    world_step(&w, at_x);
    assert_int_equal(starts(), 1);
    assert_string_equal(world_env(&w, "DET_STORE_ID"), OTHER);
    sees("a", CORE_STORE_PRESENT, ID, "");
    assert_int_equal(starts(), 1);
    assert_string_equal(world_env(&w, "DET_STORE_ID"), ID);
}

/* Checkpoints of before: only a directory that holds one of them becomes the store. */
static void what_is_known_must_be_there(void **state)
{
    struct det_err err;
    struct row_store row = {.place = PLACE, .known = "[\"" OTHER "\"]"};
    assert_int_equal(core_restore_store(w.core, &row, &err), 0);
    hello("a", 1);
    hello("b", 1);
    world_create(&w, "{}");
    sees("a", CORE_STORE_ABSENT, NULL, "holds none of them");
    sees("b", CORE_STORE_FAILED, NULL, "cannot");
    assert_int_equal(orders() + starts(), 0); /* nobody makes it */
    why_says(1, "STORE", "holds none of them");
    sees("b", CORE_STORE_KNOWN, NULL, "holds checkpoints");
    assert_int_equal(orders(), 1);
    assert_true(order(0)->make);
    assert_string_equal(order(0)->agent_id, "b");
    sees("b", CORE_STORE_PRESENT, ID, "");
    assert_null(world_effect(&w, CORE_SAVE_STORE, 0)->store.known);
}

static void adopting_begins_anew(void **state)
{
    two_agents(CORE_STORE_ABSENT);
    struct core_event ev = {.kind = CORE_EV_STORE_ADOPT, .adopt = {.place = "/nowhere"}};
    assert_int_equal(world_step(&w, ev), DET_ENOENT);
    ev.adopt.place = PLACE;
    assert_int_equal(world_step(&w, ev), 0);
    assert_int_equal(orders(), 2);
    assert_null(order(0)->id);
    sees("b", CORE_STORE_PRESENT, OTHER, "");
    assert_string_equal(world_effect(&w, CORE_SAVE_STORE, 0)->store.id, OTHER);
}

/* A master that starts anew knows the stores, and asks again what is where. */
static void a_restart_knows_it(void **state)
{
    struct core_store_view v;
    two_agents(CORE_STORE_ABSENT);
    world_run(&w, 1);
    world_restart(&w);
    assert_true(core_store_at(w.core, 0, &v));
    assert_string_equal(v.id, ID);
    assert_string_equal(v.made_on, "a");
    assert_true(v.is_used);
    assert_false(core_store_at(w.core, 1, &v));
    hello("b", 4);
    assert_int_equal(orders(), 1);
    assert_string_equal(order(0)->id, ID);
}

/* One of before there were stores is taken to have them all. */
static void an_old_agent_has_all(void **state)
{
    world_hello(&w, "old", 1, NULL, 0);
    world_create(&w, "{}");
    assert_int_equal(orders(), 0);
    assert_int_equal(starts(), 1);
}

static void nonsense_is_refused(void **state)
{
    two_agents(CORE_STORE_ABSENT);
    assert_int_equal(sees("a", CORE_STORE_PRESENT, "x", ""), DET_EINVAL);
    assert_int_equal(sees("a", CORE_STORE_PRESENT, NULL, ""), DET_EINVAL);
    assert_int_equal(sees("a", CORE_STORE_UNSEEN, NULL, ""), DET_EINVAL);
    assert_int_equal(sees("a", CORE_STORE_KIND_COUNT, NULL, ""), DET_EINVAL);
    assert_int_equal(sees("nobody", CORE_STORE_ABSENT, NULL, ""), DET_ENOENT);
    /* of before it heard of the id: the next look counts */
    assert_int_equal(sees("a", CORE_STORE_PRESENT, OTHER, ""), 0);
    struct core_sight_view x;
    assert_true(core_agent_sight(w.core, "a", 0, &x));
    assert_int_equal(x.kind, CORE_STORE_PRESENT);
    assert_string_equal(x.place, PLACE);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(one_agent_makes_it),
        T(the_word_goes_on),
        T(what_cannot_be_made_is_the_trials_matter),
        T(a_run_goes_where_its_store_is),
        T(a_store_that_goes_away_costs_no_restart),
        T(a_running_one_is_told_to_hold),
        T(collection_waits_too),
        T(what_is_known_must_be_there),
        T(adopting_begins_anew),
        T(a_restart_knows_it),
        T(an_old_agent_has_all),
        T(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
