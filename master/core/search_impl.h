/* The inside of a search, shared by search*.c. */
#ifndef CORE_SEARCH_IMPL_H
#define CORE_SEARCH_IMPL_H

#include "map.h"
#include "rng.h"
#include "searcher.h"

struct search_trial {
    char request_id[UUID_STR_MAX];
    double units;     /* last progress */
    bool exited, closed, invalid;
};

struct search {
    struct search_conf conf;
    struct mt19937 rng;
    VEC(struct search_trial) trials; /* in order of creation */
    struct map *index;               /* request id -> position + 1 */
    int64_t wanted; /* trials the method will make in all: max_trials, grid points */
    int64_t made;                    /* of these; an invalid one is given back (random) */
    int64_t closed, failures, cancels;
    int64_t open;
    bool shut;
    double units_open, units_closed; /* of progress: running, closed */
};

/* What distinguishes the methods. */
struct search_method {
    const char *name;
    int (*init)(struct search *s, struct det_err *err);
    json_t *(*hparams)(struct search *s); /* of the next trial; before its request id */
    void (*exited)(struct search *s, enum search_exit why); /* may be NULL */
};
extern const struct search_method search_single, search_random, search_grid;
const struct search_method *search_method_of(enum search_kind kind);

/* Puts a trial of this id into the table. */
struct search_trial *search_trial_add(struct search *s, const char *request_id);
struct search_trial *search_trial_find(const struct search *s, const char *request_id);

#endif
