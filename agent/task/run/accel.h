/* What a task runs on, told to the master: POST /api/v1/allocations/{id}/acceleratorData. */
#ifndef ACCEL_H
#define ACCEL_H

#include "client_uv.h"
#include "taskspec.h"

/* One attempt, answered to nobody: the master shows it to people and needs it for nothing. */
void accel_tell(struct client_uv *http, const struct taskspec *s);

#endif
