/* Keys of det watch on a terminal of its own, under a shell that moves it to the background. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "watch_keys.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { FAILED = 99, WAIT_MS = 20, LONG_MS = 60000 };

static bool is_quiet(void)
{
    struct termios now;
    return tcgetattr(STDIN_FILENO, &now) == 0 && !(now.c_lflag & (ICANON | ECHO));
}

/* What a job does: it stops where somebody would press Ctrl-Z. Returns its exit status. */
static int hear_nothing(void)
{
    int failed = watch_keys_begin() && is_quiet() ? 0 : 1;
    raise(SIGTSTP);
    failed |= watch_keys_wait(WAIT_MS) ? 2 : 0; /* a key waits, which is the shell's */
    watch_keys_end();
    return failed | (is_quiet() ? 4 : 0);
}

static int end_by_signal(void)
{
    int failed = watch_keys_begin() ? 0 : 1;
    raise(SIGTSTP);
    raise(SIGTERM);
    return failed | FAILED;
}

/* fg of a job that runs tells it nothing. */
static int hear_again(void)
{
    int failed = watch_keys_begin() ? 0 : 1;
    raise(SIGTSTP);
    failed |= watch_keys_wait(WAIT_MS) ? 2 : 0;
    signal(SIGTTOU, SIG_IGN);
    tcsetpgrp(STDIN_FILENO, getpgrp()); /* as the shell would */
    signal(SIGTTOU, SIG_DFL);
    failed |= watch_keys_wait(LONG_MS) ? 0 : 8;
    failed |= is_quiet() ? 0 : 16;
    watch_keys_end();
    return failed;
}

/* The shell: the job gets the terminal until it stops, and goes on without. Its last status. */
static int run_job(int (*job)(void), const char *tty)
{
    struct termios own;
    int status;
    setsid();
    dup2(open(tty, O_RDWR), STDIN_FILENO); /* the first that a session opens is its terminal */
    signal(SIGTTOU, SIG_IGN);
    tcgetattr(STDIN_FILENO, &own);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        tcsetpgrp(STDIN_FILENO, getpgrp());
        signal(SIGTTOU, SIG_DFL);
        _exit(job());
    }
    if (waitpid(pid, &status, WUNTRACED) < 0 || !WIFSTOPPED(status))
        return status;
    tcsetpgrp(STDIN_FILENO, getpgrp());
    tcsetattr(STDIN_FILENO, TCSANOW, &own);
    kill(-pid, SIGCONT);
    waitpid(pid, &status, WUNTRACED);
    if (WIFSTOPPED(status))
        kill(pid, SIGKILL);
    return status;
}

/* A job's status under a shell of its own, with a q typed. */
static int status_of(int (*job)(void))
{
    int screen = posix_openpt(O_RDWR | O_NOCTTY), told[2], status = -1;
    assert_true(screen >= 0 && grantpt(screen) == 0 && unlockpt(screen) == 0 && pipe(told) == 0);
    const char *tty = ptsname(screen);
    int theirs = open(tty, O_RDWR | O_NOCTTY);
    assert_int_equal(write(screen, "q\n", 2), 2);
    pid_t shell = fork();
    if (shell == 0) {
        status = run_job(job, tty);
        _exit(write(told[1], &status, sizeof status) != sizeof status);
    }
    waitpid(shell, NULL, 0);
    close(told[1]);
    assert_int_equal(read(told[0], &status, sizeof status), sizeof status);
    close(told[0]);
    close(theirs);
    close(screen);
    return status;
}

static void a_job_in_the_background_leaves_the_terminal_alone(void **state)
{
    int status = status_of(hear_nothing);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    status = status_of(end_by_signal);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
}

static void a_job_that_comes_back_hears_again(void **state)
{
    int status = status_of(hear_again);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_in_the_background_leaves_the_terminal_alone),
        cmocka_unit_test(a_job_that_comes_back_hears_again),
    };
    return cmocka_run_group_tests_name("watch_keys", tests, NULL, NULL);
}
