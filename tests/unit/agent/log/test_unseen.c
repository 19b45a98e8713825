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
    assert_said(&apart, "/opt/x: Permission denied", "run as the account");
    assert_said(&apart, "sh: 1: /opt/x: Permission denied", "run as the account");
    assert_said(&apart, "open(path=/opt/x): Permission denied", "run as the account");
}

static void no_path_of_this_host(void **state)
{
    assert_said(&apart, "403 for https://store.example/bucket/x: Permission denied", NULL);
    assert_said(&apart, "git@example.org:a/b.git: Permission denied (publickey)", NULL);
    assert_said(&apart, "read/write: Permission denied", NULL);
    assert_said(&apart, "/bin/sh: 1: model_def.py: Permission denied", NULL);
    assert_said(&apart, "/bin/sh: line 1: model_def.py: Permission denied", NULL);
    assert_said(&apart, "/bin/sh: 1: /opt/x: Permission denied", "run as the account");
    assert_said(&apart, "read / write: Permission denied", NULL);
    assert_said(&apart, "Permission denied on 3/4 of the objects", NULL);
}

/* Only what who failed said at its end is why. */
static void among_the_last_lines(void **state)
{
    struct unseen_last l = {0};
    unseen_last_line(&l, 0, NULL);
    assert_null(unseen_last_why(&l, 0));
    unseen_last_line(&l, 1, "why");
    unseen_last_line(&l, -1, "of a hook");
    assert_null(unseen_last_why(&l, 0));
    assert_string_equal(unseen_last_why(&l, 1), "why");
    assert_string_equal(unseen_last_why(&l, -1), "of a hook");
    for (int i = 0; i < UNSEEN_LAST - 1; i++)
        unseen_last_line(&l, 1, NULL);
    assert_string_equal(unseen_last_why(&l, 1), "why");
    unseen_last_line(&l, 1, NULL);
    assert_null(unseen_last_why(&l, 1));
    unseen_last_line(&l, 1, "another");
    assert_string_equal(unseen_last_why(&l, 1), "another");
    assert_string_equal(unseen_last_why(&l, -1), "of a hook");
    unseen_last_finish(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_a_tmp_of_its_own), cmocka_unit_test(closed_to_its_account),
        cmocka_unit_test(no_path_of_this_host), cmocka_unit_test(among_the_last_lines)};
    return cmocka_run_group_tests_name("unseen", tests, NULL, NULL);
}
