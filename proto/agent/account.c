#include "account.h"

#include <inttypes.h>
#include <stdio.h>

#define UID_NONE INT64_C(4294967295) /* (uid_t)-1 */

static bool is_in_range(const struct account_rule *r, int64_t uid)
{
    return uid >= r->first && uid <= r->last;
}

static int choose_own(const struct account_rule *r, int64_t owner, struct account *ret,
                      struct det_err *err)
{
    if (owner <= 0)
        return det_fail(err, DET_EINVAL,
                        "the master does not say whose task it is: upgrade it, or start the agent "
                        "with --task-user NAME, one account for the tasks of all");
    if (owner > r->last - r->first)
        return det_fail(err, DET_EINVAL,
                        "no uid is left for user %" PRId64 " in %" PRId64 "-%" PRId64
                        ": give the agents a larger range (--task-uids)",
                        owner, r->first, r->last);
    *ret = (struct account){ACCOUNT_OWN, r->first + owner, r->first};
    return 0;
}

/* An account that was given to a user of the range would be both of theirs. */
static int choose_bound(const struct account_rule *r, const struct account_wish *w,
                        struct account *ret, struct det_err *err)
{
    if (!r->task_user && is_in_range(r, w->uid) && w->uid != r->first + w->owner)
        return det_fail(err, DET_EINVAL,
                        "the owner is bound to uid %" PRId64 ", which is another user's on this "
                        "host (--task-uids %" PRId64 "-%" PRId64 "): bind another one with "
                        "det user link-with-agent-user",
                        w->uid, r->first, r->last);
    *ret = (struct account){ACCOUNT_BOUND, w->uid, w->gid};
    return 0;
}

int account_choose(const struct account_rule *r, const struct account_wish *w, struct account *ret,
                   struct det_err *err)
{
    if (w->is_bound && w->uid > 0)
        return choose_bound(r, w, ret, err);
    if (!r->task_user)
        return choose_own(r, w->owner, ret, err);
    *ret = (struct account){.kind = r->task_user[0] ? ACCOUNT_NAMED : ACCOUNT_AGENT};
    return 0;
}

int account_range_parse(const char *text, int64_t *ret_first, int64_t *ret_last,
                        struct det_err *err)
{
    int64_t first = 0, last = 0;
    int used = 0;
    if (sscanf(text, "%12" SCNd64 "-%12" SCNd64 "%n", &first, &last, &used) != 2 || text[used])
        return det_fail(err, DET_EINVAL, "'%s': two numbers are wanted, FIRST-LAST", text);
    if (first < 1 || last >= UID_NONE || last - first < 1)
        return det_fail(err, DET_EINVAL,
                        "%s: uids of 1 to %" PRId64 " are wanted, two of them at least", text,
                        UID_NONE - 1);
    *ret_first = first;
    *ret_last = last;
    return 0;
}
