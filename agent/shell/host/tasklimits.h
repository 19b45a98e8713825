/* What one task may take of this host's memory, processes and CPU, and what holds of that here. */
#ifndef TASKLIMITS_H
#define TASKLIMITS_H

#include "agentopts.h"

struct tasklimits {
    char *place;   /* of all tasks' cgroups; NULL: none. Owned */
    unsigned held; /* CGROUP_* */
    bool by_uid;   /* processes are counted for each person, too */
    int64_t slot_memory_mib, slot_pids;
    struct det_err why; /* not all are held; text "" */
};
/* Tries it: afterwards tasks' groups have limits, as far as the kernel lets them. */
void tasklimits_try(const struct agentopts *o, bool has_namespaces, struct tasklimits *ret);
void tasklimits_finish(struct tasklimits *l);
/* What a task can take from the others all the same: a sentence in `out`, which is returned; "":
 * nothing that is known. */
const char *tasklimits_gap(const struct tasklimits *l, char *out, size_t room);
/* DET_ESTATE: a limit that somebody has asked for would not hold. */
DET_MUST int tasklimits_check(const struct tasklimits *l, struct det_err *err);

#endif
