/* Checkpoints that lie in a store and that the master does not know: a database that was restored
 * from an older copy has forgotten them. */
#ifndef GCLIST_H
#define GCLIST_H

#include "client.h"
#include "storage.h"

/* Tells the master of each, and at the end that these were all. */
DET_MUST int gclist_run(struct client *c, struct storage *st, struct det_err *err);

#endif
