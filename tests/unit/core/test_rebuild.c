/* What a rebuilt core must have kept, and what the wall clock must not decide. */
#include "world.h"

static struct world w;

static int setup(void **state)
{
    world_init(&w, NULL);
    return 0;
}

static int teardown(void **state)
{
    world_finish(&w);
    return 0;
}

static void put(struct core *c, const struct core_effect *e)
{
    struct det_err err = {0};
    int rc = 0;
    if (e->kind == CORE_SAVE_EXPERIMENT)
        rc = core_restore_experiment(c, &e->experiment, &err);
    else if (e->kind == CORE_SAVE_TRIAL)
        rc = core_restore_trial(c, &e->trial, &err);
    else if (e->kind == CORE_SAVE_ALLOCATION)
        rc = core_restore_allocation(c, &e->allocation, &err);
    assert_int_equal(rc, 0);
}

/* From the rows of the last step; allocations in this order or the other way round. */
static struct core *rebuild(bool backwards, struct core_effects *out)
{
    struct core *c = core_create(&w.o);
    for (size_t i = 0; i < w.fx.n; i++)
        if (w.fx.v[i].kind != CORE_SAVE_ALLOCATION)
            put(c, &w.fx.v[i]);
    for (size_t i = 0; i < w.fx.n; i++) {
        const struct core_effect *e = &w.fx.v[backwards ? w.fx.n - 1 - i : i];
        if (e->kind == CORE_SAVE_ALLOCATION)
            put(c, e);
    }
    core_restored(c, 1000, 1, out);
    core_check(c);
    return c;
}

static const char four[] = "{\"searcher\":{\"name\":\"random\",\"metric\":\"m\",\"max_trials\":4,"
                           "\"max_length\":{\"batches\":100}}}";

static void test_queue_order(void **state)
{
    struct core_effects fx = CORE_EFFECTS_INIT;
    world_create(&w, four);
    struct core *c = rebuild(true, &fx);
    struct core_alloc_view a, b;
    size_t i = 0;
    for (; core_alloc_at(w.core, i, &a); i++) {
        assert_true(core_alloc_at(c, i, &b));
        assert_string_equal(a.id, b.id);
    }
    assert_int_equal(i, 4);
    core_effects_finish(&fx);
    core_destroy(c);
}

/* One of its containers arrives, and says those ports. */
static struct core_event arrival(size_t i, const char *ports)
{
    const char *alloc = world_trial(&w, 1).alloc_id;
    struct core_container_view k;
    assert_true(core_alloc_container(w.core, alloc, i, &k));
    return (struct core_event){
        .kind = CORE_EV_RENDEZVOUS, .alloc_id = alloc, .container = k.id, .ports = ports};
}

/* The ports that rank 0's host chose: a host that asks its question again, of another master, is
 * told the same as the first time. */
static void test_chosen_ports(void **state)
{
    static const char chosen[] = "C10D_PORT:41003", others[] = "C10D_PORT:9";
    struct core_effects fx = CORE_EFFECTS_INIT;
    struct core *c = core_create(&w.o);
    world_hello(&w, "a", 2, NULL, 0);
    world_hello(&w, "b", 2, NULL, 0);
    world_create(&w, "{\"resources\":{\"slots_per_trial\":4}}");
    for (size_t i = 0; i < w.fx.n; i++)
        if (w.fx.v[i].kind != CORE_SAVE_ALLOCATION)
            put(c, &w.fx.v[i]);
    world_step(&w, arrival(0, chosen));
    world_step(&w, arrival(1, others)); /* not of rank 0: not heard */
    assert_string_equal(world_effect(&w, CORE_RENDEZVOUS, 0)->rendezvous.ports, chosen);
    put(c, world_effect(&w, CORE_SAVE_ALLOCATION, 0));
    core_restored(c, 1000, 1, &fx);
    core_effects_finish(&fx);
    struct core_event again[] = {arrival(1, NULL), arrival(0, others)};
    for (size_t i = 0; i < DET_ARRAY_LEN(again); i++) {
        again[i].now_ms = 1000;
        core_step(c, &again[i], &fx);
        for (size_t k = 0; k < fx.n; k++)
            if (fx.v[k].kind == CORE_RENDEZVOUS)
                assert_string_equal(fx.v[k].rendezvous.ports, chosen);
        core_effects_finish(&fx);
    }
    core_destroy(c);
}

/* Which of the runs of a lost agent ends first. */
static void ends(bool backwards, char first[64])
{
    struct core_effects fx = CORE_EFFECTS_INIT;
    struct core *c = rebuild(backwards, &fx);
    core_effects_finish(&fx);
    struct core_event tick = {.kind = CORE_EV_TICK, .now_ms = 1000 + 25000};
    core_step(c, &tick, &fx);
    size_t n = 0;
    for (size_t i = 0; i < fx.n; i++)
        if (fx.v[i].kind == CORE_ALLOC_END && n++ == 0)
            snprintf(first, 64, "%s", fx.v[i].alloc_id);
    assert_int_equal(n, 2);
    core_effects_finish(&fx);
    core_destroy(c);
}

static void test_order_on_an_agent(void **state)
{
    char one[64] = "", other[64] = "";
    world_hello(&w, "a", 2, NULL, 0);
    world_create(&w, four);
    ends(false, one);
    ends(true, other);
    assert_string_equal(one, other);
}

/* Restores the rows of the last step, the allocation's changed: its code. */
static int restore_changed(enum alloc_state state, const char *from, const char *to)
{
    struct core *c = core_create(&w.o);
    struct det_err err = {0};
    int rc = 0;
    for (size_t i = 0; i < w.fx.n; i++) {
        struct row_allocation r = w.fx.v[i].allocation;
        if (w.fx.v[i].kind != CORE_SAVE_ALLOCATION) {
            put(c, &w.fx.v[i]);
            continue;
        }
        const char *at = strstr(r.core, from);
        assert_non_null(at);
        det_cleanup(freep) char *core =
            det_asprintf("%.*s%s%s", (int)(at - r.core), r.core, to, at + strlen(from));
        r.core = core;
        r.state = state;
        rc = core_restore_allocation(c, &r, &err);
        assert_true((rc < 0) == (*err.text != 0));
    }
    core_destroy(c);
    return rc;
}

/* An allocation whose state its containers or its kill contradict would break the core later. */
static void test_contradictions(void **state)
{
    world_hello(&w, "a", 2, NULL, 0);
    world_create(&w, "{}");
    assert_int_equal(restore_changed(ALLOC_ASSIGNED, "\"kill\":0", "\"kill\":0"), 0);
    assert_int_equal(restore_changed(ALLOC_TERMINATING, "\"kill\":0", "\"kill\":1"), 0);
    assert_int_equal(restore_changed(ALLOC_TERMINATING, "\"kill\":0", "\"kill\":0"), DET_ECORRUPT);
    assert_int_equal(restore_changed(ALLOC_RUNNING, "\"kill\":0", "\"kill\":1"), DET_ECORRUPT);
    assert_int_equal(restore_changed(ALLOC_PENDING, "\"kill\":0", "\"kill\":0"), DET_ECORRUPT);
    assert_int_equal(restore_changed(ALLOC_RUNNING, "\"containers\"", "\"none\""), DET_ECORRUPT);
    assert_int_equal(restore_changed(ALLOC_RUNNING, "\"slots\":[0]", "\"slots\":[0,1]"),
                     DET_ECORRUPT);
    assert_int_equal(
        restore_changed(ALLOC_RUNNING, "\"state\":\"ASSIGNED\"", "\"state\":\"TERMINATED\""),
        DET_ECORRUPT);
    assert_int_equal(restore_changed(ALLOC_ASSIGNED, "\"node\":0", "\"node\":1"), DET_ECORRUPT);
}

/* None that lives is in a state that no edge leads to its end from. */
static void test_states_that_none_has(void **state)
{
    world_hello(&w, "a", 2, NULL, 0);
    world_create(&w, "{}");
    assert_int_equal(restore_changed(ALLOC_PULLING, "\"kill\":0", "\"kill\":0"), DET_ECORRUPT);
    assert_int_equal(restore_changed(ALLOC_TERMINATED, "\"kill\":0", "\"kill\":0"), DET_ECORRUPT);
    assert_int_equal(
        restore_changed(ALLOC_RUNNING, "\"state\":\"ASSIGNED\"", "\"state\":\"WAITING\""),
        DET_ECORRUPT);
}

/* A trial that is paused in an experiment that is not would never go on. */
static void test_trial_of_another_state(void **state)
{
    world_create(&w, "{}");
    struct core *c = core_create(&w.o);
    for (size_t i = 0; i < w.fx.n; i++)
        if (w.fx.v[i].kind == CORE_SAVE_EXPERIMENT)
            put(c, &w.fx.v[i]);
    for (size_t i = 0; i < w.fx.n; i++) {
        struct row_trial r = w.fx.v[i].trial;
        struct det_err err = {0};
        if (w.fx.v[i].kind != CORE_SAVE_TRIAL)
            continue;
        r.state = TRIAL_PAUSED;
        assert_int_equal(core_restore_trial(c, &r, &err), DET_ECORRUPT);
        assert_non_null(strstr(err.text, "trial 1: PAUSED"));
        r.state = TRIAL_ACTIVE;
        r.restarts = 3; /* of 2 */
        assert_int_equal(core_restore_trial(c, &r, &err), DET_ECORRUPT);
        r.restarts = 2;
        assert_int_equal(core_restore_trial(c, &r, &err), 0);
    }
    core_destroy(c);
}

/* What indexes a table is within it: the search is told of the trial's end by it. */
static void test_unknown_reason(void **state)
{
    struct core_effects fx = CORE_EFFECTS_INIT;
    world_create(&w, "{}");
    struct core *c = core_create(&w.o);
    for (size_t i = 0; i < w.fx.n; i++) {
        struct core_effect e = w.fx.v[i];
        if (e.kind == CORE_SAVE_TRIAL)
            e.trial.core = "{\"op_length\":100,\"exit_reason\":1000,\"transients\":-5}";
        if (e.kind == CORE_SAVE_EXPERIMENT || e.kind == CORE_SAVE_TRIAL)
            put(c, &e);
    }
    core_restored(c, 1000, 1, &fx);
    core_effects_finish(&fx);
    core_check(c);
    struct core_event end = {.kind = CORE_EV_TRIAL_KILL, .now_ms = 2000, .trial_id = 1};
    core_step(c, &end, &fx);
    core_effects_finish(&fx);
    core_destroy(c);
}

/* An experiment whose trials are lost ends; it would wait for them for ever. */
static void test_lost_trials(void **state)
{
    struct core_effects fx = CORE_EFFECTS_INIT;
    world_create(&w, "{}");
    struct core *c = core_create(&w.o);
    for (size_t i = 0; i < w.fx.n; i++)
        if (w.fx.v[i].kind == CORE_SAVE_EXPERIMENT)
            put(c, &w.fx.v[i]);
    core_restored(c, 1000, 1, &fx);
    core_check(c);
    enum exp_state end = EXP_ACTIVE;
    for (size_t i = 0; i < fx.n; i++)
        if (fx.v[i].kind == CORE_SAVE_EXPERIMENT)
            end = fx.v[i].experiment.state;
    assert_int_equal(end, EXP_ERROR);
    core_effects_finish(&fx);
    core_destroy(c);
}

/* The name of a collection decides ties of placement, and must be new in each life. */
static void collect(int64_t epoch, int64_t now_us, char name[128])
{
    struct core *c = core_create(&w.o);
    struct core_effects fx = CORE_EFFECTS_INIT;
    JSON_OWN config = world_config("{}");
    JSON_OWN uuids = json_make("[s]", "u1");
    struct core_event ev = {.kind = CORE_EV_EXP_GC, .now_ms = 1, .now_us = now_us};
    core_set_life(c, epoch, "nonce");
    ev.gc = (struct core_gc){.exp_id = 9, .job_id = "j", .config = config, .uuids = uuids};
    core_step(c, &ev, &fx);
    for (size_t i = 0; i < fx.n; i++)
        if (fx.v[i].kind == CORE_SAVE_ALLOCATION)
            snprintf(name, 128, "%s", fx.v[i].allocation.id);
    core_effects_finish(&fx);
    core_destroy(c);
}

static void test_names_without_a_clock(void **state)
{
    char a[128] = "", b[128] = "", next[128] = "";
    collect(1, 1000, a);
    collect(1, 2000, b);
    collect(2, 1000, next);
    assert_string_equal(a, b);
    assert_string_not_equal(a, next);
}

/* Its row was written while the run was current; the report reaches the core after the fence. */
static void test_late_checkpoint(void **state)
{
    world_hello(&w, "a", 2, NULL, 0);
    world_create(&w, "{}");
    world_run(&w, 1);
    world_exit(&w, 1, 0, EXIT_LOST);
    struct core_event ev = {.kind = CORE_EV_CHECKPOINT, .trial_id = 1, .run_id = 1};
    ev.checkpoint.uuid = "late";
    ev.checkpoint.steps = 50;
    assert_int_equal(world_step(&w, ev), 0);
    assert_string_equal(world_trial(&w, 1).latest_checkpoint, "late");
}

/* A run that is held after losses is held as long by the next master, and no longer. */
static void test_hold(void **state)
{
    struct core_alloc_view a;
    w.keeps = true;
    world_hello(&w, "a", 2, NULL, 0);
    world_create(&w, "{}");
    for (int i = 0; i < 2; i++)
        world_exit(&w, 1, 0, EXIT_LOST);
    world_restart(&w);
    world_hello(&w, "a", 2, NULL, 0);
    assert_true(core_alloc_get(w.core, world_trial(&w, 1).alloc_id, &a));
    assert_int_equal(a.state, ALLOC_PENDING);
    world_wait(&w, core_deadline_ms(w.core) - w.now_ms);
    assert_true(w.now_ms <= 1000 + 4000);
    assert_true(core_alloc_get(w.core, world_trial(&w, 1).alloc_id, &a));
    assert_int_equal(a.state, ALLOC_ASSIGNED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_queue_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chosen_ports, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_on_an_agent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_without_a_clock, setup, teardown),
        cmocka_unit_test_setup_teardown(test_late_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contradictions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_states_that_none_has, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trial_of_another_state, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_trials, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
