/* The inside of a search, shared by search*.c. */
#ifndef CORE_SEARCH_IMPL_H
#define CORE_SEARCH_IMPL_H

#include "map.h"
#include "rng.h"
#include "searcher.h"

struct search_trial {
    char request_id[UUID_STR_MAX];
    double units; /* last progress */
    bool exited, closed, invalid;
    bool done;  /* it was told to close */
    bool waits; /* it was reopened, and may not run yet */
    /* halving */
    bool pending; /* an operation of its rung is not complete */
    int bracket, rung;
    bool has_metric;
    double metric; /* of the highest rung in which it has one; less is better */
};

/* One bracket of asynchronous halving. */
struct asha_entry {
    double metric; /* less is better */
    uint32_t trial;
    bool promoted;
};
struct asha_rung {
    int64_t length; /* absolute */
    int64_t outstanding;
    VEC(struct asha_entry) entries; /* by metric */
    bool swept;                     /* closing out found nothing and nothing came since */
};
struct asha {
    int64_t max_trials, concurrent;
    int64_t created, invalid, closed;
    VEC(struct asha_rung) rungs;
};

struct search {
    struct search_conf conf;
    struct mt19937 rng;
    VEC(struct search_trial) trials; /* in order of creation */
    struct map *index;               /* request id -> position + 1 */
    int64_t failures, cancels, open;
    bool shut;
    /* single, random, grid */
    int64_t wanted; /* trials the method will make in all: max_trials, grid points */
    int64_t made;   /* of these; an invalid one is given back (random) */
    double units_open, units_closed; /* of progress: running, closed */
    int64_t waiting;                 /* trials that were reopened, and may not run yet */
    /* halving */
    VEC(struct asha) brackets;
    /* custom */
    json_t *queue; /* undelivered events, as the client sees them */
    int64_t last_event;
    double progress;
};

/* What distinguishes the methods. Trials are named by their position: the table moves as it grows.
 * A NULL means "nothing to do", but for initial, closed and progress. client: what only custom
 * hears, operations and progress. */
struct search_method {
    const char *name;
    bool is_custom; /* never ends by itself */
    int (*init)(struct search *s, struct det_err *err);
    void (*initial)(struct search *s, struct search_ops *out);
    void (*validated)(struct search *s, size_t trial, const struct search_event *ev,
                      struct search_ops *out);
    void (*exited)(struct search *s, size_t trial, enum search_exit why, struct search_ops *out);
    void (*closed)(struct search *s, size_t trial, struct search_ops *out);
    void (*reopened)(struct search *s, size_t trial, int64_t length, struct search_ops *out);
    void (*client)(struct search *s, const struct search_event *ev, struct search_ops *out);
    double (*progress)(const struct search *s);
    json_t *(*save)(const struct search *s); /* what the common part of a snapshot lacks */
    int (*load)(struct search *s, const json_t *j, struct det_err *err);
};
extern const struct search_method search_single, search_random, search_grid, search_async_halving,
    search_adaptive_asha, search_custom;
const struct search_method *search_method_of(enum search_kind kind);

#define SEARCH_NO_TRIAL SIZE_MAX
size_t search_trial_find(const struct search *s, const char *request_id);
/* Puts a trial of this id into the table and returns its position. */
size_t search_trial_add(struct search *s, const char *request_id);
/* CREATE of a new trial with these hyperparameters (taken), drawn id and seed. */
size_t search_make(struct search *s, json_t *hparams, struct search_ops *out);
struct search_op *search_push(struct search *s, struct search_ops *out, enum search_op_kind kind,
                              size_t trial);
void search_validate_after(struct search *s, struct search_ops *out, size_t trial, int64_t length);
struct search_op *search_close(struct search *s, struct search_ops *out, size_t trial);
static inline bool search_is_invalid(enum search_exit why)
{
    return why == SEARCH_INVALID_HP || why == SEARCH_INIT_INVALID_HP;
}

/* Brackets (search_asha.c). */
DET_MUST int asha_add(struct search *s, int64_t rungs, int64_t max_trials, int64_t concurrent,
                      struct det_err *err);
void asha_finish(struct asha *a);
/* The first position whose metric is greater, or (before) not less. */
size_t asha_position(const struct asha_rung *r, double metric, bool before);
void asha_initial(struct search *s, struct search_ops *out);
void asha_validated(struct search *s, size_t k, const struct search_event *ev,
                    struct search_ops *out);
void asha_exited(struct search *s, size_t k, enum search_exit why, struct search_ops *out);
void asha_closed(struct search *s, size_t k, struct search_ops *out);
double asha_progress(const struct search *s);
json_t *asha_save(const struct search *s); /* search_asha_snap.c */
DET_MUST int asha_load(struct search *s, const json_t *j, struct det_err *err);
/* A method that is brackets and a way to make them. */
#define ASHA_METHOD                                                                                \
    .initial = asha_initial, .validated = asha_validated, .exited = asha_exited,                   \
    .closed = asha_closed, .progress = asha_progress, .save = asha_save, .load = asha_load

#endif
