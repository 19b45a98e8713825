#include "oom.h"

#include "cgroup.h"

#include <stddef.h>

#define REMEDY "; smaller batches, fewer data workers or fewer slots of a host need less"

int64_t oom_host_kills(void)
{
    return cgroup_count("/proc", "vmstat", "oom_kill");
}

int64_t oom_kills(const char *group)
{
    return group ? cgroup_count(group, "memory.events", "oom_kill") : -1;
}

int64_t oom_past_limit(const char *group)
{
    return group ? cgroup_count(group, "memory.events", "oom") : -1;
}

void oom_explain(const struct oom_seen *s, struct buf *out)
{
    if (s->in_group > 0 && s->past_limit > 0 && s->limit_bytes > 0)
        buf_addf(out,
                 ": the kernel did that for want of memory: the task was past its limit of "
                 "%lld MiB (the agent's --slot-memory-mib for each slot)" REMEDY,
                 (long long)(s->limit_bytes >> 20));
    else if (s->in_group > 0)
        buf_add_str(out, ": the kernel did that for want of memory: the host had no more for its "
                         "tasks" REMEDY);
    else if (s->before >= 0 && s->now > s->before)
        buf_addf(out,
                 ": most likely by the kernel for want of memory: so ended %lld of this host's "
                 "processes since the task began" REMEDY,
                 (long long)(s->now - s->before));
    else
        buf_add_str(out,
                    ": by somebody on this host, or by the kernel for want of memory, of which "
                    "its log (dmesg) tells");
}
