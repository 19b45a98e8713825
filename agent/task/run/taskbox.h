/*
 * The namespaces of one task: of processes, mounts and System V IPC. Its processes see each other
 * and no others, and have /tmp, /dev/shm and /run/determined to themselves. The first process in it
 * is its init, a child of det-task that only waits: when it is killed, or det-task dies, the kernel
 * ends all that are in the box, whatever they did to hide. Where det-task is not root the box
 * has a user namespace too, with the one account.
 */
#ifndef TASKBOX_H
#define TASKBOX_H

#include "taskspec.h"

struct taskbox {
    pid_t pid;     /* of the init */
    int pidfd;     /* -1: no box */
    int status_fd; /* what the init says of its mounts; -1: it has been heard */
    int spaces;    /* CLONE_NEW* that it has */
    uid_t uid;     /* det-task's, before */
    gid_t gid;
};
#define TASKBOX_NONE ((struct taskbox){.pidfd = -1, .status_fd = -1})

/* After prepare_dirs(): the init makes its mounts beside what is to be done yet. s is NULL in a
 * probe, whose init makes few. DET_EPERM where the kernel refuses, and *ret is TASKBOX_NONE. */
DET_MUST int taskbox_begin(const struct taskspec *s, struct taskbox *ret, struct det_err *err);
/* Before a process of the task is started: waits for the mounts, the first time. An error leaves
 * TASKBOX_NONE. */
DET_MUST int taskbox_finish(struct taskbox *b, struct det_err *err);
static inline bool taskbox_is_open(const struct taskbox *b)
{
    return b->pidfd >= 0;
}
/* The calling process is in the box's mounts, its next child in all of it. For use between vfork
 * and exec: one system call. -1 and errno. */
int taskbox_join(const struct taskbox *b);
/* SIGKILL to all in it. They are gone when the init is: it is reaped last. */
void taskbox_kill(const struct taskbox *b);
void taskbox_close(struct taskbox *b);
/* What a process is called by those in its innermost namespace; pid itself where that is ours. */
pid_t taskbox_inner_pid(pid_t pid);

/* Whether the kernel lets this user have boxes: tried by a process that ends. */
DET_MUST int taskbox_probe(struct det_err *err);

/* ---- of the init ---- */
DET_MUST int taskbox_mounts(const struct taskspec *s, struct det_err *err);

#endif
