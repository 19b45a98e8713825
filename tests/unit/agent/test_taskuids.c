#include "taskuids.h"

#include "fsx.h"
#include "mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct account_rule rule = {NULL, 5000, 6000};
static char dir[] = "/tmp/det-taskuids-XXXXXX";

static char *file(const char *name, const char *text)
{
    char *path = det_asprintf("%s/%s", dir, name);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
    return path;
}

/* What is wrong with these texts; "" when nothing is. */
static const char *found(const char *passwd, const char *group, const char *subs, const char *map)
{
    static struct det_err err;
    det_cleanup(freep) char *p = file("passwd", passwd);
    det_cleanup(freep) char *g = file("group", group);
    det_cleanup(freep) char *s = file("subuid", subs);
    det_cleanup(freep) char *m = file("map", map);
    const struct taskuids_files f = {p, g, s, "/nonexistent", m, m};
    err = (struct det_err){0};
    int rc = taskuids_check(&rule, &f, &err);
    assert_true(rc == 0 || rc == DET_EINVAL);
    return rc == 0 ? "" : err.text;
}

#define ALL "         0          0 4294967295\n"

static void test_none_is_taken(void **state)
{
    assert_string_equal(found("", "", "", ALL), "");
    assert_string_equal(
        found("root:x:0:0:root:/root:/bin/sh\nlow:x:4999:1::/:/\nhigh:x:6001:1::/:/",
              "root:x:0:\nshare:x:5000:low\nhigh:x:6001:\n", "low:1000:4000\nlow:6001:65536\n",
              ALL),
        "");
    assert_string_equal(found("no account\n:\n\n", "x\n", "low:5000\nlow:5000:0\n", ALL), "");
}

static void test_taken(void **state)
{
    assert_non_null(strstr(found("a:x:1:1::/:/\nb:x:6000:1::/:/\n", "", "", ALL), "b:x:6000"));
    assert_non_null(strstr(found("share:x:5000:5000::/:/\n", "", "", ALL), "share:x:5000"));
    assert_non_null(strstr(found("", "g:x:5001:\n", "", ALL), "g:x:5001"));
    assert_non_null(strstr(found("", "", "low:1000:4001\n", ALL), "low:1000"));
    assert_non_null(strstr(found("", "", "low:100000:9\nall:0:99999\n", ALL), "all:0"));
    assert_non_null(strstr(found("", "", "low:6000:1\n", ALL), "--task-uids"));
}

static void test_user_namespace(void **state)
{
    assert_non_null(strstr(found("", "", "", "0 100000 5500\n"), "user namespace"));
    assert_non_null(strstr(found("", "", "", ""), "user namespace"));
    assert_string_equal(found("", "", "", "0 1000 1\n1 100000 65536\n"), "");
}

static int make_dir(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    return fsx_remove_tree(AT_FDCWD, dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_none_is_taken),
                                       cmocka_unit_test(test_taken),
                                       cmocka_unit_test(test_user_namespace)};
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
