/*
 * What a program says of a file that it cannot have, where a task is the reason: one below a /tmp
 * that is the task's own, or one that the task's account may not use. Pure.
 */
#ifndef UNSEEN_H
#define UNSEEN_H

#include "buf.h"
#include "vec.h"

#include <stdbool.h>

struct unseen {
    bool has_own_tmp; /* its /tmp, /var/tmp and /dev/shm are not the host's */
    const char *user; /* of its processes; borrowed */
    unsigned uid;
};
/* Whether the line is such a one; then the reason is added to *out, a sentence without its end. Not
 * where the line has it already. */
bool unseen_explain(const struct unseen *u, const char *line, struct buf *out);

/* Whether one of the last lines of who ended badly tells why: what it said long before, or another
 * did, is not its end. */
#define UNSEEN_LAST 10 /* lines of each */
struct unseen_last {
    VEC(struct unseen_of {
        int who;
        int after; /* lines since */
        char *why; /* owned */
    })
    of;
};
/* The next line of who; why: as unseen_explain() has it, NULL: it explains nothing. */
void unseen_last_line(struct unseen_last *l, int who, const char *why);
/* Borrowed; NULL: none does. */
const char *unseen_last_why(const struct unseen_last *l, int who);
void unseen_last_finish(struct unseen_last *l);

#endif
