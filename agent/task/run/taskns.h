/*
 * The private mount namespace of a root agent's tasks: /run/determined is each task's own there,
 * with info/ and workdir/ where existing clients look for them (rest-api.md 2.4). DET_INFO_DIR
 * names the same files by a path that holds everywhere.
 */
#ifndef TASKNS_H
#define TASKNS_H

#include "taskspec.h"

/* After prepare_dirs(), before the first process of the task; all of them inherit it. s->dirfd is
 * opened again, so that the path of a working directory beneath it can be told. An error, DET_EPERM
 * where the kernel refuses, changes nothing for the task but that it lacks the directory. */
int taskns_enter(struct taskspec *s, struct det_err *err);

#endif
