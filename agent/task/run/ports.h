/* The ports that the master hands to a run. It knows of its own runs only: another program of this
 * host, or another cluster's run, may hold one of them. */
#ifndef PORTS_H
#define PORTS_H

#include "buf.h"
#include "json.h"
#include "runports.h"

#define PORTS_NONE                                                                                 \
    {                                                                                              \
        {-1, -1, -1, -1},                                                                          \
        {                                                                                          \
            {                                                                                      \
                0                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* What says to the runs of other clusters on this host that a port is ours. */
struct ports {
    int lease[RUNPORTS_N]; /* -1: none */
    struct runports other; /* by which those were exchanged that could not be had */
};

/* Takes the ports that env names; one that cannot be had is exchanged for one that the kernel says
 * is free, and "NAME 29400 by 41003" appended to said, separated by ", ". What is no run of a
 * cluster may still come in between. On the host of rank 0, where a run's ranks meet: the others
 * are told. */
void ports_take(struct ports *ret, const json_t *env, struct buf *said);
/* Sets the variables of those that are exchanged. */
void ports_name(const struct runports *p, json_t *env);
void ports_give(struct ports *p);

#endif
