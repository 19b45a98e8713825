/* What the files of `det trial` share: verbs. */
#ifndef CLI_TRIAL_H
#define CLI_TRIAL_H

#include "cli.h"

DET_MUST int trial_stacks(struct cli *c, struct det_err *err);
DET_MUST int trial_profile(struct cli *c, struct det_err *err);

#endif
