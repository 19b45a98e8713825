#include "tasklimits.h"

#include "buf.h"
#include "cgroup.h"
#include "mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tasklimits_try(const struct agentopts *o, bool has_namespaces, struct tasklimits *ret)
{
    const char *one = o->accounts.task_user;
    *ret = (struct tasklimits){.place = cgroup_own_place(),
                               .by_uid = geteuid() == 0 ? !one || *one : has_namespaces,
                               .slot_memory_mib = o->slot_memory_mib,
                               .slot_pids = o->slot_pids};
    if (ret->place)
        det_ignore(cgroup_open(ret->place, cgroup_host_bytes(), &ret->held, &ret->why),
                   "ret->why keeps what is amiss");
    else
        det_fail(&ret->why, DET_ENOENT, "no cgroup v2 is mounted");
}

void tasklimits_finish(struct tasklimits *l)
{
    free(l->place);
    l->place = NULL;
}

const char *tasklimits_gap(const struct tasklimits *l, char *out, size_t room)
{
    det_cleanup(buf_finish) struct buf what = BUF_INIT;
    bool grouped = l->slot_pids > 0 && (l->held & CGROUP_PIDS);
    out[0] = '\0';
    if (!(l->held & CGROUP_MEMORY))
        buf_add_str(&what, "memory");
    if (!(l->held & CGROUP_CPU))
        buf_addf(&what, "%sCPU", what.len ? ", " : "");
    if (!grouped && !(l->by_uid && l->slot_pids > 0))
        buf_addf(&what, "%sprocesses", what.len ? ", " : "");
    if (what.len == 0)
        return out;
    snprintf(out, room, "a task can take all of this host's %s%s%s%s%s%s", buf_str(&what),
             !grouped && l->by_uid && l->slot_pids > 0
                 ? "; processes are limited for all tasks of a person together"
                 : "",
             l->slot_pids == 0 ? "; --slot-pids is 0" : "", *l->why.text ? " (" : "", l->why.text,
             *l->why.text ? ")" : "");
    return out;
}

int tasklimits_check(const struct tasklimits *l, struct det_err *err)
{
    if (l->slot_memory_mib == 0 || (l->held & CGROUP_MEMORY))
        return 0;
    return det_fail(
        err, DET_ESTATE,
        "--slot-memory-mib %lld: no task's memory can be limited on this host (%s); "
        "boot it with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1) and start the "
        "agent as root, or leave the option out",
        (long long)l->slot_memory_mib, l->why.text);
}
