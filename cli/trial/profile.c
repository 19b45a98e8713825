/* det trial profile: where the time of a trial's batches went, and what its hosts did. */
#include "clk.h"
#include "experiment.h"
#include "profile_sum.h"
#include "show.h"
#include "table.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 24, REPORTS_MAX = 10000 };

struct view {
    int64_t trial, experiment;
    bool live, by_reports; /* by_reports: there are no measurements */
    bool on;               /* profiling is, so that there will be some while it lives */
    int64_t first_batch;   /* with which they begin */
    double since;          /* the first report of its batches, in seconds; < 0: there is none */
    struct profile p;
    struct profile_span span;
    struct profile_stalls stalls;
};

/* ---- asking ---- */

static int on_labels(void *arg, json_t *result)
{
    size_t i;
    json_t *labels;
    json_array_foreach((json_t *)json_arr(result, "labels"), i, labels)
        json_set(arg, json_str(labels, "name", ""), json_true());
    return 0;
}

static int on_batch(void *arg, json_t *result)
{
    struct view *v = arg;
    profile_add(&v->p, json_obj(result, "batch"));
    return 0;
}

/* Name by name: all at once may be more than an answer should have. */
static int ask_series(struct cli *c, struct view *v, struct det_err *err)
{
    JSON_OWN names = json_object();
    det_cleanup(freep) char *path =
        det_asprintf("/trials/%" PRId64 "/profiler/available_series", v->trial);
    int rc = cli_stream(c, path, on_labels, names, err);
    size_t n;
    const char **all det_cleanup(freep) = json_sorted_keys(names, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        det_cleanup(freep) char *name = cli_escaped(all[i]),
                                *one = det_asprintf("/trials/%" PRId64
                                                    "/profiler/metrics?labels.name=%s",
                                                    v->trial, name);
        rc = cli_stream(c, one, on_batch, v, err);
    }
    v->span = profile_span(&v->p);
    v->stalls = profile_stalls(&v->p);
    return rc;
}

/* Reports of its batches, which every trial makes, say at least how fast it is. */
static int ask_reports(struct cli *c, struct view *v, struct det_err *err)
{
    JSON_OWN answer = NULL;
    int rc = cli_get(c, &answer, err,
                     "/trials/%" PRId64 "/workloads?metricType=METRIC_TYPE_TRAINING&limit=%d",
                     v->trial, REPORTS_MAX);
    const json_t *workloads = json_arr(answer, "workloads");
    int64_t first_us = profile_first_report(workloads);
    v->since = first_us > 0 ? (double)(clk_wall_us() - first_us) / 1e6 : -1;
    if (rc == 0)
        v->by_reports = profile_add_reports(&v->p, workloads, &v->span);
    return rc;
}

static int explain_none(struct cli *c, struct view *v, struct det_err *err)
{
    JSON_OWN e = NULL;
    int rc = experiment_get(c, v->experiment, &e, err);
    if (rc == 0)
        rc = ask_reports(c, v, err);
    const json_t *profiling = rc == 0 ? json_path(e, "config.profiling") : NULL;
    v->on = json_flag(profiling, "enabled", false);
    v->first_batch = json_int(profiling, "begin_on_batch", 0);
    if (rc < 0 || v->by_reports)
        return rc;
    char *when det_cleanup(freep) = profile_when(v->first_batch, v->since);
    if (v->on && v->live)
        return det_fail(err, DET_ENOENT, "trial %" PRId64 " has no measurements yet: %s", v->trial,
                        when);
    return det_fail(err, DET_ENOENT, "trial %" PRId64 " has no measurements: %s", v->trial,
                    v->on ? "it ended before the batch with which they begin, or is a command that "
                            "reports none"
                          : "profiling is off; `profiling: {enabled: true}` in the configuration "
                            "(--config profiling.enabled=true) turns it on");
}

/* ---- showing ---- */

static double share_of_span(const struct view *v, double seconds)
{
    return v->span.seconds > 0 ? seconds / v->span.seconds : 0;
}

static void print_head(const struct view *v)
{
    const struct profile_sum speed = profile_sum(profile_find(&v->p, "samples_per_second")),
                             waits = profile_sum(profile_find(&v->p, "dataloader_next"));
    printf("trial %" PRId64 " of experiment %" PRId64 ": %s s measured%s, batches %" PRId64
           " to %" PRId64 "\n",
           v->trial, v->experiment, show_number(v->span.seconds), v->live ? " so far" : "",
           v->span.first, v->span.last);
    if (speed.n > 0)
        printf("  throughput  %s records/s in the median batch, from %s to %s\n",
               show_number(speed.median), show_number(speed.least), show_number(speed.most));
    if (waits.n > 0)
        printf("  loader      %zu of %zu batches waited for data longer than a batch trains "
               "(%s s): %s s in all, %s%%\n",
               v->stalls.n, waits.n, show_number(v->stalls.limit), show_number(v->stalls.seconds),
               show_number(100 * share_of_span(v, v->stalls.seconds)));
    putchar('\n');
}

static void add_share(struct table *t, double of)
{
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++)
        bar[i] = i < of * BAR - 0.5 ? '#' : '.';
    bar[BAR] = '\0';
    table_cell(t, "%s%%", show_number(100 * of));
    table_cell(t, "%s", bar);
}

static void phase_row(struct table *t, const struct view *v, const struct profile_series *s,
                      bool is_part)
{
    const struct profile_sum sum = profile_sum(s);
    table_cell(t, "%s%s", is_part ? "  " : "", s->name);
    add_share(t, share_of_span(v, sum.total));
    table_cell(t, "%zu", sum.n);
    table_cell(t, "%s", show_number(sum.total));
    table_cell(t, "%s", show_number(sum.median));
    table_cell(t, "%s", show_number(sum.p99));
    table_cell(t, "%s", show_number(sum.most));
    table_cell(t, "%" PRId64, sum.most_batch);
}

static int by_total(const void *x, const void *y)
{
    const struct profile_series *const *a = x, *const *b = y;
    double left = profile_sum(*a).total, right = profile_sum(*b).total;
    return (left < right) - (left > right);
}

/* Those that are parts of `within` (NULL: of the loop itself), the longest first. */
static void phase_rows(struct table *t, const struct view *v, const char *within)
{
    VEC(const struct profile_series *) list = {0};
    for (size_t i = 0; i < v->p.series.n; i++) {
        const struct profile_series *s = &v->p.series.v[i];
        const char *whole = profile_within(&v->p, s->name);
        bool is_one = within ? whole && strcmp(whole, within) == 0 : !whole;
        if (s->kind == PROFILE_TIMING && is_one)
            vec_push(&list, s);
    }
    if (list.n > 0)
        qsort(list.v, list.n, sizeof *list.v, by_total);
    for (size_t i = 0; i < list.n; i++) {
        phase_row(t, v, list.v[i], within != NULL);
        if (!within)
            phase_rows(t, v, list.v[i]->name);
    }
    vec_free(&list);
}

static void print_phases(const struct view *v)
{
    static const char *const heads[] = {"PART OF THE LOOP", ">SHARE",     "",
                                        ">TIMES",           ">TOTAL s",   ">MEDIAN s",
                                        ">99% s",           ">LONGEST s", ">AT BATCH"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    phase_rows(t, v, NULL);
    table_print(t, "no durations are known");
}

/* A host of one name without one of its GPUs is its own row. */
static void print_hosts(const struct view *v)
{
    static const char *const heads[] = {"HOST",  "GPU",     "MEASURED", "UNIT",
                                        ">MEAN", ">LOWEST", ">HIGHEST"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < v->p.series.n; i++) {
        const struct profile_series *s = &v->p.series.v[i];
        const struct profile_sum sum = profile_sum(s);
        if (s->kind != PROFILE_SYSTEM || sum.n == 0)
            continue;
        table_cell(t, "%s", s->agent);
        table_cell(t, "%s", s->gpu);
        table_cell(t, "%s", s->name);
        table_cell(t, "%s", profile_unit(s));
        table_cell(t, "%s", show_number(sum.mean));
        table_cell(t, "%s", show_number(sum.least));
        table_cell(t, "%s", show_number(sum.most));
    }
    printf("\n");
    table_print(t, "nothing of its hosts was measured");
}

static const char *const kinds[] = {"host", "part of the loop", "throughput"};

static void print_csv(const struct view *v)
{
    static const char *const heads[] = {"KIND",   "NAME",    "HOST",    "GPU",    "UNIT",
                                        "TIMES",  "TOTAL",   "MEAN",    "MEDIAN", "99%",
                                        "LOWEST", "HIGHEST", "AT BATCH"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < v->p.series.n; i++) {
        const struct profile_series *s = &v->p.series.v[i];
        const struct profile_sum sum = profile_sum(s);
        const double values[] = {sum.total, sum.mean, sum.median, sum.p99, sum.least, sum.most};
        table_cell(t, "%s", kinds[s->kind]);
        table_cell(t, "%s", s->name);
        table_cell(t, "%s", s->agent);
        table_cell(t, "%s", s->gpu);
        table_cell(t, "%s", profile_unit(s));
        table_cell(t, "%zu", sum.n);
        for (size_t k = 0; k < DET_ARRAY_LEN(values); k++)
            table_cell(t, "%.17g", values[k]);
        table_cell(t, "%" PRId64, sum.most_batch);
    }
    table_print(t, "");
}

static json_t *series_json(const struct view *v, const struct profile_series *s)
{
    const struct profile_sum sum = profile_sum(s);
    json_t *j = json_make("{s:s,s:s,s:s,s:s,s:s,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:I}", "kind",
                          kinds[s->kind], "name", s->name, "host", s->agent, "gpu", s->gpu, "unit",
                          profile_unit(s), "times", (json_int_t)sum.n, "total", sum.total, "mean",
                          sum.mean, "median", sum.median, "p99", sum.p99, "lowest", sum.least,
                          "highest", sum.most, "atBatch", (json_int_t)sum.most_batch);
    const char *within = profile_within(&v->p, s->name);
    if (s->kind != PROFILE_TIMING)
        return j;
    json_set(j, "share", json_real(share_of_span(v, sum.total)));
    json_set(j, "within", within ? json_string(within) : json_null());
    return j;
}

static json_t *view_json(const struct view *v)
{
    json_t *list = json_array();
    for (size_t i = 0; i < v->p.series.n; i++)
        json_array_append_new(list, series_json(v, &v->p.series.v[i]));
    return json_make("{s:I,s:I,s:b,s:I,s:I,s:f,s:{s:I,s:f,s:f},s:o}", "trialId",
                     (json_int_t)v->trial, "experimentId", (json_int_t)v->experiment, "live",
                     (int)v->live, "firstBatch", (json_int_t)v->span.first, "lastBatch",
                     (json_int_t)v->span.last, "seconds", v->span.seconds, "stalls", "batches",
                     (json_int_t)v->stalls.n, "longerThan", v->stalls.limit, "seconds",
                     v->stalls.seconds, "series", list);
}

static void print_reports(const struct view *v)
{
    const struct profile_sum speed = profile_sum(&v->p.series.v[0]);
    const bool soon = v->on && v->live;
    char *when det_cleanup(freep) = profile_when(v->first_batch, v->since);
    const char *none = v->on ? "no measurements" : "not profiled";
    printf("trial %" PRId64 " of experiment %" PRId64 ": %s; by its reports, batches "
           "%" PRId64 " to %" PRId64 " in %s s\n",
           v->trial, v->experiment, soon ? when : none, v->span.first, v->span.last,
           show_number(v->span.seconds));
    printf("  throughput  %s batches/s in the median, from %s to %s (at batch %" PRId64 ")\n\n",
           show_number(speed.median), show_number(speed.least), show_number(speed.most),
           speed.most_batch);
    if (!v->on)
        printf(
            "`profiling: {enabled: true}` in the configuration (--config profiling.enabled=true) "
            "tells where its time goes.\n");
}

static void show_view(struct cli *c, const struct view *v)
{
    JSON_OWN j = c->json ? view_json(v) : NULL;
    if (cli_print_json(c, j))
        return;
    if (table_is_csv()) {
        print_csv(v);
        return;
    }
    if (v->by_reports) {
        print_reports(v);
        return;
    }
    print_head(v);
    print_phases(v);
    print_hosts(v);
}

int trial_profile(struct cli *c, struct det_err *err)
{
    struct view v = {0};
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "trial", &v.trial, err) < 0)
        return CLI_USAGE;
    int rc = cli_get(c, &answer, err, "/trials/%" PRId64, v.trial);
    const json_t *trial = json_obj(answer, "trial");
    v.experiment = json_int(trial, "experimentId", 0);
    v.live = rc == 0 && !has_ended(trial);
    if (rc == 0)
        rc = ask_series(c, &v, err);
    if (rc == 0 && v.p.series.n == 0)
        rc = explain_none(c, &v, err);
    if (rc == 0)
        show_view(c, &v);
    profile_finish(&v.p);
    return rc < 0 ? CLI_FAILED : 0;
}
