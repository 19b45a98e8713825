/* A look at the database before a master is started: blocking, changes nothing. */
#ifndef DB_DB_HEALTH_H
#define DB_DB_HEALTH_H

#include "det/err.h"
#include <stdbool.h>
#include <stdint.h>

struct db_health {
    char server[64];                 /* "15.3 (Debian ...)" */
    int server_number;               /* 150003 */
    int schema, newest;              /* of the database (0: empty), of this program */
    int functions, functions_newest; /* the same of db/functions */
    bool may_create;                 /* tables in the schema that new ones go to */
    bool is_led;                     /* some master holds the leader's lock */
    bool syncs;            /* fsync and full_page_writes are on: what was committed survives its
                            * host */
    char commit[16];       /* synchronous_commit, as others' sessions have it */
    int64_t clock_diff_us; /* its clock minus ours */
};
/* DET_EUNAVAIL with libpq's words: not reachable, not let in. */
DET_MUST int db_health(const char *conninfo, struct db_health *ret, struct det_err *err);

/* The id of the checkpoint store at this place; "" where the database knows none. */
#define DB_STORE_ID_MAX 37
DET_MUST int db_health_store(const char *conninfo, const char *place, char id[DB_STORE_ID_MAX],
                             struct det_err *err);

#endif
