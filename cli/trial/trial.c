/* det trial */
#include "checkpoint.h"
#include "cli.h"
#include "curves.h"
#include "exp_trials.h"
#include "experiment.h"
#include "logs.h"
#include "show.h"
#include "table.h"
#include "trial.h"
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool metrics;
    int64_t limit, offset;
} o = {.limit = 1000};

static void workload_row(struct table *t, const json_t *w)
{
    static const char *const kinds[] = {"training", "validation", "checkpoint"};
    for (size_t k = 0; k < DET_ARRAY_LEN(kinds); k++) {
        const json_t *x = json_obj(w, kinds[k]);
        if (!x)
            continue;
        char *what det_cleanup(freep) = k == 2 ? det_strdup(json_str(x, "uuid", ""))
                                               : show_metrics(json_path(x, "metrics.avgMetrics"));
        table_cell(t, "%" PRId64, json_int(x, "totalBatches", 0));
        table_cell(t, "%s", json_str(x, "group", kinds[k]));
        table_cell(t, "%s", show_time(json_str(x, "endTime", NULL)));
        table_cell(t, "%s", what);
    }
}

static bool is_stopped(const json_t *why)
{
    return strcmp(json_str(json_obj(why, "search"), "state", ""), "STOPPED") == 0;
}

/* Why it failed, was ended, or waits. */
static void print_reason(struct cli *c, const json_t *trial, const json_t *why)
{
    bool failed = strcmp(json_str(trial, "state", ""), "STATE_ERROR") == 0;
    char *text det_cleanup(freep) = failed ? trial_reason(c, json_int(trial, "id", 0)) : NULL;
    const char *said = json_str(why, "text", "");
    bool known =
        strcmp(json_str(why, "reason", "ENDED"), "ENDED") != 0 ||
        strncmp(said, "it ended itself", 15) == 0; /* of hyperparameters that are invalid */
    if (text)
        printf("  reason           %s\n", text);
    else if (known || failed)
        printf("  reason           %s\n", said);
}

static void print_trial(struct cli *c, const json_t *trial)
{
    struct det_err err;
    JSON_OWN why = NULL;
    char *hp det_cleanup(freep) = show_hparams(json_object_get(trial, "hparams"), NULL);
    cli_get(c, &why, &err, "/trials/%" PRId64 "/why", json_int(trial, "id", 0));
    printf("trial %" PRId64 " of experiment %" PRId64 "\n", json_int(trial, "id", 0),
           json_int(trial, "experimentId", 0));
    printf("  state            %s%s\n", show_state(json_str(trial, "state", "")),
           is_stopped(why) ? ", stopped by the searcher" : "");
    print_reason(c, trial, why);
    printf("  hyperparameters  %s\n", hp);
    printf("  batches          %" PRId64 "\n", json_int(trial, "totalBatchesProcessed", 0));
    printf("  restarts         %" PRId64 "\n", json_int(trial, "restarts", 0));
    printf("  started          %s\n", show_time(json_str(trial, "startTime", NULL)));
    printf("  ended            %s\n\n", show_time(json_str(trial, "endTime", NULL)));
}

static void print_workloads(const json_t *work)
{
    static const char *const heads[] = {">BATCHES", "WHAT", "TIME", "VALUES"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *w;
    json_array_foreach(json_arr(work, "workloads"), i, w) workload_row(t, w);
    table_print(t, "nothing reported yet");
    int64_t all = json_int(json_object_get(work, "pagination"), "total", 0);
    int64_t end = o.offset + (int64_t)json_array_size(json_arr(work, "workloads"));
    if (all > end)
        fprintf(stderr, "%" PRId64 " more reports follow: --offset %" PRId64 "\n", all - end, end);
}

static int describe_trial(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    JSON_OWN work = NULL;
    if (cli_arg_id(c, 0, "trial", &id, err) < 0)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "/trials/%" PRId64, id) < 0 ||
        cli_get(c, &work, err, "/trials/%" PRId64 "/workloads?limit=%" PRId64 "&offset=%" PRId64,
                id, o.limit, o.offset) < 0)
        return CLI_FAILED;
    json_t *trial = json_obj(answer, "trial");
    if (c->json) {
        json_set(trial, "workloads", json_incref(json_object_get(work, "workloads")));
        cli_print_json(c, trial);
        return 0;
    }
    const bool csv = table_is_csv(); /* one table, for programs */
    if (!csv)
        print_trial(c, trial);
    if (o.metrics) {
        JSON_OWN one = json_make("[O]", trial);
        trials_print_metrics(one);
    }
    if (o.metrics && !csv)
        putchar('\n');
    if (!o.metrics || !csv)
        print_workloads(work);
    return 0;
}

static int print_logs(struct cli *c, struct det_err *err)
{
    int64_t id;
    if (cli_arg_id(c, 0, "trial", &id, err) < 0)
        return CLI_USAGE;
    return logs_print_trial(c, id, err);
}

static int kill_trial(struct cli *c, struct det_err *err)
{
    int64_t id;
    if (cli_arg_id(c, 0, "trial", &id, err) < 0)
        return CLI_USAGE;
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/trials/%" PRId64, id) < 0)
        return CLI_FAILED;
    const json_t *trial = json_obj(answer, "trial");
    if (has_ended(trial)) {
        fprintf(stderr, "trial %" PRId64 " has ended before: %s\n", id,
                show_state(json_str(trial, "state", "")));
        return 0;
    }
    char *path det_cleanup(freep) = det_asprintf("/trials/%" PRId64 "/kill", id);
    if (cli_call(c, "POST", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "trial %" PRId64 " is being killed\n", id);
    return 0;
}

static void timeline_row(struct table *t, const json_t *e, double span)
{
    enum { BAR = 24 };
    double at = json_num(e, "offset", 0), took = json_num(e, "duration", -1);
    bool open = json_flag(e, "ongoing", false);
    /* what has a duration of its own ended at its time; what lasts began then */
    const char *kind = json_str(e, "kind", "");
    bool began = open || strcmp(kind, "queued") == 0 || strcmp(kind, "placed") == 0 ||
                 strcmp(kind, "kill") == 0 || strcmp(kind, "preempted") == 0;
    double from = began || took < 0 ? at : at - took, to = took < 0 ? from : from + took;
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++)
        bar[i] = from <= span * (i + 1) / BAR && to >= span * i / BAR ? '#' : '.';
    bar[BAR] = '\0';
    table_cell(t, "%" PRId64, json_int(e, "runId", 0));
    table_cell(t, "%.3f s", at);
    table_cell(t, "%s", kind);
    if (took < 0)
        table_cell(t, "%s", "");
    else
        table_cell(t, "%.3f s%s", took, open ? " so far" : "");
    table_cell(t, "%s", span > 0 ? bar : "");
    table_cell(t, "%s", json_str(e, "detail", ""));
}

static int show_timeline(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">RUN", ">AT", "WHAT", ">TOOK", "", "DETAIL"};
    int64_t id;
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "trial", &id, err) < 0)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "/trials/%" PRId64 "/timeline", id) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    const json_t *list = json_arr(answer, "events");
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    double span = 0;
    size_t i;
    json_t *e;
    json_array_foreach((json_t *)list, i, e)
    {
        double end = json_num(e, "offset", 0);
        if (json_flag(e, "ongoing", false))
            end += json_num(e, "duration", 0);
        span = end > span ? end : span;
    }
    json_array_foreach((json_t *)list, i, e) timeline_row(t, e, span);
    table_print(t, "nothing has happened to it yet");
    return 0;
}

static const struct opt describe_opts[] = {
    {"metrics", 0, OPT_FLAG, &o.metrics, NULL, "the summary of each metric too"},
    {"metrics-summary", 0, OPT_FLAG, &o.metrics, NULL, "the same"},
    {"limit", 0, OPT_COUNT, &o.limit, "N", "at most N reports (default 1000)"},
    {"offset", 0, OPT_INT, &o.offset, "N", "skip the first N"},
    {0},
};
static const struct verb verbs[] = {
    {"describe", "d", "ID", "one trial, its metrics and checkpoints", describe_opts,
     describe_trial},
    {"logs", NULL, "ID", "its log", logs_opts, print_logs},
    {"timeline", "tl", "ID", "what happened to it, and how long each thing took", NULL,
     show_timeline},
    {"watch", NULL, "ID", "its progress, metrics and curve on a screen, as they come", watch_opts,
     trial_watch},
    {"download", NULL, "ID", "copy the files of its best, its latest or another checkpoint here",
     trial_download_opts, trial_download},
    {"plot", NULL, "ID...", "curves of a metric, in characters or as a picture", trial_plot_opts,
     trial_plot},
    {"profile", NULL, "ID", "where the time of its batches went, and what its hosts did", NULL,
     trial_profile},
    {"stacks", NULL, "ID", "where its ranks are now, in Python and in C; it goes on", NULL,
     trial_stacks},
    {"kill", NULL, "ID", "end it; the experiment goes on", NULL, kill_trial},
    {0},
};

const struct noun noun_trial = {"trial", "t", NULL, "trials: look, read the log, end", verbs};
