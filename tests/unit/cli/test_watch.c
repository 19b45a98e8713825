/* The screen of det experiment watch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "experiment.h"
#include "watch.h"
#include <stdio.h>
#include <string.h>

static json_t *parsed(const char *text)
{
    json_t *j = json_parse(text, strlen(text), NULL);
    assert_non_null(j);
    return j;
}

static json_t *experiment(void)
{
    return parsed(
        "{\"id\": 3, \"name\": \"n\xc3\xa4me\\u001b[2J\", \"state\": \"STATE_RUNNING\", \"progress\": 0.25,"
        " \"numTrials\": 2, \"resourcePool\": \"default\","
        " \"config\": {\"searcher\": {\"metric\": \"f1\", \"max_length\": {\"batches\": 100}}, \"resources\": {\"slots_per_trial\": 1}}}");
}

static json_t *trials(void)
{
    return parsed(
        "[{\"id\": 7, \"state\": \"STATE_RUNNING\", \"totalBatchesProcessed\": 50,"
        " \"summaryMetrics\": {\"avg_metrics\": {\"loss\": {\"last\": 0.123456}}},"
        " \"latestValidation\": {\"metrics\": {\"avgMetrics\": {\"f1\": 0.75}}},"
        " \"bestValidation\": {\"totalBatches\": 40, \"metrics\": {\"avgMetrics\": {\"f1\": 0.875}}}}]");
}

static size_t columns_of(const char *line, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)line[i] & 0xc0) != 0x80;
    return n;
}

static void fits(int columns, int rows, const char *holds)
{
    static const struct plot_point v[] = {{0, 0.1}, {10, 0.5}, {20, 0.875}};
    struct plot_line line = {"trial 7, validation", v, 3};
    struct curves curves = {&line, 1};
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    JSON_OWN first = parsed("{\"7\": [10.0, 0.0]}");
    struct watch_view view = {.experiment = e,
                              .trials = t,
                              .best = json_array_get(t, 0),
                              .why = "trial 8 waits: it asks for 1 slot",
                              .curves = &curves,
                              .seconds = 2,
                              .first = first,
                              .columns = columns,
                              .rows = rows};
    struct buf out = BUF_INIT;
    watch_screen(&view, &out);
    int lines = 0;
    for (const char *p = buf_str(&out); *p; p += strcspn(p, "\n"), p += *p == '\n', lines++)
        assert_true(columns_of(p, strcspn(p, "\n")) <= (size_t)columns);
    assert_true(lines < rows);
    assert_null(strchr(buf_str(&out), '\033'));
    if (!strstr(buf_str(&out), holds))
        fail_msg("%s is not in:\n%s", holds, buf_str(&out));
    buf_finish(&out);
}

static void it_fits_the_terminal(void **state)
{
    fits(100, 30,
         "trial 7     ####.... RUNNING   batch 50  validation f1 0.75  20 batches/s, 2 s left"
         "  loss 0.1235\n");
    fits(140, 30, "trial 7     ##########.......... RUNNING   batch 50  validation f1 0.75  20 b");
    fits(100, 30, "best so far: trial 7, f1 0.875 at batch 40, no checkpoint yet");
    fits(100, 30, "trial 8 waits: it asks for 1 slot");
    fits(100, 30, "\xe2\xa0"); /* a curve */
    fits(79, 24, "trial 7      50% RUNNING   batch 50  validation f1 0.75  20/s, 2 s left\n");
    fits(50, 24, "trial 7      50% RUNNING   batch 50  2 s left\n"); /* what fits whole */
    fits(66, 24, "trial 7      50% RUNNING   batch 50  validation f1 0.75  2 s left\n");
    fits(40, 24, "trial 7      50% RUNNING   batch 50\n");
    fits(20, 24, "trial 8 waits: it\nasks for 1 slot\n");
    fits(24, 12, "experiment 3  n\xc3\xa4me");
    fits(44, 12, "experiment 3  n\xc3\xa4me[2J  RUNNING 25%\n"); /* no "2" of "2 trials" */
    fits(32, 12, "\nbest so far: trial 7, f1 0.875\nat batch 40,\nno checkpoint yet\n");
    fits(20, 5, "experiment 3  n\xc3\xa4me"); /* its beginning, whatever the rows */
}

/* One that has ended gets no checkpoint any more. */
static void the_best_has_ended(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    struct watch_view view = {
        .experiment = e, .trials = t, .best = json_array_get(t, 0), .columns = 100, .rows = 30};
    struct buf out = BUF_INIT;
    json_set(json_array_get(t, 0), "endTime", json_string("2026-01-31T08:00:00Z"));
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "f1 0.875 at batch 40, without a checkpoint\n"));
    buf_finish(&out);
}

/* Two columns each, of which half a one is not shown. */
static void wide_names_fit_too(void **state)
{
    JSON_OWN e = experiment();
    json_set(e, "name", json_string("\xe5\x90\x8d\xe5\x89\x8d")); /* two characters */
    for (int columns = 16; columns <= 17; columns++) {
        struct watch_view view = {.experiment = e, .columns = columns, .rows = 4};
        det_cleanup(buf_finish) struct buf out = BUF_INIT;
        watch_screen(&view, &out);
        assert_string_equal(buf_str(&out), "experiment 3  \xe5\x90\x8d\n");
    }
}

/* A whole line, so that one can copy it. */
static void a_checkpoint_is_never_cut(void **state)
{
    static const char uuid[] = "0a1b2c3d-0000-4000-8000-000000000001";
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    JSON_OWN kept = json_make("{s:s, s:i}", "uuid", uuid, "totalBatches", 40);
    json_set(json_array_get(t, 0), "bestCheckpoint", json_incref(kept));
    for (int columns = 60; columns <= 120; columns += 60) {
        struct watch_view view = {.experiment = e,
                                  .trials = t,
                                  .best = json_array_get(t, 0),
                                  .columns = columns,
                                  .rows = 24};
        det_cleanup(buf_finish) struct buf out = BUF_INIT;
        watch_screen(&view, &out);
        assert_non_null(strstr(buf_str(&out), columns == 60 ? "batch 40,\ncheckpoint 0a1b2c3d"
                                                            : "batch 40, checkpoint 0a1b2c3d"));
        assert_non_null(strstr(buf_str(&out), "-000000000001\n"));
        json_set(kept, "totalBatches", json_integer(30)); /* not of the best validation */
        buf_clear(&out);
        watch_screen(&view, &out);
        assert_non_null(strstr(buf_str(&out), "-000000000001 of batch 30\n"));
        json_set(kept, "totalBatches", json_integer(40));
    }
}

/* Who runs is not pushed off the screen by who waits. */
static void those_that_wait_are_counted(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    for (int i = 0; i < 9; i++)
        json_array_append_new(t, json_make("{s:i, s:s}", "id", 10 + i, "state", "STATE_QUEUED"));
    struct watch_view view = {.experiment = e, .trials = t, .columns = 100, .rows = 10};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "trial 7 "));
    assert_non_null(strstr(buf_str(&out), "\n9 more wait\n"));
    assert_null(strstr(buf_str(&out), "QUEUED"));
}

/* In a halving search most wait for a promotion, and some of them came first. */
static void those_that_run_are_shown_before_those_that_wait_for_the_search(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = json_array();
    for (int i = 1; i <= 9; i++)
        json_array_append_new(t, json_make("{s:i, s:s}", "id", i, "state",
                                           i == 5 || i == 9 ? "STATE_RUNNING" : "STATE_ACTIVE"));
    struct watch_view view = {.experiment = e, .trials = t, .columns = 60, .rows = 6};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    watch_screen(&view, &out); /* the head, three trials and the others */
    assert_non_null(strstr(buf_str(&out), "\ntrial 1 "));
    assert_null(strstr(buf_str(&out), "\ntrial 2 "));
    assert_non_null(strstr(buf_str(&out), "\ntrial 5 "));
    assert_non_null(strstr(buf_str(&out), "\ntrial 9 "));
    assert_non_null(strstr(buf_str(&out), "\n6 more\n"));
}

/* The master was asked for the first few only. */
static void the_others_are_counted_too(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    struct watch_view view = {
        .experiment = e, .trials = t, .total = 960, .columns = 100, .rows = 9};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "\n959 more\n"));
    view.rows = 3; /* no room for it */
    buf_clear(&out);
    watch_screen(&view, &out);
    assert_null(strstr(buf_str(&out), "trial 7"));
    assert_non_null(strstr(buf_str(&out), "\n960 trials\n"));
}

/* What a trial did before the screen began, and while it waited, is no speed of it. */
static void who_does_not_run_has_no_speed(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    JSON_OWN first = parsed("{\"7\": [10.0, 20.0]}");
    JSON_OWN none = json_object();
    struct watch_view view = {
        .experiment = e, .trials = t, .first = first, .seconds = 22, .columns = 100, .rows = 24};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "  20 batches/s, 2 s left"));
    view.first = none;
    buf_clear(&out);
    watch_screen(&view, &out);
    assert_null(strstr(buf_str(&out), "batches/s"));
}

/* Its start, in which it imports and loads, is no training. */
static void the_speed_is_from_the_first_report(void **state)
{
    static const struct {
        const char *trial;
        double seconds;
        const char *kept;
    } steps[] = {
        {"{\"id\": 7, \"state\": \"STATE_QUEUED\"}", 1, "{}"},
        {"{\"id\": 7, \"state\": \"STATE_RUNNING\"}", 2, "{\"7\": [0.0, 2.0, false]}"},
        {"{\"id\": 7, \"state\": \"STATE_RUNNING\"}", 3, "{\"7\": [0.0, 2.0, false]}"},
        {"{\"id\": 7, \"state\": \"STATE_RUNNING\", \"totalBatchesProcessed\": 10}", 8,
         "{\"7\": [10.0, 8.0, true]}"},
        {"{\"id\": 7, \"state\": \"STATE_RUNNING\", \"totalBatchesProcessed\": 30}", 9,
         "{\"7\": [10.0, 8.0, true]}"},
        {"{\"id\": 7, \"state\": \"STATE_RUNNING\", \"totalBatchesProcessed\": 5}", 10, /* anew */
         "{\"7\": [5.0, 10.0, false]}"},
        {"{\"id\": 7, \"state\": \"STATE_ACTIVE\", \"totalBatchesProcessed\": 5}", 11, "{}"},
    };
    JSON_OWN first = json_object();
    for (size_t i = 0; i < DET_ARRAY_LEN(steps); i++) {
        JSON_OWN t = parsed(steps[i].trial);
        JSON_OWN kept = parsed(steps[i].kept);
        watch_note(t, steps[i].seconds, first);
        if (!json_equal(first, kept))
            fail_msg("step %zu", i);
    }
}

static void a_long_reason_says_that_there_is_more(void **state)
{
    JSON_OWN e = experiment();
    struct watch_view view = {.experiment = e,
                              .why = "trial 8 waits: it asks for 1 slot; its experiment holds 4, "
                                     "its fair share of pool default is 4 now, and no other",
                              .columns = 59,
                              .rows = 8};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out),
                           "\ntrial 8 waits: it asks for 1 slot; its experiment holds 4,\n"
                           "its fair share of pool default is 4 now, and no other\n"));
    view.columns = 49;
    buf_clear(&out);
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "\nholds 4, its fair share of pool default is 4 ...\n"));
}

static void what_runs_elsewhere_has_no_slots_and_may_take_long(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    JSON_OWN first = parsed("{\"7\": [49.0, 0.0]}");
    json_set(e, "unmanaged", json_true());
    const struct {
        double seconds;
        const char *left;
    } cases[] = {{1, "50 s left"},
                 {30, "25 min left"},
                 {360, "5 h left"},
                 {3400, "47 h left"},
                 {36000, "21 days left"}};
    for (size_t i = 0; i < DET_ARRAY_LEN(cases); i++) {
        struct watch_view view = {.experiment = e,
                                  .trials = t,
                                  .first = first,
                                  .seconds = cases[i].seconds,
                                  .columns = 120,
                                  .rows = 24};
        struct buf out = BUF_INIT;
        watch_screen(&view, &out);
        assert_non_null(strstr(buf_str(&out), "2 trials, which run elsewhere\n"));
        if (!strstr(buf_str(&out), cases[i].left))
            fail_msg("%s: %s", cases[i].left, buf_str(&out));
        buf_finish(&out);
    }
}

/* Colours take no column, and none goes on behind a line that is cut. */
static void curves_are_told_apart(void **state)
{
    static const struct plot_point v[] = {{0, 0.1}, {10, 0.5}}, w[] = {{0, 0.5}, {10, 0.1}};
    struct plot_line lines[] = {{"trial 7, validation", v, 2}, {"trial 8, validation", w, 2}};
    struct curves curves = {lines, 2};
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    struct watch_view view = {.experiment = e,
                              .trials = t,
                              .curves = &curves,
                              .coloured = true,
                              .columns = 34,
                              .rows = 24};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    watch_screen(&view, &out);
    const char *cut = "\nvalidation f1 of trials \033[36m7\033[0m; \033[33m8\033[0m\n";
    assert_non_null(strstr(buf_str(&out), cut));
    json_set(json_path(e, "config.searcher"), "metric", json_string("\033[8mf1"));
    buf_clear(&out);
    watch_screen(&view, &out);
    assert_null(strstr(buf_str(&out), "\033[8m")); /* what a name would hide */
    json_set(json_path(e, "config.searcher"), "metric", json_string("f1"));
    view.coloured = false;
    view.plain = true;
    buf_clear(&out);
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "\nvalidation f1 of trials * 7; + 8\n"));
    assert_null(strchr(buf_str(&out), '\033'));
}

static void without_a_screen_it_is_a_line(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    struct buf out = BUF_INIT;
    watch_line(json_array_get(t, 0), e, NULL, &out);
    assert_string_equal(buf_str(&out),
                        "trial 7 RUNNING, batch 50  loss 0.1235  validation f1 0.75");
    buf_clear(&out);
    watch_line(json_array_get(t, 0), e, "loss", &out);
    assert_string_equal(buf_str(&out), "trial 7 RUNNING, batch 50  loss 0.1235");
    buf_finish(&out);
}

/* One that was asked for stands where the searcher's does, and before the speed. */
static void another_metric_is_shown(void **state)
{
    static const struct plot_point v[] = {{0, 0.1}, {10, 0.5}};
    struct plot_line line = {"trial 7, training", v, 2};
    struct curves curves = {&line, 1}, none = {0};
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    JSON_OWN first = parsed("{\"7\": [10.0, 0.0]}");
    struct watch_view view = {.experiment = e,
                              .trials = t,
                              .curves = &curves,
                              .seconds = 2,
                              .first = first,
                              .metric = "loss",
                              .keys = true,
                              .columns = 100,
                              .rows = 24};
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "batch 50  loss 0.1235  20 batches/s, 2 s left\n"));
    assert_non_null(strstr(buf_str(&out), "\ntraining loss\n"));
    assert_non_null(strstr(buf_str(&out), "pool default  (q leaves)\n"));
    view.curves = &none;
    view.metric = "lost";
    buf_clear(&out);
    watch_screen(&view, &out);
    assert_non_null(strstr(buf_str(&out), "\nno report has lost yet; there are loss\n"));
    view.columns = 30;
    buf_clear(&out);
    watch_screen(&view, &out);
    assert_null(strstr(buf_str(&out), "leaves"));
}

static void is_long(const char *length, const char *more, const char *hparams, double batches)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"progress\": 0.25, %s \"config\": {\"searcher\": {\"max_length\": %s},"
             " \"records_per_epoch\": %s}}",
             more, length, *hparams ? "640" : "0");
    JSON_OWN e = parsed(text);
    snprintf(text, sizeof text,
             "{\"state\": \"STATE_RUNNING\", \"totalBatchesProcessed\": 50, \"hparams\": {%s}}",
             hparams);
    JSON_OWN t = parsed(text);
    assert_float_equal(trial_target(t, e), batches, 1e-9);
    assert_float_equal(trial_fraction(t, e), batches > 0 ? 50 / batches : 0, 1e-9);
}

static void losses_come_before_other_values(void **state)
{
    struct buf out = BUF_INIT;
    JSON_OWN e = experiment();
    JSON_OWN t = parsed("{\"id\": 7, \"state\": \"STATE_RUNNING\", \"totalBatchesProcessed\": 50,"
                        " \"summaryMetrics\": {\"avg_metrics\": {\"acc\": {\"last\": 1},"
                        " \"z_loss\": {\"last\": 2}, \"loss\": {\"last\": 3}}}}");
    watch_line(t, e, NULL, &out);
    assert_string_equal(buf_str(&out), "trial 7 RUNNING, batch 50  loss 3  z_loss 2  acc 1");
    buf_finish(&out);
}

static void the_length_is_the_configurations(void **state)
{
    is_long("{\"batches\": 100}", "", "", 100);
    is_long("100", "", "", 100);
    is_long("{\"records\": 6400}", "", "\"global_batch_size\": 64", 100);
    is_long("{\"epochs\": 10}", "", "\"global_batch_size\": 64", 100);
}

/* The epochs of a trial that says nothing of their length. */
static void the_progress_of_a_single_trial_tells_its_length(void **state)
{
    is_long("{\"epochs\": 10}", "\"numTrials\": 1,", "", 200);
    is_long("{\"epochs\": 10}", "\"numTrials\": 2,", "", 0);
}

/* Of a length in epochs, where there are other trials beside it. */
static void epochs_are_measured_by_what_the_trial_says(void **state)
{
    JSON_OWN e = experiment();
    JSON_OWN t = trials();
    json_t *trial = json_array_get(t, 0);
    json_object_set_new(json_obj(json_obj(e, "config"), "searcher"), "max_length",
                        parsed("{\"epochs\": 8}"));
    assert_true(trial_fraction(trial, e) == 0); /* it has said nothing yet */
    json_set(trial, "unitsCompleted", json_null());
    assert_true(trial_fraction(trial, e) == 0);
    json_set(trial, "unitsCompleted", json_real(2));
    assert_true(trial_target(trial, e) == 200);
    assert_true(trial_fraction(trial, e) == 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_are_measured_by_what_the_trial_says),
        cmocka_unit_test(it_fits_the_terminal),
        cmocka_unit_test(the_best_has_ended),
        cmocka_unit_test(wide_names_fit_too),
        cmocka_unit_test(another_metric_is_shown),
        cmocka_unit_test(what_runs_elsewhere_has_no_slots_and_may_take_long),
        cmocka_unit_test(a_checkpoint_is_never_cut),
        cmocka_unit_test(those_that_wait_are_counted),
        cmocka_unit_test(those_that_run_are_shown_before_those_that_wait_for_the_search),
        cmocka_unit_test(the_others_are_counted_too),
        cmocka_unit_test(who_does_not_run_has_no_speed),
        cmocka_unit_test(the_speed_is_from_the_first_report),
        cmocka_unit_test(a_long_reason_says_that_there_is_more),
        cmocka_unit_test(curves_are_told_apart),
        cmocka_unit_test(without_a_screen_it_is_a_line),
        cmocka_unit_test(losses_come_before_other_values),
        cmocka_unit_test(the_length_is_the_configurations),
        cmocka_unit_test(the_progress_of_a_single_trial_tells_its_length),
    };
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
