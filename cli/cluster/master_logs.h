#ifndef CLI_MASTER_LOGS_H
#define CLI_MASTER_LOGS_H

#include "cli.h"

extern const struct opt master_logs_opts[];
DET_MUST int master_logs(struct cli *c, struct det_err *err);

#endif
