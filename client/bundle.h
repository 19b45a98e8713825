/*
 * Reports of metrics that wait in the spool, one behind the other, as one request: while one is
 * under way those that come gather, and go together as soon as it is answered. Nothing waits for
 * more to come. Signs of progress between them do not part them: the last one says it all. Nor does
 * a state that the master knows already. Thread: whose the spool's reading end is.
 */
#ifndef BUNDLE_H
#define BUNDLE_H

#include "json.h"
#include "spool.h"

#define BUNDLE_REPORTS_MAX 128                 /* as the master takes */
#define BUNDLE_BYTES_MAX   ((size_t)120 << 10) /* which it reads without a thread of its own */
#define BUNDLE_ONE_MAX     ((size_t)8 << 10)   /* a larger report goes alone: nothing is saved */

struct bundle {
    char *path, *seq; /* of the request; seq: its first report's */
    struct buf body;
    size_t n;
    size_t record[BUNDLE_REPORTS_MAX]; /* how many records the spool has before each report's */
    size_t taken;                      /* records of the spool, the first among them */
    char *progress_path, *progress;    /* NULL: none came in between */
};

/* Takes from the spool what goes with `first`, the record of the last spool_next(). state: the body
 * of the last runner/metadata that the master got; NULL: none. False where
 * nothing does: then spool_next() is to be called again, and first's strings are gone. */
bool bundle_gather(struct bundle *b, struct spool *s, const struct spool_record *first,
                   const char *state);
void bundle_finish(struct bundle *b);

#endif
