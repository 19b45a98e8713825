/* Starting det-task. */
#include "taskdir.h"

#include "log.h"
#include "mem.h"
#include "taskserver.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define SOCKET_FD 3 /* TASKSPEC_SOCKET_FD of det-task */

/* The agent listens before det-task is there, so it may connect at once and need not wait. */
static int listen_at(const struct taskdirs *d, const char *alloc, struct det_err *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    det_cleanup(det_closep) int dir = -1;
    char path[64];
    int rc = taskdir_socket_path(d, alloc, &dir, path, err);
    if (rc < 0)
        return rc;
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    unlinkat(dir, "sock", 0);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mode_t old = umask(0077);
    rc = fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 8) < 0;
    int e = errno;
    umask(old);
    if (rc == 0)
        return fd;
    det_closep(&fd);
    return det_fail_errno(err, DET_EIO, e, "the socket of %s", alloc);
}

static void set_actions(posix_spawn_file_actions_t *fa, int socket, const char *log)
{
    posix_spawn_file_actions_init(fa);
    posix_spawn_file_actions_addopen(fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(fa, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(fa, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(fa, socket, SOCKET_FD);
    /* Not all descriptors of libraries have CLOEXEC; the link to the master must die with us. */
    posix_spawn_file_actions_addclosefrom_np(fa, SOCKET_FD + 1);
}

/* Without the server: slower, and needs nothing but the program. */
static int spawn_alone(const struct taskdirs *d, const char *dir, bool recover, int socket,
                       struct det_err *err)
{
    det_cleanup(freep) char *log = det_asprintf("%s/task.log", dir);
    char *const run[] = {"det-task", (char *)dir, NULL};
    char *const rec[] = {"det-task", "--recover", (char *)dir, NULL};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    pid_t pid;
    set_actions(&fa, socket, log);
    taskserver_attributes(&at);
    int rc = posix_spawn(&pid, d->det_task, &fa, &at, recover ? rec : run, environ);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    return rc == 0 ? 0 : det_fail_errno(err, DET_EIO, rc, "start %s", d->det_task);
}

int taskdir_spawn(struct taskdirs *d, const char *alloc, bool recover, struct det_err *err)
{
    det_cleanup(freep) char *dir = det_asprintf("%s/%s", d->root, alloc);
    det_cleanup(det_closep) int fd = listen_at(d, alloc, err);
    if (fd < 0)
        return fd;
    if (taskserver_send(d, dir, recover, fd))
        return 0;
    det_cleanup(det_closep) int up = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    return spawn_alone(d, dir, recover, up, err); /* dup2 of 3 to itself would leave it CLOEXEC */
}

static bool spawn_end(const struct taskdirs *d, const char *alloc, pid_t *ret)
{
    det_cleanup(freep) char *dir = det_asprintf("%s/%s", d->root, alloc);
    char *const argv[] = {"det-task", "--end", dir, NULL};
    return posix_spawn(ret, d->det_task, NULL, NULL, argv, environ) == 0;
}

void taskdir_end(const struct taskdirs *d, const char *alloc)
{
    pid_t pid;
    if (!spawn_end(d, alloc, &pid))
        log_error("%s: det-task --end cannot be started", alloc);
}

static int end_one(const struct taskdirs *d, const char *alloc)
{
    pid_t pid;
    int status = 1;
    if (!spawn_end(d, alloc, &pid))
        return -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

int taskdirs_end_all(const struct taskdirs *d, struct det_err *err)
{
    char **names = taskdir_list(d);
    int rc = 0;
    for (size_t i = 0; names[i]; i++) {
        if (end_one(d, names[i]) == 0)
            taskdir_drop(d, names[i]);
        else
            rc = det_fail(err, DET_EIO, "the task in %s/%s does not end", d->root, names[i]);
        free(names[i]);
    }
    free(names);
    taskdir_sweep(d->fd);
    return rc;
}
