/* Experiments that go on after their end: whatever happened, every trial is complete at last, and
 * there are never more at once than the search allows. */
#include "world.h"

#include "rng.h"

enum { TRIALS = 7, AT_ONCE = 3 };

static struct world w;
static struct mt19937 dice;

static int setup(void **state)
{
    world_init(&w, NULL);
    w.keeps = true;
    world_hello(&w, "a", 8, NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

static const char seven[] =
    "{\"max_restarts\":0,\"searcher\":{\"name\":\"random\",\"metric\":\"m\",\"max_trials\":7,"
    "\"max_concurrent_trials\":3,\"max_length\":{\"batches\":100}},"
    "\"hyperparameters\":{\"x\":{\"type\":\"double\",\"minval\":0,\"maxval\":1}}}";

static bool draw(uint32_t of)
{
    return mt19937_bounded(&dice, of) == 0;
}

static bool is_live(int64_t exp)
{
    struct core_exp_view v;
    return core_exp_get(w.core, exp, &v);
}

static size_t runs(int64_t exp)
{
    struct core_alloc_view a;
    size_t n = 0;
    for (size_t i = 0; core_alloc_at(w.core, i, &a); i++)
        n += a.exp_id == exp && a.trial_id > 0;
    return n;
}

/* The first trial that runs. */
static int64_t running(int64_t last)
{
    for (int64_t id = 1; id <= last; id++)
        if (world_trial(&w, id).alloc_id)
            return id;
    return 0;
}

static void one_ends(int64_t trial)
{
    if (draw(4)) {
        world_exit(&w, trial, 0, EXIT_CODE(1));
    } else if (draw(6)) {
        world_step(&w, (struct core_event){.kind = CORE_EV_TRIAL_KILL, .trial_id = trial});
        world_exit(&w, trial, 0, EXIT_CODE(9));
    } else {
        world_run(&w, trial);
        world_complete(&w, trial, 1);
    }
}

static void stop(int64_t exp)
{
    bool kill = draw(2);
    world_step(&w, (struct core_event){.kind = kill ? CORE_EV_EXP_KILL : CORE_EV_EXP_CANCEL,
                                       .exp_id = exp});
    for (int64_t t; (t = running(TRIALS)) > 0;)
        world_exit(&w, t, 0, EXIT_CODE(9));
    assert_false(is_live(exp));
}

/* To its end, or to where it is stopped. */
static void live(int64_t exp, bool calm)
{
    for (int64_t t; is_live(exp) && (t = running(TRIALS)) > 0;) {
        assert_in_range(runs(exp), 1, AT_ONCE);
        if (!calm && draw(7)) {
            stop(exp);
        } else if (calm) {
            world_run(&w, t);
            world_complete(&w, t, 1);
        } else {
            one_ends(t);
        }
    }
}

/* Its trials wait for an agent, as after a start. */
static void restart(void)
{
    world_restart(&w);
    world_hello(&w, "a", 8, NULL, 0);
}

static void pass_over_a_restart(int64_t exp)
{
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = exp});
    for (int64_t t; (t = running(TRIALS)) > 0;)
        world_exit(&w, t, 0, EXIT_CODE(9));
    restart();
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = exp});
}

static void test_any_ends(void **state)
{
    for (uint32_t seed = 0; seed < 150; seed++) {
        mt19937_seed(&dice, seed);
        int64_t exp = world_create(&w, seven);
        for (int ends = 0; ends < 4; ends++) {
            live(exp, ends == 3);
            if (is_live(exp))
                fail_msg("seed %u: it waits for nothing", (unsigned)seed);
            int rc = world_continue(&w, exp, NULL);
            if (rc == DET_ESTATE) /* all trials are complete */
                break;
            assert_int_equal(rc, 0);
            if (draw(3))
                pass_over_a_restart(exp);
            assert_in_range(runs(exp), 1, AT_ONCE);
        }
        live(exp, true);
        assert_int_equal(world_continue(&w, exp, NULL), DET_ESTATE);
        assert_non_null(strstr(world_reply(&w)->text, "are complete"));
        teardown(state);
        setup(state);
    }
}

static void test_single(void **state)
{
    int64_t exp = world_create(&w, "{}");
    world_run(&w, 1);
    world_complete(&w, 1, 1);
    assert_false(is_live(exp));
    assert_int_equal(world_continue(&w, exp, "{}"), DET_EINVAL);
    assert_int_equal(world_continue(&w, exp, "{\"searcher\":{\"name\":\"random\"}}"), DET_EINVAL);
    assert_int_equal(world_continue(&w, exp, "{\"searcher\":{\"metric\":\"other\"}}"), DET_EINVAL);
    assert_int_equal(world_continue(&w, exp,
                                    "{\"searcher\":{\"max_length\":{\"batches\":200}},"
                                    "\"hyperparameters\":{\"lr\":{\"val\":0.5}}}"),
                     0);
    struct core_trial_view t = world_trial(&w, 1);
    assert_int_equal(t.op_length, 200);
    assert_int_equal(t.run_id, 2);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = exp});
    world_exit(&w, 1, 0, EXIT_CODE(9));
    restart();
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_ACTIVATE, .exp_id = exp});
    assert_int_equal(world_continue(&w, exp, NULL), DET_ESTATE);
    assert_int_equal(world_trial(&w, 1).op_length, 200);
    world_run(&w, 1);
    world_complete(&w, 1, 1);
    assert_false(is_live(exp));
}

/* Rows that were read before something else changed it are refused. */
static void test_stale(void **state)
{
    int64_t exp = world_create(&w, "{}");
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = exp});
    world_exit(&w, 1, 0, EXIT_CODE(9));
    assert_int_equal(world_continue(&w, exp, NULL), 0);
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = exp});
    world_exit(&w, 1, 0, EXIT_CODE(9));
    w.revision_is_old = true; /* the next one's rows were read before it went on */
    assert_int_equal(world_continue(&w, exp, NULL), DET_ESTATE);
    assert_non_null(strstr(world_reply(&w)->text, "meanwhile"));
    w.revision_is_old = false;
    assert_int_equal(world_continue(&w, exp, NULL), 0);
}

/* Nor is what somebody is changing: twice at once here. */
static void test_edited(void **state)
{
    int64_t exp = world_create(&w, "{}");
    struct core_event edit = {.kind = CORE_EV_EXP_EDIT, .exp_id = exp, .edit_begins = true};
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = exp});
    world_exit(&w, 1, 0, EXIT_CODE(9));
    world_step(&w, edit);
    world_step(&w, edit);
    edit.edit_begins = false;
    world_step(&w, edit);
    assert_int_equal(world_continue(&w, exp, NULL), DET_ESTATE);
    assert_non_null(strstr(world_reply(&w)->text, "being changed"));
    world_step(&w, edit);
    w.revision_is_old = true; /* its rows were read before the change was over */
    assert_int_equal(world_continue(&w, exp, NULL), DET_ESTATE);
    assert_non_null(strstr(world_reply(&w)->text, "was changed"));
    w.revision_is_old = false;
    assert_int_equal(world_continue(&w, exp, NULL), 0);
}

static void test_halving(void **state)
{
    int64_t exp = world_create(&w, "{\"searcher\":{\"name\":\"async_halving\",\"num_rungs\":2,"
                                   "\"divisor\":2,\"max_trials\":2}}");
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_KILL, .exp_id = exp});
    for (int64_t t; (t = running(2)) > 0;)
        world_exit(&w, t, 0, EXIT_CODE(9));
    assert_int_equal(world_continue(&w, exp, NULL), DET_EINVAL);
}

static void agent_in(const char *id, const char *pool)
{
    const struct core_slot_in slot = {.type = CORE_CPU, .brand = "cpu", .uuid = ""};
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = id};
    ev.hello = (struct core_hello){
        .version = "0.27.0", .pool = pool, .addr = id, .slots = &slot, .slots_n = 1};
    assert_int_equal(world_step(&w, ev), 0);
}

static const char *pool_of(int64_t exp)
{
    struct core_exp_view v;
    assert_true(core_exp_get(w.core, exp, &v));
    return v.pool;
}

/* It goes on where it was moved to, also past a restart, unless the override names a pool. */
static void test_pool(void **state)
{
    struct core_event kill = {.kind = CORE_EV_EXP_KILL};
    agent_in("b", "moved to");
    agent_in("c", "named");
    int64_t exp = kill.exp_id = world_create(&w, "{}");
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = exp});
    world_exit(&w, 1, 0, EXIT_CODE(9));
    world_step(&w, (struct core_event){
                       .kind = CORE_EV_EXP_PATCH, .exp_id = exp, .patch = {.pool = "moved to"}});
    world_step(&w, kill);
    assert_false(is_live(exp));
    restart();
    agent_in("b", "moved to");
    agent_in("c", "named");
    assert_int_equal(world_continue(&w, exp, NULL), 0);
    assert_string_equal(pool_of(exp), "moved to");
    assert_int_equal(runs(exp), 1);
    world_step(&w, kill);
    world_exit(&w, 1, 0, EXIT_CODE(9));
    assert_int_equal(world_continue(&w, exp, "{\"resources\":{\"resource_pool\":\"named\"}}"), 0);
    assert_string_equal(pool_of(exp), "named");
    assert_int_equal(runs(exp), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_single, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
        cmocka_unit_test_setup_teardown(test_edited, setup, teardown),
        cmocka_unit_test_setup_teardown(test_halving, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
