/* Users, groups, roles and workspaces: their ids, which the API wants, and their names, which
 * people do. DET_ENOENT says which name is not there. */
#ifndef CLI_NAMED_H
#define CLI_NAMED_H

#include "cli.h"

DET_MUST int named_user(struct cli *c, const char *name, int64_t *ret_id, struct det_err *err);
/* Their ids, appended to ids; the error names all that are not there. */
DET_MUST int named_users(struct cli *c, const char *const *names, size_t n, json_t *ids,
                         struct det_err *err);
/* {"groupId", "name"}: a new reference. Whatever the case. */
DET_MUST int named_group(struct cli *c, const char *name, json_t **ret_group, struct det_err *err);
/* {"roleId", "name", "permissions", ...}: a new reference. */
DET_MUST int named_role(struct cli *c, const char *name, json_t **ret_role, struct det_err *err);

/* The list `key` of all answers to POST path, whose pages have 500 each. A new reference. */
DET_MUST int named_search(struct cli *c, const char *path, const char *key, const json_t *filter,
                          json_t **ret_list, struct det_err *err);
/* {"ID": NAME} of all that there are; new references. */
DET_MUST int named_all_groups(struct cli *c, json_t **ret, struct det_err *err);
DET_MUST int named_all_users(struct cli *c, json_t **ret, struct det_err *err);
DET_MUST int named_all_workspaces(struct cli *c, json_t **ret, struct det_err *err);
/* The name of an id in such a map, borrowed; "" of what was gone by then. */
const char *named_in(const json_t *map, int64_t id);

#endif
