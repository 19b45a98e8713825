/*
 * The experiment of a run without a cluster: a YAML file, of which anything may be left out, and
 * one point of its hyperparameters. Shared by det-harness run and by determined.exec.local.
 */
#ifndef LOOP_LOCAL_H
#define LOOP_LOCAL_H

#include "expconf.h"
#include "json.h"

/* Stands for a searcher's metric that nobody named: none is asked for then. */
#define LOOP_LOCAL_NO_METRIC "(none)"

/* The file's content as it is, at most 4 MiB; an empty object for NULL. *ret: a new reference. */
DET_MUST int loop_local_read(const char *path, json_t **ret, struct det_err *err);
/* The complete configuration; what a local run does not need to be told is added to `raw`.
 * entrypoint: where the file names none; NULL: any. *ret: a new reference. */
DET_MUST int loop_local_complete(json_t *raw, const char *entrypoint, json_t **ret,
                                 struct det_err *err);
/* The hyperparameters of a grid's point (from 0), else the first sample of the experiment's seed.
 * *ret: a new reference. */
DET_MUST int loop_local_hparams(const struct expconf *view, int64_t point, json_t **ret,
                                struct det_err *err);

#endif
