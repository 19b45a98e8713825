#ifndef CLI_LOGS_H
#define CLI_LOGS_H

#include "cli.h"

/* The options of a log query, of all nouns that have a log. */
extern const struct opt logs_opts[];
/* The log at `path` ("/tasks/ID/logs"), of a trial, or of the first trial of the experiment that is
 * the argument, as logs_opts ask for it; CLI exit code. */
DET_MUST int logs_print(struct cli *c, const char *path, struct det_err *err);
DET_MUST int logs_print_trial(struct cli *c, int64_t trial_id, struct det_err *err);
DET_MUST int logs_print_experiment(struct cli *c, struct det_err *err);
/* A trial's log to its end; CLI exit code. */
DET_MUST int logs_follow_trial(struct cli *c, int64_t trial_id, struct det_err *err);
/* The last n entries of a trial's log, the oldest first; NULL: they cannot be had. New
 * reference. */
json_t *logs_last(struct cli *c, int64_t trial_id, int64_t n);
/* The last n lines of a trial's log, whatever the options ask for; CLI exit code. */
DET_MUST int logs_print_last(struct cli *c, int64_t trial_id, int64_t n, struct det_err *err);

#endif
