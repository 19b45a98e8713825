/* The `task` object of an order to start (proto/agent.md), but for what only the shell knows. */
#ifndef CORE_TASK_SPEC_H
#define CORE_TASK_SPEC_H

#include "buf.h"
#include "model.h"

/* Both append the text of a JSON object. config: the experiment's, whole; for collection what its
 * allocation has of it. */
void task_spec(const struct container *k, const json_t *config, struct buf *out); /* without env */
void task_env(const struct container *k, const json_t *config, struct buf *out);

#endif
