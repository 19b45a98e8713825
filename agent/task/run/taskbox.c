#include "taskbox.h"

#include "counted.h"
#include "fsx.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY      "+"
#define INIT_TITLE "det-init" /* as long as "det-task" */

static int report_refusal(const char *what, struct det_err *err)
{
    return det_fail_errno(err, DET_EPERM, errno, "%s", what);
}

/* ---- the init ---- */

/* Its memory and descriptors are copies of det-task's, whose connections must end with det-task. */
static void __attribute__((noreturn)) wait_for_ever(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN); /* orphans leave no zombies */
    syscall(SYS_close_range, 0U, ~0U, 0U);
    for (;;)
        pause();
}

static int write_text(const char *path, struct det_err *err, const char *fmt, unsigned id)
{
    char text[64];
    int n = snprintf(text, sizeof text, fmt, id, id);
    det_cleanup(det_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, text, (size_t)n) < 0 ? report_refusal(path, err) : 0;
}

/* Who is not root may make the other namespaces only in one of users, where it is who it was. */
static int map_ids(const struct taskbox *b, struct det_err *err)
{
    if (!(b->spaces & CLONE_NEWUSER))
        return 0;
    int rc = write_text("/proc/self/setgroups", err, "deny", 0);
    if (rc == 0)
        rc = write_text("/proc/self/uid_map", err, "%u %u 1", b->uid);
    return rc < 0 ? rc : write_text("/proc/self/gid_map", err, "%u %u 1", b->gid);
}

/* The host's out-of-memory killer would end the whole task by it. Only root may. */
static void spare_from_oom(void)
{
    det_cleanup(det_closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "-1000", 5) < 0)
        errno = 0;
}

/* ps tells it from its det-task. */
static void set_title(void)
{
    if (strcmp(program_invocation_name, "det-task") == 0)
        memcpy(program_invocation_name, INIT_TITLE, strlen(INIT_TITLE));
    prctl(PR_SET_NAME, INIT_TITLE);
}

/* Of a probe: the one that a kernel, or a container around, may refuse. */
static int try_mounts(struct det_err *err)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return report_refusal("mount --make-rslave /", err);
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return report_refusal("mount /proc", err);
    return 0;
}

static void __attribute__((noreturn))
init_run(const struct taskspec *s, const struct taskbox *b, int status_fd)
{
    struct det_err err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_title();
    spare_from_oom();
    int rc = map_ids(b, &err);
    if (rc == 0)
        rc = s ? taskbox_mounts(s, &err) : try_mounts(&err);
    const char *said = rc < 0 ? err.text : READY;
    counted_write();
    if (write(status_fd, said, strlen(said)) < 0 || rc < 0)
        _exit(1);
    wait_for_ever();
}

/* ---- det-task ---- */

int taskbox_begin(const struct taskspec *s, struct taskbox *ret, struct det_err *err)
{
    struct taskbox b = {.pidfd = -1,
                        .spaces = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
                                  (geteuid() == 0 ? 0 : CLONE_NEWUSER),
                        .uid = geteuid(),
                        .gid = getegid()};
    int status[2];
    *ret = TASKBOX_NONE;
    if (pipe2(status, O_CLOEXEC) < 0)
        return report_refusal("pipe", err);
    b.pid = (pid_t)syscall(SYS_clone, (unsigned long)(b.spaces | CLONE_PIDFD | SIGCHLD), NULL,
                           &b.pidfd, NULL, NULL);
    if (b.pid == 0)
        init_run(s, &b, status[1]);
    int e = errno;
    close(status[1]);
    b.status_fd = status[0];
    errno = e;
    if (b.pid < 0) {
        close(b.status_fd);
        return report_refusal("namespaces of its own", err);
    }
    *ret = b;
    return 0;
}

/* What the init says of its mounts. */
static int await_init(int fd, struct det_err *err)
{
    char said[256];
    ssize_t n;
    do
        n = read(fd, said, sizeof said - 1);
    while (n < 0 && errno == EINTR);
    said[n > 0 ? n : 0] = '\0';
    if (strcmp(said, READY) == 0)
        return 0;
    return det_fail(err, DET_EPERM, "%s", n > 0 ? said : "the init of the task's namespaces died");
}

/* A kernel before 5.8 joins no namespaces by a process. That of System V IPC, which det-task has no
 * use for, tells. */
static int try_to_join(const struct taskbox *b, struct det_err *err)
{
    int status = 0;
    if (!(b->spaces & CLONE_NEWUSER))
        return setns(b->pidfd, CLONE_NEWIPC) < 0 ? report_refusal("setns", err) : 0;
    pid_t pid = vfork(); /* whoever joins that of users cannot come back */
    if (pid == 0)
        _exit(taskbox_join(b) < 0 ? errno : 0);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    errno = pid < 0 ? errno : WEXITSTATUS(status);
    return errno == 0 ? 0 : report_refusal("setns", err);
}

int taskbox_finish(struct taskbox *b, struct det_err *err)
{
    if (!taskbox_is_open(b) || b->status_fd < 0)
        return 0;
    int rc = await_init(b->status_fd, err);
    if (rc == 0)
        rc = try_to_join(b, err);
    det_closep(&b->status_fd);
    if (rc == 0)
        return 0;
    taskbox_kill(b);
    waitpid(b->pid, NULL, 0);
    taskbox_close(b);
    return rc;
}

int taskbox_probe(struct det_err *err)
{
    struct taskbox b;
    int rc = taskbox_begin(NULL, &b, err);
    if (rc == 0)
        rc = taskbox_finish(&b, err);
    if (rc < 0)
        return rc;
    taskbox_kill(&b);
    waitpid(b.pid, NULL, 0);
    taskbox_close(&b);
    return 0;
}

int taskbox_join(const struct taskbox *b)
{
    return setns(b->pidfd, b->spaces);
}

void taskbox_kill(const struct taskbox *b)
{
    if (taskbox_is_open(b))
        syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
}

void taskbox_close(struct taskbox *b)
{
    det_closep(&b->pidfd);
    det_closep(&b->status_fd);
}

pid_t taskbox_inner_pid(pid_t pid)
{
    char path[64];
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    const char *line = fsx_read_file(AT_FDCWD, path, 65536, &b, NULL) == 0
                           ? strstr(buf_str(&b), "\nNSpid:")
                           : NULL;
    pid_t found = pid;
    for (char *at = line ? (char *)line + strlen("\nNSpid:") : NULL; at && *at != '\n' && *at;)
        found = (pid_t)strtol(at, &at, 10);
    return found > 0 ? found : pid;
}
