/* Asynchronous halving and its brackets, by examples worked out by hand from
 * docs/contract/search.md 5 and 6; the custom searcher's queue. */
#include "world.h"

#include "searcher.h"
#include <stdio.h>

static struct search *make(struct search_conf conf)
{
    static json_t *space;
    struct search *s = NULL;
    struct det_err err = {0};
    if (!space)
        space = json_object();
    conf.space = space;
    if (search_create(&conf, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

/* A search whose trials have the names a, b, c .. in order of creation. */
struct play {
    struct search *s;
    struct search_ops ops;
    char ids[64][UUID_STR_MAX];
    int n;
};

static char name_of(struct play *p, const char *id)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->ids[i], id) == 0)
            return (char)('a' + i);
    return '-';
}

/* "+a" a trial, "a100" its next length, "/a" closed, "." shut down, "!" with failure, "~"
 * cancel. */
static void tell(struct play *p, struct search_event ev, const char *want)
{
    char got[2048] = "";
    size_t at = 0;
    search_ops_finish(&p->ops);
    search_step(p->s, &ev, &p->ops);
    for (size_t i = 0; i < p->ops.ops.n; i++) {
        const struct search_op *op = &p->ops.ops.v[i];
        if (op->kind == SEARCH_CREATE)
            memcpy(p->ids[p->n++], op->request_id, UUID_STR_MAX);
        char c = name_of(p, op->request_id);
        if (op->kind == SEARCH_CREATE)
            at += (size_t)snprintf(got + at, sizeof got - at, "+%c ", c);
        else if (op->kind == SEARCH_VALIDATE_AFTER)
            at += (size_t)snprintf(got + at, sizeof got - at, "%c%lld ", c, (long long)op->length);
        else if (op->kind == SEARCH_CLOSE)
            at += (size_t)snprintf(got + at, sizeof got - at, "/%c ", c);
        else
            at += (size_t)snprintf(got + at, sizeof got - at, "%s ",
                                   op->failure  ? "!"
                                   : op->cancel ? "~"
                                                : ".");
    }
    if (at)
        got[at - 1] = '\0';
    assert_string_equal(got, want);
}

static void start(struct play *p, struct search_conf conf, const char *want)
{
    *p = (struct play){.s = make(conf)};
    tell(p, (struct search_event){.kind = SEARCH_EV_INITIAL}, want);
}
static void validated(struct play *p, char who, double metric, const char *want)
{
    tell(p,
         (struct search_event){
             .kind = SEARCH_EV_VALIDATED, .request_id = p->ids[who - 'a'], .metric = metric},
         want);
}
static void exited(struct play *p, char who, enum search_exit why, const char *want)
{
    tell(p,
         (struct search_event){
             .kind = SEARCH_EV_EXITED, .request_id = p->ids[who - 'a'], .reason = why},
         want);
}
static void closed(struct play *p, char who, const char *want)
{
    tell(p, (struct search_event){.kind = SEARCH_EV_CLOSED, .request_id = p->ids[who - 'a']}, want);
}
static void end(struct play *p)
{
    search_ops_finish(&p->ops);
    search_destroy(p->s);
}

static const struct search_conf asha = {.kind = SEARCH_ASYNC_HALVING,
                                        .max_length = 900,
                                        .max_trials = 4,
                                        .max_concurrent = 2,
                                        .num_rungs = 3,
                                        .divisor = 3};

static void test_promotion(void **state)
{
    struct play p;
    start(&p, asha, "+a a100 +b b100");
    validated(&p, 'a', 0.5, "+c c100");  /* 1 of 1: new = 0, nobody */
    validated(&p, 'b', 0.4, "+d d100");  /* 2: new = 0 */
    validated(&p, 'c', 0.3, "c300");     /* 3: new = 1, first of three */
    validated(&p, 'd', 0.6, "/b /a /d"); /* rung 0 is full and waits for nobody; c was promoted */
    assert_true(search_progress(p.s) > 4 / 4.8 - 1e-9);
    closed(&p, 'b', "");
    closed(&p, 'a', "");
    closed(&p, 'd', "");
    validated(&p, 'c', 0.2, "/c"); /* alone in rung 1: nobody goes up */
    closed(&p, 'c', ".");
    assert_true(search_progress(p.s) == 1);
    end(&p);
}

/* A later, worse metric lets the best of the rung up. */
static void test_promotes_another(void **state)
{
    struct play p;
    start(&p, asha, "+a a100 +b b100");
    validated(&p, 'a', 1, "+c c100");
    validated(&p, 'b', 2, "+d d100");
    validated(&p, 'c', 3, "a300"); /* old = 0, new = 1: the entry at 0 */
    validated(&p, 'a', 1, "");     /* rung 1, one entry; all four are made */
    validated(&p, 'd', 4, "/b /c /d /a");
    end(&p);
}

/* Equal metrics stand in order of arrival; larger is better when the configuration says so. */
static void test_order(void **state)
{
    struct search_conf conf = asha;
    struct play p;
    conf.larger_is_better = true;
    start(&p, conf, "+a a100 +b b100");
    validated(&p, 'a', 7, "+c c100");
    validated(&p, 'b', 7, "+d d100");
    validated(&p, 'c', 7, "a300"); /* inserted after its equals */
    validated(&p, 'd', 9, "d300 /b /c");
    end(&p);
}

static void test_crashes(void **state)
{
    struct play p;
    start(&p, asha, "+a a100 +b b100");
    exited(&p, 'a', SEARCH_ERRORED, "+c c100");
    closed(&p, 'a', "");
    exited(&p, 'b', SEARCH_ERRORED, "+d d100");
    closed(&p, 'b', "");
    /* The first of three promotes a, which failed: it fails in rung 1 as well, and nobody is left
     * to be made. */
    exited(&p, 'c', SEARCH_ERRORED, "");
    closed(&p, 'c', "");
    exited(&p, 'd', SEARCH_ERRORED, "");
    closed(&p, 'd', "!");
    end(&p);
}

static void test_invalid_is_replaced(void **state)
{
    struct play p;
    struct search_conf conf = asha;
    conf.max_trials = 2;
    start(&p, conf, "+a a100 +b b100");
    exited(&p, 'a', SEARCH_INVALID_HP, "/a +c c100");
    closed(&p, 'a', "");
    validated(&p, 'b', 1, "");
    validated(&p, 'c', 2, "/b /c");
    closed(&p, 'b', "");
    closed(&p, 'c', ".");
    end(&p);
}

/* Killed while it waits for its promotion: its metric counts once. */
static void test_killed_while_idle(void **state)
{
    struct play p;
    start(&p, asha, "+a a100 +b b100");
    validated(&p, 'a', 1, "+c c100");
    exited(&p, 'a', SEARCH_USER_CANCELED, "");
    closed(&p, 'a', "");
    validated(&p, 'b', 2, "+d d100");
    validated(&p, 'c', 3, ""); /* promotes a, which is gone */
    validated(&p, 'd', 4, "/b /c /d");
    closed(&p, 'b', "");
    closed(&p, 'c', "");
    closed(&p, 'd', ".");
    end(&p);
}

static void test_stop_once(void **state)
{
    struct search_conf conf = asha;
    struct play p;
    conf.stop_once = true;
    start(&p, conf, "+a a100 +b b100");
    validated(&p, 'a', 5, "a300");       /* the first always goes on */
    validated(&p, 'b', 6, "/b +c c100"); /* 2: new = max(0, 1) = 1, position 1 */
    validated(&p, 'c', 5, "c300");       /* before its equal: position 0 */
    validated(&p, 'a', 1, "a900");
    validated(&p, 'a', 1, "/a +d d100"); /* the top */
    exited(&p, 'd', SEARCH_ERRORED, ""); /* leaves its metric, and is over */
    validated(&p, 'c', 9, "/c");
    end(&p);
}

static void test_initial_without_a_limit(void **state)
{
    struct search_conf conf = asha;
    struct play p;
    conf.max_concurrent = 0; /* clamp(3^2, 1, 4) */
    start(&p, conf, "+a a100 +b b100 +c c100 +d d100");
    end(&p);
    conf.max_trials = 50;
    start(&p, conf, "+a a100 +b b100 +c c100 +d d100 +e e100 +f f100 +g g100 +h h100 +i i100");
    end(&p);
}

/* How many trials of `s`, which has at most 4 rungs of divisor 4 up to 256, begin in a bracket of r
 * rungs. Takes s. */
static void assert_brackets(struct search *s, const int trials[5])
{
    static const int64_t first[5] = {0, 256, 64, 16, 4};
    struct search_ops ops = {0};
    int n[5] = {0};
    search_step(s, &(struct search_event){.kind = SEARCH_EV_INITIAL}, &ops);
    for (size_t k = 0; k < ops.ops.n; k++)
        for (int r = 1; r < 5; r++)
            n[r] += ops.ops.v[k].kind == SEARCH_VALIDATE_AFTER && ops.ops.v[k].length == first[r];
    assert_memory_equal(n, trials, sizeof n);
    search_ops_finish(&ops);
    search_destroy(s);
}

/* 64 trials, 256 units, divisor 4: at most 4 rungs; standard is 4, 3, 2. Weights 64/4, 16/3, 4/2
 * of 23.33 give 43, 14, 5 and the 2 left over to the first. Rung 0 of n rungs is 256 / 4^(n-1). */
static void test_adaptive_shares(void **state)
{
    static const struct {
        enum search_mode mode;
        const char *given;
        int trials[5];
    } cases[] = {
        {SEARCH_STANDARD, "[]", {0, 0, 5, 14, 45}},
        {SEARCH_AGGRESSIVE, "[]", {0, 0, 0, 0, 64}},
        {SEARCH_CONSERVATIVE, "[]", {0, 2, 5, 14, 43}},
        {SEARCH_STANDARD, "[2, 3]", {0, 0, 17, 47, 0}},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        JSON_OWN given = json_parse(cases[i].given, strlen(cases[i].given), NULL);
        struct search *s = make((struct search_conf){.kind = SEARCH_ADAPTIVE_ASHA,
                                                     .max_length = 256,
                                                     .max_trials = 64,
                                                     .divisor = 4,
                                                     .max_rungs = 5,
                                                     .mode = cases[i].mode,
                                                     .bracket_rungs = given,
                                                     .max_concurrent = 999});
        assert_brackets(s, cases[i].trials);
    }
}

/* C = 10 over 3 brackets: 4, 3, 3. Without a limit: the trials of the last bracket, but at least
 * the divisor. */
static void test_adaptive_concurrency(void **state)
{
    static const struct {
        int64_t limit;
        int trials[5];
    } cases[] = {{10, {0, 0, 3, 3, 4}}, {1, {0, 0, 1, 1, 1}}, {0, {0, 0, 5, 5, 5}}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct search *s = make((struct search_conf){.kind = SEARCH_ADAPTIVE_ASHA,
                                                     .max_length = 256,
                                                     .max_trials = 64,
                                                     .divisor = 4,
                                                     .max_rungs = 5,
                                                     .mode = SEARCH_STANDARD,
                                                     .max_concurrent = cases[i].limit});
        assert_brackets(s, cases[i].trials);
    }
}

static void test_refused(void **state)
{
    static const struct search_conf bad[] = {
        {.kind = SEARCH_ASYNC_HALVING,
         .max_length = 9,
         .max_trials = 9,
         .num_rungs = 1000,
         .divisor = 4},
        {.kind = SEARCH_ASYNC_HALVING,
         .max_length = 9,
         .max_trials = 9,
         .num_rungs = 2,
         .divisor = 1},
        {.kind = SEARCH_ADAPTIVE_ASHA,
         .max_length = 1 << 30,
         .max_trials = 1 << 30,
         .max_rungs = 1 << 30,
         .divisor = 1.0001},
        {.kind = SEARCH_ADAPTIVE_ASHA, .max_length = 0, .max_trials = 9, .divisor = 4},
        {.kind = SEARCH_RANDOM, .max_length = 9, .max_trials = 2000000000},
        {.kind = SEARCH_ASYNC_HALVING,
         .max_length = 9,
         .max_trials = 2000000000,
         .num_rungs = 60,
         .divisor = 4},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        struct search *s;
        struct det_err err = {0};
        assert_int_equal(search_create(&bad[i], &s, &err), DET_EINVAL);
        assert_non_null(strstr(err.text, "searcher"));
    }
}

/* ---- custom ---- */

#define ID_A "11111111-1111-4111-8111-111111111111"

static void post(struct play *p, int64_t ack, const char *ops, const char *want)
{
    JSON_OWN j = json_parse(ops, strlen(ops), NULL);
    assert_non_null(j);
    tell(p, (struct search_event){.kind = SEARCH_EV_OPERATIONS, .ack = ack, .operations = j}, want);
}

static void waiting(const struct play *p, const char *want)
{
    det_cleanup(freep) char *got = json_text(search_undelivered(p->s));
    assert_string_equal(got, want);
}

static void test_custom(void **state)
{
    struct play p;
    start(&p, (struct search_conf){.kind = SEARCH_CUSTOM}, "");
    waiting(&p, "[{\"id\":1,\"initialOperations\":{}}]");
    assert_int_equal(search_check_ack(p.s, 2, NULL), DET_EINVAL);
    assert_int_equal(search_check_ack(p.s, 1, NULL), 0);
    post(&p, 1,
         "[{\"createTrial\":{\"requestId\":\"" ID_A "\",\"hyperparams\":\"{\\\"x\\\":1}\"}},"
         "{\"nonsense\":1}, {\"trialOperation\":{\"validateAfter\":{\"requestId\":\"" ID_A
         "\",\"length\":\"7\"}}},{\"setSearcherProgress\":{\"progress\":0.25}}]",
         "+a a7");
    assert_int_equal(p.ops.ops.v[0].trial_seed, 42);
    assert_int_equal(json_int(p.ops.ops.v[0].hparams, "x", 0), 1);
    assert_true(search_progress(p.s) == 0.25);
    waiting(&p, "[{\"id\":2,\"trialCreated\":{\"requestId\":\"" ID_A "\"}}]");
    tell(&p, (struct search_event){.kind = SEARCH_EV_PROGRESS, .request_id = ID_A, .units = 3.5},
         "");
    JSON_OWN metric = json_make("{s:i}", "loss", 3);
    tell(&p,
         (struct search_event){
             .kind = SEARCH_EV_VALIDATED, .request_id = ID_A, .length = 7, .value = metric},
         "");
    post(&p, 2, "[]", "");
    waiting(&p, "[{\"id\":3,\"trialProgress\":{\"requestId\":\"" ID_A "\",\"partialUnits\":3.5}},"
                "{\"id\":4,\"validationCompleted\":{\"requestId\":\"" ID_A "\",\"metric\":"
                "{\"loss\":3},\"validateAfterLength\":\"7\"}}]");
    post(&p, 4, "[{\"closeTrial\":{\"requestId\":\"" ID_A "\"}}]", "/a");
    post(&p, 0, "[{\"closeTrial\":{\"requestId\":\"" ID_A "\"}}]", "");
    exited(&p, 'a', SEARCH_USER_CANCELED, "");
    closed(&p, 'a', "");
    waiting(&p, "[{\"id\":5,\"trialExitedEarly\":{\"requestId\":\"" ID_A "\",\"exitedReason\":"
                "\"EXITED_REASON_USER_CANCELED\"}},{\"id\":6,\"trialClosed\":{\"requestId\":\"" ID_A
                "\"}}]");
    post(&p, 6, "[{\"shutDown\":{\"failure\":true}}]", "!");
    post(&p, 0, "[{\"shutDown\":{}}]", "");
    end(&p);
}

static void test_custom_operations(void **state)
{
    static const char *const bad[] = {
        "[]",
        "5",
        "{}",
        "{\"createTrial\":5}",
        "{\"createTrial\":{}}",
        "{\"createTrial\":{\"requestId\":\"x\",\"hyperparams\":\"{}\"}}",
        "{\"createTrial\":{\"requestId\":\"" ID_A "\",\"hyperparams\":\"[]\"}}",
        "{\"createTrial\":{\"requestId\":\"" ID_A "\",\"hyperparams\":\"{\"}}",
        "{\"trialOperation\":{}}",
        "{\"trialOperation\":{\"validateAfter\":{}}}",
        "{\"trialOperation\":{\"validateAfter\":{\"requestId\":\"" ID_A "\",\"length\":0}}}",
        "{\"trialOperation\":{\"validateAfter\":{\"requestId\":\"" ID_A "\",\"length\":\"x\"}}}",
        "{\"setSearcherProgress\":{\"progress\":2}}",
        "{\"closeTrial\":{\"requestId\":1}}",
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(bad); i++) {
        struct det_err err = {0};
        JSON_OWN j = json_parse(bad[i], strlen(bad[i]), NULL);
        assert_int_equal(search_check_operation(j, &err), DET_EINVAL);
        assert_true(err.text[0] != '\0');
    }
    JSON_OWN snake = json_make("{s:{s:s}}", "close_trial", "request_id", ID_A);
    assert_int_equal(search_check_operation(snake, NULL), 0);
}

/* reason: JSON. */
static void closes_for(const char *reason, const char *want)
{
    struct play p;
    det_cleanup(freep) char *close =
        det_asprintf("[{\"closeTrial\":{\"requestId\":\"" ID_A "\",\"reason\":%s}}]", reason);
    start(&p, (struct search_conf){.kind = SEARCH_CUSTOM}, "");
    post(&p, 0, "[{\"createTrial\":{\"requestId\":\"" ID_A "\",\"hyperparams\":\"{}\"}}]", "+a");
    post(&p, 0, close, "/a");
    const char *got = json_string_value(p.ops.ops.v[0].reason);
    if (want)
        assert_string_equal(got, want);
    else
        assert_null(got);
    end(&p);
}

/* Whatever is given, the trial is closed. */
static void test_reasons_to_close(void **state)
{
    char lots[604] = "\"", cut[504] = "";
    memset(lots + 1, 'x', 600);
    memcpy(lots + 601, "\"", 2);
    memset(cut, 'x', SEARCH_REASON_MAX);
    memcpy(cut + SEARCH_REASON_MAX, "...", 4);
    closes_for("\" worse\\nthan \\u001b[1m0.3.. \\n\"", "worse?than ?[1m0.3");
    closes_for(lots, cut);
    closes_for("\" . \"", NULL);
    closes_for("null", NULL);
    closes_for("[7]", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promotion),
        cmocka_unit_test(test_promotes_another),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_crashes),
        cmocka_unit_test(test_invalid_is_replaced),
        cmocka_unit_test(test_killed_while_idle),
        cmocka_unit_test(test_stop_once),
        cmocka_unit_test(test_initial_without_a_limit),
        cmocka_unit_test(test_adaptive_shares),
        cmocka_unit_test(test_adaptive_concurrency),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_custom),
        cmocka_unit_test(test_custom_operations),
        cmocka_unit_test(test_reasons_to_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
