/* What a text is that an experiment names as its entrypoint: a trial's class, or a command. */
#ifndef PROTO_ENTRYPOINT_H
#define PROTO_ENTRYPOINT_H

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

#endif
