/* The `task` object of an order to start (proto/agent.md), but for what only the shell knows. */
#ifndef CORE_TASK_SPEC_H
#define CORE_TASK_SPEC_H

#include "model.h"

json_t *task_spec(const struct container *k); /* new reference */

#endif
