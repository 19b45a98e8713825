/* What is said of a rank that somebody killed: the kernel's own figures, where it gives any. */
#include "fsx.h"
#include "mem.h"
#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int64_t kills_in(const char *text)
{
    char path[] = "/tmp/det-oom-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(fsx_write_all(fd, text, strlen(text), NULL), 0);
    close(fd);
    int64_t n = oom_kills(path);
    unlink(path);
    return n;
}

static void the_kernel_counts(void **state)
{
    assert_int_equal(kills_in("low 0\nhigh 3\nmax 17\noom 2\noom_kill 1\noom_group_kill 9\n"), 1);
    assert_int_equal(kills_in("oom_kill 12\n"), 12);
    assert_int_equal(kills_in("drop_slab 4\nold_oom_kill 7\n"), -1);
    assert_int_equal(kills_in(""), -1);
    assert_int_equal(oom_kills("/proc/self/no-such-file"), -1);
    assert_true(oom_kills(OOM_HOST) >= 0); /* Linux 4.13 and later */
}

static void says(int64_t in_cgroup, int64_t before, int64_t now, const char *words, bool remedy)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    oom_explain(in_cgroup, before, now, &b);
    assert_non_null(strstr(buf_str(&b), words));
    assert_int_equal(strstr(buf_str(&b), "smaller batches") != NULL, remedy);
}

static void as_far_as_known(void **state)
{
    says(1, 5, 9, ": the kernel did that", true);
    says(0, 5, 7, "ended 2 of this host's", true);
    says(-1, 5, 6, "most likely by the kernel", true);
    says(-1, 5, 5, "by somebody on this host, or", false);
    says(-1, -1, 6, "by somebody on this host, or", false);
    says(0, -1, -1, "dmesg", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_counts),
        cmocka_unit_test(as_far_as_known),
    };
    return cmocka_run_group_tests_name("oom", tests, NULL, NULL);
}
