/* What a text is that an experiment names as its entrypoint: a trial's class, or a command. */
#ifndef PROTO_ENTRYPOINT_H
#define PROTO_ENTRYPOINT_H

#include "json.h"
#include <stdbool.h>

/* "pkg.module:Class", by docs/contract/task.md 3; everything else is a command. */
bool entrypoint_is_class(const char *e);
/* "pkg.module.Class", which is a command whose writer meant a class: the last word begins with a
 * capital. Returns where its last dot is; NULL: it is none. */
const char *entrypoint_meant_colon(const char *e);
/* "module: Class", a class but for blanks about its colon. */
bool entrypoint_has_blanks(const char *e);
/* "model_def.py", a file that is there and no command: no shell looks for one where it stands. */
bool entrypoint_is_bare_file(const char *e);
/* files: array of util.v1.File, as det and other clients send them. DET_EINVAL, with the module
 * that is near: it names module:Class, and the module is not there, nor a startup-hook.sh, which
 * may bring it. */
DET_MUST int entrypoint_check_module(const char *entrypoint, const json_t *files,
                                     struct det_err *err);

#endif
