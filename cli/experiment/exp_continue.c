/* det experiment continue: what has ended goes on, a single search with other values if wanted. */
#include "cli.h"
#include "experiment.h"
#include "expconf.h"
#include "yamljson.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    bool follow;
    const char *file;
    struct opt_list config;
} o;

const struct opt experiment_continue_opts[] = {
    {"config-file", 0, OPT_STR, &o.file, "FILE", "values that replace those it has"},
    {"config", 0, OPT_STR_LIST, &o.config, "KEY=VALUE",
     "replace a value: searcher.max_length.batches=200"},
    {"follow", 'f', OPT_FLAG, &o.follow, NULL,
     "until it ends: the screen of det experiment watch; without a terminal the first trial's log"},
    {"follow-first-trial", 0, OPT_FLAG, &o.follow, NULL, "the same"},
    {0},
};

/* Of the file, then of the options; {} when there is neither. New reference. */
static json_t *override_of(struct det_err *err)
{
    struct buf text = BUF_INIT;
    json_t *config = NULL;
    int rc = o.file ? experiment_read_config(o.file, &text, err) : 0;
    if (rc == 0)
        rc = yamljson_parse(buf_str(&text), text.len, &config, err);
    buf_finish(&text);
    if (rc == 0 && json_is_null(config))
        config = json_object();
    if (rc == 0 && !json_is_object(config))
        rc = det_fail(err, DET_EINVAL, "expected a map of keys, such as searcher:");
    if (rc < 0)
        det_wrap(err, rc, "--config-file %s", o.file ? o.file : "");
    if (rc == 0)
        rc = experiment_override(config, &o.config, err);
    if (rc == 0)
        return config;
    json_decref(config);
    return NULL;
}

int experiment_continue(struct cli *c, struct det_err *err)
{
    int64_t id;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    JSON_OWN config = override_of(err);
    if (!config)
        return CLI_FAILED;
    JSON_OWN body = json_object();
    JSON_OWN answer = NULL;
    json_set(body, "id", json_integer(id));
    if (json_object_size(config) > 0) {
        char *text det_cleanup(freep) = json_text(config);
        json_set(body, "overrideConfig", json_string(text));
    }
    if (cli_call(c, "POST", "/experiments/continue", body, &answer, err) < 0)
        return CLI_FAILED;
    experiment_warn(answer);
    if (!cli_print_json(c, json_obj(answer, "experiment")))
        printf("Continued experiment %" PRId64 "\n", id);
    fflush(stdout);
    return o.follow ? experiment_follow(c, id, err) : 0;
}
