/* Inside of the host machine: shared by its tasks (host.c) and its outbox (host_outbox.c). */
#ifndef HOST_IMPL_H
#define HOST_IMPL_H

#include "host.h"
#include "vec.h"

enum host_state {
    HOST_WAITING,  /* for its slots: there is no det-task yet */
    HOST_STARTING, /* its det-task prepares it */
    HOST_RUNNING,
    HOST_ENDED, /* its det-task is there, its exit not acknowledged */
    HOST_KNOWN, /* acknowledged; its det-task has a log to send */
    HOST_OVER,  /* its det-task is gone, its exit not acknowledged */
    HOST_STATE_COUNT
};
struct host_task {
    char *alloc, *container;
    enum host_state state; /* changed by move() in host.c only */
    struct link_exit exit; /* its text is owned */
    int *slots;
    size_t slots_n;
    int recoveries;
    int signal;       /* the last that was asked for; 0: none */
    int64_t exit_seq; /* of the event that tells the exit; 0: none is in the outbox */
    bool is_silent;   /* adopted and not heard of yet: it may have ended, its slots be another's */
    VEC(json_t *) marks;       /* all, as the wire has them */
    size_t marks_acked;        /* of them the master knows */
    size_t marks_told;         /* of them are in an event; the newest of these has the number */
    int64_t marks_seq;         /* or 0: none is on its way */
    struct link_silent silent; /* its phase is owned; NULL: no rank is */
    struct link_unreached unreached; /* its text is owned; NULL: it is not to be told */
    int unreached_heard;             /* how often, since the newest hello was acknowledged */
    int64_t unreached_ms;            /* the last of these */
    bool has_silence_news;           /* or of what is not reached */
    json_t *held;                    /* WAITING: what to start; else NULL */
};
struct host_mail {
    int64_t seq;
    json_t *event;
    bool is_sent, is_hello;
};
/* How a slot that is judged is. */
struct host_sight {
    struct link_slot_sight is; /* its text is owned */
    int64_t seq;               /* of the event about it in the outbox; 0: none */
    bool has_news;             /* that no event has: it is told after that one */
};
#define HOST_DROPPED_MAX 64
struct host {
    char *boot, *pool, *addr;
    json_t *seen;  /* of the master's life, or NULL */
    json_t *clock; /* ours beside the master's, or NULL */
    json_t *gpus;  /* not told yet, or NULL */
    VEC(struct link_slot) slots;
    VEC(struct host_sight) sights;
    VEC(struct host_task *) tasks;
    /* Containers dropped last, a ring: the acknowledgement of an exit comes on another connection
     * than the orders, and may overtake a start that was sent twice. */
    char *dropped[HOST_DROPPED_MAX];
    size_t dropped_n; /* so far, in all */
    VEC(struct host_mail) outbox;
    VEC(struct host_effect) effects;
    int64_t next_seq;
    int64_t hello_seq; /* of the newest hello; 0: none */
    bool is_greeted;
    bool is_looking; /* at some store */
};

/* It was, or nobody can say: it is not told that it was not. */
void host_reached(struct host_task *t);

/* What the master knows the state as. */
static inline enum link_state host_state_told(enum host_state s)
{
    return s <= HOST_STARTING ? LINK_STARTING : s == HOST_RUNNING ? LINK_RUNNING : LINK_ENDED;
}
static inline bool host_has_ended(const struct host_task *t)
{
    return t->state >= HOST_ENDED;
}
/* Puts an event about t into the outbox; its number. */
int64_t host_tell(struct host *h, enum link_event_kind kind, struct host_task *t);
void host_outbox_clear(struct host *h);
/* How a slot is, told where it is news. */
void host_sees(struct host *h, const struct link_slot_sight *s);
/* False: nobody judges the slot. Else it is UNSEEN, and told so before what is told next. */
bool host_unsee(struct host *h, int slot);
bool host_is_unseen(const struct host *h, int slot);
/* Drops what the master has heard; the first such word after a hello is its greeting. */
void host_outbox_ack(struct host *h, int64_t seq);

#endif
