/*
 * What a person may do, as bits, and the roles, which are sets of them. Which request needs which:
 * rules.h. Who has which by himself, on his own work and by a role: master/core/may.h.
 */
#ifndef PROTO_RIGHTS_H
#define PROTO_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RIGHT_OPEN = 1 << 0,     /* asked by anybody, without a token */
    RIGHT_SEE = 1 << 1,      /* read */
    RIGHT_CREATE = 1 << 2,   /* new experiments, projects and templates in a workspace */
    RIGHT_OPERATE = 1 << 3,  /* start, pause, stop, kill, continue; places in the queue */
    RIGHT_EDIT = 1 << 4,     /* names, labels, notes, resources, metadata; archive */
    RIGHT_DELETE = 1 << 5,   /* experiments, checkpoints (by a policy too), templates */
    RIGHT_MOVE = 1 << 6,     /* to another project */
    RIGHT_REPORT = 1 << 7,   /* speak for a running trial: metrics, checkpoints, log lines; say what
                              * it runs as its owner */
    RIGHT_ACCOUNT = 1 << 8,  /* a user's own name, password and tokens */
    RIGHT_FOUND = 1 << 9,    /* new workspaces */
    RIGHT_PLACE = 1 << 10,   /* change and archive a workspace or a project; views shown in it */
    RIGHT_GRANT = 1 << 11,   /* give and take roles in a workspace */
    RIGHT_CLUSTER = 1 << 12, /* users, groups, agents, stores, settings, what the master keeps */
    RIGHT_ALL = (1 << 13) - 1,
};

/* Names as Determined has them. */
struct role {
    int id; /* below 64 */
    const char *name;
    unsigned rights;
    bool is_local; /* may be given in one workspace */
};
extern const struct role roles[];
extern const size_t roles_n;
const struct role *role_find(int64_t id); /* NULL: none */
/* Of all roles of a set of bits 1 << id. */
unsigned roles_rights(uint64_t set);

/* How clients are told of a right: those of rights that Determined has no name for are not. */
struct permission {
    unsigned right;
    int id;
    const char *type, *name;
};
extern const struct permission permissions[];
extern const size_t permissions_n;

#endif
