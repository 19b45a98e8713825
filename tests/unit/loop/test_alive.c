/* The sign of life while a checkpoint is written or restored: bytes that move are one, a disk that
 * stands still is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "clk.h"
#include "fake_trial.h"
#include "fsx.h"
#include "loop_alive.h"
#include "mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 256 << 10 };

static char path[] = "/tmp/det-test-alive.XXXXXX";
static const struct progress *seen;

static int start(void **state)
{
    int fd = mkstemp(path);
    if (fd < 0 || ftruncate(fd, PROGRESS_BYTES) < 0)
        return -1;
    void *p = mmap(NULL, PROGRESS_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    seen = p;
    return p == MAP_FAILED || setenv(PROGRESS_ENV, path, 1) < 0 ? -1 : 0;
}

static int end(void **state)
{
    return unlink(path);
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
}

/* Whether it is touched within `ms`, while `bytes` are written again and again. */
static bool is_touched(int64_t ms, size_t bytes)
{
    static const char block[BLOCK];
    int64_t before = seen->mono_ms, until = clk_mono_ms() + ms;
    FILE *f = fopen("/dev/null", "w");
    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    while (seen->mono_ms == before && clk_mono_ms() < until) {
        assert_int_equal(fwrite(block, 1, bytes, f), bytes);
        rest();
    }
    fclose(f);
    return seen->mono_ms != before;
}

static void bytes_that_move(void **state)
{
    loop_alive(PROGRESS_CHECKPOINTING, 7);
    assert_int_equal(seen->batches, 7);
    assert_false(is_touched(100, BLOCK)); /* nobody waits */
    loop_alive_disk(true);
    for (int i = 0; i < 2; i++)
        assert_true(is_touched(60000, BLOCK));
    int windows = 0; /* what was written before counts once; log lines are no progress */
    while (is_touched(2500, 16))
        assert_true(++windows < 20);
    loop_alive_disk(false);
    loop_alive_wait(true);
    assert_true(is_touched(60000, 0)); /* waiting for rank 0 is no reason to end this one */
    loop_alive_wait(false);
}

static void slowly(void)
{
    assert_true(is_touched(60000, BLOCK));
}

static void slow_restore(void **state)
{
    char store[] = "/tmp/det-alive-XXXXXX";
    struct fake f;
    fake_init(&f);
    assert_non_null(mkdtemp(store));
    f.config.checkpoint_dir = det_strdup(store);
    f.config.max_length = 1;
    assert_int_equal(fake_run(&f, NULL), 0);
    f.config.latest_checkpoint = fake_checkpoint(store);
    f.config.max_length = 2;
    f.loading = slowly;
    assert_int_equal(fake_run(&f, NULL), 0);
    assert_int_equal(f.trained, 2);
    fake_finish(&f);
    det_ignore(fsx_remove_tree(AT_FDCWD, store, NULL), "the test is over");
}

static int gathers_slowly(void *self, struct comm *comm, struct det_err *err)
{
    slowly();
    return 0;
}

/* What ranks hand to the chief before a save. */
static void slow_gather(void **state)
{
    char store[] = "/tmp/det-alive-XXXXXX";
    struct det_loop_trial_type type = fake_type;
    struct fake f;
    type.before_save = gathers_slowly;
    fake_init(&f);
    assert_non_null(mkdtemp(store));
    f.config.checkpoint_dir = det_strdup(store);
    f.config.max_length = 1;
    assert_int_equal(loop_run(&f.config, &(struct det_loop_trial){&type, &f}, NULL), 0);
    fake_finish(&f);
    det_ignore(fsx_remove_tree(AT_FDCWD, store, NULL), "the test is over");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_that_move),
                                       cmocka_unit_test(slow_restore),
                                       cmocka_unit_test(slow_gather)};
    return cmocka_run_group_tests(tests, start, end);
}
