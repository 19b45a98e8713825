/* What the files of `det experiment` share. */
#ifndef CLI_EXPERIMENT_H
#define CLI_EXPERIMENT_H

#include "cli.h"
#include <time.h>

/* *ret_experiment: new reference to the experiment object. */
DET_MUST int experiment_get(struct cli *c, int64_t id, json_t **ret_experiment,
                            struct det_err *err);

/* As a table, or as JSON when that was asked for. */
void experiment_print_list(const struct cli *c, const json_t *experiments);

extern const struct opt experiment_create_opts[], experiment_wait_opts[];
DET_MUST int experiment_create(struct cli *c, struct det_err *err);
/* What `create` and `continue` share: a file ("-": stdin), the first trial's log and the end, the
 * warnings of an answer. */
DET_MUST int experiment_read_config(const char *path, struct buf *text, struct det_err *err);
/* --config KEY=VALUE, each; the error names the one that is wrong. */
DET_MUST int experiment_override(json_t *config, const struct opt_list *changes,
                                 struct det_err *err);
DET_MUST int experiment_follow(struct cli *c, int64_t id, struct det_err *err);
void experiment_warn(const json_t *answer);

extern const struct opt experiment_continue_opts[];
DET_MUST int experiment_continue(struct cli *c, struct det_err *err);
DET_MUST int experiment_replay(struct cli *c, struct det_err *err);
DET_MUST int experiment_wait(struct cli *c, struct det_err *err);

extern const struct opt experiment_rungs_opts[];
DET_MUST int experiment_rungs(struct cli *c, struct det_err *err);
extern const struct opt experiment_set_opts[];
DET_MUST int experiment_set(struct cli *c, struct det_err *err);
DET_MUST int experiment_label(struct cli *c, struct det_err *err);

/* Between two questions of `wait`, whose --polling-interval is in seconds; 0: it was not given. */
static inline struct timespec wait_pause(int64_t interval_s)
{
    return (struct timespec){.tv_sec = interval_s, .tv_nsec = interval_s > 0 ? 0 : 200 * 1000000};
}
bool has_ended(const json_t *it); /* an experiment or a trial, as the master tells of it */
/* The length asked of a trial in batches, 0 where that cannot be known from here; how much of it
 * is done, 0 to 1. */
double trial_target(const json_t *trial, const json_t *experiment);
double trial_fraction(const json_t *trial, const json_t *experiment);
/* Why a trial failed, in the words of its log; NULL: that is not known. Caller frees. */
char *trial_reason(struct cli *c, int64_t trial);
/* Why an experiment ended in ERROR, in the words of its first failed trial's log, why it is held or
 * could not be deleted; NULL: that is not known, or it is none of these. Caller frees. */
char *experiment_reason(struct cli *c, const json_t *experiment);
/* What a command that waited for it ends with: CLI exit code, *err says how it ended. */
DET_MUST int experiment_verdict(struct cli *c, const json_t *experiment, struct det_err *err);
/* Prints bars until the experiment ended; CLI exit code. */
DET_MUST int wait_for_experiment(struct cli *c, int64_t id, struct det_err *err);

#endif
