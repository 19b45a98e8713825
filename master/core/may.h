/*
 * Who may do what: a person's rights on a subject, from what is known of both. Pure.
 *
 * Everybody sees everything, and makes what is his. What changes somebody's work takes its owner,
 * an administrator, or somebody with a role (rights.h) in its workspace or in the whole cluster. By
 * MAY_BASIC everybody may also operate and edit what is others', as in Determined without roles; to
 * delete and to move it stay with the former. By MAY_RBAC a person without a role only sees, and
 * tends to what is his already. Who made a workspace has a hand in it: HOSTS of may.c.
 */
#ifndef CORE_MAY_H
#define CORE_MAY_H

#include "det/err.h"
#include "rights.h"
#include <stdbool.h>
#include <stdint.h>

/* The order of security.authz.type's choices. */
enum may_mode { MAY_OWNER, MAY_BASIC, MAY_RBAC };

struct may_who {
    int64_t user_id;
    bool is_admin;
    bool by_token; /* an access token: it may not change accounts, nor make more of its kind */
};
/* A subject; texts are borrowed, and only for people. Without a name: the cluster. */
struct may_what {
    int64_t owner_id;          /* 0: nobody's */
    int64_t host_id;           /* who made its workspace; 0: it is in none */
    unsigned granted;          /* by roles of who asks, there or in the whole cluster */
    const char *name;          /* "experiment 7" */
    const char *owner, *place; /* user and workspace; NULL: none */
};

unsigned may_rights(enum may_mode mode, const struct may_who *who, const struct may_what *what);
/* 0, or DET_EPERM with what is refused, where, and who may: right is one bit. */
DET_MUST int may(enum may_mode mode, const struct may_who *who, unsigned right,
                 const struct may_what *what, struct det_err *err);

#endif
