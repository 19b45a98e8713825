#include "may.h"

enum {
    WORKS = RIGHT_OPEN | RIGHT_SEE | RIGHT_CREATE | RIGHT_FOUND,
    OWNS = RIGHT_OPERATE | RIGHT_EDIT | RIGHT_DELETE | RIGHT_MOVE | RIGHT_REPORT | RIGHT_ACCOUNT |
           RIGHT_PLACE,
    HOSTS = RIGHT_PLACE | RIGHT_CREATE,
};

static const unsigned everybody[] = {
    [MAY_OWNER] = WORKS,
    [MAY_BASIC] = WORKS | RIGHT_OPERATE | RIGHT_EDIT,
};

unsigned may_rights(enum may_mode mode, const struct may_who *who, const struct may_what *what)
{
    unsigned rights = who->is_admin ? RIGHT_ALL : everybody[mode];
    if (what->owner_id && what->owner_id == who->user_id)
        rights |= OWNS;
    if (what->host_id && what->host_id == who->user_id)
        rights |= HOSTS;
    return who->by_token ? rights & ~(unsigned)RIGHT_ACCOUNT : rights;
}

static const char *verb_of(unsigned right)
{
    switch (right) {
    case RIGHT_SEE:
        return "see";
    case RIGHT_CREATE:
        return "add anything to";
    case RIGHT_OPERATE:
        return "start, pause, stop or queue";
    case RIGHT_DELETE:
        return "delete";
    case RIGHT_MOVE:
        return "move";
    case RIGHT_REPORT:
        return "report for";
    default:
        return "change";
    }
}

int may(enum may_mode mode, const struct may_who *who, unsigned right, const struct may_what *what,
        struct det_err *err)
{
    if (right && (may_rights(mode, who, what) & right) == right)
        return 0;
    if (right == RIGHT_ACCOUNT && who->by_token)
        return det_fail(err, DET_EPERM,
                        "an access token may not change accounts and tokens: log in with the "
                        "password (det user login)");
    if (!what->name)
        return det_fail(err, DET_EPERM, "only an administrator may do this; ask one");
    const char *verb = verb_of(right);
    if (what->owner)
        return det_fail(err, DET_EPERM,
                        "you may not %s %.80s: it belongs to %.80s; its owner or an administrator "
                        "may",
                        verb, what->name, what->owner);
    return det_fail(err, DET_EPERM, "you may not %s %.80s; an administrator may", verb, what->name);
}
