/* What a text is that an experiment names as its entrypoint: a trial's class, or a command. */
#ifndef PROTO_ENTRYPOINT_H
#define PROTO_ENTRYPOINT_H

#include <stdbool.h>

/* "pkg.module:Class", by docs/contract/task.md 3; everything else is a command. */
bool entrypoint_is_class(const char *e);
/* "pkg.module.Class", which is a command whose writer meant a class: the last word begins with a
 * capital. Returns where its last dot is; NULL: it is none. */
const char *entrypoint_meant_colon(const char *e);

#endif
