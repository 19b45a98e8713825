/*
 * `det-harness run module:Class`: a trial without a cluster, for trying a model out, for tests and
 * benchmarks. The configuration is an experiment's YAML; the searcher gives the length and one
 * point of the hyperparameters.
 */
#ifndef RUN_LOCAL_H
#define RUN_LOCAL_H

#include "loop.h"
#include "opt.h"

struct run_options {
    const char *config;         /* a YAML file; NULL: only what `set` says */
    struct opt_list set;        /* "hyperparameters.lr=0.1", as det's --config */
    const char *checkpoint_dir; /* NULL: the loop's default */
    const char *resume;         /* uuid of a checkpoint there; NULL: from the start */
    int64_t point;              /* which point of a grid */
    bool test;                  /* one batch, one validation batch, one checkpoint */
    const char *tensorboard_dir; /* NULL: only what the trial itself writes */
    bool quiet;                 /* no progress lines */
};

/* Fills *ret (LOOP_CONFIG_INIT before); loop_config_finish() also after a failure. */
int run_local_config(const struct run_options *o, const char *entrypoint,
                     struct det_loop_config *ret, struct det_err *err);

#endif
