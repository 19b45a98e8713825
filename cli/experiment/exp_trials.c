/* det experiment list-trials */
#include "exp_trials.h"

#include "experiment.h"
#include "show.h"
#include "table.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define USUAL "trial,state,hparams,batches,best,restarts,duration"
#define SHORT "trial,state,hparams,batches,best,duration" /* where there were no restarts */

enum { NARROW = 100 }; /* columns of a screen */

static struct {
    const char *sort, *columns;
    int64_t limit, offset;
} o = {.sort = "best"};

/* ---- columns ---- */

struct column {
    const char *name, *head, *path;
};
static const struct column known[] = {
    {"trial", "TRIAL", "id"},
    {"state", "STATE", "state"},
    {"hparams", "HYPERPARAMETERS", "hparams"},
    {"batches", ">BATCHES", "totalBatchesProcessed"},
    {"best", ">BEST %s", NULL},
    {"latest", ">LATEST %s", NULL},
    {"best-at", ">BEST AT", "bestValidation.totalBatches"},
    {"checkpoint", "BEST CHECKPOINT", "bestCheckpoint.uuid"},
    {"restarts", ">RESTARTS", "restarts"},
    {"duration", ">DURATION", NULL},
    {"started", "STARTED", "startTime"},
    {"ended", "ENDED", "endTime"},
    {"task", "TASK", "taskId"},
    {"stopped", "STOPPED BY THE SEARCHER", "stopped"},
};

static const struct column *find_column(const char *name)
{
    for (size_t i = 0; i < DET_ARRAY_LEN(known); i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    return NULL;
}

static const json_t *metric_of(const json_t *trial, const char *where, const char *metric)
{
    return metric ? json_object_get(json_path(json_obj(trial, where), "metrics.avgMetrics"), metric)
                  : NULL;
}

const json_t *trials_value(const json_t *trial, const char *name, const struct trials_judge *by)
{
    const struct column *column = find_column(name);
    const json_t *v = NULL;
    if (strcmp(name, "best") == 0)
        v = metric_of(trial, "bestValidation", by->metric);
    else if (strcmp(name, "latest") == 0)
        v = metric_of(trial, "latestValidation", by->metric);
    else if (column && column->path)
        v = json_path(trial, column->path);
    else if (!column && !(v = json_path(json_obj(trial, "hparams"), name)) &&
             !(v = metric_of(trial, "bestValidation", name)))
        v = json_object_get(json_object_get(json_path(trial, "summaryMetrics.avg_metrics"), name),
                            "last");
    return json_is_null(v) ? NULL : v;
}

/* ---- order ---- */

struct ranked {
    json_t *trial, *value;
    bool down;
};

/* What a column shows is not always what it is sorted by. New reference; NULL: none. */
static json_t *sort_value(const json_t *trial, const char *key, const struct trials_judge *by)
{
    double seconds = 0;
    if (strcmp(key, "duration") == 0)
        return show_seconds(json_str(trial, "startTime", NULL), json_str(trial, "endTime", NULL),
                            &seconds)
                   ? json_real(seconds)
                   : NULL;
    return json_incref((json_t *)trials_value(trial, key, by));
}

static int cmp_values(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return (x > y) - (x < y);
    }
    if (json_is_string(a) && json_is_string(b))
        return strcmp(json_string_value(a), json_string_value(b));
    return json_is_number(b) - json_is_number(a); /* "NaN" and its like after numbers */
}

static int cmp_ranked(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    int d = !a->value - !b->value;
    if (d == 0 && a->value && json_is_number(a->value) != json_is_number(b->value))
        d = cmp_values(a->value, b->value);
    else if (d == 0 && a->value)
        d = a->down ? cmp_values(b->value, a->value) : cmp_values(a->value, b->value);
    if (d != 0)
        return d;
    int64_t i = json_int(a->trial, "id", 0), k = json_int(b->trial, "id", 0);
    return (i > k) - (i < k);
}

void trials_sort(json_t *trials, const char *key, const struct trials_judge *by)
{
    size_t n = json_array_size(trials);
    struct ranked *r det_cleanup(freep) = det_reallocarray(NULL, n + 1, sizeof *r);
    bool turned = *key == '-', judged;
    key += turned;
    judged = strcmp(key, "best") == 0 || strcmp(key, "latest") == 0;
    for (size_t i = 0; i < n; i++) {
        json_t *t = json_incref(json_array_get(trials, i));
        r[i] =
            (struct ranked){t, sort_value(t, key, by), turned != (judged && by->larger_is_better)};
    }
    qsort(r, n, sizeof *r, cmp_ranked);
    for (size_t i = 0; i < n; i++) {
        json_decref(r[i].value);
        json_array_set_new(trials, i, r[i].trial);
    }
}

/* ---- the table ---- */

int64_t trials_best(const json_t *trials, const struct trials_judge *by)
{
    JSON_OWN copy = json_copy((json_t *)trials);
    trials_sort(copy, "best", by);
    const json_t *first = json_array_get(copy, 0);
    return first && json_is_number(trials_value(first, "best", by)) ? json_int(first, "id", 0) : 0;
}

static void cell_of(struct table *t, const json_t *trial, const char *name,
                    const struct trials_judge *by, const json_t *common)
{
    const json_t *v = trials_value(trial, name, by);
    char *text det_cleanup(freep) = NULL;
    if (strcmp(name, "duration") == 0)
        text = det_strdup(
            show_duration(json_str(trial, "startTime", NULL), json_str(trial, "endTime", NULL)));
    else if (strcmp(name, "state") == 0)
        text = det_strdup(show_state(json_string_value(v)));
    else if (table_is_csv() && v && !json_is_string(v))
        text = json_text(v);
    else if (strcmp(name, "hparams") == 0)
        text = show_hparams(v, common);
    else if (strcmp(name, "started") == 0 || strcmp(name, "ended") == 0)
        text = det_strdup(show_time(json_string_value(v)));
    else
        text = show_value(v);
    table_cell(t, "%s", text);
}

struct columns {
    char *text;
    const char *name[64];
    char *head[64];
    size_t n;
};

static void columns_read(struct columns *k, const char *list, const struct trials_judge *by)
{
    char *save = NULL;
    k->text = det_strdup(list ? list : USUAL);
    for (char *p = strtok_r(k->text, ",", &save); p && k->n < DET_ARRAY_LEN(k->name);
         p = strtok_r(NULL, ",", &save)) {
        const struct column *column = find_column(p);
        const char *head = column ? column->head : p, *hole = strstr(head, "%s");
        k->name[k->n] = p;
        k->head[k->n++] =
            !column ? det_asprintf(">%s", p)
            : hole  ? det_asprintf("%.*s%s", (int)(hole - head), head, by->metric ? by->metric : "")
                    : det_strdup(head);
    }
}

static void columns_finish(struct columns *k)
{
    for (size_t i = 0; i < k->n; i++)
        free(k->head[i]);
    free(k->text);
}

/* In a rung's answer: ID -> "after rung 1 of 2", of those that the searcher stopped there. */
static void note_stopped(json_t *found, const json_t *bracket)
{
    const json_t *rungs = json_arr(bracket, "rungs");
    size_t i, k;
    json_t *rung, *t;
    json_array_foreach((json_t *)rungs, i, rung)
        json_array_foreach((json_t *)json_arr(rung, "trials"), k, t)
    {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, json_int(t, "trialId", 0));
        if (strcmp(json_str(t, "state", ""), "STOPPED") == 0)
            json_set(found, id,
                     json_sprintf("after rung %zu of %zu", i + 1, json_array_size(rungs)));
    }
}

void trials_note_stopped(json_t *trials, const json_t *rungs)
{
    JSON_OWN found = json_object();
    size_t i;
    json_t *bracket, *t;
    json_array_foreach((json_t *)json_arr(rungs, "brackets"), i, bracket)
        note_stopped(found, bracket);
    json_array_foreach(trials, i, t)
    {
        char id[24];
        snprintf(id, sizeof id, "%" PRId64, json_int(t, "id", 0));
        json_t *where = json_object_get(found, id);
        if (where && strcmp(json_str(t, "state", ""), "STATE_COMPLETED") == 0)
            json_object_set(t, "stopped", where);
    }
}

const char *trials_mark(const json_t *trial, bool is_best)
{
    const json_t *v = json_obj(trial, "bestValidation"), *kept = json_obj(trial, "bestCheckpoint");
    bool same = json_int(v, "totalBatches", -1) == json_int(kept, "totalBatches", -2);
    if (is_best)
        return same ? "* best" : "* best, without a checkpoint";
    if (json_str(trial, "stopped", NULL))
        return "stopped by the searcher";
    return v && kept && !same ? "its best without a checkpoint" : "";
}

static bool has_marks(const json_t *trials, const struct trials_judge *by)
{
    size_t i;
    json_t *t;
    bool stopped = false;
    json_array_foreach((json_t *)trials, i, t) stopped |= json_str(t, "stopped", NULL) != NULL;
    return by->best_id != 0 || stopped;
}

/* 0: a pipe, in which lines may be as long as they are. */
static size_t columns_of_screen(void)
{
    struct winsize size = {0};
    bool known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    return known && size.ws_col > 20 ? size.ws_col : 0;
}

static bool has_restarts(const json_t *trials)
{
    size_t i;
    json_t *t;
    json_array_foreach((json_t *)trials, i, t) if (json_int(t, "restarts", 0) > 0) return true;
    return false;
}

/* What a row says of its trial stands behind it; programs read CSV, where nothing does. */
void trials_print(const json_t *trials, const char *list, const struct trials_judge *by)
{
    struct columns k = {0};
    const bool short_of_room = columns_of_screen() > 0 && columns_of_screen() <= NARROW;
    columns_read(&k, !list && short_of_room && !has_restarts(trials) ? SHORT : list, by);
    const char *heads[DET_ARRAY_LEN(k.name) + 1];
    for (size_t i = 0; i < k.n; i++)
        heads[i] = k.head[i];
    const bool marked = !table_is_csv() && has_marks(trials, by);
    heads[k.n] = "";
    struct table *t = table_create(heads, k.n + marked);
    size_t hparams = SIZE_MAX;
    JSON_OWN common = show_common_hparams(trials);
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)trials, i, trial)
    {
        for (size_t n = 0; n < k.n; n++)
            cell_of(t, trial, k.name[n], by, common);
        if (marked)
            table_cell(t, "%s", trials_mark(trial, json_int(trial, "id", 0) == by->best_id));
    }
    for (size_t n = 0; n < k.n; n++)
        hparams = strcmp(k.name[n], "hparams") == 0 ? n : hparams;
    if (hparams < k.n && columns_of_screen() > 0)
        table_fit(t, hparams, columns_of_screen());
    table_print(t, "no trials yet");
    columns_finish(&k);
}

/* ---- --metrics ---- */

static const char *group_name(const char *key)
{
    return strcmp(key, "avg_metrics") == 0          ? "training"
           : strcmp(key, "validation_metrics") == 0 ? "validation"
                                                    : key;
}

static void metric_row(struct table *t, const json_t *trial, const char *group, const char *name,
                       const json_t *m)
{
    static const char *const parts[] = {"last", "min", "max"};
    double n = json_num(m, "count", 0), sum = json_num(m, "sum", NAN);
    table_cell(t, "%" PRId64, json_int(trial, "id", 0));
    table_cell(t, "%s", group_name(group));
    table_cell(t, "%s", name);
    table_cell(t, "%.0f", n);
    for (size_t i = 0; i < DET_ARRAY_LEN(parts); i++) {
        char *text det_cleanup(freep) = show_value(json_object_get(m, parts[i]));
        table_cell(t, "%s", text);
    }
    JSON_OWN mean = n > 0 && isfinite(sum) ? json_double(sum / n) : NULL;
    table_cell(t, "%s", show_metric(mean));
}

void trials_print_metrics(const json_t *trials)
{
    static const char *const heads[] = {"TRIAL", "GROUP", "METRIC", ">REPORTS",
                                        ">LAST", ">MIN",  ">MAX",   ">MEAN"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *trial, *group, *m;
    const char *key, *name;
    json_array_foreach((json_t *)trials, i, trial)
        json_object_foreach(json_object_get(trial, "summaryMetrics"), key, group)
            json_object_foreach(group, name, m) metric_row(t, trial, key, name, m);
    table_print(t, "no metrics yet");
}

/* ---- the verb ---- */

static struct trials_judge judge_of(const json_t *experiment)
{
    const json_t *s = json_path(experiment, "config.searcher");
    return (struct trials_judge){.metric = json_str(s, "metric", NULL),
                                 .larger_is_better = !json_flag(s, "smaller_is_better", true)};
}

/* Only of searches that compare trials in rungs. The table is as good without. */
static void ask_stopped(struct cli *c, const json_t *experiment, json_t *trials)
{
    static const char *const equal[] = {"single", "random", "grid", "custom"};
    const char *searcher = json_str(experiment, "searcherType", "single");
    struct det_err err;
    JSON_OWN rungs = NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(equal); i++)
        if (strcmp(searcher, equal[i]) == 0)
            return;
    if (cli_get(c, &rungs, &err, "/experiments/%" PRId64 "/rungs?limit=1000000",
                json_int(experiment, "id", 0)) == 0)
        trials_note_stopped(trials, rungs);
}

void experiment_print_trials(struct cli *c, json_t *trials, const json_t *experiment)
{
    struct trials_judge by = judge_of(experiment);
    ask_stopped(c, experiment, trials);
    by.best_id = trials_best(trials, &by);
    trials_sort(trials, "best", &by);
    trials_print(trials, NULL, &by);
}

static void cut_page(json_t *trials)
{
    size_t n = json_array_size(trials), from = o.offset > 0 ? (size_t)o.offset : 0;
    size_t most = o.limit > 0 ? (size_t)o.limit : n;
    if (from + most < n) /* the end first: what is before stays where it is */
        for (size_t i = n; i-- > from + most;)
            json_array_remove(trials, i);
    for (size_t i = 0; i < from && i < n; i++)
        json_array_remove(trials, 0);
}

/* A name that no trial has a value of: most likely mistyped. */
static int check_name(const json_t *trials, const char *name, const struct trials_judge *by,
                      struct det_err *err)
{
    size_t i;
    json_t *t;
    if (find_column(name) || json_array_size(trials) == 0)
        return 0;
    json_array_foreach((json_t *)trials, i, t) if (trials_value(t, name, by)) return 0;
    struct buf names = BUF_INIT;
    for (i = 0; i < DET_ARRAY_LEN(known); i++)
        buf_addf(&names, "%s%s", i ? ", " : "", known[i].name);
    det_fail(err, DET_EINVAL,
             "no trial has a column, hyperparameter or metric '%s'; columns are %s", name,
             buf_str(&names));
    buf_finish(&names);
    return DET_EINVAL;
}

static int check_names(const json_t *trials, const struct trials_judge *by, struct det_err *err)
{
    struct columns k = {0};
    columns_read(&k, o.columns, by);
    int rc = check_name(trials, o.sort + (*o.sort == '-'), by, err);
    for (size_t i = 0; rc == 0 && i < k.n; i++)
        rc = check_name(trials, k.name[i], by, err);
    columns_finish(&k);
    return rc;
}

int experiment_trials(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    JSON_OWN e = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    if (experiment_get(c, id, &e, err) < 0 ||
        cli_get(c, &answer, err, "/experiments/%" PRId64 "/trials?limit=-1", id) < 0)
        return CLI_FAILED;
    json_t *trials = json_object_get(answer, "trials");
    struct trials_judge by = judge_of(e);
    if (!c->json) /* programs get the API's own answer */
        ask_stopped(c, e, trials);
    if (check_names(trials, &by, err) < 0)
        return CLI_USAGE;
    by.best_id = trials_best(trials, &by);
    trials_sort(trials, o.sort, &by);
    cut_page(trials);
    if (!cli_print_json(c, trials))
        trials_print(trials, o.columns, &by);
    return 0;
}

const struct opt experiment_trials_opts[] = {
    {"sort", 's', OPT_STR, &o.sort, "KEY",
     "best (default), trial, or any other column, hyperparameter or metric; -KEY the other way"},
    {"columns", 0, OPT_STR, &o.columns, "A,B",
     "of trial, state, hparams, batches, best, latest, best-at, checkpoint, restarts, duration, "
     "started, ended, task, stopped, a hyperparameter or a metric (default " USUAL ")"},
    {"limit", 0, OPT_COUNT, &o.limit, "N", "only the first N"},
    {"offset", 0, OPT_INT, &o.offset, "N", "without the first N"},
    {0},
};
