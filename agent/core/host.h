/*
 * One host as the agent sees it: its slots, the tasks that hold them, and what the master has not
 * yet heard. Pure: no I/O, no clock. The shell feeds in orders, reports of det-task and
 * acknowledgements, and performs the effects, in order.
 *
 *     start --> WAITING --> STARTING --running--> RUNNING --ended--> ENDED --acked--> KNOWN
 *                  |            \____ det-task gone ____/              | gone            | gone
 *                  | killed, refused     |                            v                 v
 *                  +---------------------+------------------------> OVER --acked--> (forgotten)
 *
 * A det-task that is gone without an exit is followed by another one (HOST_RECOVER), twice; then
 * its task is OVER, as lost. host.c has the table of edges.
 *
 * A start WAITS while its slots are held by a task that is dying: the master may have given them
 * away while the agent was out of reach. The master knows it as starting.
 *
 * A slot that is judged (host_on_slot()) is UNSEEN from the end of its task on; that is told before
 * the exit: the master has it back then, and places nothing there before a look. A start waits too.
 *
 * Events go out numbered from 1 within a boot and stay in the outbox until acknowledged. A hello
 * says everything, so it takes the place of whatever was not sent yet; ended tasks are told once
 * more after it.
 *
 * Invariants: a slot is held by at most one task that was started and has not ended (of those that
 * were found when the agent started, once they have spoken); sequence numbers in the outbox rise by
 * one; a task's record lives until its exit was acknowledged and its det-task is gone.
 */
#ifndef HOST_H
#define HOST_H

#include "agentlink.h"

struct host;

/* Copies what it is given. boot: a fresh UUID. */
struct host *host_create(const char *boot, const char *pool, const char *addr,
                         const struct link_slot *slots, size_t slots_n);
void host_destroy(struct host *h); /* NULL ok */

enum host_effect_kind {
    HOST_START,   /* start det-task: alloc, container, task */
    HOST_RECOVER, /* det-task is gone: start one that ends what is left of the task, or runs
                     it where it was not begun; the last signal is told again */
    HOST_SIGNAL,  /* tell det-task: alloc, signal */
    HOST_STACKS,  /* have det-task write where its ranks are: alloc */
    HOST_ACKED,   /* tell det-task that the master knows its exit: alloc */
    HOST_FORGET,  /* nothing is left to do: remove the directory: alloc */
    HOST_SETTLE,  /* its last task has ended: look whether the slot's memory is free: slot */
    HOST_LOOK,    /* look at the place of a store, now and then: task is the order */
    HOST_UNLOOK   /* at none any more: the master says anew where */
};
struct host_effect {
    enum host_effect_kind kind;
    char alloc[LINK_ID_MAX + 1];
    char container[LINK_ID_MAX + 1];
    int signal, slot;
    json_t *task; /* HOST_START, HOST_LOOK: a reference that the taker releases */
};
/* The oldest effect not yet taken; false when there is none. */
bool host_take(struct host *h, struct host_effect *ret);

/* ---- the link ---- */
void host_on_order(struct host *h, const struct link_order *o);
/* A start order that cannot be read: told as start_failed. */
void host_refuse(struct host *h, const char *alloc, const char *container, const char *why);
/* A new connection begins: says hello. A new boot (NULL: the same) begins at 1 with an empty
 * outbox. */
void host_hello(struct host *h, const char *boot);
bool host_has_news(const struct host *h); /* something is not acknowledged */
/* The body of the next request, of at most LINK_EVENTS_MAX events; the caller frees. Its events
 * count as sent from now on. */
char *host_batch(struct host *h);
/* Everything up to seq is known to the master. */
void host_on_ack(struct host *h, int64_t seq);
/* True once the newest hello was acknowledged: orders may be asked for. */
bool host_is_greeted(const struct host *h);
const char *host_boot(const struct host *h);
/* What each request says of the life that was served last; takes the reference, NULL: none. */
void host_set_seen(struct host *h, json_t *seen);
/* And of the clock (link_clock_json()); likewise. */
void host_set_clock(struct host *h, json_t *clock);
/* What the next request says of the GPUs, once: an array of link_gpu_json(); likewise. */
void host_set_gpus(struct host *h, json_t *gpus);

/* ---- det-task ---- */
/* A task that was found when the agent started. slots: those it holds, as far as they are known. */
void host_adopt(struct host *h, const char *alloc, const char *container, const int *slots,
                size_t slots_n);
void host_on_running(struct host *h, const char *alloc);
/* All marks that its det-task has so far (an array), before the state that it tells with them:
 * those not known yet go with the event that follows. */
void host_on_marks(struct host *h, const char *alloc, const json_t *marks);
/* Its rank that is silent, NULL: none; before the state that it tells with it, and told with that.
 * Copied. */
void host_on_silent(struct host *h, const char *alloc, const struct link_silent *s);
/* No process of it has had an answer from the master, NULL: one has; before the state that it tells
 * with it. Told when this was heard thrice since the master greeted this agent: one that is away
 * for all is another matter. True: now for the first time. Copied. */
bool host_on_unreached(struct host *h, const char *alloc, const struct link_unreached *u);
void host_on_ended(struct host *h, const char *alloc, const struct link_exit *e);
/* The connection to its det-task ended. */
void host_on_gone(struct host *h, const char *alloc);

/* What is at a store's place: told to the master. */
void host_on_store(struct host *h, const struct link_store *s);

/* How a slot is: told to the master when it is news, and in each hello, by which the master takes
 * all others for usable. An agent of which this was never called for a slot does not judge. */
void host_on_slot(struct host *h, const struct link_slot_sight *s);
bool host_slot_has_task(const struct host *h, int slot);

struct host_counts {
    size_t slots, slots_used, tasks; /* tasks that have not ended */
    size_t known;                    /* all tasks, those too whose exit the master has to hear */
};
struct host_counts host_count(const struct host *h);
/* Aborts when an invariant is broken. */
void host_check(const struct host *h);

#endif
