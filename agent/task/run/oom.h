/*
 * A rank that ends by SIGKILL, which nobody here has sent: most often the kernel did, for want of
 * memory, and its log is nothing that a user sees.
 */
#ifndef OOM_H
#define OOM_H

#include "buf.h"
#include <stdint.h>

#define OOM_HOST "/proc/vmstat"

/* How many processes the kernel has ended for want of memory, by the line "oom_kill" of OOM_HOST or
 * of a cgroup's memory.events; -1 where there is no such file or line. */
int64_t oom_kills(const char *path);
/* Appends who sent a SIGKILL, as far as known, and what to do. in_cgroup: kills in the task's own;
 * before, now: of the host, when the ranks began and now. */
void oom_explain(int64_t in_cgroup, int64_t before, int64_t now, struct buf *out);

#endif
