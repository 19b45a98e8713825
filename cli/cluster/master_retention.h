#ifndef CLI_MASTER_RETENTION_H
#define CLI_MASTER_RETENTION_H

#include "cli.h"

extern const struct opt master_retention_opts[];
DET_MUST int master_retention(struct cli *c, struct det_err *err);

#endif
