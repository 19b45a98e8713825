/* Trees that hide: double forks, new sessions, no environment, somebody holding the output. */
#include "proctree.h"

#include "clk.h"
#include "mem.h"
#include "uuid.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void hide(bool with_environment, const char *variable)
{
    char *const argv[] = {"sleep", "1000", NULL}, *const with[] = {(char *)variable, NULL},
                *const without[] = {NULL};
    setsid();
    if (fork() != 0)
        _exit(0);
    execve("/bin/sleep", argv, with_environment ? with : without);
    _exit(1);
}

/* A child that hides two more behind it and then waits, or ends. fd is told when all are there. */
static pid_t start_tree(bool with_environment, bool waits, const char *container, int fd)
{
    char variable[128];
    snprintf(variable, sizeof variable, "DET_CONTAINER_ID=%s", container);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0)
            hide(with_environment, variable);
        waitpid(child, NULL, 0);
    }
    if (write(fd, "x", 1) != 1)
        _exit(1);
    while (waits)
        pause();
    _exit(0);
}

static void reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void wait_count(const struct proctree *t, size_t want)
{
    int64_t deadline = clk_mono_ms() + 10000;
    size_t n;
    while ((n = proctree_count(t)) != want && clk_mono_ms() < deadline)
        poll(NULL, 0, 2);
    assert_int_equal(n, want);
}

static void kill_all(const struct proctree *t)
{
    int64_t deadline = clk_mono_ms() + 10000;
    while (proctree_kill(t) > 0 && clk_mono_ms() < deadline) {
        reap();
        poll(NULL, 0, 2);
    }
    reap();
    assert_int_equal(proctree_count(t), 0);
}

static void test_descendants(void **state)
{
    char id[UUID_STR_MAX], ch;
    int fd[2];
    uuid_random(id);
    assert_int_equal(pipe(fd), 0);
    char mark[128];
    snprintf(mark, sizeof mark, "DET_CONTAINER_ID=%s", id);
    struct proctree t = {.mark = mark};
    start_tree(false, true, id, fd[1]);
    assert_int_equal(read(fd[0], &ch, 1), 1);
    wait_count(&t, 3);
    kill_all(&t);
    close(fd[0]);
    close(fd[1]);
}

/* As after det-task was killed: the tree hangs below another process, which is not the task's. */
static void test_by_environment(void **state)
{
    char id[UUID_STR_MAX], ch;
    int fd[2], end[2];
    uuid_random(id);
    assert_int_equal(pipe(fd) | pipe(end), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    pid_t middle = fork();
    if (middle == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        waitpid(start_tree(true, false, id, fd[1]), NULL, 0);
        _exit(read(fd[0], &ch, 1) == 1 && write(end[1], "x", 1) == 1 ? 0 : 1);
    }
    assert_int_equal(read(end[0], &ch, 1), 1);
    waitpid(middle, NULL, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    char mark[128];
    snprintf(mark, sizeof mark, "DET_CONTAINER_ID=%s", id);
    struct proctree t = {.mark = mark};
    wait_count(&t, 2);
    kill_all(&t);
    close(fd[0]);
    close(fd[1]);
    close(end[0]);
    close(end[1]);
}

/* A new process each time, its parent gone, and nothing else left of it: for 20 s at most. */
static void hop(int fd, int pause_ms)
{
    int64_t end = clk_mono_ms() + 20000;
    while (clk_mono_ms() < end) {
        if (fork() != 0)
            _exit(0);
        poll(NULL, 0, pause_ms);
    }
    _exit(0);
}

/* Whoever is born while the list of processes is read is not on it: "nothing is left" must hold all
 * the same. The pipe ends when the last process that has it is gone. */
static void test_hops(void **state)
{
    const struct proctree t = {.mark = "DET_CONTAINER_ID=none"};
    for (int round = 0; round < 40; round++) {
        int fd[2];
        assert_int_equal(pipe(fd), 0);
        if (fork() == 0) {
            setsid();
            hop(fd[1], round % 2);
        }
        close(fd[1]);
        while (proctree_kill(&t) > 0 || proctree_has_child())
            reap();
        struct pollfd p = {.fd = fd[0], .events = POLLIN};
        assert_int_equal(poll(&p, 1, 0), 1);
        assert_true(p.revents & POLLHUP);
        close(fd[0]);
    }
}

static void *wait_for_ever(void *arg)
{
    for (;;)
        pause();
    return NULL;
}

/* Its main thread has ended, the other has not: it looks like a zombie, and can be killed. */
static void test_main_thread_gone(void **state)
{
    const struct proctree t = {.mark = "DET_CONTAINER_ID=none"};
    int64_t deadline = clk_mono_ms() + 10000;
    if (fork() == 0) {
        pthread_t other;
        pthread_create(&other, NULL, wait_for_ever, NULL);
        pthread_exit(NULL);
    }
    while ((proctree_kill(&t) > 0 || proctree_has_child()) && clk_mono_ms() < deadline) {
        reap();
        poll(NULL, 0, 2);
    }
    assert_false(proctree_has_child());
}

/* A child that even SIGKILL may not end is left out, if it is named. */
static void test_spared(void **state)
{
    pid_t pid = fork();
    if (pid == 0)
        wait_for_ever(NULL);
    const struct proctree all = {.mark = "DET_CONTAINER_ID=none"},
                          rest = {.mark = "DET_CONTAINER_ID=none", .spared = pid};
    assert_int_equal(proctree_kill(&rest), 0);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(proctree_count(&all), 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descendants), cmocka_unit_test(test_by_environment),
        cmocka_unit_test(test_hops),        cmocka_unit_test(test_main_thread_gone),
        cmocka_unit_test(test_spared),
    };
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
