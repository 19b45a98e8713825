/* A master that serves, from its start to its graceful end. */
#ifndef MASTER_SERVE_H
#define MASTER_SERVE_H

#include "logring.h"
#include "masterconf.h"

/* Once a process. conf and ring are borrowed. Returns the exit status, or a negative error that
 * kept it from serving. */
DET_MUST int serve(const struct masterconf *conf, struct logring *ring, struct det_err *err);

#endif
