/* What a local run starts from. */
#ifndef RUN_RESUME_H
#define RUN_RESUME_H

#include "loop.h"

/* Sets c's checkpoint_dir, latest_checkpoint and steps_completed. `from` is a checkpoint's
 * directory (new checkpoints then go beside it), or the uuid of one in c->checkpoint_dir; NULL:
 * nothing, from the start. DET_ENOENT, DET_ECORRUPT; DET_EINVAL: it is not in checkpoint_dir. */
DET_MUST int run_resume(struct det_loop_config *c, const char *from, struct det_err *err);

#endif
