/*
 * det-task's UNIX socket, on which the agent (one at a time, or --end) steers it. NDJSON both ways:
 *   to det-task: {"signal": 9}, {"end": true} (end the tree and do not wait for the log),
 *                {"acked": true}, {"stacks": true} (write into the log where the ranks are)
 *   from it:     {"state": "starting"|"running"}, {"state": "ended", "exit": {...}}, each with
 * all "marks" of the task so far, running with "silent" while a rank is and
 * "unreached" while the master is not (proto/agent.md). A new
 * connection is told the present state at once.
 */
#ifndef CTL_H
#define CTL_H

#include "agentlink.h"
#include <uv.h>

struct ctl;
struct ctl_handlers {
    void (*on_signal)(void *arg, int signal);
    void (*on_end)(void *arg);
    void (*on_acked)(void *arg);
    void (*on_stacks)(void *arg);
    void *arg;
};
/* fd: the listening socket, taken. */
DET_MUST int ctl_create(uv_loop_t *loop, int fd, const struct ctl_handlers *h, struct ctl **ret,
                        struct det_err *err);
/* Closes once everything was written. NULL ok. */
void ctl_close(struct ctl *c);
/* To all who are connected, and to whoever comes. marks: an array. */
void ctl_running(struct ctl *c, const struct link_silent *silent,
                 const struct link_unreached *unreached, const json_t *marks);
void ctl_ended(struct ctl *c, const struct link_exit *e, const json_t *marks);

#endif
