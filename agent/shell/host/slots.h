/* What this host can give: GPUs by NVML (loaded at run time), else by nvidia-smi, else CPU slots.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include "agentlink.h"
#include "vec.h"

struct slots {
    VEC(struct link_slot) v; /* strings owned */
};
/* what: "auto", or the number of CPU slots (0 too: no slot, only zero-slot tasks). DET_EINVAL. */
int slots_find(const char *what, struct slots *ret, struct det_err *err);
void slots_finish(struct slots *s);
/* CPU cores that this process may use. */
int slots_cores(void);

/* Appends what NVML or nvidia-smi sees; nothing where there is neither. */
void slots_add_gpus(struct slots *s);

#endif
