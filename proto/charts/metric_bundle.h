/*
 * Reports of metrics that came together, as the database is given them; and a reader for those that
 * are plain, as trials send them: of a tree of values of each number, made and looked through, the
 * master had two thirds of its work. Thread: any.
 */
#ifndef PROTO_METRIC_BUNDLE_H
#define PROTO_METRIC_BUNDLE_H

#include "metric_chunks.h"

#define METRIC_GROUP_MAX 100 /* bytes of a group's name */

struct metric_report {
    int64_t trial_id, run_id, steps; /* trial_id, run_id 0: not said */
    /* In texts, NUL-terminated; batches SIZE_MAX: none. Object: inside metrics, which end with it
     * and a "}". */
    size_t group, metrics, object, batches, batches_len;
    size_t values, values_n; /* of the bundle's; they count from object */
};

struct metric_bundle { /* zero-initialised */
    struct metric_report v[METRIC_BATCH_MAX];
    size_t n;
    struct buf texts;
    struct metric_values values;
};
void metric_bundle_finish(struct metric_bundle *b);

/* Of {"reports": [..]}, all of it, or false, and then *ret is empty: it is no such thing, or one
 * of its reports is to be refused, or it is not plain, and the caller parses it. Plain is: the
 * members that this reads, spelled as documented; names of ASCII without escapes; numbers only, of
 * METRIC_CHUNK_NAMES names at most. What it takes is what json_parse() and the decoder of one
 * report (master/api/trials/metric_body.h) make of the same, to the byte. */
bool metric_bundle_read(struct metric_bundle *ret, const char *text, size_t len);

/* What metrics begin with, before the object. */
const char *metric_doc_head(const char *group);

#endif
