/* What keeps the tasks of different people apart on this host, and what does not. */
#ifndef APART_H
#define APART_H

#include "det/err.h"
#include <stdbool.h>
#include <stddef.h>

struct apart {
    bool is_root;          /* the agent */
    const char *task_user; /* NULL: a uid for each person */
    int probe;             /* what apart_probe() gave, and its text */
    const char *why;
};

/* Tries what a task would have, by a det-task that only looks. DET_EPERM: no namespaces; why. */
DET_MUST int apart_probe(struct det_err *err);
/* What the tasks of one person can still do to another's: a sentence in `out`, which is returned;
 * "": nothing that is known. */
const char *apart_gap(const struct apart *a, char *out, size_t room);

#endif
