/* An experiment as the master tells of it, and the table of several. */
#include "experiment.h"
#include "logs.h"
#include "plain.h"
#include "reason.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int experiment_get(struct cli *c, int64_t id, json_t **ret_experiment, struct det_err *err)
{
    JSON_OWN answer = NULL;
    int rc = cli_get(c, &answer, err, "/experiments/%" PRId64, id);
    if (rc == 0)
        *ret_experiment = json_incref(json_obj(answer, "experiment"));
    return rc;
}

/* is_held: only where it is. */
static char *ask_why(struct cli *c, const json_t *experiment, bool is_held)
{
    struct det_err err;
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, &err, "/experiments/%" PRId64 "/why", json_int(experiment, "id", 0)) <
            0 ||
        (is_held && !json_flag(answer, "held", false)))
        return NULL;
    char *plain = plain_text(json_str(answer, "text", ""));
    return plain ? plain : det_strdup(json_str(answer, "text", ""));
}

char *trial_reason(struct cli *c, int64_t trial)
{
    enum { LINES = 300 };
    JSON_OWN lines = logs_last(c, trial, LINES);
    char *why = lines ? reason_of(lines) : NULL;
    char *plain = why ? plain_text(why) : NULL; /* anybody wrote the log */
    if (!plain)
        return why;
    free(why);
    return plain;
}

char *experiment_reason(struct cli *c, const json_t *experiment)
{
    struct det_err err;
    JSON_OWN answer = NULL;
    const char *state = json_str(experiment, "state", "");
    bool is_paused = strcmp(state, "STATE_PAUSED") == 0;
    if (is_paused || strcmp(state, "STATE_DELETE_FAILED") == 0)
        return ask_why(c, experiment, is_paused);
    if (strcmp(state, "STATE_ERROR") != 0 ||
        cli_get(c, &answer, &err, "/experiments/%" PRId64 "/trials?limit=1&states=STATE_ERROR",
                json_int(experiment, "id", 0)) < 0)
        return NULL;
    int64_t trial = json_int(json_array_get(json_arr(answer, "trials"), 0), "id", 0);
    char *why det_cleanup(freep) = trial ? trial_reason(c, trial) : NULL;
    return why ? det_asprintf("trial %" PRId64 ": %s", trial, why) : NULL;
}

static void experiment_row(struct table *t, const json_t *e)
{
    table_cell(t, "%" PRId64, json_int(e, "id", 0));
    table_cell(t, "%s", json_str(e, "username", ""));
    table_cell(t, "%s", json_str(e, "name", ""));
    table_cell(t, "%s", show_state(json_str(e, "state", "")));
    table_cell(t, "%s", show_progress(json_object_get(e, "progress")));
    table_cell(t, "%s", show_time(json_str(e, "startTime", NULL)));
    table_cell(t, "%s",
               show_duration(json_str(e, "startTime", NULL), json_str(e, "endTime", NULL)));
    table_cell(t, "%" PRId64, json_int(e, "numTrials", 0));
    table_cell(t, "%s", json_str(e, "resourcePool", ""));
    table_cell(t, "%s", json_flag(e, "archived", false) ? "yes" : "");
}

void experiment_print_list(const struct cli *c, const json_t *experiments)
{
    static const char *const heads[] = {"ID",      "OWNER",     "NAME",    "STATE", ">PROGRESS",
                                        "STARTED", ">DURATION", ">TRIALS", "POOL",  "ARCHIVED"};
    if (cli_print_json(c, experiments))
        return;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *e;
    json_array_foreach(experiments, i, e) experiment_row(t, e);
    table_print(t, "no experiments; det experiment create CONFIG DIR makes one");
}
