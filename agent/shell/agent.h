/*
 * det-agent: performs what the host machine (core/host.h) decides. It starts one det-task for each
 * start order and finds them again by their sockets after a restart; its own end, clean or by kill
 * -9, disturbs no task.
 */
#ifndef AGENT_H
#define AGENT_H

#include "agentopts.h"

/* Runs until SIGTERM or SIGINT. Process exit code. */
int agent_run(const struct agentopts *o, struct det_err *err);
/* --end-tasks. */
int agent_end_tasks(const struct agentopts *o, struct det_err *err);

#endif
