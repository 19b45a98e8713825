#include "may.h"

#include "buf.h"
#include "mem.h"

enum {
    WORKS = RIGHT_OPEN | RIGHT_SEE | RIGHT_CREATE | RIGHT_FOUND,
    TENDS = RIGHT_OPERATE | RIGHT_EDIT | RIGHT_REPORT | RIGHT_ACCOUNT | RIGHT_PLACE,
    HOSTS = RIGHT_PLACE | RIGHT_CREATE | RIGHT_GRANT,
};

static const unsigned everybody[] = {
    [MAY_OWNER] = WORKS,
    [MAY_BASIC] = WORKS | RIGHT_OPERATE | RIGHT_EDIT,
    [MAY_RBAC] = RIGHT_OPEN | RIGHT_SEE,
};
static const unsigned owners[] = {
    [MAY_OWNER] = TENDS | RIGHT_DELETE | RIGHT_MOVE,
    [MAY_BASIC] = TENDS | RIGHT_DELETE | RIGHT_MOVE,
    [MAY_RBAC] = TENDS,
};

unsigned may_rights(enum may_mode mode, const struct may_who *who, const struct may_what *what)
{
    unsigned rights = who->is_admin ? RIGHT_ALL : everybody[mode] | what->granted;
    if (what->owner_id && what->owner_id == who->user_id)
        rights |= owners[mode];
    if (what->host_id && what->host_id == who->user_id)
        rights |= HOSTS;
    return who->by_token ? rights & ~(unsigned)RIGHT_ACCOUNT : rights;
}

static const char *verb_of(unsigned right)
{
    switch (right) {
    case RIGHT_SEE: return "see";
    case RIGHT_CREATE: return "add anything to";
    case RIGHT_OPERATE: return "start, pause, stop or queue";
    case RIGHT_DELETE: return "delete";
    case RIGHT_MOVE: return "move";
    case RIGHT_REPORT: return "speak for";
    case RIGHT_GRANT: return "give and take roles in";
    default: return "change";
    }
}

/* The least of the roles that have it in a workspace; NULL: none has. */
static const char *role_for(unsigned right)
{
    for (size_t i = roles_n; i-- > 0;)
        if (roles[i].is_local && (roles[i].rights & right))
            return roles[i].name;
    return NULL;
}

static void refuse_whole(unsigned right, struct det_err *err)
{
    if (right == RIGHT_FOUND)
        det_fail(err, DET_EPERM,
                 "you may not make workspaces: it takes the role WorkspaceCreator, which an "
                 "administrator can give (det rbac assign-role)");
    else
        det_fail(err, DET_EPERM, "only an administrator may do this; ask one");
}

static void refuse_right(unsigned right, const struct may_what *what, struct det_err *err)
{
    const char *role = role_for(right);
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    buf_addf(&text, "you may not %s %.80s", verb_of(right), what->name);
    if (what->owner)
        buf_addf(&text, ": it belongs to %.80s; its owner or an administrator", what->owner);
    else
        buf_add_str(&text, "; an administrator");
    if (role && what->place)
        buf_addf(&text, ", or who has the role %s in workspace \"%.80s\",", role, what->place);
    det_fail(err, DET_EPERM, "%s may", buf_str(&text));
}

int may(enum may_mode mode, const struct may_who *who, unsigned right, const struct may_what *what,
        struct det_err *err)
{
    if (right && (may_rights(mode, who, what) & right) == right)
        return 0;
    if (right == RIGHT_ACCOUNT && who->by_token)
        det_fail(
            err, DET_EPERM,
            "an access token may not change accounts and tokens: log in with the password (det "
            "user login)");
    else if (what->name)
        refuse_right(right, what, err);
    else
        refuse_whole(right, err);
    return DET_EPERM;
}
