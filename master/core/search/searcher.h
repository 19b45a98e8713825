/*
 * Searchers: which trials an experiment has and how long each trains. A search is a pure function
 * of its configuration, its seed and the ordered events it was told; it replays exactly.
 * docs/contract/search.md has the rules. The master draws all randomness of an experiment here:
 * hyperparameters, request ids, seeds.
 *
 *   search_create -> search_step(INITIAL) -> search_step(...)*
 *
 * single, random and grid give each trial CREATE, VALIDATE_AFTER and CLOSE at once; the halving
 * methods give further lengths as the metrics come in; custom does what its client posts. SHUTDOWN
 * comes once: from the built-in methods when every trial that was asked for is closed, from custom
 * when its client says so. A snapshot holds everything but the configuration and the progress of
 * trials that run.
 */
#ifndef CORE_SEARCH_H
#define CORE_SEARCH_H

#include "json.h"
#include "uuid.h"
#include "vec.h"

enum search_kind {
    SEARCH_SINGLE,
    SEARCH_RANDOM,
    SEARCH_GRID,
    SEARCH_ASYNC_HALVING,
    SEARCH_ADAPTIVE_ASHA,
    SEARCH_CUSTOM,
    SEARCH_KIND_COUNT
};
enum search_mode { SEARCH_AGGRESSIVE, SEARCH_STANDARD, SEARCH_CONSERVATIVE, SEARCH_MODE_COUNT };
/* The most trials that start at once, and the most rungs of a bracket or brackets of a search. */
#define SEARCH_BURST_MAX 100000
#define SEARCH_RUNGS_MAX 100
/* Bytes of a client's reason to close a trial that are kept. */
#define SEARCH_REASON_MAX 500

struct search_conf {
    enum search_kind kind;
    int64_t max_length;     /* searcher units, >= 1; custom: not read */
    int64_t max_trials;     /* single, random, halving */
    int64_t max_concurrent; /* 0: no limit */
    uint32_t seed;
    const json_t *space; /* normalised hyperparameters; borrowed, outlives the search */
    /* halving */
    bool larger_is_better, stop_once;
    double divisor;    /* > 1 */
    int64_t num_rungs; /* async_halving */
    int64_t max_rungs; /* adaptive_asha */
    enum search_mode mode;
    const json_t *bracket_rungs; /* array of integers, may be NULL; borrowed */
};
/* By its name in configurations ("async_halving"); false: none. */
bool search_kind_parse(const char *name, enum search_kind *ret);
bool search_mode_parse(const char *name, enum search_mode *ret);

enum search_event_kind {
    SEARCH_EV_INITIAL,
    SEARCH_EV_VALIDATED, /* length, metric (custom: value, any JSON) */
    SEARCH_EV_EXITED,    /* reason; comes just before CLOSED */
    SEARCH_EV_CLOSED,
    SEARCH_EV_PROGRESS,   /* units; changes no decision */
    SEARCH_EV_OPERATIONS, /* custom: ack, operations */
    SEARCH_EV_REOPENED,   /* single, random, grid: length, reason: the trial goes on to length */
    SEARCH_EV_COUNT
};
enum search_exit {
    SEARCH_ERRORED,
    SEARCH_USER_CANCELED,
    SEARCH_INVALID_HP,
    SEARCH_INIT_INVALID_HP,
    SEARCH_USER_STOP,
    SEARCH_EXIT_COUNT
};
struct search_event {
    enum search_event_kind kind;
    const char *request_id;
    int64_t length;
    double metric;
    const json_t *value;
    enum search_exit reason;
    double units;
    int64_t ack;              /* events up to this id were handled; 0: none */
    const json_t *operations; /* array of SearcherOperation */
};

enum search_op_kind { SEARCH_CREATE, SEARCH_VALIDATE_AFTER, SEARCH_CLOSE, SEARCH_SHUTDOWN };
struct search_op {
    enum search_op_kind kind;
    char request_id[UUID_STR_MAX];
    uint32_t trial_seed;
    json_t *hparams;      /* CREATE; a reference */
    json_t *reason;       /* CLOSE: what the client gave as its reason; a reference, NULL: none */
    int64_t length;       /* VALIDATE_AFTER: absolute */
    bool failure, cancel; /* SHUTDOWN */
};
struct search_ops {
    VEC(struct search_op) ops;
};
void search_op_finish(struct search_op *op);
void search_ops_finish(struct search_ops *o);
/* What two lists share exactly when they are the same, apart from hyperparameters and reasons. */
uint64_t search_ops_digest(const struct search_ops *o);
void search_digest_text(uint64_t digest, char out[17]);

struct search;
DET_MUST int search_create(const struct search_conf *conf, struct search **ret,
                           struct det_err *err);
void search_destroy(struct search *s); /* NULL ok */
/* Appends to out. An event about an unknown trial, or a second exit or close of one, changes
 * nothing. */
void search_step(struct search *s, const struct search_event *ev, struct search_ops *out);
/* Whether a search of this kind may hear REOPENED. An experiment of such a kind tells it nothing
 * from when it is stopped to when it is continued. */
bool search_may_reopen(enum search_kind kind);
/* 0..1 */
double search_progress(const struct search *s);

/* The events that a custom search's client has not acknowledged: an array of SearcherEvent,
 * borrowed until the next step. NULL: not a custom search. */
const json_t *search_undelivered(const struct search *s);
/* Would OPERATIONS with this acknowledgement be understood? DET_EINVAL says why not. */
DET_MUST int search_check_ack(const struct search *s, int64_t id, struct det_err *err);
/* Whether this is an operation that a custom search can carry out; err says why not. */
DET_MUST int search_check_operation(const json_t *operation, struct det_err *err);

json_t *search_snapshot(const struct search *s);
/* Into a fresh search of the same configuration. */
DET_MUST int search_restore(struct search *s, const json_t *snapshot, struct det_err *err);

/* An event of the log, as JSON and back; what the event points to is borrowed from j. */
json_t *search_event_to_json(const struct search_event *ev);
DET_MUST int search_event_from_json(const json_t *j, struct search_event *ret, struct det_err *err);

#endif
