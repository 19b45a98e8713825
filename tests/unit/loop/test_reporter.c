/* Reports while the master is away or busy: the spool has a limit, and nothing is lost at it; what
 * gathers goes together. */
#include "fake_master.h"
#include "reporter.h"
#include "spool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT      600
#define RECORD_MAX 200

static char path[] = "/tmp/det-reporter-XXXXXX";
static struct fake_master m;
static struct reporter *r;

static int setup(void **state)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    close(fd);
    fake_master_init(&m);
    m.away = -4; /* and then it is there */
    const struct reporter_options o = {
        .http = fake_master_http(&m), .spool_path = path, .spool_bytes_max = LIMIT, .run_id = 1};
    return fd < 0 ? -1 : reporter_open(&o, &r, NULL);
}

static int teardown(void **state)
{
    reporter_close(r, 0);
    fake_master_finish(&m);
    return unlink(path);
}

static void post(int n)
{
    struct stat st;
    char text[80];
    snprintf(text, sizeof text, "{\"group\":\"training\",\"metrics\":{\"stepsCompleted\":%d}}", n);
    assert_int_equal(reporter_post_text(r, "/api/v1/trials/7/metrics", text, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < LIMIT + RECORD_MAX);
}

static void who_reports_waits_for_room(void **state)
{
    det_cleanup(buf_finish) struct buf want = BUF_INIT;
    for (int i = 0; i < 50; i++) {
        post(i);
        buf_addf(&want, "%straining %d", i ? " | " : "", i);
    }
    assert_int_equal(reporter_flush(r, NULL), 0);
    assert_string_equal(buf_str(&m.calls), buf_str(&want)); /* all of them, in order */
}

/* What ends reporting ends the wait. */
static void a_refusal_ends_the_wait(void **state)
{
    m.stale_after = 0;
    int rc = 0;
    for (int i = 0; rc == 0 && i < 1000; i++)
        rc = reporter_post_text(r, "/api/v1/trials/7/metrics", "{}", NULL);
    assert_int_equal(rc, DET_ESTALE);
}

/* ---- Several reports in one request ---------------------------------------------------------- */

static int setup_together(void **state)
{
    memcpy(path + sizeof path - 7, "XXXXXX", 6);
    int fd = mkstemp(path);
    close(fd);
    fake_master_init(&m);
    m.takes_bundles = m.holds = true;
    const struct reporter_options o = {
        .http = fake_master_http(&m), .spool_path = path, .run_id = 1};
    return fd < 0 ? -1 : reporter_open(&o, &r, NULL);
}

static void post_report(int steps, size_t padding)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    buf_addf(&b, "{\"group\":\"training\",\"metrics\":{\"stepsCompleted\":%d},\"x\":\"%*s\"}",
             steps, (int)padding, "");
    assert_int_equal(reporter_post_text(r, "/api/v1/trials/7/metrics", buf_str(&b), NULL), 0);
}

static void post_progress(int done)
{
    assert_int_equal(reporter_post(r, "/api/v1/trials/7/progress", json_integer(done), NULL), 0);
}

static void post_state(const char *state)
{
    json_t *body = json_make("{s:s}", "state", state);
    assert_int_equal(reporter_post(r, "/api/v1/trials/7/runner/metadata", body, NULL), 0);
}

/* The first is under way; what is posted from here on waits. */
static void begin(void)
{
    post_report(1, 0);
    fake_master_wait_held(&m);
}

static void check_calls(int from, int to, const char *more)
{
    det_cleanup(buf_finish) struct buf want = BUF_INIT;
    for (int i = from; i <= to; i++)
        buf_addf(&want, "%straining %d", i > from ? " | " : "", i);
    buf_add_str(&want, more);
    assert_string_equal(buf_str(&m.calls), buf_str(&want));
}

static void what_waits_goes_together(void **state)
{
    begin();
    for (int i = 2; i <= 300; i++)
        post_report(i, 0);
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, NULL), 0);
    check_calls(1, 300, "");
    assert_string_equal(buf_str(&m.bundles), "128 128 43 ");
}

/* In bytes, and no large one at all. */
static void within_limits(void **state)
{
    begin();
    for (int i = 2; i <= 41; i++)
        post_report(i, 6000);
    post_report(42, 20000);
    post_report(43, 0);
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, NULL), 0);
    check_calls(1, 43, "");
    assert_string_equal(buf_str(&m.bundles), "20 20 ");
}

/* Progress does not part them, and its last word is said, nor does a state that is none; all else
 * stays in its place. */
static void other_calls_keep_their_place(void **state)
{
    begin();
    for (int i = 2; i <= 6; i++) {
        post_report(i, 0);
        post_progress(i);
    }
    post_state("validating");
    for (int i = 7; i <= 9; i++) {
        post_report(i, 0);
        if (i < 9) /* it knows that */
            post_state("validating");
    }
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, NULL), 0);
    check_calls(1, 6, " | progress 6 | validating | training 7 | training 8 | training 9");
    assert_string_equal(buf_str(&m.bundles), "5 3 ");
}

/* It is asked once, and from then on gets them one by one. */
static void an_older_master_gets_each(void **state)
{
    m.takes_bundles = false;
    begin();
    for (int i = 2; i <= 50; i++)
        post_report(i, 0);
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, NULL), 0);
    check_calls(1, 50, "");
    assert_string_equal(buf_str(&m.bundles), "? ");
}

static void a_lost_answer_is_sent_again(void **state)
{
    m.lost_answers = 1;
    begin();
    post_report(2, 0);
    post_report(3, 0);
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, NULL), 0);
    assert_string_equal(buf_str(&m.calls),
                        "training 1 | training 2 | training 3 | training 2 | training 3");
    assert_string_equal(buf_str(&m.bundles), "2 2 ");
}

static void send_with_refused(int status)
{
    m.refusals[0] = (struct fake_refusal){4, 4, status};
    begin();
    for (int i = 2; i <= 6; i++)
        post_report(i, 0);
    fake_master_let_go(&m);
}

/* What is left for whoever opens the spool next. */
static void check_left(int from, int to)
{
    struct spool *s;
    struct spool_record rec;
    char want[40];
    reporter_close(r, 0);
    r = NULL;
    assert_int_equal(spool_open(path, &s, NULL), 0);
    for (int i = from; i <= to; i++) {
        assert_int_equal(spool_next(s, &rec, NULL), 0);
        snprintf(want, sizeof want, "\"stepsCompleted\":%d}", i);
        assert_non_null(strstr(rec.body, want));
        assert_int_equal(spool_sent(s, NULL), 0);
    }
    assert_int_equal(spool_next(s, &rec, NULL), DET_ENOENT);
    spool_close(s);
}

/* As one that was sent by itself: it ends reporting, and what came before it is done with. */
static void a_refused_one_ends_it(void **state)
{
    struct det_err err;
    send_with_refused(400);
    assert_int_equal(reporter_flush(r, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "400"));
    assert_non_null(strstr(err.text, "this one"));
    check_left(4, 6);
}

/* What was not kept before the one that ends it is left, too. */
static void end_with_two_refused(int status)
{
    struct det_err err;
    m.refusals[1] = (struct fake_refusal){3, 3, status};
    m.refusals[0] = (struct fake_refusal){5, 5, 400};
    begin();
    for (int i = 2; i <= 6; i++)
        post_report(i, 0);
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, &err), DET_EINVAL);
    assert_non_null(strstr(err.text, "400"));
    assert_string_equal(buf_str(&m.calls), "training 1 | training 2 | training 4 | training 6");
    check_left(3, 6);
}

static void what_was_not_kept_is_left(void **state)
{
    end_with_two_refused(500);
}

static void what_may_be_kept_yet_is_left(void **state)
{
    end_with_two_refused(503);
}

/* However many reports it spoils. */
static void an_error_of_the_master_counts_once(void **state)
{
    m.refusals[0] = (struct fake_refusal){2, 13, 500};
    m.refused_times = 1;
    begin();
    for (int i = 2; i <= 13; i++)
        post_report(i, 0);
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, NULL), 0);
    check_calls(1, 13, "");
    assert_string_equal(buf_str(&m.bundles), "12 12 ");
}

/* What is in it goes by itself, and what comes later together again. */
static void a_bundle_that_is_not_taken_goes_singly(void **state)
{
    m.bundle_status = 413;
    begin();
    for (int i = 2; i <= 140; i++)
        post_report(i, 0);
    fake_master_let_go(&m);
    assert_int_equal(reporter_flush(r, NULL), 0);
    check_calls(1, 140, "");
    assert_string_equal(buf_str(&m.bundles), "128 11 ");
}

static void a_stale_one_ends_it(void **state)
{
    send_with_refused(409);
    assert_int_equal(reporter_flush(r, NULL), DET_ESTALE);
}

static void one_that_may_be_taken_yet_goes_again(void **state)
{
    m.refused_times = 1;
    send_with_refused(503);
    assert_int_equal(reporter_flush(r, NULL), 0);
    assert_string_equal(buf_str(&m.bundles), "5 5 ");
    assert_non_null(strstr(buf_str(&m.calls), "training 4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_reports_waits_for_room, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_ends_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(what_waits_goes_together, setup_together, teardown),
        cmocka_unit_test_setup_teardown(within_limits, setup_together, teardown),
        cmocka_unit_test_setup_teardown(other_calls_keep_their_place, setup_together, teardown),
        cmocka_unit_test_setup_teardown(an_older_master_gets_each, setup_together, teardown),
        cmocka_unit_test_setup_teardown(a_lost_answer_is_sent_again, setup_together, teardown),
        cmocka_unit_test_setup_teardown(a_refused_one_ends_it, setup_together, teardown),
        cmocka_unit_test_setup_teardown(what_was_not_kept_is_left, setup_together, teardown),
        cmocka_unit_test_setup_teardown(what_may_be_kept_yet_is_left, setup_together, teardown),
        cmocka_unit_test_setup_teardown(an_error_of_the_master_counts_once, setup_together,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_bundle_that_is_not_taken_goes_singly, setup_together,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_stale_one_ends_it, setup_together, teardown),
        cmocka_unit_test_setup_teardown(one_that_may_be_taken_yet_goes_again, setup_together,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
