#include "apart.h"

#include "find.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char *find_det_task(void)
{
    char *found = find_beside("det-task", X_OK);
    return found ? found : find_beside("task/det-task", X_OK); /* in the build tree */
}

/* What it says, cut off at its line's end; its exit status, -1: it cannot be run. */
static int run_probe(const char *det_task, char *said, size_t room)
{
    char *const argv[] = {"det-task", "--probe", NULL};
    posix_spawn_file_actions_t fa;
    int fds[2], status = -1;
    pid_t pid;
    said[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -1;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, fds[1], 2);
    int rc = posix_spawn(&pid, det_task, &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    close(fds[1]);
    ssize_t n = rc == 0 ? read(fds[0], said, room - 1) : -1;
    close(fds[0]);
    said[n > 0 ? n : 0] = '\0';
    said[strcspn(said, "\n")] = '\0';
    while (rc == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return rc == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int apart_probe(struct det_err *err)
{
    char said[256];
    det_cleanup(freep) char *det_task = find_det_task();
    if (!det_task)
        return det_fail(err, DET_ENOENT, "det-task is not beside det-agent");
    if (run_probe(det_task, said, sizeof said) == 0)
        return 0;
    return det_fail(err, DET_EPERM, "%s", *said ? said : "det-task --probe gave no answer");
}

const char *apart_gap(const struct apart *a, char *out, size_t room)
{
    out[0] = '\0';
    if (a->is_root && a->task_user)
        snprintf(out, room,
                 "--task-user '%s': the tasks of all users run as one account; they can read and "
                 "change each other's files%s",
                 a->task_user, a->probe < 0 || !*a->task_user ? ", and end each other" : "");
    else if (!a->is_root && a->probe == 0)
        snprintf(out, room,
                 "the agent is not root: tasks do not see each other, but all can read and change "
                 "what this account can, such as each other's checkpoints");
    else if (!a->is_root)
        snprintf(
            out, room,
            "the agent is not root and may make no namespaces (%s): the tasks of all users can "
            "read, change and end each other, and read the agent's token",
            a->why);
    else if (a->probe < 0)
        snprintf(out, room,
                 "no namespaces (%s): uids keep tasks apart, but they see each other's processes "
                 "and share /tmp and /dev/shm",
                 a->why);
    return out;
}
