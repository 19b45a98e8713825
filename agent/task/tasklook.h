/*
 * Looks at files as a task's processes see them: with the rights of their user, and in their box,
 * where /tmp is another one than det-task's.
 */
#ifndef TASKLOOK_H
#define TASKLOOK_H

#include "buf.h"
#include "taskbox.h"
#include "taskspec.h"

/* Writes what it finds. It is run in a process of its own where the box is open: what else it
 * changes is lost, but for files. */
typedef void tasklook_fn(void *arg, struct buf *out);

/* The box is finished. *ret, which is empty, gets what fn wrote. */
DET_MUST int tasklook(const struct taskspec *s, const struct taskbox *b, tasklook_fn *fn, void *arg,
                      struct buf *ret, struct det_err *err);

struct tasklook_limit {
    int ms;
    pid_t late; /* is set: a child that was killed and is still there, perhaps for good; or 0 */
};

/* The same, but whatever does not answer there is waited for only so long: DET_ETIMEOUT. fn has no
 * open file. A mount may hold up who looks even when it is killed: it ends without a signal, so
 * that proctree_has_child() does not count it, and it is not to be reaped. */
DET_MUST int tasklook_within(const struct taskspec *s, const struct taskbox *b,
                             struct tasklook_limit *limit, tasklook_fn *fn, void *arg,
                             struct buf *ret, struct det_err *err);

#endif
