/* A rank whose progress file does not change for longer than the timeout is stuck. */
#include "stall.h"

#include "fsx.h"
#include "progress.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/det-stall-XXXXXX";
static struct taskspec spec;

/* Rank 0's file. */
static void write_file(uint64_t magic, uint64_t batches)
{
    const struct progress p = {.magic = magic, .batches = batches, .mono_ms = 1};
    int fd = openat(spec.dirfd, "run/progress.0", O_RDWR | O_CREAT, 0600);
    assert_int_equal(pwrite(fd, &p, sizeof p, 0), sizeof p);
    close(fd);
}

static void write_progress(uint64_t batches)
{
    write_file(PROGRESS_MAGIC, batches);
}

static void test_silence(void **state)
{
    struct stall_found f;
    write_progress(4);
    struct stall *s = stall_create(&spec, 1, false, 0);
    assert_false(stall_check(s, 5000, &f)); /* the first sign of life: its time begins */
    assert_false(stall_check(s, 5999, &f));
    assert_true(stall_check(s, 6000, &f));
    assert_int_equal(f.batches, 4);
    write_progress(5);
    assert_false(stall_check(s, 6001, &f));
    stall_destroy(s);
}

/* A script that reports no more is not watched until it begins anew; a rank of the harness is. */
static void test_no_more_to_come(void **state)
{
    struct stall_found f;
    write_progress(4);
    struct stall *s = stall_create(&spec, 1, false, 0), *harness = stall_create(&spec, 1, true, 0);
    assert_false(stall_check(s, 500, &f));
    assert_false(stall_check(harness, 500, &f));
    write_file(0, 4);
    assert_false(stall_check(s, 9000, &f));
    assert_true(stall_check(harness, 9000, &f));
    write_progress(5);
    assert_false(stall_check(s, 9100, &f));
    assert_true(stall_check(s, 10100, &f));
    stall_destroy(s);
    stall_destroy(harness);
}

/* A debugger held it for 700 ms. */
static void test_forgiven(void **state)
{
    struct stall_found f;
    write_progress(4);
    struct stall *s = stall_create(&spec, 1, false, 0);
    stall_forgive(s, 700); /* before it began: nothing was counted */
    assert_false(stall_check(s, 5000, &f));
    stall_forgive(s, 700);
    assert_false(stall_check(s, 6699, &f));
    assert_true(stall_check(s, 6700, &f));
    assert_int_equal(f.silent_ms, 1000);
    stall_destroy(s);
}

/* Told after a second (a tenth of it would be less), again with each tenth, and once it is over. */
static void test_news(void **state)
{
    struct stall_found f;
    write_progress(4);
    spec.task.stall_timeout_ms = 5000;
    struct stall *s = stall_create(&spec, 1, false, 0);
    spec.task.stall_timeout_ms = 1000;
    static const struct {
        int64_t at_ms;
        uint64_t batches; /* that it has finished by then; 0: as before */
        int64_t told_ms;  /* -1: nothing is told, 0: that it is over */
    } looks[] = {{7000, 0, -1}, {7999, 0, -1}, {8000, 0, 1000}, {8499, 0, -1}, {8500, 0, 1500},
                 {8600, 5, 0},  {8601, 0, -1}, {9600, 0, 1000}, {10700, 6, 0}, {11700, 0, 1000}};
    assert_false(stall_news(s, &f)); /* before any look */
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        if (looks[i].batches)
            write_progress(looks[i].batches);
        assert_false(stall_check(s, looks[i].at_ms, &f));
        assert_int_equal(stall_news(s, &f), looks[i].told_ms >= 0);
        if (looks[i].told_ms >= 0)
            assert_int_equal(f.local, looks[i].told_ms > 0 ? 0 : -1);
        if (looks[i].told_ms > 0)
            assert_int_equal(f.silent_ms, looks[i].told_ms);
    }
    stall_destroy(s);
}

static int setup(void **state)
{
    if (!mkdtemp(dir))
        return -1;
    spec.dirfd = open(dir, O_RDONLY | O_DIRECTORY);
    spec.task.stall_timeout_ms = 1000;
    return mkdirat(spec.dirfd, "run", 0700);
}

static int teardown(void **state)
{
    unlinkat(spec.dirfd, "run/progress.0", 0);
    unlinkat(spec.dirfd, "run", AT_REMOVEDIR);
    close(spec.dirfd);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence), cmocka_unit_test(test_no_more_to_come),
        cmocka_unit_test(test_forgiven), cmocka_unit_test(test_news)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
