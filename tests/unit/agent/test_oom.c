/* What is said of a rank that somebody killed: the kernel's own figures, where it gives any. */
#include "fsx.h"
#include "mem.h"
#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void the_kernel_counts(void **state)
{
    char dir[] = "/tmp/det-oom-XXXXXX";
    assert_non_null(mkdtemp(dir));
    det_cleanup(freep) char *path = det_asprintf("%s/memory.events", dir);
    static const char text[] = "low 0\nhigh 3\nmax 17\noom 2\noom_kill 1\noom_group_kill 9\n";
    assert_int_equal(oom_kills(dir), -1);
    assert_int_equal(fsx_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
    assert_int_equal(oom_kills(dir), 1);
    assert_int_equal(oom_past_limit(dir), 2);
    assert_int_equal(oom_kills(NULL), -1);
    assert_int_equal(oom_past_limit(NULL), -1);
    assert_true(oom_host_kills() >= 0); /* Linux 4.13 and later */
    assert_int_equal(fsx_remove_tree(AT_FDCWD, dir, NULL), 0);
}

static void says(struct oom_seen seen, const char *words, bool remedy)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    oom_explain(&seen, &b);
    assert_non_null(strstr(buf_str(&b), words));
    assert_int_equal(strstr(buf_str(&b), "smaller batches") != NULL, remedy);
}

static void as_far_as_known(void **state)
{
    says((struct oom_seen){1, 2, 64 << 20, 5, 9}, "past its limit of 64 MiB", true);
    says((struct oom_seen){1, 0, 64 << 20, 5, 9}, "the host had no more", true);
    says((struct oom_seen){1, 2, 0, 5, 9}, "the host had no more", true);
    says((struct oom_seen){0, 0, 0, 5, 7}, "ended 2 of this host's", true);
    says((struct oom_seen){-1, -1, 0, 5, 6}, "most likely by the kernel", true);
    says((struct oom_seen){-1, -1, 0, 5, 5}, "by somebody on this host, or", false);
    says((struct oom_seen){-1, -1, 0, -1, 6}, "by somebody on this host, or", false);
    says((struct oom_seen){0, 0, 0, -1, -1}, "dmesg", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_counts),
        cmocka_unit_test(as_far_as_known),
    };
    return cmocka_run_group_tests_name("oom", tests, NULL, NULL);
}
