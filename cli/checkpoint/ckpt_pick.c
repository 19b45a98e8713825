/* det trial download, det experiment download: the checkpoints that a person means, by their
 * metric or their age, without their UUIDs. */
#include "checkpoint.h"
#include "experiment.h"
#include "show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool best, latest, quiet;
    const char *uuid, *output, *metric, *smaller;
    int64_t top;
} o = {.top = 1};

/* clang-format off */
#define COMMON_OPTS                                                                                \
    {"sort-by", 0, OPT_STR, &o.metric, "METRIC",                                                   \
     "the best by this validation metric (default: the searcher's)"},                              \
        {"smaller-is-better", 0, OPT_STR, &o.smaller, "true|false", "of --sort-by's metric"},      \
        {"mode", 0, OPT_STR, &checkpoint_mode, "MODE",                                             \
         "direct: from the store; master: through the master; auto: whichever works (default)"},   \
        {"quiet", 'q', OPT_FLAG, &o.quiet, NULL, "print the path only, as it does anyway"},        \
        {0},
/* clang-format on */

const struct opt trial_download_opts[] = {
    {"best", 0, OPT_FLAG, &o.best, NULL, "the one with the best validation"},
    {"latest", 0, OPT_FLAG, &o.latest, NULL, "the one of the most batches"},
    {"uuid", 0, OPT_STR, &o.uuid, "UUID", "this one"},
    {"output-dir", 'o', OPT_STR, &o.output, "DIR", "where to (default checkpoints/UUID)"},
    COMMON_OPTS};

const struct opt experiment_download_opts[] = {
    {"top-n", 0, OPT_COUNT, &o.top, "N", "the N best (default 1)"},
    {"output-dir", 'o', OPT_STR, &o.output, "DIR", "each into DIR/UUID (default checkpoints)"},
    COMMON_OPTS};

/* By which metric, and which end of it is the best. */
struct order {
    const char *metric;
    bool smaller;
};

static int order_of(const json_t *experiment, struct order *ret, struct det_err *err)
{
    const json_t *s = json_path(experiment, "config.searcher");
    *ret = (struct order){json_str(s, "metric", ""), json_flag(s, "smaller_is_better", true)};
    if (!o.metric && !o.smaller)
        return 0;
    if (!o.metric || !o.smaller)
        return det_fail(err, DET_EINVAL,
                        "--sort-by METRIC and --smaller-is-better true|false go together");
    bool yes = strcmp(o.smaller, "true") == 0;
    if (!yes && strcmp(o.smaller, "false") != 0)
        return det_fail(err, DET_EINVAL, "--smaller-is-better %s: say true or false", o.smaller);
    *ret = (struct order){o.metric, yes};
    return 0;
}

/* "sortByMetric=..." of those that have files. */
static char *query_of(const struct order *by, int64_t limit)
{
    char *metric det_cleanup(freep) = cli_escaped(by->metric);
    return det_asprintf("states=STATE_COMPLETED&sortByMetric=%s&orderBy=%s&limit=%" PRId64, metric,
                        by->smaller ? "ORDER_BY_ASC" : "ORDER_BY_DESC", limit);
}

/* Those without the metric come last: the first tells whether there is one at all. */
static bool has_metric(const json_t *cp, const struct order *by)
{
    const json_t *metrics = json_path(cp, "training.validationMetrics.avgMetrics");
    return json_is_number(json_object_get(metrics, by->metric));
}

static int check_choice(struct det_err *err)
{
    if (o.best + o.latest + (o.uuid != NULL) != 1)
        return det_fail(err, DET_EINVAL, "say which checkpoint: --best, --latest or --uuid UUID");
    return checkpoint_check_mode(err);
}

/* *ret: the checkpoint meant, a new reference. */
static int pick_checkpoint(struct cli *c, int64_t trial, const struct order *by, json_t **ret,
                           struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *query det_cleanup(freep) =
        o.best ? query_of(by, 1)
               : det_strdup("states=STATE_COMPLETED&sortByAttr=SORT_BY_BATCH_NUMBER"
                            "&orderBy=ORDER_BY_DESC&limit=1");
    int rc = cli_get(c, &answer, err, "/trials/%" PRId64 "/checkpoints?%s", trial, query);
    json_t *first = json_array_get(json_arr(answer, "checkpoints"), 0);
    if (rc < 0)
        return rc;
    if (!first)
        return det_fail(err, DET_ENOENT, "trial %" PRId64 " has no checkpoint that has its files",
                        trial);
    if (o.best && !has_metric(first, by))
        return det_fail(err, DET_ENOENT,
                        "no checkpoint of trial %" PRId64 " has the validation metric %s: --latest "
                        "takes the last one",
                        trial, by->metric);
    *ret = json_incref(first);
    return 0;
}

static double value_of(const json_t *validation, const char *metric)
{
    return json_num(json_path(validation, "avgMetrics"), metric, NAN);
}

/* At the best validation nothing may have been kept: what is taken is of another one. */
static void tell_of_better(const json_t *trial, const json_t *cp, const struct order *by)
{
    const json_t *best = json_obj(trial, "bestValidation");
    double top = value_of(json_obj(best, "metrics"), by->metric);
    double here = value_of(json_path(cp, "training.validationMetrics"), by->metric);
    if (o.best && !o.metric && (by->smaller ? top < here : top > here))
        fprintf(stderr,
                "The trial's best validation has no checkpoint (%s %.4g at batch %" PRId64
                "): this is "
                "the best of those that have one (%.4g at batch %" PRId64 ").\n",
                by->metric, top, json_int(best, "totalBatches", 0), here,
                json_int(json_obj(cp, "metadata"), "steps_completed", 0));
}

static int by_uuid(struct cli *c, int64_t trial, json_t **ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *uuid det_cleanup(freep) = cli_escaped(o.uuid);
    int rc = cli_get(c, &answer, err, "/checkpoints/%s", uuid);
    if (rc < 0)
        return rc;
    int64_t of = json_int(json_path(answer, "checkpoint.training"), "trialId", 0);
    if (of != trial)
        return det_fail(err, DET_ENOENT,
                        "checkpoint %s is one of trial %" PRId64 ", not of %" PRId64, o.uuid, of,
                        trial);
    *ret = json_incref(json_obj(answer, "checkpoint"));
    return 0;
}

int trial_download(struct cli *c, struct det_err *err)
{
    int64_t id;
    struct order by;
    JSON_OWN answer = NULL;
    JSON_OWN e = NULL;
    JSON_OWN cp = NULL;
    if (cli_arg_id(c, 0, "trial", &id, err) < 0 || check_choice(err) < 0)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "/trials/%" PRId64, id) < 0 ||
        experiment_get(c, json_int(json_obj(answer, "trial"), "experimentId", 0), &e, err) < 0)
        return CLI_FAILED;
    if (order_of(e, &by, err) < 0)
        return CLI_USAGE;
    if ((o.uuid ? by_uuid(c, id, &cp, err) : pick_checkpoint(c, id, &by, &cp, err)) < 0)
        return CLI_FAILED;
    tell_of_better(json_obj(answer, "trial"), cp, &by);
    char *to det_cleanup(freep) =
        o.output ? det_strdup(o.output) : det_asprintf("checkpoints/%s", json_str(cp, "uuid", ""));
    return checkpoint_copy(c, cp, to, err) < 0 ? CLI_FAILED : 0;
}

int experiment_download(struct cli *c, struct det_err *err)
{
    int64_t id;
    struct order by;
    JSON_OWN answer = NULL;
    JSON_OWN e = NULL;
    size_t i, n = 0;
    json_t *cp;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0 || checkpoint_check_mode(err) < 0)
        return CLI_USAGE;
    if (experiment_get(c, id, &e, err) < 0)
        return CLI_FAILED;
    if (order_of(e, &by, err) < 0)
        return CLI_USAGE;
    char *query det_cleanup(freep) = query_of(&by, o.top);
    if (cli_get(c, &answer, err, "/experiments/%" PRId64 "/checkpoints?%s", id, query) < 0)
        return CLI_FAILED;
    json_array_foreach(json_arr(answer, "checkpoints"), i, cp)
    {
        char *to det_cleanup(freep) =
            det_asprintf("%s/%s", o.output ? o.output : "checkpoints", json_str(cp, "uuid", ""));
        if (!has_metric(cp, &by))
            break;
        if (checkpoint_copy(c, cp, to, err) < 0)
            return CLI_FAILED;
        n++;
    }
    if (n > 0)
        return 0;
    det_fail(err, DET_ENOENT,
             "no checkpoint of experiment %" PRId64 " has the validation metric %s", id, by.metric);
    return CLI_FAILED;
}
