/* The agent's end of a det-task's socket (agent/task/ctl.h has the protocol). */
#ifndef TASKCONN_H
#define TASKCONN_H

#include "agentlink.h"
#include <uv.h>

struct taskconn;
struct taskconn_handlers {
    void (*on_running)(void *arg, const char *alloc);
    /* All that it has, before the state they were said with. */
    void (*on_marks)(void *arg, const char *alloc, const json_t *marks);
    /* Likewise; NULL: no rank is silent. */
    void (*on_silent)(void *arg, const char *alloc, const struct link_silent *s);
    /* Likewise; NULL: it has had answers from the master, as far as it knows. */
    void (*on_unreached)(void *arg, const char *alloc, const struct link_unreached *u);
    void (*on_ended)(void *arg, const char *alloc, const struct link_exit *e);
    /* det-task is gone, or was not there; comes once, last. The connection is freed after it. */
    void (*on_gone)(void *arg, const char *alloc);
    void *arg;
};
/* Dials path (borrowed for the call; dir_fd is taken and closed when connected). Never NULL. */
struct taskconn *taskconn_open(uv_loop_t *loop, const char *alloc, const char *path, int dir_fd,
                               const struct taskconn_handlers *h);
/* Without on_gone: the agent ends, det-task lives on. */
void taskconn_close(struct taskconn *c);
void taskconn_signal(struct taskconn *c, int signal);
void taskconn_acked(struct taskconn *c);
void taskconn_stacks(struct taskconn *c);
/* Since when a SIGKILL is unanswered, on the loop's clock; 0: none is. */
uint64_t taskconn_killed_ms(const struct taskconn *c);
/* Somebody else sees to it. */
void taskconn_forget_kill(struct taskconn *c);

#endif
