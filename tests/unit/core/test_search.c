/* Searchers: the contract's check values, order of trials, accounting, snapshots, replay. */
#include "world.h"

#include "searcher.h"
#include <stdio.h>

static json_t *space_of(const char *text)
{
    json_t *j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    return j;
}

static struct search *make(struct search_conf conf, const json_t *space)
{
    struct search *s = NULL;
    struct det_err err = {0};
    conf.space = space;
    if (search_create(&conf, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static void step(struct search *s, struct search_event ev, struct search_ops *out)
{
    search_ops_finish(out);
    search_step(s, &ev, out);
}

static void test_check_values(void **state)
{
    JSON_OWN space = space_of("{}");
    struct search_ops ops = {0};
    struct search *s = make((struct search_conf){.kind = SEARCH_SINGLE, .max_length = 10}, space);
    step(s, (struct search_event){.kind = SEARCH_EV_INITIAL}, &ops);
    assert_int_equal(ops.ops.n, 3);
    assert_string_equal(ops.ops.v[0].request_id, "ac0a7f8c-2faa-4497-b5a6-16b7c0cc21d8");
    assert_int_equal(ops.ops.v[0].trial_seed, 441365315);
    assert_int_equal(ops.ops.v[1].kind, SEARCH_VALIDATE_AFTER);
    assert_int_equal(ops.ops.v[1].length, 10);
    assert_int_equal(ops.ops.v[2].kind, SEARCH_CLOSE);
    search_destroy(s);
    s = make((struct search_conf){.kind = SEARCH_SINGLE, .max_length = 10, .seed = 777}, space);
    step(s, (struct search_event){.kind = SEARCH_EV_INITIAL}, &ops);
    assert_int_equal(ops.ops.v[0].trial_seed, 266444375);
    search_destroy(s);
    search_ops_finish(&ops);
}

/* Ends trial number k (in order of creation) and returns the operations. */
static void end_trial(struct search *s, const char *id, int why, struct search_ops *out)
{
    struct search_ops dropped = {0};
    if (why >= 0)
        search_step(s,
                    &(struct search_event){.kind = SEARCH_EV_EXITED,
                                           .request_id = id,
                                           .reason = (enum search_exit)why},
                    &dropped);
    search_ops_finish(&dropped);
    step(s, (struct search_event){.kind = SEARCH_EV_CLOSED, .request_id = id}, out);
}

static void test_grid_from_the_end(void **state)
{
    JSON_OWN space = space_of("{\"a\":{\"type\":\"categorical\",\"vals\":[1,2]},"
                              "\"b\":{\"type\":\"int\",\"minval\":0,\"maxval\":4,\"count\":3}}");
    struct search *s = make(
        (struct search_conf){.kind = SEARCH_GRID, .max_length = 1, .max_concurrent = 1}, space);
    static const int want[6][2] = {{2, 4}, {2, 2}, {2, 0}, {1, 4}, {1, 2}, {1, 0}};
    struct search_ops ops = {0};
    step(s, (struct search_event){.kind = SEARCH_EV_INITIAL}, &ops);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(ops.ops.n, 3);
        assert_int_equal(json_int(ops.ops.v[0].hparams, "a", 0), want[i][0]);
        assert_int_equal(json_int(ops.ops.v[0].hparams, "b", -1), want[i][1]);
        char id[UUID_STR_MAX];
        memcpy(id, ops.ops.v[0].request_id, sizeof id);
        end_trial(s, id, -1, &ops);
        assert_true(search_progress(s) > (i + 1) / 6.0 - 1e-9);
    }
    assert_int_equal(ops.ops.n, 1);
    assert_int_equal(ops.ops.v[0].kind, SEARCH_SHUTDOWN);
    assert_false(ops.ops.v[0].failure || ops.ops.v[0].cancel);
    search_destroy(s);
    search_ops_finish(&ops);
}

static void test_random_replaces_invalid(void **state)
{
    JSON_OWN space =
        space_of("{\"x\":{\"type\":\"double\",\"minval\":0,\"maxval\":1,\"count\":null}}");
    struct search *s = make(
        (struct search_conf){
            .kind = SEARCH_RANDOM, .max_length = 5, .max_trials = 2, .max_concurrent = 1},
        space);
    struct search_ops ops = {0};
    char id[UUID_STR_MAX];
    int made = 0;
    step(s, (struct search_event){.kind = SEARCH_EV_INITIAL}, &ops);
    for (int why = SEARCH_INVALID_HP; ops.ops.n == 3; why = -1) {
        made++;
        memcpy(id, ops.ops.v[0].request_id, sizeof id);
        end_trial(s, id, why, &ops);
    }
    assert_int_equal(made, 3);
    assert_int_equal(ops.ops.v[0].kind, SEARCH_SHUTDOWN);
    assert_false(ops.ops.v[0].failure);
    search_destroy(s);
    search_ops_finish(&ops);
}

static void test_shutdown_kinds(void **state)
{
    static const struct {
        int why[2];
        bool failure, cancel;
    } cases[] = {
        {{SEARCH_ERRORED, SEARCH_ERRORED}, true, false},
        {{SEARCH_ERRORED, -1}, false, false},
        {{SEARCH_USER_CANCELED, SEARCH_USER_CANCELED}, false, true},
        {{SEARCH_USER_CANCELED, SEARCH_ERRORED}, false, false},
    };
    JSON_OWN space = space_of("{}");
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct search *s = make(
            (struct search_conf){.kind = SEARCH_RANDOM, .max_length = 5, .max_trials = 2}, space);
        struct search_ops ops = {0};
        char ids[2][UUID_STR_MAX];
        step(s, (struct search_event){.kind = SEARCH_EV_INITIAL}, &ops);
        assert_int_equal(ops.ops.n, 6);
        memcpy(ids[0], ops.ops.v[0].request_id, UUID_STR_MAX);
        memcpy(ids[1], ops.ops.v[3].request_id, UUID_STR_MAX);
        for (int k = 0; k < 2; k++)
            end_trial(s, ids[k], cases[i].why[k], &ops);
        assert_int_equal(ops.ops.n, 1);
        assert_int_equal(ops.ops.v[0].failure, cases[i].failure);
        assert_int_equal(ops.ops.v[0].cancel, cases[i].cancel);
        end_trial(s, ids[1], SEARCH_ERRORED, &ops);
        assert_int_equal(ops.ops.n, 0);
        search_destroy(s);
        search_ops_finish(&ops);
    }
}

/* After any number of events, a snapshot restored elsewhere decides the same from there on. */
static void test_snapshot_continues(void **state)
{
    JSON_OWN space =
        space_of("{\"x\":{\"type\":\"double\",\"minval\":0,\"maxval\":1,\"count\":null}}");
    struct search_conf conf = {
        .kind = SEARCH_RANDOM, .max_length = 5, .max_trials = 12, .max_concurrent = 3, .seed = 5};
    struct search *a = make(conf, space), *b = NULL;
    struct search_ops oa = {0}, ob = {0};
    char id[UUID_STR_MAX];
    step(a, (struct search_event){.kind = SEARCH_EV_INITIAL}, &oa);
    while (oa.ops.n >= 3) {
        memcpy(id, oa.ops.v[0].request_id, sizeof id);
        JSON_OWN snap = search_snapshot(a);
        search_destroy(b);
        b = make(conf, space);
        assert_int_equal(search_restore(b, snap, NULL), 0);
        end_trial(a, id, -1, &oa);
        end_trial(b, id, -1, &ob);
        assert_int_equal(oa.ops.n, ob.ops.n);
        for (size_t i = 0; i < oa.ops.n; i++) {
            assert_string_equal(oa.ops.v[i].request_id, ob.ops.v[i].request_id);
            assert_int_equal(oa.ops.v[i].trial_seed, ob.ops.v[i].trial_seed);
            assert_true(oa.ops.v[i].kind == ob.ops.v[i].kind);
            assert_true(!oa.ops.v[i].hparams ||
                        json_equal(oa.ops.v[i].hparams, ob.ops.v[i].hparams));
        }
    }
    search_destroy(a);
    search_destroy(b);
    search_ops_finish(&oa);
    search_ops_finish(&ob);
}

static void test_damaged_snapshots(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"method\":\"grid\"}",
        "{\"method\":\"random\"}",
        "{\"method\":\"random\",\"rng\":{\"mt\":\"zz\",\"pos\":1}}",
        "{\"method\":\"random\",\"rng\":5,\"trials\":[[1,2]]}",
    };
    JSON_OWN space = space_of("{}");
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        struct det_err err = {0};
        struct search *s = make(
            (struct search_conf){.kind = SEARCH_RANDOM, .max_length = 5, .max_trials = 2}, space);
        JSON_OWN j = space_of(bad[i]);
        assert_int_equal(search_restore(s, j, &err), DET_ECORRUPT);
        search_destroy(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_check_values),
        cmocka_unit_test(test_grid_from_the_end),
        cmocka_unit_test(test_random_replaces_invalid),
        cmocka_unit_test(test_shutdown_kinds),
        cmocka_unit_test(test_snapshot_continues),
        cmocka_unit_test(test_damaged_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
