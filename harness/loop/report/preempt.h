/*
 * Watches for the master's wish that this allocation ends (pause, a higher priority): a thread with
 * a long poll. A failed poll counts as "no" and is asked again.
 */
#ifndef PREEMPT_H
#define PREEMPT_H

#include "loop.h"

struct preempt;
/* allocation_id is copied, http borrowed. */
DET_MUST int preempt_start(const struct loop_http *http, const char *allocation_id,
                           struct preempt **ret, struct det_err *err);
/* The first call waits for the first answer. */
bool preempt_wanted(struct preempt *p);
/* Ends a poll in flight by http's cancel. A poll that cannot be ended within 2 s is left to
 * itself; http must then outlive it. NULL ok. */
void preempt_stop(struct preempt *p);

#endif
