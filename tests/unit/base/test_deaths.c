/* Children in the order of their deaths, whatever their age. */
#include "deaths.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHILDREN = 5 };
static pid_t all[CHILDREN];

static void start(void)
{
    for (int i = 0; i < CHILDREN; i++) {
        all[i] = fork();
        assert_true(all[i] >= 0);
        while (all[i] == 0)
            pause();
    }
}

/* Is dead when this returns, and not waited for. */
static void die(int i, int signal)
{
    siginfo_t info;
    assert_int_equal(kill(all[i], signal), 0);
    assert_int_equal(waitid(P_PID, (id_t)all[i], &info, WEXITED | WNOWAIT), 0);
}

static void expect(int deaths, int i, int signal)
{
    int status = 0;
    assert_int_equal(deaths_wait(deaths, &status), all[i]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), signal);
}

static void in_order(void **state)
{
    int deaths = deaths_open(), status;
    assert_true(deaths >= 0);
    start();
    for (int i = 0; i < CHILDREN; i++)
        deaths_add(deaths, all[i]);
    assert_int_equal(deaths_wait(deaths, &status), 0);
    die(3, SIGKILL);
    die(0, SIGTERM);
    die(4, SIGKILL);
    expect(deaths, 3, SIGKILL);
    expect(deaths, 0, SIGTERM);
    die(1, SIGTERM);
    expect(deaths, 4, SIGKILL);
    expect(deaths, 1, SIGTERM);
    assert_int_equal(deaths_wait(deaths, &status), 0);
    die(2, SIGTERM);
    expect(deaths, 2, SIGTERM);
    assert_int_equal(deaths_wait(deaths, &status), 0);
    close(deaths);
}

/* Those that were not added are waited for all the same; those that somebody else has waited for
 * are passed over. */
static void others(void **state)
{
    int deaths = deaths_open(), status;
    start();
    deaths_add(deaths, all[1]);
    deaths_add(deaths, all[2]);
    for (int i = 0; i < CHILDREN; i++)
        die(i, SIGTERM);
    assert_int_equal(waitpid(all[1], &status, 0), all[1]);
    expect(deaths, 2, SIGTERM);
    int left = 0;
    while (deaths_wait(deaths, &status) > 0)
        left++;
    assert_int_equal(left, CHILDREN - 2);
    close(deaths);
}

/* A kernel that keeps no order. */
static void without(void **state)
{
    int status, n = 0;
    start();
    deaths_add(-1, all[0]);
    for (int i = 0; i < CHILDREN; i++)
        die(i, SIGTERM);
    while (deaths_wait(-1, &status) > 0)
        n++;
    assert_int_equal(n, CHILDREN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order), cmocka_unit_test(others),
                                       cmocka_unit_test(without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
