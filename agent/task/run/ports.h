/* The ports that the master hands to a run. It knows of its own runs only: another program of this
 * host, or another cluster's run, may hold one of them. */
#ifndef PORTS_H
#define PORTS_H

#include "buf.h"
#include "json.h"

#define PORTS_N 4
#define PORTS_NONE                                                                                 \
    {                                                                                              \
        {                                                                                          \
            -1, -1, -1, -1                                                                         \
        }                                                                                          \
    }

/* What says to the runs of other clusters on this host that a port is ours. */
struct ports {
    int lease[PORTS_N]; /* -1: none */
};

/* Takes the ports that env names; one that cannot be had is exchanged for one that the kernel says
 * is free, and "NAME 29400 by 41003" appended to said, separated by ", ". What is no run of a
 * cluster may still come in between. For a run on one host only: the hosts of a larger one must
 * agree. */
void ports_take(struct ports *ret, json_t *env, struct buf *said);
void ports_give(struct ports *p);

#endif
