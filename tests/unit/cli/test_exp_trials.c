/* The order of an experiment's trials, and what their columns hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "exp_trials.h"
#include "experiment.h"
#include <string.h>

/* What the verb itself needs, and this test does not. */
int experiment_get(struct cli *c, int64_t id, json_t **ret, struct det_err *err)
{
    return -1;
}
int cli_get(struct cli *c, json_t **ret, struct det_err *err, const char *fmt, ...)
{
    return -1;
}
int cli_arg_id(const struct cli *c, size_t i, const char *what, int64_t *ret, struct det_err *err)
{
    return -1;
}
bool cli_print_json(const struct cli *c, const json_t *answer)
{
    return false;
}

static const char TRIALS[] =
    "[{\"id\": 1, \"hparams\": {\"net\": {\"lr\": 0.1}}, \"bestValidation\": null},"
    " {\"id\": 2, \"hparams\": {\"net\": {\"lr\": 0.3}},"
    "  \"bestValidation\": {\"totalBatches\": 7, \"metrics\": {\"avgMetrics\": {\"loss\": 0.5, \"f1\": 0.2}}}},"
    " {\"id\": 3, \"hparams\": {\"net\": {\"lr\": 0.2}},"
    "  \"bestValidation\": {\"metrics\": {\"avgMetrics\": {\"loss\": \"NaN\"}}}},"
    " {\"id\": 5, \"bestValidation\": {\"metrics\": {\"avgMetrics\": {\"loss\": 0.25}}}},"
    " {\"id\": 4, \"bestValidation\": {\"metrics\": {\"avgMetrics\": {\"loss\": 0.25}}}}]";

static void assert_order(const char *key, bool larger, const char *order)
{
    struct trials_judge by = {.metric = "loss", .larger_is_better = larger};
    JSON_OWN trials = json_parse(TRIALS, strlen(TRIALS), NULL);
    struct buf got = BUF_INIT;
    size_t i;
    json_t *t;
    trials_sort(trials, key, &by);
    json_array_foreach(trials, i, t) buf_addf(&got, "%d", (int)json_int(t, "id", 0));
    assert_string_equal(buf_str(&got), order);
    buf_finish(&got);
}

/* What has no value is last both ways, and a value that is no number just before that. */
static void the_best_is_first(void **state)
{
    assert_order("best", false, "45231");
    assert_order("best", true, "24531");
    assert_order("-best", false, "24531");
    assert_order("trial", false, "12345");
    assert_order("-trial", true, "54321");
    assert_order("net.lr", false, "13245");
    assert_order("f1", false, "21345");
}

static void columns_have_values(void **state)
{
    struct trials_judge by = {.metric = "loss"};
    JSON_OWN trials = json_parse(TRIALS, strlen(TRIALS), NULL);
    const json_t *t = json_array_get(trials, 1);
    assert_int_equal(json_integer_value(trials_value(t, "best-at", &by)), 7);
    assert_true(json_number_value(trials_value(t, "best", &by)) == 0.5);
    assert_true(json_number_value(trials_value(t, "net.lr", &by)) == 0.3);
    assert_null(trials_value(json_array_get(trials, 0), "best", &by));
    assert_null(trials_value(t, "nosuch", &by));
    JSON_OWN trained =
        json_make("{s:{s:{s:{s:f}}}}", "summaryMetrics", "avg_metrics", "l2", "last", 0.75);
    assert_true(json_number_value(trials_value(trained, "l2", &by)) == 0.75);
}

static void is_marked(const char *trial, const char *mark)
{
    JSON_OWN t = json_parse(trial, strlen(trial), NULL);
    assert_string_equal(trials_mark(t, true), mark);
}

static void the_best_says_whether_it_was_kept(void **state)
{
    is_marked(
        "{\"bestValidation\": {\"totalBatches\": 7}, \"bestCheckpoint\": {\"totalBatches\": 7}}",
        "* best");
    is_marked(
        "{\"bestValidation\": {\"totalBatches\": 7}, \"bestCheckpoint\": {\"totalBatches\": 9}}",
        "* best, without a checkpoint");
    is_marked("{\"bestValidation\": {\"totalBatches\": 7}, \"bestCheckpoint\": null}",
              "* best, without a checkpoint");
}

/* Another row says it where there is a checkpoint that one might take for it. */
static void others_say_whose_their_checkpoint_is(void **state)
{
    static const struct {
        int at;
        const char *mark;
    } said[] = {{7, ""}, {9, "its best without a checkpoint"}};
    for (size_t i = 0; i < DET_ARRAY_LEN(said); i++) {
        JSON_OWN t = json_make("{s:{s:i}, s:{s:i}}", "bestValidation", "totalBatches", 7,
                               "bestCheckpoint", "totalBatches", said[i].at);
        assert_string_equal(trials_mark(t, false), said[i].mark);
    }
    JSON_OWN none = json_object();
    assert_string_equal(trials_mark(none, false), "");
}

/* The API calls them COMPLETED, as those that trained to the end. */
static void those_that_the_searcher_stopped_say_so(void **state)
{
    static const char all[] = "[{\"id\": 1, \"state\": \"STATE_COMPLETED\"},"
                              " {\"id\": 2, \"state\": \"STATE_COMPLETED\"},"
                              " {\"id\": 3, \"state\": \"STATE_CANCELED\"}]";
    static const char answer[] =
        "{\"brackets\": [{\"rungs\": [{\"trials\": [{\"trialId\": 1, \"state\": \"WENT_ON\"},"
        " {\"trialId\": 2, \"state\": \"STOPPED\"}, {\"trialId\": 3, \"state\": \"STOPPED\"}]},"
        " {\"trials\": [{\"trialId\": 1, \"state\": \"TOP\"}]}]}]}";
    JSON_OWN trials = json_parse(all, strlen(all), NULL);
    JSON_OWN rungs = json_parse(answer, strlen(answer), NULL);
    const char *const marks[] = {"", "stopped by the searcher", ""};
    trials_note_stopped(trials, rungs);
    for (size_t i = 0; i < DET_ARRAY_LEN(marks); i++)
        assert_string_equal(trials_mark(json_array_get(trials, i), false), marks[i]);
    struct trials_judge by = {0};
    const json_t *where = trials_value(json_array_get(trials, 1), "stopped", &by);
    assert_string_equal(json_string_value(where), "after rung 1 of 2");
}

/* A page does not have another best than the whole. */
static void the_best_is_that_of_all(void **state)
{
    struct trials_judge by = {.metric = "loss"};
    JSON_OWN trials = json_parse(TRIALS, strlen(TRIALS), NULL);
    assert_int_equal(trials_best(trials, &by), 4);
    by.metric = "nosuch";
    assert_int_equal(trials_best(trials, &by), 0);
}

static void durations_have_an_order(void **state)
{
    static const char text[] =
        "[{\"id\": 1, \"startTime\": \"2026-01-01T00:00:00Z\", \"endTime\": \"2026-01-01T00:00:30Z\"},"
        " {\"id\": 2, \"startTime\": \"2026-01-01T00:00:00Z\", \"endTime\": \"2026-01-01T00:00:04Z\"},"
        " {\"id\": 3}]";
    struct trials_judge by = {.metric = "loss"};
    JSON_OWN trials = json_parse(text, strlen(text), NULL);
    trials_sort(trials, "duration", &by);
    assert_int_equal(json_int(json_array_get(trials, 0), "id", 0), 2);
    trials_sort(trials, "-duration", &by);
    assert_int_equal(json_int(json_array_get(trials, 0), "id", 0), 1);
    assert_int_equal(json_int(json_array_get(trials, 2), "id", 0), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_is_first),
                                       cmocka_unit_test(columns_have_values),
                                       cmocka_unit_test(those_that_the_searcher_stopped_say_so),
                                       cmocka_unit_test(others_say_whose_their_checkpoint_is),
                                       cmocka_unit_test(the_best_is_that_of_all),
                                       cmocka_unit_test(durations_have_an_order),
                                       cmocka_unit_test(the_best_says_whether_it_was_kept)};
    return cmocka_run_group_tests_name("trials", tests, NULL, NULL);
}
