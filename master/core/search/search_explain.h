/*
 * Why a halving search did what it did with a trial: its bracket, its rung, its place there, who
 * went on instead. Pure, and cheap enough to be said of every trial that ends: what is listed of
 * others is bounded.
 */
#ifndef CORE_SEARCH_EXPLAIN_H
#define CORE_SEARCH_EXPLAIN_H

#include "searcher.h"

#define SEARCH_OTHERS_MAX 5

enum search_stand {
    SEARCH_TRAINS,  /* an operation of its rung is not complete */
    SEARCH_WAITS,   /* it validated, and may go on yet */
    SEARCH_STOPPED, /* its rung was decided without it */
    SEARCH_TOP,     /* it validated in the last rung */
    SEARCH_FAILED,  /* it ended by itself */
    SEARCH_STAND_COUNT
};
struct search_place {
    enum search_stand stand;
    int bracket, brackets, rung, rungs; /* from 1 */
    int64_t length;                     /* of the rung, in searcher units */
    double divisor;
    bool has_metric;
    double metric;             /* as it was reported */
    size_t place, of;          /* from 1, equal ones share it; trials with a metric here */
    int64_t went;              /* of them went on */
    int64_t training, to_come; /* trials whose metric here is not known yet */
    const char *others[SEARCH_OTHERS_MAX]; /* request ids of the best that went on */
    size_t others_n;
    const char *rival; /* one that went on with a worse metric; NULL: none seen */
    double rival_metric;
    int rival_bracket;
};
/* False: no such trial, or a search without rungs. Strings live until the next step. */
bool search_place_of(const struct search *s, const char *request_id, struct search_place *ret);

/* How the trials, the metric and the unit of lengths are called; trial: 0 where it is not known. */
struct search_names {
    const char *metric, *unit;
    int64_t (*trial)(void *arg, const char *request_id);
    void *arg;
};
/* A sentence without its end, about "it". */
void search_place_text(const struct search_place *p, const struct search_names *names,
                       struct buf *out);
/* The same of a trial that was closed by a search that compares nothing, after a length that it
 * completed; reason: its client's, may be NULL. */
void search_plain_text(enum search_kind kind, int64_t length, const char *unit, const char *reason,
                       struct buf *out);
/* The same for programs (openapi.yaml, SearchPlace). New reference. */
json_t *search_place_json(const struct search_place *p, const struct search_names *names);

/* Every bracket with its rungs and the best `most` trials of each (openapi.yaml, SearchBracket);
 * empty for a search without. New reference. */
json_t *search_rungs(const struct search *s, const struct search_names *names, size_t most);

#endif
