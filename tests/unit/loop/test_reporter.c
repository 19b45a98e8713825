/* Reports while the master is away: the spool has a limit, and nothing is lost at it. */
#include "fake_master.h"
#include "reporter.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_reports_waits_for_room, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_ends_the_wait, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
