#include "endtask.h"

#include "cgroup.h"
#include "clk.h"
#include "proctree.h"
#include "taskspec.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define END_MS  10000
#define ASK_MS  3000 /* for det-task to do it itself */
#define STEP_MS 5

/* The path through /proc keeps it short enough for a socket's address. */
static int connect_task(const struct taskspec *s)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "/proc/self/fd/%d/sock", s->dirfd);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    det_closep(&fd);
    return -1;
}

/* Asks the living det-task, and waits until it is gone. */
static void ask_to_end(const struct taskspec *s, int64_t deadline_ms)
{
    static const char order[] = "{\"end\":true}\n";
    char skipped[512];
    det_cleanup(det_closep) int fd = connect_task(s);
    if (fd < 0 || send(fd, order, strlen(order), MSG_NOSIGNAL) < 0)
        return;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (int64_t left; (left = deadline_ms - clk_mono_ms()) > 0;)
        if (poll(&p, 1, (int)left) == 1 && recv(fd, skipped, sizeof skipped, 0) <= 0)
            return;
}

int endtask(const char *dir, struct det_err *err)
{
    struct taskspec s;
    int64_t deadline_ms = clk_mono_ms() + END_MS;
    int rc = taskspec_load(dir, &s, err);
    if (rc < 0 && !s.dir) {
        taskspec_finish(&s);
        return rc;
    }
    ask_to_end(&s, deadline_ms - END_MS + ASK_MS);
    det_cleanup(freep) char *cgroup = cgroup_path(s.cgroup_dir, s.cgroup_name);
    struct proctree tree = {.mark = s.mark, .cgroup = cgroup, .task_dir = s.dir};
    size_t left;
    while ((left = proctree_kill(&tree)) > 0 && clk_mono_ms() < deadline_ms)
        poll(NULL, 0, STEP_MS);
    cgroup_remove(cgroup);
    taskspec_finish(&s);
    return left == 0 ? 0 : det_fail(err, DET_ETIMEOUT, "%s: %zu processes do not end", dir, left);
}
