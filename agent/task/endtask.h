/* det-task --end DIR: ends a task from outside, whether its det-task lives or not. */
#ifndef ENDTASK_H
#define ENDTASK_H

#include "det/err.h"

/* Returns when no process of the task is left, or DET_ETIMEOUT after 10 s. */
DET_MUST int endtask(const char *dir, struct det_err *err);

#endif
