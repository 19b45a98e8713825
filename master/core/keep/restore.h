/* The core from its rows: what others need of it. core.h has the rest. Private to master/core. */
#ifndef CORE_RESTORE_H
#define CORE_RESTORE_H

#include "model.h"

/* After the last row: leases begin, and whatever was decided but not yet done is done. */
void restore_finish(struct core *c);
/* A search whose log has nothing yet has been asked for its first trials all the same. */
void restore_beginning(struct exp *e);

#endif
