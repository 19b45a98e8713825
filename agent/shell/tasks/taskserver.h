/* The process that forks det-tasks (agent/task/serve.h): its start, and the orders to it. */
#ifndef TASKSERVER_H
#define TASKSERVER_H

#include "taskdir.h"
#include <spawn.h>

/* Into d->server, which stays -1 where it cannot be started. */
void taskserver_start(struct taskdirs *d);
/* Has it fork a det-task for dir; socket is what that listens at. A server that has ended is
 * replaced once; false: none takes the order. */
bool taskserver_send(struct taskdirs *d, const char *dir, bool recover, int socket);
/* Of whatever must outlive the agent: a session of its own, no signal blocked or ignored. */
void taskserver_attributes(posix_spawnattr_t *at);

#endif
