/* The link with agents: what a hello says against what the agent is owed (proto/agent.md), states,
 * exits, leases. Private to master/core. */
#ifndef CORE_RECONCILE_H
#define CORE_RECONCILE_H

#include "model.h"

DET_MUST int reconcile_hello(struct core *c, const struct core_event *ev, struct det_err *err);
/* What a known agent says of a task, or sees at a store's place. */
void reconcile_state(struct core *c, struct agent *a, const struct core_task_in *task);
void reconcile_exit(struct core *c, struct agent *a, const struct core_task_in *task);
DET_MUST int reconcile_store(struct core *c, struct agent *a, const struct core_store_in *in,
                             struct det_err *err);
/* A lost agent's time is up: what it ran is lost. */
void reconcile_lease(struct core *c, struct agent *a);

#endif
