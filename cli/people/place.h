/* Workspaces and projects, which commands name by their names. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include "cli.h"

/* Whatever the case: names differ by more than that. New references. DET_ENOENT names it. */
DET_MUST int place_workspace(struct cli *c, const char *name, json_t **ret, struct det_err *err);
DET_MUST int place_project(struct cli *c, const char *workspace, const char *name, json_t **ret,
                           struct det_err *err);
/* POST /KIND/ID/VERB, and says that it is done. */
DET_MUST int place_switch(struct cli *c, const char *kind, const json_t *place, bool archive,
                          struct det_err *err);
/* Asks, unless is_sure; DELETE /KIND/ID, and says that it is done. */
DET_MUST int place_delete(struct cli *c, const char *kind, const json_t *place, bool is_sure,
                          struct det_err *err);

#endif
