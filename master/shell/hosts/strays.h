/* What tasks of another life of the cluster send, and how they end: kept in a table, where an
 * administrator finds it, and nowhere else. */
#ifndef SHELL_STRAYS_H
#define SHELL_STRAYS_H

#include "agentlink.h"
#include "db.h"
#include "http.h"
#include "shell.h"

/* A request whose token is of another life. cb: it is on disk, or why not. */
void strays_keep_request(struct shell *sh, const struct http_req *req, db_cb *cb, void *arg);
/* An agent tells how a task ended: kept if the task was never of this database. */
void strays_on_exit(struct shell *sh, const char *agent_id, const struct link_task *t);

#endif
