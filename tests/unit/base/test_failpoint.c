/* Failpoints act at the pass that the environment names (meson.build: a=error@2,b=delay:30,...). */
#include "failpoint.h"

#include "clk.h"
#include "det/err.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_error(void **state)
{
    assert_int_equal(FAILPOINT("a"), 0);
    assert_int_equal(FAILPOINT("a"), DET_EIO);
    assert_int_equal(FAILPOINT("a"), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(FAILPOINT("d"), DET_EIO);
    assert_int_equal(FAILPOINT("another"), 0);
}

static void test_delay(void **state)
{
    int64_t begun = clk_mono_ms();
    assert_int_equal(FAILPOINT("b"), 0);
    assert_true(clk_mono_ms() - begun >= 29);
}

static void test_crash(void **state)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        FAILPOINT("c");
        FAILPOINT("c");
        FAILPOINT("c");
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_delay),
        cmocka_unit_test(test_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
