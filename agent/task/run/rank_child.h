/* The process that becomes a rank: what it does until it is one. */
#ifndef RANK_CHILD_H
#define RANK_CHILD_H

#include "rank.h"

struct rank_child {
    const struct rank_options *o;
    int out[2], status_fd, cgroup_fd, work_fd, null_fd;
    const char *work; /* the path of work_fd */
    pid_t parent;
    volatile pid_t pid; /* of the rank, once there is one */
};
/* After vfork(), no signal let through: the rank itself, or, where it is to be born in a box, a
 * process that ends as soon as the rank, its sibling, lives. What goes wrong is written to
 * status_fd, an errno; exec closes that. */
void __attribute__((noreturn)) rank_child_begin(struct rank_child *c);

#endif
