/*
 * What a program says of a file that it cannot have, where a task is the reason: one below a /tmp
 * that is the task's own, or one that the task's account may not use. Pure.
 */
#ifndef UNSEEN_H
#define UNSEEN_H

#include "buf.h"

#include <stdbool.h>

struct unseen {
    bool has_own_tmp; /* its /tmp, /var/tmp and /dev/shm are not the host's */
    const char *user; /* of its processes; borrowed */
    unsigned uid;
};
/* Whether the line is such a one; then the reason is added to *out, a sentence without its end. Not
 * where the line has it already. */
bool unseen_explain(const struct unseen *u, const char *line, struct buf *out);

#endif
