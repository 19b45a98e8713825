/*
 * The private mount namespace of a root agent's tasks: /run/determined is each task's own there,
 * with info/ and workdir/ where existing clients look for them (rest-api.md 2.4). DET_INFO_DIR names
 * the same files by a path that holds everywhere.
 */
#ifndef TASKNS_H
#define TASKNS_H

#include "taskspec.h"

/* After prepare_dirs(), before the first process of the task; all of them inherit it. DET_EPERM
 * where the kernel refuses: nothing is changed for the task then but that it lacks the directory. */
int taskns_enter(const struct taskspec *s, struct det_err *err);

#endif
