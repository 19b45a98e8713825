/*
 * Which account of a host a task runs as: a pure decision, since the agent (for stores that it
 * makes) and det-task must come to the same one, and all hosts too.
 *
 *     task_user ""        the agent's own account
 *     the owner's         the account that an administrator bound to the task's owner
 *     task_user NAME      one account for the tasks of all others
 *     else                a uid of the owner's own: first + the owner's number
 *
 * The first number of the range is no user's: as a group it is the one that all share.
 */
#ifndef PROTO_ACCOUNT_H
#define PROTO_ACCOUNT_H

#include "det/err.h"
#include <stdbool.h>
#include <stdint.h>

#define ACCOUNT_FIRST      INT64_C(1900000000)
#define ACCOUNT_LAST       INT64_C(1999999999)
#define ACCOUNT_RANGE_TEXT "1900000000-1999999999"

struct account_rule {
    const char *task_user; /* NULL: each owner has a uid of the range; borrowed */
    int64_t first, last;   /* of the range */
};
struct account_wish {
    int64_t owner; /* the master's number of the owner; 0: a master of before said none */
    bool is_bound; /* to uid and gid */
    int64_t uid, gid;
};
enum account_kind { ACCOUNT_AGENT, ACCOUNT_BOUND, ACCOUNT_NAMED, ACCOUNT_OWN };
struct account {
    enum account_kind kind;
    int64_t uid, gid; /* of ACCOUNT_BOUND and ACCOUNT_OWN */
};

/* For an agent that is root; another one's tasks can only run as itself. Never uid 0: an owner who
 * is bound to root has none. DET_EINVAL: no uid is left for this owner, or the bound one is
 * somebody else's. */
DET_MUST int account_choose(const struct account_rule *r, const struct account_wish *w,
                            struct account *ret, struct det_err *err);
/* "FIRST-LAST". DET_EINVAL: no such range, or one that holds root or a uid that means "none". */
DET_MUST int account_range_parse(const char *text, int64_t *ret_first, int64_t *ret_last,
                                 struct det_err *err);

#endif
