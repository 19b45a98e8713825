/*
 * A loop's configuration from where it really comes: the environment of a managed trial (DET_* of
 * docs/contract/task.md 1), or an experiment's configuration in local mode.
 */
#ifndef LOOP_ENV_H
#define LOOP_ENV_H

#include "loop.h"

/* Does the environment describe a trial of the cluster? */
bool loop_env_managed(void);
/* Fills *ret (LOOP_CONFIG_INIT before) for a managed trial, http and ranks included. DET_EINVAL
 * names the variable that is missing or wrong. */
DET_MUST int loop_env_config(struct det_loop_config *ret, struct det_err *err);
/* What the experiment's configuration says: periods, policy, searcher, seed, storage,
 * optimizations. Both are borrowed and copied; hparams may be NULL. In local mode max_length is
 * the searcher's. */
DET_MUST int loop_config_from_experiment(struct det_loop_config *ret, const json_t *config,
                                         const json_t *hparams, struct det_err *err);

/* HTTP to DET_MASTER with DET_SESSION_TOKEN, for any number of threads. Belongs to the process. */
DET_MUST int loop_http_from_env(struct loop_http *ret, struct det_err *err);

#endif
