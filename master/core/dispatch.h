/* Which function an event is for. Private to master/core. */
#ifndef CORE_DISPATCH_H
#define CORE_DISPATCH_H

#include "core.h"

/* DET_ENOENT: whom it is about is not live; else what its function says. What it answers goes into
 * reply. */
DET_MUST int dispatch_event(struct core *c, const struct core_event *ev, struct core_reply *reply,
                            struct det_err *err);

#endif
