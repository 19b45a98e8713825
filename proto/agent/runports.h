/* The ports that a run uses in place of those that the master gave it: the host of its rank 0 found
 * these taken, and tells the others at the rendezvous. */
#ifndef RUNPORTS_H
#define RUNPORTS_H

#include "buf.h"
#include "det/err.h"

#define RUNPORTS_N       4
#define RUNPORTS_STR_MAX 160

struct runports {
    int port[RUNPORTS_N]; /* 0: as the master gave it */
};

/* The variable that a port is told in. i < RUNPORTS_N. */
const char *runports_name(size_t i);
/* Appends "C10D_PORT:41003,DTRAIN_SSH_PORT:41005": nothing where none is exchanged. */
void runports_write(struct buf *out, const struct runports *p);
/* Reads that; text NULL: none. A name that this version does not know is passed over. DET_EINVAL.
 */
DET_MUST int runports_read(struct runports *ret, const char *text, struct det_err *err);

#endif
