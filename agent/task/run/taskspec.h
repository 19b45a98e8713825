/*
 * What det-task is told: DIR/spec.json, written by the agent (0600). The directory of a task:
 *
 *     spec.json   this                      state.json  {"exit": ..., "marks": [...]} once it has
 * ended sock        det-task's UNIX socket    log.spool   lines not yet sent task.log    det-task's
 * own words      work/       the model definition; the ranks' directory info/       DET_INFO_DIR
 * run/        progress.N, reports.N of rank N
 *
 * work, info and run belong to the task's user and to nobody else.
 */
#ifndef TASKSPEC_H
#define TASKSPEC_H

#include "account.h"
#include "agentlink.h"
#include "cgroup.h"
#include <sys/types.h>

#define TASKSPEC_SOCKET_FD 3 /* where the agent puts the listening socket */

struct taskspec {
    json_t *json;
    struct link_spec task;
    const char *alloc, *container;
    const char *agent_id, *addr;     /* of this host */
    const char *master;              /* URL */
    const char *ca_file, *cert_name; /* NULL: none */
    struct account_rule accounts;
    int threads_per_slot;
    uint64_t log_bytes_max; /* of the ranks' output; 0: no limit */
    const json_t *hide;     /* paths that the task may not see; NULL: none */
    const json_t *slots;    /* all of the agent: [{id, type, brand, uuid}] */
    char *dir;              /* absolute */
    char *mark;             /* for proctree.h: in the environment of all its processes, and no
                             * others' */
    const char *cgroup_dir; /* of all tasks' groups; NULL: none can be made */
    char *cgroup_name;
    struct cgroup_limits limits;
    int64_t uid_pids; /* of all processes of the task's uid on this host; 0: no limit */
    char *cache; /* DET_CACHE_DIR; the owner's part of it where all have one account; or NULL */
    int dirfd;
    /* whom the ranks run as; where no account can be chosen nothing may run, and refusal.code says
     * so */
    struct det_err refusal;
    enum account_kind account;
    bool switch_user; /* we are root and they are not */
    uid_t uid;
    gid_t gid;
    char *user_name, *home;
    gid_t *groups;
    int groups_n;
};

DET_MUST int taskspec_load(const char *dir, struct taskspec *ret, struct det_err *err);
void taskspec_finish(struct taskspec *s);

int taskspec_world_size(const struct taskspec *s); /* ranks of all nodes, at least 1 */
int taskspec_first_rank(const struct taskspec *s); /* of this node */
int taskspec_local_size(const struct taskspec *s); /* ranks of this node, at least 1 */
/* One person's task is to be kept from another's: not where the agent was told otherwise. */
bool taskspec_is_kept_apart(const struct taskspec *s);
/* The agent's slot behind the i-th slot of the task; NULL if it is not known. */
const json_t *taskspec_slot(const struct taskspec *s, size_t i);

/* The effective user becomes the task's, for files that are made or opened on its behalf, and back.
 */
DET_MUST int taskspec_user_enter(const struct taskspec *s, struct det_err *err);
void taskspec_user_leave(const struct taskspec *s);

#endif
