#include "metric_body.h"

#include "wire.h"

#include <inttypes.h>
#include <string.h>

#define METRICS_MAX 20000 /* of one report; as many may a trial have in a group */

struct fields {
    int64_t trial_id, run_id, steps;
    json_t *metrics;
};
#define M(member) offsetof(struct fields, member)
static const struct wire_field metrics_fields[] = {
    {"trialId", WIRE_I32, M(trial_id), 0, NULL},
    {"trialRunId", WIRE_I32, M(run_id), 0, NULL},
    {"stepsCompleted", WIRE_I32, M(steps), 0, NULL},
    {"metrics", WIRE_OBJECT, M(metrics), WIRE_REQUIRED, NULL},
};

static int group_check(const char *group, struct det_err *err)
{
    if (!*group || strchr(group, '.') || strlen(group) > METRIC_GROUP_MAX)
        return det_fail(err, DET_EINVAL, "group: a name of 1 to %d bytes without '.'",
                        METRIC_GROUP_MAX);
    return 0;
}

static bool is_number(const json_t *j)
{
    double v;
    return json_is_number(j) || (json_is_string(j) && wire_f64(j, "", &v, NULL) == 0);
}

static int values_check(const json_t *avg, const json_t *batches, struct det_err *err)
{
    if (avg && !json_is_object(avg))
        return det_fail(err, DET_EINVAL, "metrics.metrics.avgMetrics: expected an object");
    if (json_object_size(avg) > METRICS_MAX)
        return det_fail(err, DET_EINVAL, "metrics.metrics.avgMetrics: at most %d metrics",
                        METRICS_MAX);
    if (batches && !json_is_array(batches))
        return det_fail(err, DET_EINVAL, "metrics.metrics.batchMetrics: expected an array");
    const json_t *epoch = json_object_get(avg, "epoch");
    if (epoch && !is_number(epoch))
        return det_fail(err, DET_EINVAL, "metric \"epoch\": expected a number");
    return 0;
}

int metric_body_decode(const json_t *j, const char *where, const char *group,
                       struct metric_body *ret, struct det_err *err)
{
    struct fields f = {0};
    int rc = wire_decode(j, where, metrics_fields, DET_ARRAY_LEN(metrics_fields), &f, err);
    if (rc == 0)
        rc = group_check(group, err);
    if (rc < 0)
        return rc;
    *ret = (struct metric_body){.trial_id = f.trial_id,
                                .run_id = f.run_id,
                                .steps = f.steps,
                                .group = group,
                                .values = wire_get(f.metrics, "avgMetrics"),
                                .batches = wire_get(f.metrics, "batchMetrics")};
    if (ret->steps < 0)
        return det_fail(err, DET_EINVAL, "metrics.stepsCompleted: must not be negative");
    return values_check(ret->values, ret->batches, err);
}

const char *metric_body_group(const json_t *request)
{
    const json_t *named = wire_get(request, "group");
    return json_is_string(named) ? json_string_value(named) : "";
}

int metric_body_owner(const struct http_who *who, int64_t trial_id, int64_t reported_trial,
                      int64_t *run_id, struct det_err *err)
{
    if (reported_trial && reported_trial != trial_id)
        return det_fail(err, DET_EINVAL, "metrics.trialId: %" PRId64 " is not the path's %" PRId64,
                        reported_trial, trial_id);
    if (who->kind != WHO_ALLOC)
        return 0;
    if (!*run_id)
        *run_id = who->run_id;
    if (*run_id != who->run_id)
        return det_fail(err, DET_ESTALE,
                        "invalid run id, %" PRId64 " is reported and %" PRId64 " is the token's",
                        *run_id, who->run_id);
    return 0;
}

void metric_body_store(const struct metric_body *b, struct buf *out)
{
    buf_add_str(out, metric_doc_head(b->group));
    if (b->values)
        json_write(out, b->values);
    else
        buf_add_str(out, "{}");
    buf_add_ch(out, '}');
}

void metric_body_add(const struct metric_body *b, struct metric_bundle *to)
{
    struct buf *out = &to->texts;
    struct metric_report *r = &to->v[to->n++];
    *r = (struct metric_report){.trial_id = b->trial_id,
                                .run_id = b->run_id,
                                .steps = b->steps,
                                .group = out->len,
                                .batches = SIZE_MAX,
                                .values = to->values.n};
    buf_add(out, b->group, strlen(b->group) + 1);
    r->metrics = out->len;
    buf_add_str(out, metric_doc_head(b->group));
    r->object = out->len;
    r->values_n = metric_values_write(out, b->values, &to->values);
    buf_add(out, "}", 2);
    if (json_array_size(b->batches) == 0)
        return;
    r->batches = out->len;
    json_write(out, b->batches);
    r->batches_len = out->len - r->batches;
    buf_add_ch(out, 0);
}
