/* det experiment create: the configuration, its overrides, the packed directory, and what follows.
 */
#include "cli.h"
#include "entrypoint.h"
#include "experiment.h"
#include "expconf.h"
#include "logs.h"
#include "pack.h"
#include "watch.h"
#include "yamljson.h"

#include "fsx.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_BYTES_MAX ((size_t)4 << 20)

static struct {
    bool follow, paused, test;
    struct opt_list config;
    const char *template;
    int64_t project_id;
} o;

const struct opt experiment_create_opts[] = {
    {"follow", 'f', OPT_FLAG, &o.follow, NULL,
     "until it ends: the screen of det experiment watch; without a terminal the first trial's log"},
    {"follow-first-trial", 0, OPT_FLAG, &o.follow, NULL, "the same"},
    {"config", 0, OPT_STR_LIST, &o.config, "KEY=VALUE",
     "replace a value: searcher.max_length.batches=10"},
    {"paused", 0, OPT_FLAG, &o.paused, NULL, "do not start it"},
    {"test", 't', OPT_FLAG, &o.test, NULL, "one batch of one trial, to see that it runs"},
    {"test-mode", 0, OPT_FLAG, &o.test, NULL, "the same"},
    {"template", 0, OPT_STR, &o.template, "NAME", "a template of the master"},
    {"project_id", 0, OPT_COUNT, &o.project_id, "ID", "the project it belongs to"},
    {0},
};

int experiment_read_config(const char *path, struct buf *text, struct det_err *err)
{
    if (strcmp(path, "-") == 0) /* not /dev/stdin: another user's pipe cannot be opened again */
        return fsx_read_rest(STDIN_FILENO, "standard input", CONFIG_BYTES_MAX, text, err);
    return fsx_read_file(AT_FDCWD, path, CONFIG_BYTES_MAX, text, err);
}

int experiment_override(json_t *config, const struct opt_list *changes, struct det_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < changes->n; i++)
        if ((rc = expconf_override(config, changes->v[i], err)) < 0)
            det_wrap(err, rc, "--config %s", changes->v[i]);
    return rc;
}

/* A run of one batch: everything is exercised once and nothing is retried. */
static void shrink_to_test(json_t *config)
{
    json_t *searcher = json_obj(config, "searcher");
    const char *metric = json_str(searcher, "metric", "loss");
    json_t *single = json_make("{s:s, s:s, s:b, s:{s:i}}", "name", "single", "metric", metric,
                               "smaller_is_better", json_flag(searcher, "smaller_is_better", true),
                               "max_length", "batches", 1);
    json_set(config, "searcher", single);
    json_set(config, "max_restarts", json_integer(0));
    json_set(config, "scheduling_unit", json_integer(1));
}

/* The text as written, unless an option changes it: then what it means, as JSON (which is YAML). */
static int edit_config(struct buf *text, struct det_err *err)
{
    if (o.config.n == 0 && !o.test)
        return 0;
    json_t *parsed = NULL;
    int rc = yamljson_parse(buf_str(text), text->len, &parsed, err);
    if (rc < 0)
        return rc;
    JSON_OWN config = parsed;
    if (!json_is_object(config))
        return det_fail(err, DET_EINVAL,
                        "the configuration must be a map of keys, such as name: and searcher:");
    if ((rc = experiment_override(config, &o.config, err)) < 0)
        return rc;
    if (o.test)
        shrink_to_test(config);
    buf_clear(text);
    json_write(text, config);
    return 0;
}

static json_t *request_body(const struct buf *text, json_t *files, bool validate_only)
{
    json_t *body = json_object();
    json_set(body, "activate", json_boolean(!o.paused));
    json_set(body, "config", json_lossy(buf_str(text), text->len));
    json_set(body, "modelDefinition", json_incref(files));
    json_set(body, "validateOnly", json_boolean(validate_only));
    if (o.project_id)
        json_set(body, "projectId", json_integer(o.project_id));
    if (o.template)
        json_set(body, "template", json_string(o.template));
    return body;
}

/* *ret_trial 0: it has ended without one. */
static int first_trial(struct cli *c, int64_t id, int64_t *ret_trial, struct det_err *err)
{
    for (bool ended = false;;) {
        JSON_OWN e = NULL;
        JSON_OWN answer = NULL;
        int rc = cli_get(c, &answer, err, "/experiments/%" PRId64 "/trials?limit=1", id);
        if (rc < 0)
            return rc;
        *ret_trial = json_int(json_array_get(json_arr(answer, "trials"), 0), "id", 0);
        if (*ret_trial || ended)
            return 0;
        if ((rc = experiment_get(c, id, &e, err)) < 0)
            return rc;
        ended = has_ended(e);
        usleep(ended ? 0 : 100 * 1000);
    }
}

/* On a terminal: the screen, and of one that failed the end of the log, where the reason is. */
static int follow_on_screen(struct cli *c, int64_t id, struct det_err *err)
{
    enum { LINES = 20 };
    JSON_OWN e = NULL;
    JSON_OWN failed = NULL;
    bool left;
    if (watch_of_experiment(c, id, &left, err) != 0)
        return CLI_FAILED;
    if (left)
        return 0;
    if (experiment_get(c, id, &e, err) < 0)
        return CLI_FAILED;
    if (cli_get(c, &failed, err, "/experiments/%" PRId64 "/trials?limit=1&states=STATE_ERROR", id) <
        0)
        return CLI_FAILED;
    int64_t trial = json_int(json_array_get(json_arr(failed, "trials"), 0), "id", 0);
    if (trial && logs_print_last(c, trial, LINES, err) != 0)
        return CLI_FAILED;
    return experiment_verdict(c, e, err);
}

int experiment_follow(struct cli *c, int64_t id, struct det_err *err)
{
    int64_t trial;
    if (!c->json && watch_has_screen())
        return follow_on_screen(c, id, err);
    int rc = first_trial(c, id, &trial, err);
    if (rc < 0)
        return CLI_FAILED;
    if (trial) {
        printf("Waiting for the log of trial %" PRId64 "\n", trial);
        fflush(stdout);
        rc = logs_follow_trial(c, trial, err);
    }
    return rc != 0 ? rc : wait_for_experiment(c, id, err);
}

void experiment_warn(const json_t *answer)
{
    size_t i;
    json_t *w;
    json_array_foreach(json_arr(answer, "warnings"), i, w)
    {
        const char *name = json_is_string(w) ? json_string_value(w) : "";
        if (strcmp(name, "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED") == 0)
            fputs("warning: no agent that is connected now has the slots for it; it waits for "
                  "one\n",
                  stderr);
    }
    json_array_foreach(json_arr(answer, "advice"), i, w)
    {
        if (json_is_string(w))
            fprintf(stderr, "warning: %s\n", json_string_value(w));
    }
}

static int submit_experiment(struct cli *c, const struct buf *text, json_t *files,
                             struct det_err *err)
{
    JSON_OWN body = request_body(text, files, false);
    JSON_OWN answer = NULL;
    int rc = cli_call(c, "POST", "/experiments", body, &answer, err);
    if (rc < 0)
        return CLI_FAILED;
    int64_t id = json_int(json_obj(answer, "experiment"), "id", 0);
    experiment_warn(answer);
    if (!cli_print_json(c, json_obj(answer, "experiment")))
        printf("Created experiment %" PRId64 "\n", id);
    fflush(stdout);
    if (o.paused)
        return 0;
    if (o.test)
        return wait_for_experiment(c, id, err);
    return o.follow ? experiment_follow(c, id, err) : 0;
}

/* Of a class nothing is there without its module: the trial would start and find nothing. files
 * NULL: no directory was given. */
static int check_module(const struct buf *text, const json_t *files, struct det_err *err)
{
    json_t *parsed = NULL;
    struct det_err bad;
    if (yamljson_parse(buf_str(text), text->len, &parsed, &bad) < 0)
        return 0; /* the master says so, and where */
    JSON_OWN config = parsed;
    const char *e = json_str(config, "entrypoint", "");
    if (files || !entrypoint_is_class(e))
        return files ? entrypoint_check_module(e, files, err) : 0;
    int n = (int)strcspn(e, ":");
    return det_fail(err, DET_EINVAL,
                    "entrypoint %s: no directory with the module %.*s was given: det experiment "
                    "create CONFIG DIR, where DIR may be . for this one",
                    e, n, e);
}

int experiment_create(struct cli *c, struct det_err *err)
{
    const char *path = cli_arg(c, 0), *dir = cli_arg(c, 1);
    struct buf text = BUF_INIT;
    json_t *packed = NULL;
    int rc = experiment_read_config(path, &text, err);
    if (rc == 0)
        rc = edit_config(&text, err);
    bool readable = rc == 0;
    if (readable && dir)
        rc = pack_dir(dir, &packed, err);
    if (rc == 0)
        rc = check_module(&text, packed, err);
    if (rc < 0 && (!readable || !dir || packed))
        rc = det_wrap(err, rc, "%s", path);
    JSON_OWN files = packed ? packed : json_array();
    int status = rc < 0 ? CLI_FAILED : submit_experiment(c, &text, files, err);
    buf_finish(&text);
    return status;
}
