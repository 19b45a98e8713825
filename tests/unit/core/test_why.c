/* Why something waits: each reason; and that what is said to help does. */
#include "world.h"

#include "rng.h"
#include "why.h"
#include <stdio.h>

static json_t *why(const struct world *w, int64_t trial)
{
    return core_why_trial(w->core, trial, (struct core_now){w->now_ms, w->now_ms * 1000});
}

static int64_t job(struct world *w, int n, int k, const char *more)
{
    char config[400];
    snprintf(config, sizeof config,
             "{\"resources\":{\"slots_per_trial\":%d%s},"
             "\"searcher\":{\"name\":\"random\",\"max_trials\":%d,\"max_concurrent_trials\":0}}",
             k, more, n);
    return world_create(w, config);
}

static void run_placed(struct world *w)
{
    struct core_alloc_view a;
    for (size_t i = 0; core_alloc_at(w->core, i, &a); i++)
        if (a.state == ALLOC_ASSIGNED)
            world_run(w, a.trial_id);
}

static void expect(const struct world *w, int64_t trial, const char *reason, const char *text)
{
    JSON_OWN j = why(w, trial);
    assert_non_null(j);
    if (strcmp(json_str(j, "reason", ""), reason) || !strstr(json_str(j, "text", ""), text))
        fail_msg("trial %d: %s: %s", (int)trial, json_str(j, "reason", ""),
                 json_str(j, "text", ""));
    core_check(w->core);
}

/* A suggestion whose command holds `command`; its text holds `text`. */
static void helps(const struct world *w, int64_t trial, const char *command, const char *text)
{
    JSON_OWN j = why(w, trial);
    const json_t *list = json_arr(j, "suggestions");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *s = json_array_get(list, i);
        if (strstr(json_str(s, "command", ""), command) && strstr(json_str(s, "text", ""), text))
            return;
    }
    det_cleanup(freep) char *all = json_text(list);
    fail_msg("no suggestion '%s' (%s) in %s", command, text, all);
}

static void room(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 2, NULL, 0);
    world_hello(&w, "b", 2, NULL, 0);
    job(&w, 2, 1, "");
    run_placed(&w);
    job(&w, 1, 4, ""); /* a gang: both agents whole */
    expect(&w, 3, "SHARE", "fair share");
    expect(&w, 1, "RUNNING", "runs on agent");
    helps(&w, 3, "", "ask for 2 slots");
    world_finish(&w);
}

/* Fair share frees an agent for a gang: the slot that is free first is not for a small one. */
static void kept(void **state)
{
    struct world w;
    struct core_alloc_view a = {0};
    world_init(&w, NULL);
    world_hello(&w, "a", 4, NULL, 0);
    world_hello(&w, "b", 4, NULL, 0);
    job(&w, 8, 1, "");
    run_placed(&w);
    job(&w, 1, 4, ",\"weight\":9");
    for (size_t i = 0; !a.preempt; i++)
        assert_true(core_alloc_at(w.core, i, &a));
    int64_t first = a.trial_id;
    world_step(&w, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION, .alloc_id = a.id});
    world_exit(&w, first, 0, EXIT_CODE(0));
    job(&w, 1, 1, ",\"weight\":9");
    expect(&w, first, "SHARE", "no other experiment leaves");
    expect(&w, 9, "ROOM", "asks for 4 slots");
    expect(&w, 10, "ORDER", "kept for another request");
    world_finish(&w);
}

static void agents(void **state)
{
    struct world w;
    struct core_options o = core_options_default;
    o.launch_error = false;
    world_init(&w, &o);
    job(&w, 1, 1, "");
    expect(&w, 1, "AGENTS", "no agent of pool default");
    world_hello(&w, "a", 1, NULL, 0);
    run_placed(&w);
    job(&w, 1, 3, "");
    expect(&w, 2, "AGENTS", "even idle");
    world_hello(&w, "b", 4, NULL, 0);
    run_placed(&w);
    struct core_event ev = {.kind = CORE_EV_AGENT_SET};
    ev.agent_set = (struct core_agent_set){.agent_id = "a", .slot = -1, .drain = true};
    world_step(&w, ev);
    world_finish(&w);
}

static void switched_off(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 2, NULL, 0);
    struct core_event ev = {.kind = CORE_EV_AGENT_SET};
    ev.agent_set = (struct core_agent_set){.agent_id = "a", .slot = -1, .drain = true};
    world_step(&w, ev);
    job(&w, 1, 2, "");
    expect(&w, 1, "AGENTS", "switched off");
    helps(&w, 1, "det agent enable a", "it would start now");
    world_finish(&w);
}

static void caps(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 8, NULL, 0);
    job(&w, 4, 1, ",\"max_slots\":2");
    run_placed(&w);
    expect(&w, 3, "MAX_SLOTS", "2 slots");
    helps(&w, 3, "det experiment set max-slots 1 3", "it would start now");
    JSON_OWN j = why(&w, 4);
    assert_int_equal(json_int(j, "sameExperimentAhead", 0), 1);
    world_finish(&w);
}

static void quotas(void **state)
{
    static const struct core_quota q[] = {{"*", NULL, 1}};
    struct core_options o = core_options_default;
    struct world w;
    o.quotas = q;
    o.quotas_n = 1;
    world_init(&w, &o);
    world_hello(&w, "a", 4, NULL, 0);
    job(&w, 2, 1, "");
    run_placed(&w);
    expect(&w, 2, "QUOTA", "quota");
    world_finish(&w);
}

static void order(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.scheduler = CORE_PRIORITY;
    world_init(&w, &o);
    world_hello(&w, "a", 2, NULL, 0);
    job(&w, 1, 1, "");
    run_placed(&w);
    job(&w, 1, 2, ",\"priority\":10");
    job(&w, 1, 1, ",\"priority\":50");
    expect(&w, 2, "ROOM", "asks for 2 slots");
    expect(&w, 3, "ORDER", "1 job comes first");
    helps(&w, 3, "det experiment set priority 3 10", "it would start now");
    world_finish(&w);
}

static void agent_in(struct world *w, const char *id, const char *pool)
{
    const struct core_slot_in slot = {.type = CORE_CPU, .brand = "cpu", .uuid = ""};
    struct core_event ev = {.kind = CORE_EV_AGENT_HELLO, .agent_id = id};
    ev.hello = (struct core_hello){
        .version = "0.27.0", .pool = pool, .addr = id, .slots = &slot, .slots_n = 1};
    assert_int_equal(world_step(w, ev), 0);
}

static bool may_move(const struct world *w, int64_t trial)
{
    JSON_OWN j = why(w, trial);
    det_cleanup(freep) char *all = json_text(json_arr(j, "suggestions"));
    return strstr(all, "--resource-pool other");
}

/* A free slot elsewhere helps only whom the master would move, and his quota lets start there. */
static void other_pools(void **state)
{
    static const struct core_quota q[] = {{"*", NULL, 1}};
    struct core_options o = core_options_default;
    for (int with_quota = 0; with_quota < 2; with_quota++) {
        struct world w;
        o.quotas = q;
        o.quotas_n = (size_t)with_quota;
        world_init(&w, &o);
        agent_in(&w, "a", "");
        agent_in(&w, "b", "other");
        job(&w, 2, 1, "");
        run_placed(&w);
        job(&w, 1, 1, "");
        assert_false(may_move(&w, 2)); /* its first trial runs */
        assert_int_equal(may_move(&w, 3), !with_quota);
        world_finish(&w);
    }
}

static void paused_and_ended(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 1, NULL, 0);
    int64_t exp = job(&w, 1, 1, "");
    world_run(&w, 1);
    job(&w, 1, 1, "");
    world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = exp});
    expect(&w, 1, "ENDING", "asked to stop");
    world_wait(&w, 10000);
    JSON_OWN next = why(&w, 2); /* when the first's next boundary is, nobody knows */
    assert_true(json_is_null(json_path(next, "expectedStart.seconds")));
    assert_non_null(
        strstr(json_str(json_obj(next, "expectedStart"), "basis", ""), "killed in 3590 s"));
    world_step(&w, (struct core_event){.kind = CORE_EV_ACK_PREEMPTION,
                                       .alloc_id = world_trial(&w, 1).alloc_id});
    world_exit(&w, 1, 0, EXIT_CODE(0));
    expect(&w, 1, "PAUSED", "paused");
    helps(&w, 1, "det experiment activate", "activate");
    JSON_OWN e = core_why_exp(w.core, exp, (struct core_now){w.now_ms, 0});
    assert_string_equal(json_str(e, "reason", ""), "PAUSED");
    assert_null(why(&w, 99));
    world_finish(&w);
}

/* Half of the operation took 10 s, so 10 s are left. */
static void expected_start(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 1, NULL, 0);
    job(&w, 1, 1, "");
    world_run(&w, 1);
    job(&w, 1, 1, "");
    JSON_OWN before = why(&w, 2);
    assert_true(json_is_null(json_path(before, "expectedStart.seconds")));
    assert_non_null(strstr(json_str(json_obj(before, "expectedStart"), "basis", ""), "reported"));
    for (int i = 0; i <= 10; i++) {
        world_wait(&w, 1000);
        world_step(&w,
                   (struct core_event){.kind = CORE_EV_PROGRESS, .trial_id = 1, .units = 5.0 * i});
    }
    JSON_OWN after = why(&w, 2);
    double s = json_num(json_obj(after, "expectedStart"), "seconds", -1);
    assert_true(s > 9.9 && s < 10.1);
    assert_int_equal(json_int(after, "blockersTotal", 0), 1);
    assert_int_equal(json_int(json_array_get(json_arr(after, "blockers"), 0), "trialId", 0), 1);
    world_finish(&w);
}

/* ---- What is said to help, helps ---- */

static int64_t words(const char *command, const char *verb, int64_t *ret_id, double *ret_value)
{
    size_t n = strlen(verb);
    char *end;
    if (strncmp(command, verb, n) != 0)
        return false;
    *ret_id = strtoll(command + n, &end, 10);
    *ret_value = strtod(end, NULL);
    return true;
}

/* Does what a suggestion says; false: not something that a step can do. */
static bool obey(struct world *w, const char *command)
{
    struct core_event ev = {.kind = CORE_EV_EXP_PATCH};
    double v;
    if (words(command, "det experiment set priority ", &ev.exp_id, &v)) {
        ev.patch.has_priority = true;
        ev.patch.priority = (int)v;
    } else if (words(command, "det experiment set weight ", &ev.exp_id, &v)) {
        ev.patch.has_weight = true;
        ev.patch.weight = v;
    } else if (words(command, "det experiment set max-slots ", &ev.exp_id, &v)) {
        ev.patch.has_max_slots = true;
        ev.patch.max_slots = (int64_t)v;
    } else if (strncmp(command, "det agent enable ", 17) == 0) {
        ev.kind = CORE_EV_AGENT_SET;
        ev.agent_set =
            (struct core_agent_set){.agent_id = command + 17, .slot = -1, .enabled = true};
    } else {
        return false;
    }
    world_step(w, ev);
    return true;
}

static void populate(struct world *w, struct core_options *o, uint32_t seed)
{
    struct mt19937 r;
    mt19937_seed(&r, seed);
    *o = core_options_default;
    o->scheduler = (enum core_scheduler)mt19937_bounded(&r, 2);
    o->preemption = mt19937_bounded(&r, 1);
    o->starvation_wait_ms = 0;
    world_init(w, o);
    for (int i = 0; i < 3; i++) {
        char id[2] = {(char)('a' + i), '\0'};
        world_hello(w, id, 1 << mt19937_bounded(&r, 2), NULL, 0);
    }
    for (int i = 0; i < 5; i++) {
        char more[80];
        snprintf(more, sizeof more, ",\"priority\":%d,\"weight\":%d%s",
                 (int)mt19937_bounded(&r, 3) * 10 + 10, 1 + (int)mt19937_bounded(&r, 3),
                 mt19937_bounded(&r, 3) ? "" : ",\"max_slots\":2");
        job(w, 1 + (int)mt19937_bounded(&r, 2), 1 + (int)mt19937_bounded(&r, 1), more);
        run_placed(w);
        if (mt19937_bounded(&r, 7) == 0) {
            struct core_event ev = {.kind = CORE_EV_AGENT_SET};
            ev.agent_set = (struct core_agent_set){.agent_id = "a", .slot = -1, .drain = true};
            world_step(w, ev);
        }
    }
}

static bool has_moved(const struct world *w)
{
    return world_count(w, CORE_ORDER_START) + world_count(w, CORE_PREEMPT) +
               world_count(w, CORE_ORDER_KILL) >
           0;
}

/* Asking changes nothing; a second world in the same state obeys each suggestion. */
static void suggestions_hold(void **state)
{
    int obeyed = 0, waited = 0;
    for (uint32_t seed = 1; seed <= 400; seed++) {
        struct world w;
        struct core_options o;
        populate(&w, &o, seed);
        for (int64_t id = 1; id <= 15; id++) {
            JSON_OWN j = why(&w, id);
            if (!j || !json_flag(j, "waiting", false))
                continue;
            waited++;
            JSON_OWN again = why(&w, id);
            assert_true(json_equal(j, again));
            const json_t *list = json_arr(j, "suggestions");
            for (size_t i = 0; i < json_array_size(list); i++) {
                struct world x;
                struct core_options xo;
                populate(&x, &xo, seed);
                const char *command = json_str(json_array_get(list, i), "command", "");
                if (obey(&x, command)) {
                    obeyed++;
                    if (!has_moved(&x))
                        fail_msg("seed %u, trial %d: '%s' did not help", seed, (int)id, command);
                }
                world_finish(&x);
            }
        }
        world_step(&w, (struct core_event){.kind = CORE_EV_TICK});
        assert_false(has_moved(&w)); /* nothing that waits could have started */
        world_finish(&w);
    }
    assert_true(waited > 200 && obeyed > 100);
}

/* Trial 1 runs on agent a; a rank of it has been silent for this long, 0: none is. */
static struct core_task_in silence(const struct world *w, int rank, int64_t ms)
{
    struct core_container_view k;
    struct core_trial_view t = world_trial(w, 1);
    assert_true(core_alloc_container(w->core, t.alloc_id, 0, &k));
    return (struct core_task_in){.alloc = t.alloc_id,
                                 .container = k.id,
                                 .state = CORE_TASK_RUNNING,
                                 .silent = {ms ? "validating" : NULL, rank, ms, 600000}};
}

static void say_silence(struct world *w, int rank, int64_t ms)
{
    struct core_event ev = {.kind = CORE_EV_AGENT_STATE, .agent_id = "a"};
    ev.task = silence(w, rank, ms);
    assert_int_equal(world_step(w, ev), 0);
    assert_int_equal(world_count(w, CORE_SAVE_ALLOCATION), 0); /* in memory only */
}

static void expect_plain(const struct world *w)
{
    JSON_OWN j = why(w, 1);
    assert_string_equal(json_str(j, "text", ""), "it runs on agent a");
}

/* A silence is said with the time since, until a batch comes, the agent goes or the run ends. */
static void silent(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 1, NULL, 0);
    world_create(&w, "{}");
    world_run(&w, 1);
    say_silence(&w, 3, 10000);
    world_wait(&w, 60000);
    expect(&w, 1, "RUNNING", "rank 3: no batch for 70 s (validating), a verdict comes at 600 s");
    say_silence(&w, 0, 0);
    expect_plain(&w);
    say_silence(&w, 0, 10000);
    world_step(&w, (struct core_event){.kind = CORE_EV_AGENT_LOST, .agent_id = "a"});
    expect_plain(&w);
    struct core_task_in task = silence(&w, 0, 20000);
    world_hello(&w, "a", 1, &task, 1); /* back, and it still is */
    expect(&w, 1, "RUNNING", "no batch for 20 s");
    task = silence(&w, 0, 0);
    world_hello(&w, "a", 1, &task, 1);
    expect_plain(&w);
    say_silence(&w, 0, 10000);
    world_exit(&w, 1, 0, EXIT_CODE(1));
    world_run(&w, 1); /* its next run has said nothing */
    expect_plain(&w);
    world_finish(&w);
}

/* Half of each agent is free: as many slots as it asks for, and no two of them together. */
static void scattered(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.scheduler = CORE_PRIORITY;
    world_init(&w, &o);
    world_hello(&w, "a", 2, NULL, 0);
    world_hello(&w, "b", 2, NULL, 0);
    job(&w, 1, 2, "");
    job(&w, 2, 1, "");
    run_placed(&w);
    world_complete(&w, 1, 0.5);
    job(&w, 1, 1, "");
    run_placed(&w);
    world_complete(&w, 2, 0.5);
    job(&w, 1, 2, "");
    expect(&w, 5, "ROOM", "2 slots of pool default are free, but not so that 2 go together");
    world_finish(&w);
}

static json_t *why_exp(const struct world *w, int64_t exp)
{
    return core_why_exp(w->core, exp, (struct core_now){w->now_ms, w->now_ms * 1000});
}

/* Its rung is not over: whose metrics it waits for is told, and who speaks for the experiment. */
static void waits_for_others(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 3, NULL, 0);
    int64_t exp = world_create(&w, "{\"searcher\":{\"name\":\"async_halving\",\"num_rungs\":2,"
                                   "\"divisor\":4,\"max_trials\":3,"
                                   "\"max_concurrent_trials\":3}}");
    run_placed(&w);
    world_complete(&w, 1, 0.5);
    expect(&w, 1, "SEARCHER", "; it waits for trial 2, 3");
    JSON_OWN one = why(&w, 1);
    assert_int_equal(json_int(json_obj(one, "search"), "rung", 0), 1);
    assert_int_equal(json_array_size(json_path(one, "search.awaited")), 2);
    JSON_OWN all = why_exp(&w, exp); /* the first that runs */
    assert_int_equal(json_int(all, "trialId", 0), 2);
    assert_int_equal(json_int(all, "trialsRunning", 0), 2);
    world_complete(&w, 2, 0.4);
    expect(&w, 1, "SEARCHER", "; it waits for trial 3");
    world_finish(&w);
}

/* Nothing but its client, or who activates it, gives it work. */
static void no_trial_yet(void **state)
{
    static const struct {
        const char *name, *reason, *text;
        bool is_paused;
    } cases[] = {{"custom", "NO_WORK", "has asked for no trial: its client has to", false},
                 {"custom", "NO_WORK", "it is paused, and has no trial yet", true}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct world w;
        world_init(&w, NULL);
        int64_t exp = world_create(&w, "{\"searcher\":{\"name\":\"custom\",\"unit\":\"epochs\"}}");
        if (cases[i].is_paused)
            world_step(&w, (struct core_event){.kind = CORE_EV_EXP_PAUSE, .exp_id = exp});
        JSON_OWN j = why_exp(&w, exp);
        assert_string_equal(json_str(j, "reason", ""), cases[i].reason);
        if (!strstr(json_str(j, "text", ""), cases[i].text))
            fail_msg("%s", json_str(j, "text", ""));
        assert_true(json_is_null(json_object_get(j, "trialId")));
        world_finish(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silent),
        cmocka_unit_test(room),
        cmocka_unit_test(kept),
        cmocka_unit_test(agents),
        cmocka_unit_test(switched_off),
        cmocka_unit_test(caps),
        cmocka_unit_test(quotas),
        cmocka_unit_test(order),
        cmocka_unit_test(paused_and_ended),
        cmocka_unit_test(expected_start),
        cmocka_unit_test(other_pools),
        cmocka_unit_test(suggestions_hold),
        cmocka_unit_test(scattered),
        cmocka_unit_test(waits_for_others),
        cmocka_unit_test(no_trial_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
