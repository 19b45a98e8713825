/* det checkpoint: what lies in a store and the database does not know. */
#include "checkpoint.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK_WAIT_MS = 60000, POLL_MS = 200 };

static struct {
    bool last, yes;
} o;

const struct opt checkpoint_unknown_opts[] = {
    {"last", 0, OPT_FLAG, &o.last, NULL, "what the last look has found; do not look again"},
    {0},
};
const struct opt checkpoint_discard_opts[] = {
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};

static int get_unknown(struct cli *c, json_t **ret, struct det_err *err)
{
    char *place det_cleanup(freep) = cli_escaped(cli_arg(c, 0));
    return cli_get(c, ret, err, "/checkpoint-stores/unknown?place=%s", place);
}

/* An agent has to walk through all of the store. */
static int wait_for_look(struct cli *c, json_t **ret, struct det_err *err)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
    for (int waited = 0; waited < LOOK_WAIT_MS; waited += POLL_MS) {
        JSON_OWN answer = NULL;
        int rc = get_unknown(c, &answer, err);
        if (rc < 0)
            return rc;
        if (json_str(answer, "doneAt", NULL)) {
            *ret = json_incref(answer);
            return 0;
        }
        nanosleep(&pause, NULL);
    }
    return det_fail(
        err, DET_ETIMEOUT,
        "no agent has looked through %s yet: det task list and det task logs say what it "
        "waits for; later: det checkpoint unknown --last %s",
        cli_arg(c, 0), cli_arg(c, 0));
}

static void print_unknown(const json_t *list)
{
    static const char *const heads[] = {"CHECKPOINT", "WRITTEN", ">BATCHES", ">SIZE",
                                        ">ACCOUNT",   "IN TASK", ">TRIAL",   ""};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *k;
    json_array_foreach((json_t *)list, i, k)
    {
        int64_t trial = json_int(k, "trialId", 0);
        table_cell(t, "%s", json_str(k, "uuid", ""));
        table_cell(t, "%s", show_time(json_str(k, "modified", NULL)));
        table_cell(t, "%" PRId64, json_int(json_obj(k, "metadata"), "steps_completed", 0));
        table_cell(t, "%s", show_bytes((double)json_int(k, "bytes", 0)));
        table_cell(t, "%" PRId64, json_int(k, "uid", -1));
        table_cell(t, "%s", json_str(k, "taskId", ""));
        table_cell(t, trial ? "%" PRId64 : "", trial);
        table_cell(t, "%s", json_flag(k, "aside", false) ? "in quarantine" : "");
    }
    table_print(t, "the database knows all checkpoints of this store");
}

int checkpoint_unknown(struct cli *c, struct det_err *err)
{
    JSON_OWN body = json_make("{s:s}", "place", cli_arg(c, 0));
    JSON_OWN answer = NULL;
    int rc = o.last ? 0 : cli_call(c, "POST", "/checkpoint-stores/look", body, NULL, err);
    if (rc == 0)
        rc = o.last ? get_unknown(c, &answer, err) : wait_for_look(c, &answer, err);
    if (rc < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    print_unknown(json_arr(answer, "checkpoints"));
    return 0;
}

static int adopt_unknown(struct cli *c, bool remove, struct det_err *err)
{
    int64_t trial = 0;
    if (cli_arg(c, 1) && cli_arg_id(c, 1, "trial", &trial, err) < 0)
        return CLI_USAGE;
    JSON_OWN body = json_make("{s:s,s:b}", "uuid", cli_arg(c, 0), "remove", remove);
    if (trial)
        json_set(body, "trialId", json_integer((json_int_t)trial));
    return cli_call(c, "POST", "/checkpoints/adopt", body, NULL, err) < 0 ? CLI_FAILED : 0;
}

int checkpoint_adopt(struct cli *c, struct det_err *err)
{
    int status = adopt_unknown(c, false, err);
    if (status == 0)
        fprintf(stderr, "adopted; det checkpoint describe %s\n", cli_arg(c, 0));
    return status;
}

int checkpoint_discard(struct cli *c, struct det_err *err)
{
    if (!o.yes && !cli_confirmed("Discard 1 checkpoint?", "discarded", err))
        return CLI_FAILED;
    int status = adopt_unknown(c, true, err);
    if (status == 0)
        fprintf(stderr, "discarded; det checkpoint undelete takes it back for a while\n");
    return status;
}
