/* The process that becomes a rank: what it does until it is one. */
#ifndef RANK_CHILD_H
#define RANK_CHILD_H

#include "rank.h"

struct rank_child {
    const struct rank_options *o;
    int out[2], status_fd, cgroup_fd, work_fd, null_fd;
    pid_t parent;
};
/* After vfork(), no signal let through. What goes wrong it writes to status_fd, an errno; exec
 * closes that. */
void __attribute__((noreturn)) rank_child_run(const struct rank_child *c);

#endif
