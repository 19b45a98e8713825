/*
 * A process of a task: forked without a shell, with its own process group, standard input from
 * /dev/null, output into pipes that become log lines, and SIGKILL when det-task dies. Only the main
 * thread starts ranks: the kernel ties the death signal to the thread.
 */
#ifndef RANK_H
#define RANK_H

#include "logline.h"
#include "taskbox.h"
#include "taskspec.h"
#include <uv.h>

#define RANK_NO_RANK (-1)

struct rank;
struct rank_options {
    const struct taskspec *spec;
    const char *file; /* executable */
    char *const *argv;
    char *const *env;
    int number;                /* global rank, or RANK_NO_RANK */
    int local;                 /* 0..: names the progress file */
    int pass_fd;               /* becomes fd 3 of the process; -1: none */
    const char *cgroup;        /* or NULL */
    const struct taskbox *box; /* where it is born, if that is open; borrowed */
    uv_loop_t *loop;
    /* A line of standard output ("stdout") or error ("stderr"). */
    void (*on_line)(void *arg, const struct rank *r, const char *stdtype, const struct logline *l);
    /* Both outputs ended. */
    void (*on_silent)(void *arg, struct rank *r);
    void *arg;
};
/* DET_ENOENT: no such program; DET_EPERM: it may not be executed; the text names it. o is copied.
 */
DET_MUST int rank_start(const struct rank_options *o, struct rank **ret, struct det_err *err);
/* Frees it when its pipes are closed. */
void rank_close(struct rank *r);

pid_t rank_pid(const struct rank *r);
int rank_number(const struct rank *r);
int rank_local(const struct rank *r);
bool rank_is_silent(const struct rank *r);
/* Stops and goes on reading the output (the writer waits in the end). */
void rank_pause(struct rank *r, bool pause);
/* waitpid() gave this status. */
void rank_on_exit(struct rank *r, int status);
bool rank_has_exited(const struct rank *r);
int rank_status(const struct rank *r);
/* To its process group; harmless when it has exited. */
void rank_signal(const struct rank *r, int signal);

#endif
