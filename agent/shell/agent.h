/*
 * det-agent: performs what the host machine (core/host.h) decides. It starts one det-task for each
 * start order and finds them again by their sockets after a restart; its own end, clean or by kill
 * -9, disturbs no task.
 *
 * The files of this folder:
 *   agent.c: the loop, orders, tasks
 *   agentopts.c: options
 *   certkey.c: keys and certificate requests
 *   dial.c: the link to the master
 *   enrol.c: how it gets its certificate
 *   identity.c: who it is
 *   life.c: which life of which cluster it serves
 */
#ifndef AGENT_H
#define AGENT_H

#include "agentopts.h"

/* Runs until SIGTERM or SIGINT. Process exit code. */
DET_MUST int agent_run(const struct agentopts *o, struct det_err *err);
/* --end-tasks. */
DET_MUST int agent_end_tasks(const struct agentopts *o, struct det_err *err);

#endif
