/* det experiment rungs */
#include "experiment.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHORT = 6 };

static struct {
    bool trials;
} o;

/* "3* 0.98": a star went on. */
static char *best_text(const json_t *trials)
{
    struct buf b = BUF_INIT;
    size_t n = json_array_size(trials);
    for (size_t i = 0; i < n && i < SHORT; i++) {
        const json_t *t = json_array_get(trials, i);
        bool went = strcmp(json_str(t, "state", ""), "WENT_ON") == 0;
        const char *metric = show_metric(json_object_get(t, "metric"));
        buf_addf(&b, "%s%" PRId64 "%s %s", i ? ", " : "", json_int(t, "trialId", 0),
                 went ? "*" : "", *metric ? metric : "failed");
    }
    if (n > SHORT)
        buf_add_str(&b, ", ...");
    return buf_steal(&b);
}

static void rung_row(struct table *t, const json_t *bracket, const json_t *rung)
{
    char *best det_cleanup(freep) = best_text(json_arr(rung, "trials"));
    table_cell(t, "%" PRId64, json_int(bracket, "bracket", 0));
    table_cell(t, "%" PRId64 " of %zu", json_int(rung, "rung", 0),
               json_array_size(json_arr(bracket, "rungs")));
    table_cell(t, "%" PRId64, json_int(rung, "length", 0));
    table_cell(t, "%" PRId64, json_int(rung, "validated", 0));
    table_cell(t, "%" PRId64, json_int(rung, "wentOn", 0));
    table_cell(t, "%" PRId64, json_int(rung, "training", 0));
    table_cell(t, "%" PRId64, json_int(rung, "toCome", 0));
    table_cell(t, "%s", best);
}

static void trial_rows(struct table *t, const json_t *bracket, const json_t *rung)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)json_arr(rung, "trials"), i, trial)
    {
        table_cell(t, "%" PRId64, json_int(bracket, "bracket", 0));
        table_cell(t, "%" PRId64, json_int(rung, "rung", 0));
        table_cell(t, "%" PRId64, json_int(rung, "length", 0));
        table_cell(t, "%zu", i + 1);
        table_cell(t, "%" PRId64, json_int(trial, "trialId", 0));
        table_cell(t, "%s", show_metric(json_object_get(trial, "metric")));
        table_cell(t, "%s", json_str(trial, "state", ""));
    }
}

static void print_rungs(const json_t *answer)
{
    char *length det_cleanup(freep) = det_asprintf(">%s", json_str(answer, "unit", "length"));
    char *best det_cleanup(freep) =
        det_asprintf("BEST BY %s (* went on)", json_str(answer, "metric", ""));
    const char *const rungs[] = {"BRACKET",  "RUNG",      length,     ">VALIDATED",
                                 ">WENT ON", ">TRAINING", ">TO COME", best};
    const char *const trials[] = {"BRACKET", "RUNG",    length, ">PLACE",
                                  ">TRIAL",  ">METRIC", "STATE"};
    struct table *t = o.trials ? table_create(trials, DET_ARRAY_LEN(trials))
                               : table_create(rungs, DET_ARRAY_LEN(rungs));
    size_t i, k;
    json_t *bracket, *rung;
    json_array_foreach((json_t *)json_arr(answer, "brackets"), i, bracket)
        json_array_foreach((json_t *)json_arr(bracket, "rungs"), k,
                           rung)(o.trials ? trial_rows : rung_row)(t, bracket, rung);
    const char *name = json_str(answer, "searcher", "");
    char *none det_cleanup(freep) =
        strcmp(name, "custom") == 0
            ? det_strdup("the client of a custom search decides how long each trial trains: it has "
                         "no rungs; `det why trial:ID` says why it closed a trial")
            : det_asprintf("the searcher %s gives every trial the same length: it has no rungs",
                           name);
    table_print(t, none);
}

int experiment_rungs(struct cli *c, struct det_err *err)
{
    int64_t id;
    JSON_OWN answer = NULL;
    if (cli_arg_id(c, 0, "experiment", &id, err) < 0)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "/experiments/%" PRId64 "/rungs%s", id,
                o.trials ? "?limit=1000000" : "") < 0)
        return CLI_FAILED;
    if (!cli_print_json(c, answer))
        print_rungs(answer);
    return 0;
}

const struct opt experiment_rungs_opts[] = {
    {"trials", 0, OPT_FLAG, &o.trials, NULL, "a row for each trial of each rung"},
    {0},
};
