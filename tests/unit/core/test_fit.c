/* Placement: the table of docs/contract/placement.md 1, and what can never be placed. */
#include "world.h"

#include <stdio.h>

/* Agents of these sizes; then requests in turn, and where each must go ("" = waits). */
struct placing {
    const char *name;
    enum core_fitting fitting;
    bool mixed;
    int agents[6];
    struct {
        int slots;
        const char *where;
    } requests[5];
};

static const struct placing cases[] = {
    {"best fit takes the fullest",
     CORE_FIT_BEST,
     false,
     {4, 2, 1},
     {{1, "c"}, {1, "b"}, {2, "a"}, {1, "b"}}},
    {"worst fit takes the emptiest share",
     CORE_FIT_WORST,
     false,
     {4, 2},
     {{2, "a|b"}, {2, "a|b"}, {2, "a"}}},
    {"whole on one agent if it fits", CORE_FIT_BEST, false, {2, 4}, {{4, "b"}, {2, "a"}}},
    {"a gang takes whole idle agents", CORE_FIT_BEST, false, {2, 2, 2}, {{4, "**"}, {2, "*"}}},
    {"a gang needs idle agents", CORE_FIT_BEST, false, {2, 2}, {{1, "*"}, {4, ""}, {2, "*"}}},
    {"larger agents first", CORE_FIT_BEST, false, {2, 2, 2, 2, 4, 4}, {{8, "ef"}, {8, "abcd"}}},
    {"unequal agents do not gang", CORE_FIT_BEST, false, {2, 1}, {{2, "a"}}},
    {"unequal agents gang when allowed", CORE_FIT_BEST, true, {4, 2, 1}, {{7, "abc"}}},
};

static bool fits_pattern(const char *got, const char *want)
{
    const char *bar = strchr(want, '|');
    if (bar)
        return strncmp(got, want, (size_t)(bar - want)) == 0 || strcmp(got, bar + 1) == 0;
    if (*want == '*')
        return strlen(got) == strlen(want);
    return strcmp(got, want) == 0;
}

/* The agents of a trial's allocation, sorted. */
static void where(const struct world *w, int64_t trial, char *out)
{
    struct core_trial_view t = world_trial(w, trial);
    struct core_container_view k;
    bool has[26] = {0};
    for (size_t i = 0; t.alloc_id && core_alloc_container(w->core, t.alloc_id, i, &k); i++)
        has[k.agent_id[0] - 'a'] = true;
    for (int i = 0; i < 26; i++)
        if (has[i])
            *out++ = (char)('a' + i);
    *out = '\0';
}

static void test_table(void **state)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        const struct placing *p = &cases[i];
        struct core_options o = core_options_default;
        struct world w;
        o.fitting = p->fitting;
        o.allow_heterogeneous_fits = p->mixed;
        o.launch_error = false;
        world_init(&w, &o);
        for (int a = 0; a < 6 && p->agents[a]; a++)
            world_hello(&w, (char[]){(char)('a' + a), '\0'}, p->agents[a], NULL, 0);
        for (int r = 0; r < 5 && p->requests[r].slots; r++) {
            char config[64], got[27];
            snprintf(config, sizeof config, "{\"resources\":{\"slots_per_trial\":%d}}",
                     p->requests[r].slots);
            world_create(&w, config);
            where(&w, r + 1, got);
            if (!fits_pattern(got, p->requests[r].where))
                fail_msg("%s: request %d went to '%s', not '%s'", p->name, r, got,
                         p->requests[r].where);
        }
        world_finish(&w);
    }
}

static void test_never_fits(void **state)
{
    static const struct {
        int slots;
        bool fits;
    } cases[] = {
        {0, true},  {1, true},  {4, true},  {8, true},   {3, true},
        {5, false}, {6, false}, {9, false}, {12, false},
    };
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 4, NULL, 0);
    world_hello(&w, "b", 4, NULL, 0);
    world_hello(&w, "c", 1, NULL, 0);
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        bool exceeded = false;
        struct det_err err = {0};
        int rc = core_fits(w.core, "", cases[i].slots, &exceeded, &err);
        assert_int_equal(rc, cases[i].fits ? 0 : DET_EINVAL);
        assert_int_equal(exceeded, !cases[i].fits);
        if (rc)
            assert_non_null(strstr(err.text, "9 slots on 3 agents (at most 4 on one)"));
    }
    bool exceeded;
    assert_int_equal(core_fits(w.core, "moon", 1, &exceeded, NULL), DET_ENOENT);
    world_finish(&w);
}

static void test_no_agents_yet(void **state)
{
    struct world w;
    world_init(&w, NULL);
    world_create(&w, "{}");
    assert_true(world_reply(&w)->slots_exceeded);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 0);
    world_hello(&w, "a", 1, NULL, 0);
    assert_int_equal(world_count(&w, CORE_ORDER_START), 1); /* in the step that brings the agent */
    world_finish(&w);
}

static void test_zero_slots(void **state)
{
    struct core_options o = core_options_default;
    struct world w;
    o.max_aux_containers = 2;
    world_init(&w, &o);
    world_hello(&w, "a", 0, NULL, 0);
    for (int i = 0; i < 3; i++) {
        world_create(&w, "{\"resources\":{\"slots_per_trial\":0}}");
        assert_int_equal(world_count(&w, CORE_ORDER_START), i < 2);
    }
    world_finish(&w);
}

static void test_refused_at_submit(void **state)
{
    static const struct {
        const char *config, *part;
    } bad[] = {
        {"{\"resources\":{\"slots_per_trial\":3}}", "slots_per_trial: 3 slots can never be placed"},
        {"{\"resources\":{\"slots_per_trial\":2,\"max_slots\":1}}", "max_slots: 1 is less"},
        {"{\"resources\":{\"resource_pool\":\"moon\"}}", "moon"},
        {"{\"searcher\":{\"name\":\"adaptive\"}}", "no searcher adaptive"},
        {"{\"searcher\":{\"max_length\":{\"epochs\":0}}}", "max_length"},
    };
    struct world w;
    world_init(&w, NULL);
    world_hello(&w, "a", 2, NULL, 0);
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        JSON_OWN config = world_config(bad[i].config);
        struct core_event ev = {.kind = CORE_EV_EXP_CREATE};
        ev.create = (struct core_create){.job_id = "j", .config = config, .activate = true};
        assert_true(world_step(&w, ev) < 0);
        assert_non_null(strstr(world_reply(&w)->text, bad[i].part));
        for (size_t k = 0; k < w.fx.n; k++)
            assert_false(CORE_EFFECT_IS_ROW(w.fx.v[k].kind));
    }
    assert_int_equal(world_create(&w, "{}"), 1); /* no id was used up */
    world_finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_never_fits),
        cmocka_unit_test(test_no_agents_yet),
        cmocka_unit_test(test_zero_slots),
        cmocka_unit_test(test_refused_at_submit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
