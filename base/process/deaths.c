#include "deaths.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int deaths_open(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

/* The descriptor of a process is readable from its death on, and epoll tells of what is readable in
 * the order in which it became so. */
void deaths_add(int deaths, pid_t pid)
{
    int fd = deaths < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return;
    struct epoll_event e = {.events = EPOLLIN | EPOLLONESHOT,
                            .data.u64 = (uint64_t)pid << 32 | (uint32_t)fd};
    if (epoll_ctl(deaths, EPOLL_CTL_ADD, fd, &e) < 0)
        close(fd);
}

/* 0: none that was added. */
static pid_t first_dead(int deaths)
{
    struct epoll_event e;
    if (deaths < 0 || epoll_wait(deaths, &e, 1, 0) != 1)
        return 0;
    close((int)(uint32_t)e.data.u64);
    return (pid_t)(e.data.u64 >> 32);
}

/* The look at whoever is dead comes first: the one that died first is then among those told of. */
pid_t deaths_wait(int deaths, int *status)
{
    siginfo_t any = {.si_pid = 0};
    if (waitid(P_ALL, 0, &any, WEXITED | WNOHANG | WNOWAIT) < 0 || any.si_pid == 0)
        return 0;
    for (pid_t pid; (pid = first_dead(deaths)) > 0;)
        if (waitpid(pid, status, WNOHANG) == pid)
            return pid; /* else somebody waited for it by its number */
    return waitpid(any.si_pid, status, WNOHANG);
}
