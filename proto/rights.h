/*
 * What a person may do, as bits. Which request needs which: rules.h. Who has which by himself, on
 * his own work and by a role: master/core/may.h.
 */
#ifndef PROTO_RIGHTS_H
#define PROTO_RIGHTS_H

enum {
    RIGHT_OPEN = 1 << 0,    /* asked by anybody, without a token */
    RIGHT_SEE = 1 << 1,     /* read */
    RIGHT_CREATE = 1 << 2,  /* new experiments, projects and templates in a workspace */
    RIGHT_OPERATE = 1 << 3, /* start, pause, stop, kill, continue; places in the queue */
    RIGHT_EDIT = 1 << 4,    /* names, labels, notes, resources, metadata; archive */
    RIGHT_DELETE = 1 << 5,  /* experiments, checkpoints, templates */
    RIGHT_MOVE = 1 << 6,    /* to another project */
    RIGHT_REPORT = 1 << 7,  /* speak for a running trial: metrics, checkpoints, log lines */
    RIGHT_ACCOUNT = 1 << 8, /* a user's own name, password and tokens */
    RIGHT_FOUND = 1 << 9,   /* new workspaces */
    RIGHT_PLACE = 1 << 10,  /* change and archive a workspace or a project */
    RIGHT_CLUSTER = 1 << 11, /* users, agents, stores, settings, what the master keeps */
    RIGHT_ALL = (1 << 12) - 1,
};

#endif
