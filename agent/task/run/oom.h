/*
 * A rank that ends by SIGKILL, which nobody here has sent: most often the kernel did, for want of
 * memory, and its log is nothing that a user sees.
 */
#ifndef OOM_H
#define OOM_H

#include "buf.h"
#include <stdint.h>

/* How many processes the kernel has ended for want of memory: of the host since it started, of a
 * task's cgroup (or NULL); -1: it does not say. */
int64_t oom_host_kills(void);
int64_t oom_kills(const char *group);
/* How often a cgroup was at its limit and found nothing to give back; -1: it does not say. */
int64_t oom_past_limit(const char *group);

struct oom_seen {
    int64_t in_group, past_limit; /* of the task's own */
    int64_t limit_bytes;          /* 0: it has none of its own */
    int64_t before, now;          /* kills of the host: when the task began, and now */
};
/* Appends who sent a SIGKILL, as far as known, and what to do. */
void oom_explain(const struct oom_seen *s, struct buf *out);

#endif
