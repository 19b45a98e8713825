/*
 * All processes of a task, whatever they did to hide: setsid, double fork, a new process group, an
 * empty environment. Found are
 *   - the descendants of this process (det-task is a subreaper, so orphans come back to it);
 *   - processes whose environment has the task's mark (after a det-task that was killed); a
 *     container's id would not do: it follows from configuration and seed, so two clusters may have
 *     the same;
 *   - the members of the task's cgroup (v2), where there is one.
 */
#ifndef PROCTREE_H
#define PROCTREE_H

#include "det/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct proctree {
    const char *mark;     /* "NAME=value" that its environments have and no others; borrowed */
    const char *cgroup;   /* directory of the task's cgroup, or NULL; borrowed */
    const char *task_dir; /* its det-task too, known by its command line; or NULL; borrowed */
    pid_t spared;         /* a child that is not of the task; 0: none */
};

/* Sends SIGKILL to all of them; returns how many were there (zombies do not count). To be repeated
 * until it gives 0, which is a proof only for a subreaper that has no child either. */
size_t proctree_kill(const struct proctree *t);
/* Whether the calling process has a child, be it a zombie; one that was made to end without a
 * signal does not count. A subreaper without one has no descendant. */
bool proctree_has_child(void);
/* Those that catch the signal, an older one first; at most max. Returns how many. */
size_t proctree_catching(const struct proctree *t, int signal, pid_t *ret, size_t max);
/* Whether this one does now. */
bool proctree_catches(pid_t pid, int signal);
/* How many there are. */
size_t proctree_count(const struct proctree *t);

#endif
