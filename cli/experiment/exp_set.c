/* det experiment set: one part of a running or finished experiment's configuration. */
#include "checkpoint.h"
#include "experiment.h"
#include "near.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    int64_t experiment_best, trial_best, trial_latest;
    bool yes;
} o = {-1, -1, -1, false};

const struct opt experiment_set_opts[] = {
    {"save-experiment-best", 0, OPT_INT, &o.experiment_best, "N",
     "gc-policy: keep the N best of the experiment"},
    {"save-trial-best", 0, OPT_INT, &o.trial_best, "N", "gc-policy: keep the N best of each trial"},
    {"save-trial-latest", 0, OPT_INT, &o.trial_latest, "N",
     "gc-policy: keep the N latest of each trial"},
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "gc-policy: do not show and ask"},
    {0},
};

static int patch_part(struct cli *c, int64_t id, const char *part, json_t *value,
                      struct det_err *err)
{
    char path[64];
    snprintf(path, sizeof path, "/experiments/%" PRId64, id);
    JSON_OWN body = json_make("{s:I}", "id", (json_int_t)id);
    json_set(body, part, value);
    if (cli_call(c, "PATCH", path, body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "experiment %" PRId64 ": %s set\n", id, cli_arg(c, 0));
    return 0;
}

/* Shows what the policy would delete, and asks. */
static int preview_deletion(struct cli *c, int64_t id, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body =
        json_make("{s:I,s:b,s:I,s:I,s:I}", "experimentId", (json_int_t)id, "dryRun", 1,
                  "saveExperimentBest", (json_int_t)o.experiment_best, "saveTrialBest",
                  (json_int_t)o.trial_best, "saveTrialLatest", (json_int_t)o.trial_latest);
    if (cli_call(c, "POST", "/checkpoints/gc", body, &answer, err) < 0)
        return CLI_FAILED;
    checkpoint_show_collection(answer, false);
    return cli_confirmed("Change the policy?", "changed", err) ? 0 : CLI_FAILED;
}

static int set_gc_policy(struct cli *c, int64_t id, struct det_err *err)
{
    if (o.experiment_best < 0 || o.trial_best < 0 || o.trial_latest < 0) {
        det_fail(err, DET_EINVAL,
                 "gc-policy needs --save-experiment-best, --save-trial-best and "
                 "--save-trial-latest, none of them negative");
        return CLI_USAGE;
    }
    if (!o.yes && preview_deletion(c, id, err) != 0)
        return CLI_FAILED;
    return patch_part(c, id, "checkpointStorage",
                      json_make("{s:I,s:I,s:I}", "saveExperimentBest",
                                (json_int_t)o.experiment_best, "saveTrialBest",
                                (json_int_t)o.trial_best, "saveTrialLatest",
                                (json_int_t)o.trial_latest),
                      err);
}

static int set_resource(struct cli *c, int64_t id, const char *key, struct det_err *err)
{
    const char *text = cli_arg(c, 2) ? cli_arg(c, 2) : "";
    bool weight = strcmp(key, "weight") == 0;
    bool none = strcmp(text, "none") == 0 && strcmp(key, "maxSlots") == 0;
    json_t *value = none ? json_integer(-1) : weight ? cli_number(text) : cli_whole(text);
    if (!value) {
        det_fail(err, DET_EINVAL, "%s needs a %snumber, as in  det experiment set %s %" PRId64 " 2",
                 cli_arg(c, 0), weight ? "" : "whole ", cli_arg(c, 0), id);
        return CLI_USAGE;
    }
    JSON_OWN part = json_object();
    json_set(part, key, value);
    return patch_part(c, id, "resources", json_incref(part), err);
}

static int set_text(struct cli *c, int64_t id, const char *what, struct det_err *err)
{
    if (cli_arg(c, 2))
        return patch_part(c, id, what, json_string(cli_arg(c, 2)), err);
    det_fail(err, DET_EINVAL, "%s needs a text, as in  det experiment set %s %" PRId64 " \"a %s\"",
             what, what, id, what);
    return CLI_USAGE;
}

int experiment_label(struct cli *c, struct det_err *err)
{
    const char *what = cli_arg(c, 0);
    int64_t id;
    bool add = strcmp(what, "add") == 0;
    if (!add && strcmp(what, "remove") != 0) {
        det_fail(err, DET_EINVAL,
                 "'%s': labels are added or removed:  det experiment label add 1 x", what);
        return CLI_USAGE;
    }
    if (cli_arg_id(c, 1, "experiment", &id, err) < 0)
        return CLI_USAGE;
    char *label det_cleanup(freep) = cli_escaped(cli_arg(c, 2));
    char *path det_cleanup(freep) = det_asprintf("/experiments/%" PRId64 "/labels/%s", id, label);
    JSON_OWN answer = NULL;
    if (cli_call(c, add ? "PUT" : "DELETE", path, NULL, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *labels = json_arr(answer, "labels");
    char *text det_cleanup(freep) = labels ? json_text(labels) : det_strdup("[]");
    fprintf(stderr, "experiment %" PRId64 ": labels %s\n", id, text);
    return 0;
}

int experiment_set(struct cli *c, struct det_err *err)
{
    static const char *const names[] = {"gc-policy", "max-slots", "weight",
                                        "priority",  "name",      "description"};
    static const char *const keys[] = {NULL, "maxSlots", "weight", "priority", NULL, NULL};
    const char *what = cli_arg(c, 0);
    int64_t id;
    if (cli_arg_id(c, 1, "experiment", &id, err) < 0)
        return CLI_USAGE;
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++)
        if (strcmp(what, names[i]) == 0)
            return i == 0    ? set_gc_policy(c, id, err)
                   : keys[i] ? set_resource(c, id, keys[i], err)
                             : set_text(c, id, names[i], err);
    const char *near = near_name(what, names, DET_ARRAY_LEN(names));
    det_fail(err, DET_EINVAL,
             "'%s' cannot be set; gc-policy, max-slots, weight, priority, name and description "
             "can%s%s",
             what, near ? "; did you mean " : "", near ? near : "");
    return CLI_USAGE;
}
