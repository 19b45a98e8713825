/* det master lives, strays: which life of the cluster this is, and what came of others. */
#ifndef CLI_MASTER_LIVES_H
#define CLI_MASTER_LIVES_H

#include "cli.h"

extern const struct opt master_strays_opts[];
DET_MUST int master_lives(struct cli *c, struct det_err *err);
DET_MUST int master_strays(struct cli *c, struct det_err *err);

#endif
