/* det preview-search: what a configuration would train, without training it; det experiment replay.
 */
#include "cli.h"
#include "experiment.h"
#include "expconf.h"
#include "table.h"
#include "yamljson.h"

#include "buf.h"
#include "fsx.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    struct opt_list config;
    int64_t seed;
} o = {.seed = -1};

static const struct opt preview_opts[] = {
    {"config", 0, OPT_STR_LIST, &o.config, "KEY=VALUE", "replace a value: searcher.max_trials=100"},
    {"seed", 0, OPT_INT, &o.seed, "N", "of the metrics (default the configuration's)"},
    {0},
};

static json_t *read_config(const char *path, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    json_t *config = NULL;
    if (experiment_read_config(path, &text, err) < 0)
        return NULL; /* the error names the file */
    int rc = yamljson_parse(buf_str(&text), text.len, &config, err);
    if (rc == 0)
        rc = experiment_override(config, &o.config, err);
    if (rc == 0)
        return config;
    json_decref(config);
    det_wrap(err, rc, "%s", path);
    return NULL;
}

/* "100, 400": the lengths of the trainings; *ret_units: the last, which is absolute. */
static char *lengths_of(const json_t *trial, int64_t *ret_units)
{
    const json_t *ops = json_arr(trial, "operations");
    struct buf b = BUF_INIT;
    *ret_units = 0;
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);
        if (strcmp(json_str(op, "type", ""), "RUNNABLE_TYPE_TRAIN") != 0)
            continue;
        int64_t length = json_int(op, "length", 0);
        buf_addf(&b, "%s%" PRId64, b.len ? ", " : "", length);
        *ret_units = length > *ret_units ? length : *ret_units;
    }
    char *text = det_strdup(buf_str(&b));
    buf_finish(&b);
    return text;
}

static const char *unit_of(const json_t *config)
{
    static const char *const units[] = {"batches", "records", "epochs"};
    const json_t *length = json_path(config, "searcher.max_length");
    for (size_t i = 0; i < DET_ARRAY_LEN(units); i++)
        if (json_object_get(length, units[i]))
            return units[i];
    return "units";
}

static void print_preview(const json_t *simulation)
{
    const char *unit = unit_of(json_obj(simulation, "config"));
    det_cleanup(freep) char *head = det_asprintf(">%s EACH", unit);
    det_cleanup(freep) char *sum = det_asprintf(">%s IN ALL", unit);
    for (char *c = head; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    for (char *c = sum; *c; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    const char *const heads[] = {">TRIALS", "VALIDATED AFTER", head, sum};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    int64_t trials = 0, all = 0;
    size_t i;
    json_t *kind;
    json_array_foreach(json_arr(simulation, "trials"), i, kind)
    {
        int64_t n = json_int(kind, "occurrences", 0), units;
        det_cleanup(freep) char *lengths = lengths_of(kind, &units);
        trials += n;
        all += n * units;
        table_cell(t, "%" PRId64, n);
        table_cell(t, "%s", lengths);
        table_cell(t, "%" PRId64, units);
        table_cell(t, "%" PRId64, n * units);
    }
    table_print(t, "no trials");
    printf("%" PRId64 " trials, %" PRId64 " %s in all (seed %" PRId64 ")\n", trials, all, unit,
           json_int(simulation, "seed", 0));
}

static int preview_search(struct cli *c, struct det_err *err)
{
    json_t *config = read_config(cli_arg(c, 0), err);
    if (!config)
        return CLI_FAILED;
    JSON_OWN body = json_make("{s:o}", "config", config);
    if (o.seed >= 0)
        json_set(body, "seed", json_integer(o.seed));
    JSON_OWN answer = NULL;
    if (cli_call(c, "POST", "/preview-hp-search", body, &answer, err) < 0)
        return CLI_FAILED;
    if (!cli_print_json(c, answer))
        print_preview(json_obj(answer, "simulation"));
    return 0;
}

static const struct verb verbs[] = {
    {"", NULL, "CONFIG", "what a configuration would train", preview_opts, preview_search},
    {0},
};
const struct noun noun_preview_search = {"preview-search", "preview", NULL,
                                         "what a configuration would train", verbs};

int experiment_replay(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0 ||
        cli_get(c, &answer, err, "/experiments/%" PRId64 "/searcher/replay", id) < 0)
        return CLI_FAILED;
    bool equal = json_flag(answer, "equal", false);
    const json_t *d = json_obj(answer, "difference");
    if (cli_print_json(c, answer))
        return equal ? 0 : CLI_FAILED;
    if (!equal) {
        det_fail(err, DET_ECORRUPT, "the replay differs after event %" PRId64 ": %s",
                 json_int(d, "seq", 0), json_str(d, "what", ""));
        return CLI_FAILED;
    }
    printf("experiment %" PRId64 ": %" PRId64 " events and %" PRId64
           " trials replay to the same state, sha256 %s\n",
           id, json_int(answer, "events", 0), json_int(answer, "trials", 0),
           json_str(answer, "sha256", ""));
    return 0;
}
