/*
 * What lives in the core, and the batch that holds its effects, is in one state at a time. edges.c
 * says where each state may lead, and no state changes but by edges_go(). What goes with a change
 * is done by who calls it: exp_goto(), trial_goto() and so on. Private to master/core and its
 * tests.
 */
#ifndef CORE_EDGES_H
#define CORE_EDGES_H

#include <stdbool.h>

struct core;
enum machine {
    MACHINE_EXP,
    MACHINE_TRIAL,
    MACHINE_ALLOC,
    MACHINE_CONTAINER, /* in the states of an allocation */
    MACHINE_AGENT,
    MACHINE_BATCH,
    MACHINE_COUNT
};
#define MACHINE_STATES_MAX 12

/* The state after the move. That the table does not have it is a mistake of ours. */
unsigned edges_go(struct core *c, enum machine m, unsigned from, unsigned to);
bool edges_may(enum machine m, unsigned from, unsigned to);
/* This core has made the move. */
bool edges_was_gone(const struct core *c, enum machine m, unsigned from, unsigned to);

#endif
