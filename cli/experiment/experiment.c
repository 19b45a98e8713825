/* det experiment: reading and changing. Creating is create.c, waiting is wait.c. */
#include "checkpoint.h"
#include "cli.h"
#include "exp_trials.h"
#include "experiment.h"
#include "logs.h"
#include "place.h"
#include "plain.h"
#include "show.h"
#include "table.h"
#include "watch.h"

#include "b64.h"
#include "fsx.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool all, yes, metrics;
    int64_t limit, offset, best;
    const char *output, *dir;
} o = {.limit = 200};

static int list_experiments(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    bool mine = !o.all && c->user;
    char *user det_cleanup(freep) = cli_escaped(mine ? c->user : "");
    if (cli_get(c, &answer, err, "/experiments?limit=%" PRId64 "&offset=%" PRId64 "%s%s%s", o.limit,
                o.offset, o.all ? "" : "&archived=false", mine ? "&users=" : "", user) < 0)
        return CLI_FAILED;
    experiment_print_list(c, json_object_get(answer, "experiments"));
    return 0;
}

static void print_experiment(const json_t *e)
{
    char *labels det_cleanup(freep) = json_text(json_object_get(e, "labels"));
    printf("experiment %" PRId64 "  %s\n", json_int(e, "id", 0), json_str(e, "name", ""));
    printf("  state        %s%s\n", show_state(json_str(e, "state", "")),
           json_flag(e, "archived", false) ? ", archived" : "");
    printf("  progress     %s\n", show_progress(json_object_get(e, "progress")));
    printf("  owner        %s\n", json_str(e, "username", ""));
    if (*json_str(e, "description", ""))
        printf("  description  %s\n", json_str(e, "description", ""));
    if (json_array_size(json_object_get(e, "labels")) > 0)
        printf("  labels       %s\n", labels);
    printf("  started      %s\n", show_time(json_str(e, "startTime", NULL)));
    printf("  ended        %s\n", show_time(json_str(e, "endTime", NULL)));
    printf("  searcher     %s, metric %s\n", json_str(e, "searcherType", ""),
           json_str(json_path(e, "config.searcher"), "metric", ""));
    if (json_flag(e, "unmanaged", false))
        printf("  runs         elsewhere (unmanaged): it has no slots here\n");
    else
        printf("  slots        %" PRId64 " per trial, pool %s\n",
               json_int(json_path(e, "config.resources"), "slots_per_trial", 1),
               json_str(e, "resourcePool", ""));
}

static int show_experiment(struct cli *c, json_t *e, json_t *trials)
{
    const bool csv = table_is_csv(); /* one table, for programs */
    char *why det_cleanup(freep) = csv ? NULL : experiment_reason(c, e);
    if (!csv)
        print_experiment(e);
    if (why)
        printf("  reason       %s\n", why);
    if (!csv)
        putchar('\n');
    if (!csv || !o.metrics)
        experiment_print_trials(c, trials, e);
    if (o.metrics && !csv)
        putchar('\n');
    if (o.metrics)
        trials_print_metrics(trials);
    return 0;
}

/* found: an array, to which JSON goes; else it is printed. */
static int describe_one(struct cli *c, int64_t id, json_t *found, struct det_err *err)
{
    JSON_OWN trials = NULL;
    JSON_OWN e = NULL;
    if (experiment_get(c, id, &e, err) < 0 ||
        cli_get(c, &trials, err, "/experiments/%" PRId64 "/trials?limit=-1", id) < 0)
        return CLI_FAILED;
    if (!c->json)
        return show_experiment(c, e, json_object_get(trials, "trials"));
    json_set(e, "trials", json_incref(json_object_get(trials, "trials")));
    json_array_append(found, e);
    return 0;
}

/* ID, or several with commas between, as people have it in their scripts. */
static int describe_experiment(struct cli *c, struct det_err *err)
{
    int64_t *ids det_cleanup(freep) = NULL;
    JSON_OWN found = json_array();
    size_t n;
    if (cli_arg_ids(c, 0, "experiment", &ids, &n, err) < 0)
        return CLI_USAGE;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && !c->json && !table_is_csv())
            putchar('\n');
        if (describe_one(c, ids[i], found, err) != 0)
            return CLI_FAILED;
    }
    if (c->json)
        cli_print_json(c, n == 1 ? json_array_get(found, 0) : found);
    return 0;
}

static void checkpoint_row(struct table *t, const json_t *cp, const char *metric)
{
    char *place det_cleanup(freep) = show_checkpoint_place(cp);
    const json_t *training = json_obj(cp, "training");
    const json_t *value =
        metric ? json_path(json_path(training, "validationMetrics.avgMetrics"), metric) : NULL;
    table_cell(t, "%" PRId64, json_int(training, "trialId", 0));
    table_cell(t, "%" PRId64, json_int(json_obj(cp, "metadata"), "steps_completed", 0));
    table_cell(t, "%s", show_state(json_str(cp, "state", "")));
    table_cell(t, "%s", show_metric(value));
    table_cell(t, "%s", json_str(cp, "uuid", ""));
    table_cell(t, "%s", place ? place : "");
}

/* Those that can be had come first, those whose files are gone last. */
static void add_checkpoints(struct table *t, const json_t *list, const char *metric)
{
    size_t i;
    json_t *cp;
    for (int gone = 0; gone <= 1; gone++)
        json_array_foreach(list, i, cp)
        {
            if ((strcmp(json_str(cp, "state", ""), "STATE_DELETED") == 0) == gone)
                checkpoint_row(t, cp, metric);
        }
}

static int list_checkpoints(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    JSON_OWN e = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    if (experiment_get(c, id, &e, err) < 0)
        return CLI_FAILED;
    const json_t *searcher = json_path(e, "config.searcher");
    const char *metric = json_str(searcher, "metric", NULL);
    const char *order =
        json_flag(searcher, "smaller_is_better", true) ? "ORDER_BY_ASC" : "ORDER_BY_DESC";
    char *best det_cleanup(freep) =
        o.best > 0 ? det_asprintf("?sortByAttr=SORT_BY_SEARCHER_METRIC&orderBy=%s&limit=%" PRId64
                                  "&states=STATE_COMPLETED",
                                  order, o.best)
                   : det_strdup("");
    if (cli_get(c, &answer, err, "/experiments/%" PRId64 "/checkpoints%s", id, best) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_object_get(answer, "checkpoints")))
        return 0;
    char *head det_cleanup(freep) = det_asprintf(">%s", metric ? metric : "METRIC");
    const char *const heads[] = {"TRIAL", ">BATCHES", "STATE", head, "UUID", "PLACE"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    add_checkpoints(t, json_arr(answer, "checkpoints"), metric);
    table_print(t, "no checkpoints");
    return 0;
}

static int show_config(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN e = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    if (experiment_get(c, id, &e, err) < 0)
        return CLI_FAILED;
    struct buf out = BUF_INIT;
    json_write_pretty(&out, json_object_get(e, "config"));
    puts(buf_str(&out));
    buf_finish(&out);
    return 0;
}

/* Says so; the master takes an end of what has ended for done. */
static bool had_ended(struct cli *c, int64_t id)
{
    JSON_OWN e = NULL;
    struct det_err err = {0};
    if (experiment_get(c, id, &e, &err) < 0 || !has_ended(e))
        return false;
    fprintf(stderr, "experiment %" PRId64 " has ended before: %s\n", id,
            show_state(json_str(e, "state", "")));
    return true;
}

/* POST /experiments/ID/<verb> for every ID given; says each, goes on after a failure. */
static int post_each(struct cli *c, const char *method, const char *verb, const char *done,
                     struct det_err *err)
{
    bool ends = strcmp(verb, "/cancel") == 0 || strcmp(verb, "/kill") == 0;
    int status = 0;
    for (size_t i = 0; i < c->args.n; i++) {
        int64_t id;
        if (cli_arg_id(c, i, "experiment", &id, err) < 0)
            return CLI_USAGE;
        if (ends && had_ended(c, id))
            continue;
        char *path det_cleanup(freep) = det_asprintf("/experiments/%" PRId64 "%s", id, verb);
        struct det_err one = {0};
        if (cli_call(c, method, path, NULL, NULL, &one) == 0) {
            fprintf(stderr, "experiment %" PRId64 " %s\n", id, done);
            continue;
        }
        if (status != 0)
            plain_say("det: ", err->text);
        det_fail(err, one.code, "experiment %" PRId64 ": %s", id, one.text);
        status = CLI_FAILED;
    }
    return status;
}

static int activate_experiments(struct cli *c, struct det_err *err)
{
    return post_each(c, "POST", "/activate", "activated", err);
}

static int pause_experiments(struct cli *c, struct det_err *err)
{
    return post_each(c, "POST", "/pause", "paused", err);
}

static int cancel_experiments(struct cli *c, struct det_err *err)
{
    return post_each(c, "POST", "/cancel", "is being canceled", err);
}

static int kill_experiments(struct cli *c, struct det_err *err)
{
    return post_each(c, "POST", "/kill", "is being killed", err);
}

static int archive_experiments(struct cli *c, struct det_err *err)
{
    return post_each(c, "POST", "/archive", "archived", err);
}

static int unarchive_experiments(struct cli *c, struct det_err *err)
{
    return post_each(c, "POST", "/unarchive", "unarchived", err);
}

/* Deleting cannot be undone, so a person is asked. */
static int delete_experiments(struct cli *c, struct det_err *err)
{
    char *question det_cleanup(freep) =
        det_asprintf("Delete %zu experiment%s with all metrics, logs and checkpoints?", c->args.n,
                     c->args.n == 1 ? "" : "s");
    if (!o.yes && !cli_confirmed(question, "deleted", err))
        return CLI_FAILED;
    return post_each(c, "DELETE", "", "is being deleted", err);
}

static int download_model_def(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "/experiments/%" PRId64 "/model_def", id) < 0)
        return CLI_FAILED;
    const char *b64 = json_str(answer, "b64Tgz", "");
    struct buf tgz = BUF_INIT;
    char *name det_cleanup(freep) = o.output
                                        ? det_strdup(o.output)
                                        : det_asprintf("%s%sexperiment_%" PRId64 "_model_def.tgz",
                                                       o.dir ? o.dir : "", o.dir ? "/" : "", id);
    int rc = b64_decode(&tgz, b64, strlen(b64), err);
    if (rc == 0)
        rc = fsx_write_atomic(AT_FDCWD, name, tgz.p, tgz.len, 0644, err);
    buf_finish(&tgz);
    if (rc < 0)
        return CLI_FAILED;
    printf("%s\n", name);
    return 0;
}

static int move_experiment(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN p = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    if (place_project(c, cli_arg(c, 1), cli_arg(c, 2), &p, err) < 0)
        return CLI_FAILED;
    JSON_OWN body = json_make("{s:I}", "destinationProjectId", (json_int_t)json_int(p, "id", 0));
    char *path det_cleanup(freep) = det_asprintf("/experiments/%" PRId64 "/move", id);
    if (cli_call(c, "POST", path, body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "experiment %" PRId64 " moved to project %s\n", id, json_str(p, "name", ""));
    return 0;
}

static int patch_key(struct cli *c, const char *key, struct det_err *err)
{
    int64_t id;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    JSON_OWN body = json_object();
    char *path det_cleanup(freep) = det_asprintf("/experiments/%" PRId64, id);
    json_set(body, "id", json_integer(id));
    json_set(body, key, json_string(cli_arg(c, 1)));
    return cli_call(c, "PATCH", path, body, NULL, err) < 0 ? CLI_FAILED : 0;
}

static int set_name(struct cli *c, struct det_err *err)
{
    return patch_key(c, "name", err);
}

static int set_description(struct cli *c, struct det_err *err)
{
    return patch_key(c, "description", err);
}

static const struct opt list_opts[] = {
    {"all", 'a', OPT_FLAG, &o.all, NULL, "archived ones and those of all users too"},
    {"limit", 0, OPT_INT, &o.limit, "N", "at most N (default 200)"},
    {"offset", 0, OPT_INT, &o.offset, "N", "skip the first N"},
    {0},
};
static const struct opt describe_opts[] = {
    {"metrics", 0, OPT_FLAG, &o.metrics, NULL, "the summary of each metric of each trial too"},
    {0},
};
static const struct opt best_opts[] = {
    {"best", 0, OPT_COUNT, &o.best, "N", "only the N best by the searcher's metric"},
    {0},
};
static const struct opt delete_opts[] = {
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};
static const struct opt download_opts[] = {
    {"output", 'o', OPT_STR, &o.output, "FILE", "where to (default experiment_ID_model_def.tgz)"},
    {"output-dir", 0, OPT_STR, &o.dir, "DIR", "the same name in that directory"},
    {0},
};

static const struct verb verbs[] = {
    {"create", "c", "CONFIG [DIR]", "submit an experiment", experiment_create_opts,
     experiment_create},
    {"list", "ls", "", "list experiments", list_opts, list_experiments},
    {"describe", "d", "ID[,ID...]", "experiments and their trials", describe_opts,
     describe_experiment},
    {"watch", NULL, "ID", "progress, metrics and curves of its trials on a screen, as they come",
     watch_opts, experiment_watch},
    {"wait", "w", "ID", "wait until it ended; exit 0 only if it completed", experiment_wait_opts,
     experiment_wait},
    {"logs", NULL, "ID", "the log of its first trial", logs_opts, logs_print_experiment},
    {"pause", NULL, "ID...", "checkpoint and leave the slots", NULL, pause_experiments},
    {"activate", "unpause", "ID...", "go on after a pause", NULL, activate_experiments},
    {"cancel", NULL, "ID...", "checkpoint and end", NULL, cancel_experiments},
    {"kill", NULL, "ID...", "end at once", NULL, kill_experiments},
    {"continue", NULL, "ID", "go on after the end", experiment_continue_opts, experiment_continue},
    {"archive", NULL, "ID...", "hide a finished one from lists", NULL, archive_experiments},
    {"unarchive", NULL, "ID...", "show it again", NULL, unarchive_experiments},
    {"move", NULL, "ID WORKSPACE PROJECT", "into another project", NULL, move_experiment},
    {"delete", NULL, "ID...", "remove it with all its data", delete_opts, delete_experiments},
    {"list-trials", "lt", "ID", "its trials, the best first", experiment_trials_opts,
     experiment_trials},
    {"list-checkpoints", "lc", "ID", "its checkpoints", best_opts, list_checkpoints},
    {"config", NULL, "ID", "its whole configuration as JSON", NULL, show_config},
    {"download", NULL, "ID", "copy the files of its best checkpoints here",
     experiment_download_opts, experiment_download},
    {"download-model-def", NULL, "ID", "its model definition as tar.gz", download_opts,
     download_model_def},
    {"set", NULL, "WHAT ID [VALUE]", "gc-policy, max-slots, weight, priority, name or description",
     experiment_set_opts, experiment_set},
    {"label", "l", "add|remove ID LABEL", "give it a label, or take one away", NULL,
     experiment_label},
    {"rungs", NULL, "ID", "the brackets of its search: who stands where, who went on",
     experiment_rungs_opts, experiment_rungs},
    {"replay", NULL, "ID", "play its search again from the log: the same?", NULL,
     experiment_replay},
    {"set-name", NULL, "ID NAME", "rename it", NULL, set_name},
    {"set-description", NULL, "ID TEXT", "describe it", NULL, set_description},
    {0},
};

const struct noun noun_experiment = {"experiment", "e", "exp",
                                     "experiments: submit, watch, pause, end", verbs};
