/* When things are expected to end. Private to master/core. */
#ifndef CORE_WHY_ETA_H
#define CORE_WHY_ETA_H

#include "model.h"

/* A trial reported its units; its run's speed follows from such reports. */
void eta_on_progress(struct trial *t, double units, int64_t now_ms);

/* Milliseconds until the run is expected to end; negative: not known. From what is left of the
 * operation and the speed of this run so far. */
int64_t eta_of(const struct alloc *a, int64_t now_ms);

/* When the first pending request of g is expected to start: {"seconds": number or null, "basis":
 * text}. New reference. */
json_t *eta_start(struct core *c, struct group *g, int64_t now_ms);

#endif
