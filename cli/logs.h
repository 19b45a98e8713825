#ifndef CLI_LOGS_H
#define CLI_LOGS_H

#include "cli.h"

/* The log of a trial as experiment_logs_opts ask for it; CLI exit code. */
int logs_print(struct cli *c, int64_t trial_id, struct det_err *err);

#endif
