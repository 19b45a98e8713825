/* What this host can give: the GPUs that CUDA_VISIBLE_DEVICES leaves, MIG instances one by one; a
 * CPU slot where there is none. */
#ifndef SLOTS_H
#define SLOTS_H

#include "agentlink.h"
#include "vec.h"

struct slots {
    VEC(struct link_slot) v; /* strings owned */
};
/* what: "auto", or the number of CPU slots (0 too: no slot, only zero-slot tasks). DET_EINVAL;
 * DET_ETIMEOUT: the driver of the GPUs does not answer. */
DET_MUST int slots_find(const char *what, struct slots *ret, struct det_err *err);
void slots_finish(struct slots *s);
/* CPU cores that this process may use. */
int slots_cores(void);

#endif
