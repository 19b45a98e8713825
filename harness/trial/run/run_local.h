/*
 * `det-harness run model_def.c`: a trial without a cluster. The configuration is an experiment's
 * YAML, with any of it changed from the command line; the searcher gives the length and one point
 * of the hyperparameters.
 */
#ifndef RUN_LOCAL_H
#define RUN_LOCAL_H

#include "loop.h"
#include "opt.h"

struct run_options {
    const char *config;     /* a YAML file; NULL: only what the rest says */
    struct opt_list set;    /* "searcher.metric=loss", as det's --config */
    struct opt_list hparam; /* "lr=0.1": hyperparameters.lr */
    const char *max_length; /* "2 epochs", "500 batches", "500"; NULL: the searcher's */
    const char *checkpoint_period, *validation_period, *reporting_period; /* likewise */
    const char *checkpoint_policy; /* NULL: the configuration's */
    bool step_zero_validation;
    const char *checkpoint_dir;    /* NULL: the loop's default */
    const char *latest_checkpoint; /* its directory, or its uuid there; NULL: from the start */
    int64_t point;                 /* which point of a grid */
    const char *tensorboard_dir;   /* NULL: only what the trial itself writes */
    int64_t ranks;                 /* 0: one, or what the environment says */
    bool test_mode;                /* one batch, one validation batch, one checkpoint */
};

/* Fills *ret (LOOP_CONFIG_INIT before); loop_config_finish() also after a failure. entrypoint:
 * "module:Class", or "module" to take the configuration's class, or the only one; NULL. */
DET_MUST int run_local_config(const struct run_options *o, const char *entrypoint,
                              struct det_loop_config *ret, struct det_err *err);

#endif
