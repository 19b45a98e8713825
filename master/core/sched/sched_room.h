/*
 * Room for requests within their group's share that do not fit now (fair share): what is ending
 * makes it, or else what others hold beyond their shares. It is found agent by agent: where the
 * fewest slots have to be freed, so that what is freed is of use. Private to master/core.
 */
#ifndef CORE_SCHED_ROOM_H
#define CORE_SCHED_ROOM_H

#include "scheduler.h"

struct room_agent {
    struct agent *agent;
    bool is_alone;   /* it could have the whole request */
    int64_t missing; /* slots to be freed */
    uint64_t oldest; /* seq of what would be stopped first */
};
struct room {
    struct sched *s;
    VEC(struct agent *) coming;   /* agents where slots are being freed */
    int64_t excess;               /* slots of all groups beyond their offers */
    VEC(struct room_agent) where; /* for requests of this size, the best first: */
    int64_t size;
    size_t at;                 /* those before it are used up */
    VEC(struct alloc *) asked; /* tried for a request */
    VEC(struct placement_node) promised;
    size_t mark;
};

/* With the groups' offers and excess set (`excess`: of all that have any), and after releases for
 * other reasons. */
void room_init(struct room *r, struct sched *s, int64_t excess);
void room_finish(struct room *r);

/* Between opening and closing the index has what is being freed, and nothing may be started. */
void room_open(struct room *r);
/* Promises room to a; what has to stop for it is released. False: there is none. */
bool room_promise(struct room *r, const struct alloc *a);
/* Withholds from everybody else what was promised and is free already. */
void room_close(struct room *r);

#endif
