#include "profile_sum.h"

#include "clk.h"
#include "mem.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[PROFILE_KIND_COUNT] = {
    "PROFILER_METRIC_TYPE_SYSTEM", "PROFILER_METRIC_TYPE_TIMING", "PROFILER_METRIC_TYPE_MISC"};

static bool read_kind(const char *text, enum profile_kind *ret)
{
    for (int i = 0; i < PROFILE_KIND_COUNT; i++)
        if (strcmp(text, kinds[i]) == 0) {
            *ret = (enum profile_kind)i;
            return true;
        }
    return false;
}

static struct profile_series *series_of(struct profile *p, const json_t *labels)
{
    const char *name = json_str(labels, "name", ""), *agent = json_str(labels, "agentId", ""),
               *gpu = json_str(labels, "gpuUuid", "");
    enum profile_kind kind;
    if (!*name || !read_kind(json_str(labels, "metricType", ""), &kind))
        return NULL;
    for (size_t i = 0; i < p->series.n; i++) {
        struct profile_series *s = &p->series.v[i];
        if (s->kind == kind && strcmp(s->name, name) == 0 && strcmp(s->agent, agent) == 0 &&
            strcmp(s->gpu, gpu) == 0)
            return s;
    }
    vec_push(&p->series, (struct profile_series){.name = det_strdup(name),
                                                 .agent = det_strdup(agent),
                                                 .gpu = det_strdup(gpu),
                                                 .kind = kind});
    return &p->series.v[p->series.n - 1];
}

void profile_add(struct profile *p, const json_t *batch)
{
    const json_t *values = json_arr(batch, "values"), *batches = json_arr(batch, "batches"),
                 *times = json_arr(batch, "timestamps");
    struct profile_series *s = series_of(p, json_obj(batch, "labels"));
    size_t n = json_array_size(values);
    n = json_array_size(batches) < n ? json_array_size(batches) : n;
    n = json_array_size(times) < n ? json_array_size(times) : n;
    for (size_t i = 0; s && i < n; i++) {
        const json_t *v = json_array_get(values, i), *at = json_array_get(batches, i),
                     *when = json_array_get(times, i);
        struct profile_point point = {json_number_value(v), (int64_t)json_integer_value(at), 0};
        if (json_is_number(v) && json_is_integer(at) && json_is_string(when) &&
            isfinite(point.value) && clk_parse(json_string_value(when), &point.at_us, NULL) == 0)
            vec_push(&s->points, point);
    }
}

struct report {
    int64_t batches, at_us;
};

static bool read_report(const json_t *workload, struct report *ret)
{
    const json_t *t = json_obj(workload, "training");
    ret->batches = json_int(t, "totalBatches", -1);
    return ret->batches >= 0 && clk_parse(json_str(t, "endTime", ""), &ret->at_us, NULL) == 0;
}

/* Those that came in one bundle have one time, and say nothing of the speed between them. */
static bool is_with(const struct report *last, const struct report *r)
{
    enum { BUNDLE_US = 1000 };
    return r->at_us < last->at_us + BUNDLE_US;
}

bool profile_add_reports(struct profile *p, const json_t *workloads, struct profile_span *ret)
{
    struct report first = {0}, last = {0}, end = {0}, r;
    struct profile_series s = {.kind = PROFILE_MISC};
    size_t i, n = 0;
    json_t *w;
    json_array_foreach((json_t *)workloads, i, w)
    {
        if (!read_report(w, &r) || (n > 0 && (r.batches <= end.batches || r.at_us < end.at_us)))
            continue;
        end = r;
        if (n > 0 && is_with(&last, &r))
            continue;
        double seconds = (double)(r.at_us - last.at_us) / 1e6;
        if (n > 0)
            vec_push(&s.points, (struct profile_point){(double)(r.batches - last.batches) / seconds,
                                                       r.batches, r.at_us});
        first = n++ > 0 ? first : r;
        last = r;
    }
    if (s.points.n == 0)
        return false;
    s.name = det_strdup("batches_per_second");
    s.agent = det_strdup("");
    s.gpu = det_strdup("");
    vec_push(&p->series, s);
    *ret =
        (struct profile_span){first.batches, end.batches, (double)(end.at_us - first.at_us) / 1e6};
    return true;
}

int64_t profile_first_report(const json_t *workloads)
{
    struct report r;
    size_t i;
    json_t *w;
    json_array_foreach((json_t *)workloads, i, w)
    {
        if (read_report(w, &r))
            return r.at_us;
    }
    return 0;
}

char *profile_when(int64_t begin_on_batch, double since)
{
    enum { FIRST_S = 10 };
    if (begin_on_batch > 0)
        return det_asprintf("the first measurements come %d s after batch %" PRId64, FIRST_S,
                            begin_on_batch);
    if (since >= 0 && since < FIRST_S)
        return det_asprintf("the first measurements come in about %.0f s", FIRST_S - since);
    return det_asprintf("the first measurements come %d s after its first batch", FIRST_S);
}

void profile_finish(struct profile *p)
{
    for (size_t i = 0; i < p->series.n; i++) {
        struct profile_series *s = &p->series.v[i];
        free(s->name);
        free(s->agent);
        free(s->gpu);
        vec_free(&s->points);
    }
    vec_free(&p->series);
}

const struct profile_series *profile_find(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->series.n; i++)
        if (strcmp(p->series.v[i].name, name) == 0)
            return &p->series.v[i];
    return NULL;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

struct profile_sum profile_sum(const struct profile_series *s)
{
    struct profile_sum sum = {.n = s ? s->points.n : 0};
    if (sum.n == 0)
        return sum;
    double *sorted det_cleanup(freep) = det_reallocarray(NULL, sum.n, sizeof *sorted);
    size_t most = 0;
    for (size_t i = 0; i < sum.n; i++) {
        sorted[i] = s->points.v[i].value;
        sum.total += sorted[i];
        most = sorted[i] > s->points.v[most].value ? i : most;
    }
    qsort(sorted, sum.n, sizeof *sorted, by_value);
    sum.mean = sum.total / (double)sum.n;
    sum.median = sorted[sum.n / 2];
    sum.p99 = sorted[(sum.n - 1) * 99 / 100];
    sum.least = sorted[0];
    sum.most = sorted[sum.n - 1];
    sum.most_batch = s->points.v[most].batch;
    return sum;
}

struct profile_span profile_span(const struct profile *p)
{
    struct profile_span span = {INT64_MAX, -1, 0};
    double from = INFINITY, to = -INFINITY;
    for (size_t i = 0; i < p->series.n; i++) {
        const struct profile_series *s = &p->series.v[i];
        for (size_t k = 0; s->kind == PROFILE_TIMING && k < s->points.n; k++) {
            const struct profile_point *v = &s->points.v[k];
            double end = (double)v->at_us / 1e6;
            span.first = v->batch < span.first ? v->batch : span.first;
            span.last = v->batch > span.last ? v->batch : span.last;
            from = fmin(from, end - v->value);
            to = fmax(to, end);
        }
    }
    if (span.last < span.first)
        return (struct profile_span){0};
    span.seconds = to - from;
    return span;
}

const char *profile_within(const struct profile *p, const char *name)
{
    static const char *const parents[] = {"train_batch", "validate"};
    if (strcmp(name, "evaluate_batch") == 0)
        return profile_find(p, "validate") ? "validate" : NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(parents); i++) {
        size_t n = strlen(parents[i]);
        if (strncmp(name, parents[i], n) == 0 && name[n] == '.')
            return profile_find(p, parents[i]) ? parents[i] : NULL;
    }
    return NULL;
}

struct profile_stalls profile_stalls(const struct profile *p)
{
    const struct profile_series *waits = profile_find(p, "dataloader_next");
    struct profile_sum batch = profile_sum(profile_find(p, "train_batch"));
    struct profile_stalls stalls = {.limit = batch.median};
    for (size_t i = 0; batch.n > 0 && waits && i < waits->points.n; i++)
        if (waits->points.v[i].value > batch.median) {
            stalls.n++;
            stalls.seconds += waits->points.v[i].value;
        }
    return stalls;
}

const char *profile_unit(const struct profile_series *s)
{
    static const struct {
        const char *name, *unit;
    } units[] = {
        {"cpu_util_simple", "%"},          {"free_memory", "GB"}, {"net_throughput_sent", "Gbit/s"},
        {"net_throughput_recv", "Gbit/s"}, {"disk_iops", "1/s"},  {"disk_throughput_read", "B/s"},
        {"disk_throughput_write", "B/s"},  {"gpu_util", "%"},     {"gpu_free_memory", "GB"},
        {"samples_per_second", "1/s"}};
    if (s->kind == PROFILE_TIMING)
        return "s";
    for (size_t i = 0; i < DET_ARRAY_LEN(units); i++)
        if (strcmp(s->name, units[i].name) == 0)
            return units[i].unit;
    return "";
}
