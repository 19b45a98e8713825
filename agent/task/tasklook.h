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

/* The same, but it waits for ms at most, whatever does not answer there. DET_ETIMEOUT: it was too
 * long; who looks is killed, and is reaped with the task at the latest. */
DET_MUST int tasklook_within(const struct taskspec *s, const struct taskbox *b, int ms,
                             tasklook_fn *fn, void *arg, struct buf *ret, struct det_err *err);

#endif
