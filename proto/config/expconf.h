/*
 * The experiment configuration: YAML in, the complete stored JSON out, and a typed view of what the
 * master decides by.
 *
 * Stages: read (yamljson) -> check the raw form against one const table (expconf_schema.c),
 * gathering every mistake -> normalise to full forms (constants, images, variables, devices, sizes)
 * -> merge what stands below (templates, the master's settings) -> check that what is required is
 * there -> fill in the defaults. The stored form is a fixed point: parsing it again gives itself.
 * Its keys are sorted at every level.
 *
 * What this version lacks (the searchers adaptive, adaptive_simple and sync_halving; stores but
 * shared_fs and directory) is checked as the rest and then refused by name.
 */
#ifndef PROTO_EXPCONF_H
#define PROTO_EXPCONF_H

#include "det/err.h"
#include "json.h"
#include "length.h"
#include "mistakes.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct expconf_defaults {
    /* Merged below the experiment's own, e.g. {"checkpoint_storage": {...}}: a result of
     * expconf_partial(), or several folded with expconf_merge(). Borrowed; may be NULL. */
    const json_t *lower;
    int64_t wall_s;     /* seconds since 1970: the experiment_seed where none is given */
    uint64_t name_seed; /* any number: picks the three words of a generated name */
    bool unmanaged;     /* no entrypoint is required */
};

/* One experiment's configuration, complete. errs (may be NULL, else initialised) takes every
 * mistake; err the first ones. *ret_config is a new reference. DET_EINVAL, DET_ETOOBIG. */
DET_MUST int expconf_parse(const char *yaml, size_t len, const struct expconf_defaults *d,
                           json_t **ret_config, struct mistakes *errs, struct det_err *err);
/* The same from parsed JSON (borrowed, unchanged). */
DET_MUST int expconf_complete(const json_t *raw, const struct expconf_defaults *d,
                              json_t **ret_config, struct mistakes *errs, struct det_err *err);

/* Appends a line for each key of a complete configuration whose value is not the default and that
 * nothing acts on: "bind_mounts[0].container_path: has no effect: ..."; and one where a key acts on
 * less than a reader would think, as a constant list does in a grid. */
void expconf_idle(const json_t *config, struct mistakes *ret);

/* A part of a configuration (a template, the master's checkpoint_storage): checked and normalised,
 * nothing required, no defaults. *ret is a new reference. */
DET_MUST int expconf_partial(const json_t *raw, json_t **ret, struct det_err *err);
/* high takes from low (normalised parts both, low unchanged) whatever it lacks, by the merge rules:
 * first non-null wins, maps by key, special lists joined, one-of objects of another kind only in
 * their common keys. */
void expconf_merge(json_t *high, const json_t *low);
/* "a.b.c=value" into a raw configuration; the value is YAML ("[1, 2]", "1e-3", "{batches: 5}").
 * Maps on the way are made. DET_EINVAL. */
DET_MUST int expconf_override(json_t *config, const char *assignment, struct det_err *err);

enum expconf_searcher {
    EXPCONF_SINGLE,
    EXPCONF_RANDOM,
    EXPCONF_GRID,
    EXPCONF_ADAPTIVE_ASHA,
    EXPCONF_ASYNC_HALVING,
    EXPCONF_CUSTOM
};
enum expconf_policy { EXPCONF_POLICY_BEST, EXPCONF_POLICY_ALL, EXPCONF_POLICY_NONE };
enum expconf_store { EXPCONF_SHARED_FS, EXPCONF_DIRECTORY };

/* What decisions need, from a complete configuration. Strings and json_t are borrowed from it; the
 * view holds a reference to it until expconf_finish(). */
struct expconf {
    json_t *config;
    const char *name, *description;  /* description NULL if none */
    const char *workspace, *project; /* "" if none */
    const json_t *labels;
    const json_t *entrypoint; /* a string or a list of strings; NULL if unmanaged without one */
    const json_t *hyperparameters; /* normalised space */

    enum expconf_searcher searcher;
    const char *metric;
    bool smaller_is_better;
    struct length max_length;           /* custom: 0 of its unit */
    int64_t max_trials;                 /* single: 1; grid: its points */
    int64_t max_concurrent_trials;      /* 0: unlimited; single: 1 */
    int64_t source_trial_id;            /* 0: none */
    const char *source_checkpoint_uuid; /* NULL: none */

    int64_t slots_per_trial;
    const char *resource_pool; /* "" until resolved */
    int64_t max_slots;         /* -1: no cap */
    int64_t priority;          /* 0: the pool's default; else 1..99 */
    double weight;

    int64_t max_restarts;
    uint32_t experiment_seed;
    struct length min_validation_period, min_checkpoint_period; /* n == 0: never */
    int64_t scheduling_unit;                                    /* batches */
    int64_t records_per_epoch;
    bool perform_initial_validation, debug;
    enum expconf_policy checkpoint_policy;

    enum expconf_store store;
    const char *store_host_path;      /* shared_fs */
    const char *store_storage_path;   /* shared_fs; NULL: host_path itself */
    const char *store_container_path; /* directory */
    int64_t save_experiment_best, save_trial_best, save_trial_latest;
};

/* DET_EINVAL if config is not complete (a row damaged or of another version). */
DET_MUST int expconf_view(const json_t *config, struct expconf *ret, struct det_err *err);
void expconf_finish(struct expconf *c);

#endif
