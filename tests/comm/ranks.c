#include "ranks.h"

#include "clk.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

int ranks_free_port(void)
{
    static int keeper = -1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&a, n) < 0 || getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        abort();
    if (keeper >= 0)
        close(keeper);
    keeper = fd;
    return ntohs(a.sin_port);
}

struct comm_options ranks_options(int rank, int size, int port)
{
    return (struct comm_options){.rank = rank,
                                 .size = size,
                                 .local_rank = rank,
                                 .local_size = size,
                                 .port = port,
                                 .secret = "test",
                                 .timeout_ms = 60000,
                                 .join_timeout_ms = 60000};
}

static pid_t start(int rank, int size, int port, int (*fn)(int, int, int, void *), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = fn(rank, size, port, arg);
    fflush(NULL);
    _exit(code);
}

static int code_of(int status)
{
    if (WIFSTOPPED(status))
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* One pass over the ranks; true when all have ended or stopped. */
static bool reap(pid_t *pids, int size, int *codes, bool *ended)
{
    bool all = true;
    for (int r = 0; r < size; r++) {
        int status;
        if (!ended[r] && waitpid(pids[r], &status, WNOHANG | WUNTRACED) == pids[r]) {
            ended[r] = true;
            codes[r] = code_of(status);
            pids[r] = codes[r] < 0 ? pids[r] : 0;
        }
        all = all && ended[r];
    }
    return all;
}

void ranks_run(int size, int (*fn)(int, int, int, void *), void *arg, int deadline_ms, int *codes)
{
    pid_t pids[16] = {0};
    bool ended[16] = {false};
    int port = ranks_free_port();
    int64_t until = clk_mono_ms() + deadline_ms;
    for (int r = 0; r < size; r++) {
        codes[r] = -1;
        pids[r] = start(r, size, port, fn, arg);
    }
    while (!reap(pids, size, codes, ended) && clk_mono_ms() < until)
        poll(NULL, 0, 2);
    for (int r = 0; r < size; r++)
        if (pids[r]) {
            kill(pids[r], SIGKILL);
            waitpid(pids[r], NULL, 0);
        }
}

void ranks_pass(int size, int (*fn)(int, int, int, void *), void *arg, int deadline_ms)
{
    int codes[16];
    ranks_run(size, fn, arg, deadline_ms, codes);
    for (int r = 0; r < size; r++)
        assert_int_equal(codes[r], 0);
}
