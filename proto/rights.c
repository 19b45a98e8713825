#include "rights.h"

enum {
    WORK = RIGHT_SEE | RIGHT_CREATE | RIGHT_OPERATE | RIGHT_EDIT,
    ALL_WORK = WORK | RIGHT_DELETE | RIGHT_MOVE,
};

const struct role roles[] = {
    {1, "ClusterAdmin", RIGHT_ALL, false},
    {2, "WorkspaceAdmin", ALL_WORK | RIGHT_PLACE | RIGHT_GRANT, true},
    {3, "WorkspaceCreator", RIGHT_FOUND, false},
    {4, "Viewer", RIGHT_SEE, true},
    {5, "Editor", ALL_WORK, true},
    {6, "EditorRestricted", WORK, true},
};
const size_t roles_n = sizeof roles / sizeof roles[0];

const struct permission permissions[] = {
    {RIGHT_CLUSTER, 1001, "PERMISSION_TYPE_ADMINISTRATE_USER", "administrate users and agents"},
    {RIGHT_CREATE, 2001, "PERMISSION_TYPE_CREATE_EXPERIMENT", "create experiments"},
    {RIGHT_SEE, 2003, "PERMISSION_TYPE_VIEW_EXPERIMENT_METADATA", "view experiments"},
    {RIGHT_OPERATE, 2004, "PERMISSION_TYPE_UPDATE_EXPERIMENT", "start, pause and stop experiments"},
    {RIGHT_EDIT, 2005, "PERMISSION_TYPE_UPDATE_EXPERIMENT_METADATA", "edit experiments"},
    {RIGHT_DELETE, 2006, "PERMISSION_TYPE_DELETE_EXPERIMENT", "delete experiments"},
    {RIGHT_FOUND, 4002, "PERMISSION_TYPE_CREATE_WORKSPACE", "create workspaces"},
    {RIGHT_PLACE, 4003, "PERMISSION_TYPE_UPDATE_WORKSPACE", "change the workspace"},
    {RIGHT_GRANT, 6002, "PERMISSION_TYPE_ASSIGN_ROLES", "assign roles"},
};
const size_t permissions_n = sizeof permissions / sizeof permissions[0];

const struct role *role_find(int64_t id)
{
    for (size_t i = 0; i < roles_n; i++)
        if (roles[i].id == id)
            return &roles[i];
    return NULL;
}

unsigned roles_rights(uint64_t set)
{
    unsigned rights = 0;
    for (size_t i = 0; i < roles_n; i++)
        if (set >> roles[i].id & 1)
            rights |= roles[i].rights;
    return rights;
}
