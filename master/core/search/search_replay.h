/*
 * A search played again from what the database kept: configuration, seed, events in order. It must
 * make the trials that the rows have, answer every event with the operations it answered then, and
 * arrive at the bytes of the last snapshot. Pure; may run on any thread.
 */
#ifndef CORE_SEARCH_REPLAY_H
#define CORE_SEARCH_REPLAY_H

#include "det/err.h"
#include "json.h"
#include <stdbool.h>
#include <stdint.h>

struct search_log {
    const json_t *config;   /* the experiment's */
    const json_t *events;   /* [[seq, event]..] from seq 1 */
    const json_t *trials;   /* [[id, request id, seed, hyperparameters]..] by id */
    const json_t *snapshot; /* NULL: none was taken */
    int64_t snapshot_seq;   /* of the last event it includes */
};
struct search_verdict {
    bool equal;
    int64_t seq;     /* of the first event after which something differs; 0: the start */
    char what[400];  /* ... and what; "" when equal */
    int64_t events;  /* played */
    int64_t trials;  /* made by them */
    char sha256[65]; /* of the state at the end, as snapshots have it */
};
/* DET_EINVAL: the configuration cannot be read. A log that differs is no error. */
DET_MUST int search_replay(const struct search_log *log, struct search_verdict *ret,
                           struct det_err *err);

#endif
