/* Files that a task cannot have: the reason is told with the program's own words for it. */
#include "unseen.h"

#include "mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static const struct unseen apart = {true, "det", 999}, beside = {false, "det", 999};

static void assert_said(const struct unseen *u, const char *line, const char *want)
{
    det_cleanup(buf_finish) struct buf out = BUF_INIT;
    assert_int_equal(unseen_explain(u, line, &out), want != NULL);
    if (want)
        assert_non_null(strstr(buf_str(&out), want));
}

static void below_a_tmp_of_its_own(void **state)
{
    const char *python =
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/data/train.csv'\n";
    assert_said(&apart, python, "has a /tmp of its own");
    assert_said(&beside, python, NULL);
    assert_said(&apart, "open data file /var/tmp/x: No such file or directory", "has a /var/tmp");
    assert_said(&apart, "cat: /dev/shm/x: No such file or directory\n", "has a /dev/shm");
    assert_said(&apart, "No such file or directory: '/home/me/tmp/x'\n", NULL);
    assert_said(&apart, "No such file or directory: '/tmpfiles/x'\n", NULL);
    assert_said(&apart, "reading /tmp/x\n", NULL);
}

static void closed_to_its_account(void **state)
{
    const char *python = "PermissionError: [Errno 13] Permission denied: '/root/train.csv'";
    const struct unseen nameless = {true, NULL, 12345};
    assert_said(&beside, python, "run as the account det (uid 999)");
    assert_said(&nameless, python, "run as the account without a name (uid 12345)");
    assert_said(&apart, "Permission denied: '/tmp/x'", "has a /tmp of its own");
    assert_said(&apart, "Permission denied: '/root'. This process runs as the account det", NULL);
    assert_said(&apart, "Permission denied (publickey)", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(below_a_tmp_of_its_own),
                                       cmocka_unit_test(closed_to_its_account)};
    return cmocka_run_group_tests_name("unseen", tests, NULL, NULL);
}
