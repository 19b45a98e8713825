/* Directories of tasks below <work-dir>/tasks, and the start of det-task in them
 * (agent/task/run/taskspec.h tells what lies in one). Nothing here waits for anything. */
#ifndef TASKDIR_H
#define TASKDIR_H

#include "agentlink.h"
#include <sys/types.h>

struct taskdirs {
    char *root; /* <work-dir>/tasks, absolute */
    int fd;
    char *det_task; /* the program */
    int server;     /* the process that forks det-tasks (taskserver.h); -1: none */
    json_t *agent;  /* the "agent" object of every spec.json */
};
/* Makes the directories; takes the lock of the work directory (DET_EEXIST: another agent has it)
 * unless lock is false. agent: reference taken. */
DET_MUST int taskdirs_open(struct taskdirs *d, const char *work_dir, bool lock, json_t *agent,
                           struct det_err *err);
void taskdirs_close(struct taskdirs *d);

/* Makes the directory and spec.json of a task. */
DET_MUST int taskdir_make(const struct taskdirs *d, const char *alloc, const char *container,
                          json_t *task, struct det_err *err);
/* Starts det-task (recover: what ends the rest of a killed one) with its listening socket. */
DET_MUST int taskdir_spawn(struct taskdirs *d, const char *alloc, bool recover,
                           struct det_err *err);
/* A path short enough for a socket's address, valid as long as *ret_fd (the caller's) is open. */
DET_MUST int taskdir_socket_path(const struct taskdirs *d, const char *alloc, int *ret_fd,
                                 char out[64], struct det_err *err);
/* The spec.json of a task; new reference, NULL with *err. */
json_t *taskdir_spec(const struct taskdirs *d, const char *alloc, struct det_err *err);
/* The exit in its state.json, which is *ret_json and keeps it alive (new reference); "marks" is
 * beside it. DET_ENOENT: none yet. */
DET_MUST int taskdir_exit(const struct taskdirs *d, const char *alloc, json_t **ret_json,
                          struct link_exit *ret, struct det_err *err);
/* Takes it out of sight at once; the bytes go with taskdir_sweep(). */
void taskdir_drop(const struct taskdirs *d, const char *alloc);
/* Deletes what was dropped. May take long: for a thread of the pool. root_fd as in taskdirs. */
void taskdir_sweep(int root_fd);
/* Names of all tasks, ends in NULL; free each and the array. */
char **taskdir_list(const struct taskdirs *d);
/* Begins det-task --end for one that does not answer; who reaps children reaps it. */
void taskdir_end(const struct taskdirs *d, const char *alloc);
/* --end-tasks: runs det-task --end for each, then removes their directories. */
DET_MUST int taskdirs_end_all(const struct taskdirs *d, struct det_err *err);

#endif
