/*
 * A report of metrics from the outside: its members, and whether it may be kept. Pure. Thread: any.
 */
#ifndef API_METRIC_BODY_H
#define API_METRIC_BODY_H

#include "http.h"
#include "json.h"
#include "metric_bundle.h"

struct metric_body {
    int64_t trial_id, run_id, steps; /* trial_id, run_id 0: not said */
    const char *group;
    const json_t *values; /* an object; NULL: none */
    json_t *batches;      /* an array, borrowed; NULL: none */
};

/* j: a TrialMetrics, called `where` in errors. group: of it, borrowed. What *ret has is borrowed of
 * both. DET_EINVAL. */
DET_MUST int metric_body_decode(const json_t *j, const char *where, const char *group,
                                struct metric_body *ret, struct det_err *err);
/* The group that the body of a ReportTrialMetricsRequest says; "" where it says none. Borrowed. */
const char *metric_body_group(const json_t *request);
/* The trial of body and path must be one, and its run the token's: DET_EINVAL, DET_ESTALE. A run
 * that is not said becomes the token's. */
DET_MUST int metric_body_owner(const struct http_who *who, int64_t trial_id, int64_t reported_trial,
                               int64_t *run_id, struct det_err *err);
/* As the database keeps it, but for the batches: {"avg_metrics" or "validation_metrics": {..}}. */
void metric_body_store(const struct metric_body *b, struct buf *out);
/* As one more report of the bundle, which has room for it. */
void metric_body_add(const struct metric_body *b, struct metric_bundle *to);

#endif
