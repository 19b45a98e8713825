/*
 * Whether the range of uids for tasks is free on this host: mapped in this user namespace, and
 * nobody's in the files of accounts and of subordinate ids. What a directory service knows is not
 * asked: it may know millions.
 */
#ifndef TASKUIDS_H
#define TASKUIDS_H

#include "account.h"

struct taskuids_files {
    const char *passwd, *group, *subuid, *subgid; /* as in passwd(5), group(5), subuid(5) */
    const char *uid_map, *gid_map;                /* as in user_namespaces(7) */
};
extern const struct taskuids_files taskuids_of_host;

/* A file that is not there names nobody. DET_EINVAL says which line is in the way. The range's
 * first number may be a group: it is the one that all tasks share. */
DET_MUST int taskuids_check(const struct account_rule *r, const struct taskuids_files *f,
                            struct det_err *err);

#endif
