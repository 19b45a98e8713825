/*
 * Who may do what: a person's rights on a subject, from what is known of both. Pure.
 *
 * Everybody sees everything, and makes what is his. What changes somebody's work takes its owner or
 * an administrator. By MAY_BASIC everybody may also operate and edit what is others', as in
 * Determined without roles; to delete and to move it stay with owner and administrator.
 */
#ifndef CORE_MAY_H
#define CORE_MAY_H

#include "det/err.h"
#include "rights.h"
#include <stdbool.h>
#include <stdint.h>

enum may_mode { MAY_OWNER, MAY_BASIC }; /* the order of security.authz.type's choices */

struct may_who {
    int64_t user_id;
    bool is_admin;
    bool by_token; /* an access token: it may not change accounts, nor make more of its kind */
};
/* A subject; texts are borrowed, and only for people. All zero: the cluster. */
struct may_what {
    int64_t owner_id;  /* 0: nobody's */
    int64_t host_id;   /* the owner of its workspace; 0: it is in none */
    const char *name;  /* "experiment 7" */
    const char *owner; /* whose it is; NULL: nobody's */
};

unsigned may_rights(enum may_mode mode, const struct may_who *who, const struct may_what *what);
/* 0, or DET_EPERM with what is refused, where, and who may: right is one bit. */
int may(enum may_mode mode, const struct may_who *who, unsigned right, const struct may_what *what,
        struct det_err *err);

#endif
