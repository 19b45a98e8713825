/* The one process of a CHECKPOINT_GC task: det-task --gc, as the task's user, told by info/gc.json.
 */
#ifndef GCRUN_H
#define GCRUN_H

#include "taskspec.h"

/* Writes DIR/info/gc.json: {"storage", "uuids", "action", "globs"}. */
DET_MUST int gcrun_write(const struct taskspec *s, struct det_err *err);
/* Deletes what $DET_INFO_DIR/gc.json names and tells the master (DET_MASTER, DET_SESSION_TOKEN).
 * The exit code: 0 only if all are gone. */
int gcrun_main(void);

#endif
