/*
 * Searchers: which trials an experiment has and how long each trains. A search is a pure function
 * of its configuration, its seed and the ordered events it was told; it replays exactly.
 * rest-api.md 4 has the rules. The master draws all randomness of an experiment here:
 * hyperparameters, request ids, seeds.
 *
 *   search_create -> search_step(INITIAL) -> search_step(...)*
 *
 * Each trial gets CREATE, VALIDATE_AFTER and CLOSE operations in that order; SHUTDOWN comes once,
 * when every trial that was asked for is closed. A snapshot holds everything but the configuration.
 */
#ifndef CORE_SEARCH_H
#define CORE_SEARCH_H

#include "json.h"
#include "uuid.h"
#include "vec.h"

enum search_kind { SEARCH_SINGLE, SEARCH_RANDOM, SEARCH_GRID, SEARCH_KIND_COUNT };

struct search_conf {
    enum search_kind kind;
    int64_t max_length;      /* searcher units, >= 1 */
    int64_t max_trials;      /* single, random */
    int64_t max_concurrent;  /* 0: no limit */
    uint32_t seed;
    const json_t *space;     /* normalised hyperparameters; borrowed, outlives the search */
};

enum search_event_kind {
    SEARCH_EV_INITIAL,
    SEARCH_EV_VALIDATED, /* length, metric */
    SEARCH_EV_EXITED,    /* reason; comes just before CLOSED */
    SEARCH_EV_CLOSED,
    SEARCH_EV_PROGRESS,  /* units; changes no decision */
    SEARCH_EV_COUNT
};
enum search_exit {
    SEARCH_ERRORED, SEARCH_USER_CANCELED, SEARCH_INVALID_HP, SEARCH_INIT_INVALID_HP,
    SEARCH_USER_STOP, SEARCH_EXIT_COUNT
};
struct search_event {
    enum search_event_kind kind;
    const char *request_id;
    int64_t length;
    double metric;
    enum search_exit reason;
    double units;
};

enum search_op_kind { SEARCH_CREATE, SEARCH_VALIDATE_AFTER, SEARCH_CLOSE, SEARCH_SHUTDOWN };
struct search_op {
    enum search_op_kind kind;
    char request_id[UUID_STR_MAX];
    uint32_t trial_seed;
    json_t *hparams;      /* CREATE; a reference */
    int64_t length;       /* VALIDATE_AFTER: absolute */
    bool failure, cancel; /* SHUTDOWN */
};
struct search_ops {
    VEC(struct search_op) ops;
};
void search_ops_finish(struct search_ops *o);

struct search;
int search_create(const struct search_conf *conf, struct search **ret, struct det_err *err);
void search_destroy(struct search *s); /* NULL ok */
/* Appends to out. An event about an unknown trial, or a second exit or close of one, changes
 * nothing. */
void search_step(struct search *s, const struct search_event *ev, struct search_ops *out);
/* 0..1 */
double search_progress(const struct search *s);

json_t *search_snapshot(const struct search *s);
/* Into a fresh search of the same configuration. */
int search_restore(struct search *s, const json_t *snapshot, struct det_err *err);

/* An event of the log, as JSON and back; request_id is borrowed from j. */
json_t *search_event_to_json(const struct search_event *ev);
int search_event_from_json(const json_t *j, struct search_event *ret, struct det_err *err);

#endif
