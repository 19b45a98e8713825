/*
 * Allocations: one run of a trial (or one collection of checkpoints) on one or several agents.
 *
 *   PENDING --placed--> ASSIGNED -> STARTING -> RUNNING -> WAITING  (STARTING may be skipped)
 *   all of them --kill--> TERMINATING;   all of them --last container ended--> TERMINATED
 *
 * Deadlines: an unanswered start is sent again; a preemption that takes too long becomes a kill; a
 * kill is sent again until every container is confirmed gone or its agent's lease is over. A
 * pending one that is held back (after losses in a row) joins the queue at its hold time. Private
 * to master/core.
 */
#ifndef CORE_ALLOC_H
#define CORE_ALLOC_H

#include "fit.h"
#include "model.h"

struct alloc_request {
    enum alloc_kind kind;
    struct exp *exp; /* may be NULL for collection */
    struct trial *trial;
    const char *task_id;
    int64_t exp_id, owner_id, run_id, slots;
    struct pool *pool;
    int64_t hold_ms;             /* not before; 0: now */
    json_t *gc_config, *gc_work; /* references are taken */
};
struct alloc *alloc_request(struct core *c, const struct alloc_request *r);
/* Into the indices, without effects; also when rebuilding. seq and state must be set. */
void alloc_enlist(struct core *c, struct alloc *a);
void alloc_destroy(struct alloc *a);
struct alloc *alloc_find(const struct core *c, const char *id);
struct container *alloc_container(const struct alloc *a, const char *container_id);
void alloc_mark(struct core *c, struct alloc *a);
void alloc_goto(struct core *c, struct alloc *a, enum alloc_state to);
void container_goto(struct core *c, struct container *k, enum alloc_state to);
bool alloc_is_preemptible(const struct alloc *a);
/* Asked to stop already, one way or the other. */
bool alloc_is_ending(const struct alloc *a);

/* Makes a placement real: containers, ids, ports, orders to start. */
void alloc_place(struct core *c, struct alloc *a, const struct placement_node *nodes, size_t n);
/* Asks the harness to stop at its next boundary; one that is not ready yet is killed; pending:
 * withdrawn. */
void alloc_preempt(struct core *c, struct alloc *a, enum kill_why why, const char *reason);
/* Ends every process; pending: withdrawn. Repeats change nothing. */
void alloc_kill(struct core *c, struct alloc *a, enum kill_why why, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* How an allocation that has ended did so, in words; borrowed from it. */
const char *alloc_end_text(const struct alloc *a);

/* Reports about a container. */
void alloc_on_state(struct core *c, struct container *k, enum core_task_state state);
/* Which of its ranks is silent, if one is; kept in memory only. */
void alloc_on_silent(struct core *c, struct container *k, const struct core_silent *s);
/* Its processes have no answer from the master, though its agent has; likewise. Said in its log,
 * and after ALLOC_UNREACHED_MS it is ended as one that its host could not start. */
#define ALLOC_UNREACHED_MS (120 * 1000)
void alloc_on_unreached(struct core *c, struct container *k, const struct core_unreached *u);
void alloc_on_exit(struct core *c, struct container *k, const struct core_exit *e);
/* Its agent's lease is over. */
void alloc_on_agent_gone(struct core *c, struct container *k);
/* Orders that a container's agent is owed, again. */
void alloc_resend(struct core *c, struct container *k);

/* Reports of its processes. */
void alloc_on_ack(struct core *c, struct alloc *a);
void alloc_on_ready(struct core *c, struct alloc *a);
/* ports: of rank 0's host, NULL: none exchanged; what comes first is kept, as others hear of it. */
DET_MUST int alloc_on_rendezvous(struct core *c, struct alloc *a, const char *container,
                                 const char *ports, struct det_err *err);
DET_MUST int alloc_on_daemon(struct core *c, struct alloc *a, const char *container,
                             struct det_err *err);
void alloc_on_invalid_hp(struct core *c, struct alloc *a);

void alloc_on_timer(struct core *c, struct alloc *a);
void alloc_rearm(struct core *c, struct alloc *a);
/* Sets what follows from its state and its trial's; after every change of either. */
void alloc_deadlines(struct core *c, struct alloc *a);
/* It has nothing left to do but to exit. */
bool alloc_should_end(const struct alloc *a);
/* The time to become ready is over: ended as the system's failure. */
void alloc_never_ready(struct core *c, struct alloc *a);
/* Likewise, for what container.unreached says. */
void alloc_unreached(struct core *c, struct container *k);

/* Of the kinds of work; called once at the end. */
void gc_on_alloc_end(struct core *c, struct alloc *a);

#endif
