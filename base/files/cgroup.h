/*
 * Control groups (cgroup v2): each task is in one of its own, and all of these in one, "det-tasks".
 * That lies beside the calling process's own group where it may write there, else in it: the kernel
 * gives limits to none in a group that has processes itself, unless it is the first one of all.
 * Everything works on directories, so that a tree of plain files can stand for the kernel's.
 */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include "det/err.h"
#include <stdint.h>

enum { CGROUP_MEMORY = 1, CGROUP_PIDS = 2, CGROUP_CPU = 4, CGROUP_ALL = 7 };

struct cgroup_limits {
    int64_t memory_bytes; /* 0: none of its own */
    int64_t pids;         /* processes and threads; 0: none of its own */
    int cpu_weight;       /* 1 to 10000, against its siblings where CPU is short */
};

/* Where "det-tasks" is, or would be, by the texts of /proc/self/mountinfo and /proc/self/cgroup
 * (hybrid mounts too); NULL without a v2 hierarchy. Caller frees. */
char *cgroup_place(const char *mountinfo, const char *cgroup);
/* That of the calling process. Caller frees. */
char *cgroup_own_place(void);
/* Makes `tasks`, turns limits on for the groups in it, and lets all of them together leave the
 * host a twentieth of host_bytes (0: no such limit). *ret_held: those of CGROUP_* that hold. An
 * error says why not all do; DET_EPERM: `tasks` itself cannot be made or used. */
DET_MUST int cgroup_open(const char *tasks, int64_t host_bytes, unsigned *ret_held,
                         struct det_err *err);
/* Makes `name` in `tasks`, which is opened if it is not there, and gives it those of the limits
 * that hold there. NULL where that is not possible. Caller frees. Removing: when the task is
 * over. */
char *cgroup_make(const char *tasks, const char *name, const struct cgroup_limits *l);
char *cgroup_path(const char *tasks, const char *name); /* NULL: NULL. Caller frees */
/* SIGKILL to all in it, by the kernel at one stroke (5.14); NULL and older kernels: nothing. */
void cgroup_kill(const char *path);
/* Nothing where it is not empty, or NULL: what is still dying goes with the next one's end. */
void cgroup_remove(const char *path);
/* The number behind `key` in a file of lines "key number", as the kernel counts events; -1: there
 * is none. */
int64_t cgroup_count(const char *path, const char *file, const char *key);

int64_t cgroup_host_bytes(void); /* of this host's memory */

#endif
