/* What is said of a trial's place in its search. */
#include "world.h"

#include "search_explain.h"
#include <stdio.h>

struct play {
    struct search *s;
    char ids[64][UUID_STR_MAX];
    int n;
};

/* Trials are numbered from 1 in the order they were made. */
static int64_t number_of(void *arg, const char *request_id)
{
    const struct play *p = arg;
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->ids[i], request_id) == 0)
            return i + 1;
    return 0;
}

static void tell(struct play *p, const struct search_event *ev)
{
    struct search_ops ops = {0};
    search_step(p->s, ev, &ops);
    for (size_t i = 0; i < ops.ops.n; i++)
        if (ops.ops.v[i].kind == SEARCH_CREATE)
            memcpy(p->ids[p->n++], ops.ops.v[i].request_id, UUID_STR_MAX);
    search_ops_finish(&ops);
}

static void start(struct play *p, struct search_conf conf)
{
    static json_t *space;
    struct det_err err = {0};
    if (!space)
        space = json_object();
    conf.space = space;
    *p = (struct play){0};
    if (search_create(&conf, &p->s, &err) < 0)
        fail_msg("%s", err.text);
    tell(p, &(struct search_event){.kind = SEARCH_EV_INITIAL});
}

static void validated(struct play *p, int trial, double metric)
{
    tell(p, &(struct search_event){
                .kind = SEARCH_EV_VALIDATED, .request_id = p->ids[trial - 1], .metric = metric});
}

static void says(struct play *p, int trial, const char *want)
{
    struct search_names names = {"loss", "batches", number_of, p};
    struct search_place place;
    struct buf got = BUF_INIT;
    assert_true(search_place_of(p->s, p->ids[trial - 1], &place));
    search_place_text(&place, &names, &got);
    assert_string_equal(buf_str(&got), want);
    buf_finish(&got);
}

static const struct search_conf asha = {.kind = SEARCH_ASYNC_HALVING,
                                        .max_length = 900,
                                        .max_trials = 4,
                                        .max_concurrent = 2,
                                        .num_rungs = 3,
                                        .divisor = 3};

static void of_one_bracket(void **state)
{
    struct play p;
    start(&p, asha);
    says(&p, 1, "it trains in rung 1 of 3 (100 batches)");
    validated(&p, 1, 0.5);
    says(&p, 1,
         "it waits for the searcher: in rung 1 of 3 (100 batches) its loss of 0.5 is the "
         "best of 1, and the best 1 in 3 go on; nobody went on from there; 2 still train "
         "there and 1 is yet to start");
    validated(&p, 2, 0.4);
    validated(&p, 3, 0.3);
    says(&p, 3, "it trains in rung 2 of 3 (300 batches)");
    validated(&p, 4, 0.6);
    says(&p, 4,
         "the searcher ended it: in rung 1 of 3 (100 batches) its loss of 0.6 is the 4th "
         "best of 4, and the best 1 in 3 go on; 1 went on: trial 3");
    validated(&p, 3, 0.2);
    says(&p, 3,
         "the searcher ended it: in rung 2 of 3 (300 batches) its loss of 0.2 is the best "
         "of 1, and the best 1 in 3 go on; nobody went on from there");
    search_destroy(p.s);
}

/* A worse one that was early. */
static void of_one_that_was_early(void **state)
{
    struct play p;
    struct search_conf conf = asha;
    conf.max_trials = 5;
    start(&p, conf);
    validated(&p, 1, 1);
    validated(&p, 2, 2);
    validated(&p, 3, 3);   /* lets trial 1 go on */
    validated(&p, 4, 0.5); /* goes on itself */
    validated(&p, 1, 1);   /* makes room for the fifth */
    validated(&p, 5, 0.6);
    says(&p, 5,
         "the searcher ended it: in rung 1 of 3 (100 batches) its loss of 0.6 is the 2nd "
         "best of 5, and the best 1 in 3 go on; 2 went on: trials 4, 1; trial 1 went on "
         "with 1, which is worse, because it was among the best when fewer trials had come "
         "this far");
    search_destroy(p.s);
}

/* Another bracket's worse trial goes on; larger is better here. */
static void of_two_brackets(void **state)
{
    struct play p;
    JSON_OWN rungs = json_make("[i,i]", 3, 2);
    start(&p, (struct search_conf){.kind = SEARCH_ADAPTIVE_ASHA,
                                   .max_length = 90,
                                   .max_trials = 6,
                                   .max_concurrent = 6,
                                   .max_rungs = 3,
                                   .divisor = 3,
                                   .larger_is_better = true,
                                   .bracket_rungs = rungs});
    struct search_place place;
    int first = 0, second = 0; /* trials of each bracket */
    for (int i = 1; i <= p.n; i++) {
        assert_true(search_place_of(p.s, p.ids[i - 1], &place));
        first += place.bracket == 1;
        second += place.bracket == 2;
    }
    assert_true(first >= 3 && second >= 1);
    for (int i = 1; i <= first; i++)
        validated(&p, i, 0.9 - 0.1 * i);
    assert_true(search_place_of(p.s, p.ids[0], &place));
    assert_int_equal(place.stand, SEARCH_TRAINS); /* the best of its bracket went on */
    assert_true(search_place_of(p.s, p.ids[1], &place));
    assert_int_equal(place.place, 2);
    assert_true(place.metric == 0.7);
    search_destroy(p.s);
}

static void one_that_failed_has_no_place(void **state)
{
    struct play p;
    struct search_place place;
    start(&p, asha);
    tell(&p, &(struct search_event){
                 .kind = SEARCH_EV_EXITED, .request_id = p.ids[0], .reason = SEARCH_ERRORED});
    assert_true(search_place_of(p.s, p.ids[0], &place));
    assert_int_equal(place.stand, SEARCH_FAILED);
    assert_false(place.has_metric);
    says(&p, 1, "it ended by itself in rung 1 of 3 (100 batches)");
    assert_false(search_place_of(p.s, "nosuch", &place));
    search_destroy(p.s);
}

/* A snapshot says the same as the search it was taken of. */
static void a_restored_one_says_the_same(void **state)
{
    struct play p, again;
    start(&p, asha);
    validated(&p, 1, 1);
    validated(&p, 2, 2);
    validated(&p, 3, 3);
    again = p;
    JSON_OWN snapshot = search_snapshot(p.s);
    struct search_conf conf = asha;
    JSON_OWN space = json_object();
    conf.space = space;
    assert_int_equal(search_create(&conf, &again.s, NULL), 0);
    assert_int_equal(search_restore(again.s, snapshot, NULL), 0);
    struct search_names a = {"loss", "batches", number_of, &p};
    for (int i = 0; i < p.n; i++) {
        struct search_place x, y;
        assert_true(search_place_of(p.s, p.ids[i], &x));
        assert_true(search_place_of(again.s, p.ids[i], &y));
        JSON_OWN jx = search_place_json(&x, &a);
        JSON_OWN jy = search_place_json(&y, &a);
        assert_true(json_equal(jx, jy));
    }
    JSON_OWN rx = search_rungs(p.s, &a, 2);
    JSON_OWN ry = search_rungs(again.s, &a, 2);
    assert_true(json_equal(rx, ry));
    const json_t *rung = json_array_get(json_arr(json_array_get(rx, 0), "rungs"), 0);
    assert_int_equal(json_array_size(json_arr(rung, "trials")), 2); /* the best two of three */
    assert_string_equal(json_str(json_array_get(json_arr(rung, "trials"), 0), "state", ""),
                        "WENT_ON");
    assert_string_equal(json_str(json_array_get(json_arr(rung, "trials"), 1), "state", ""),
                        "WAITS");
    search_destroy(p.s);
    search_destroy(again.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_bracket),
        cmocka_unit_test(of_one_that_was_early),
        cmocka_unit_test(of_two_brackets),
        cmocka_unit_test(one_that_failed_has_no_place),
        cmocka_unit_test(a_restored_one_says_the_same),
    };
    return cmocka_run_group_tests_name("search_explain", tests, NULL, NULL);
}
