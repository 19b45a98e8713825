/* det checkpoint: removing, taking back, collecting. */
#include "checkpoint.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { UNDELETE_WAIT_MS = 60000, UNDELETE_SAID_MS = 2000, POLL_MS = 100 };

static struct {
    bool yes, dry_run, all;
    struct opt_list globs;
    int64_t experiment;
} o;

const struct opt checkpoint_rm_opts[] = {
    {"glob", 'g', OPT_STR_LIST, &o.globs, "PATTERN", "only files that match; may come again"},
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};
const struct opt checkpoint_delete_opts[] = {
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};
const struct opt checkpoint_gc_opts[] = {
    {"experiment", 'e', OPT_COUNT, &o.experiment, "ID", "only of this one (default: all finished)"},
    {"dry-run", 0, OPT_FLAG, &o.dry_run, NULL, "only say what would be deleted"},
    {"all", 0, OPT_FLAG, &o.all, NULL, "list those that stay, too, and why"},
    {0},
};

/* The arguments, which may each be several uuids with commas between. New reference. */
static json_t *list_uuids(const struct cli *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->args.n; i++)
        for (const char *p = c->args.v[i]; *p; p += strcspn(p, ","), p += *p == ',')
            json_array_append_new(list, json_stringn(p, strcspn(p, ",")));
    return list;
}

static bool confirm_removal(const char *what, size_t n, struct det_err *err)
{
    char *question det_cleanup(freep) =
        det_asprintf("%s %zu checkpoint%s?", what, n, n == 1 ? "" : "s");
    return o.yes || cli_confirmed(question, "deleted", err);
}

int checkpoint_delete(struct cli *c, struct det_err *err)
{
    JSON_OWN body = json_object();
    json_t *list = list_uuids(c);
    json_set(body, "checkpointUuids", list);
    if (!confirm_removal("Delete", json_array_size(list), err) ||
        cli_call(c, "DELETE", "/checkpoints", body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "%zu deleted; det checkpoint undelete takes them back for a while\n",
            json_array_size(list));
    return 0;
}

int checkpoint_rm(struct cli *c, struct det_err *err)
{
    if (o.globs.n == 0) { /* in Determined's det it deletes nothing: it counts the files anew */
        det_fail(err, DET_EINVAL,
                 "--glob PATTERN is needed: which files to remove; det checkpoint delete UUID "
                 "removes whole checkpoints");
        return CLI_USAGE;
    }
    JSON_OWN body = json_object();
    json_t *list = list_uuids(c), *globs = json_array();
    for (size_t i = 0; i < o.globs.n; i++)
        json_array_append_new(globs, json_string(o.globs.v[i]));
    json_set(body, "checkpointUuids", list);
    json_set(body, "checkpointGlobs", globs);
    if (!confirm_removal("For good: remove matching files of", json_array_size(list), err) ||
        cli_call(c, "POST", "/checkpoints/rm", body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "the matching files of %zu are being removed\n", json_array_size(list));
    return 0;
}

/* Waits until an agent has put the files back. */
static int wait_for_return(struct cli *c, const char *uuid, struct det_err *err)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
    for (int waited = 0; waited < UNDELETE_WAIT_MS; waited += POLL_MS) {
        JSON_OWN answer = NULL;
        char *word det_cleanup(freep) = cli_escaped(uuid);
        if (cli_get(c, &answer, err, "/checkpoints/%s", word) < 0)
            return CLI_FAILED;
        if (strcmp(json_str(json_obj(answer, "checkpoint"), "state", ""), "STATE_DELETED") != 0) {
            printf("%s\n", uuid);
            return 0;
        }
        if (waited == UNDELETE_SAID_MS)
            fprintf(stderr,
                    "checkpoint %s: an agent that sees its store puts it back; this waits for that "
                    "for %d s (Ctrl-C ends the wait, not the work)\n",
                    uuid, UNDELETE_WAIT_MS / 1000);
        nanosleep(&pause, NULL);
    }
    det_fail(err, DET_ETIMEOUT,
             "checkpoint %s is not back yet: an agent that sees its store has to do it (det "
             "agent list, det store list); it is done once one does",
             uuid);
    return CLI_FAILED;
}

int checkpoint_undelete(struct cli *c, struct det_err *err)
{
    JSON_OWN body = json_object();
    json_t *list = list_uuids(c);
    json_set(body, "checkpointUuids", list);
    if (cli_call(c, "POST", "/checkpoints/undelete", body, NULL, err) < 0)
        return CLI_FAILED;
    int status = 0;
    for (size_t i = 0; i < json_array_size(list) && status == 0; i++)
        status = wait_for_return(c, json_string_value(json_array_get(list, i)), err);
    return status;
}

void checkpoint_show_collection(const json_t *answer, bool all)
{
    static const char *const heads[] = {"CHECKPOINT", ">EXPERIMENT", ">TRIAL", ">BATCHES",
                                        ">METRIC",    ">SIZE",       "",       "WHY"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *k;
    json_array_foreach(json_arr(answer, "checkpoints"), i, k)
    {
        bool gone = json_flag(k, "deleted", false);
        if (!gone && !all)
            continue;
        table_cell(t, "%s", json_str(k, "uuid", ""));
        table_cell(t, "%" PRId64, json_int(k, "experimentId", 0));
        table_cell(t, "%" PRId64, json_int(k, "trialId", 0));
        table_cell(t, "%" PRId64, json_int(k, "stepsCompleted", 0));
        table_cell(t, "%s", show_metric(json_object_get(k, "metric")));
        table_cell(t, "%s", show_bytes((double)json_int(k, "bytes", 0)));
        table_cell(t, "%s", gone ? "delete" : "keep");
        table_cell(t, "%s", json_str(k, "why", ""));
    }
    table_print(t, "no checkpoint is to be deleted");
}

int checkpoint_gc(struct cli *c, struct det_err *err)
{
    JSON_OWN body =
        json_make("{s:I,s:b}", "experimentId", (json_int_t)o.experiment, "dryRun", o.dry_run);
    JSON_OWN answer = NULL;
    if (cli_call(c, "POST", "/checkpoints/gc", body, &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    checkpoint_show_collection(answer, o.all);
    fprintf(stderr, "%" PRId64 " checkpoint%s, %s %s\n", json_int(answer, "deletedCount", 0),
            json_int(answer, "deletedCount", 0) == 1 ? "" : "s",
            show_bytes((double)json_int(answer, "deletedBytes", 0)),
            o.dry_run ? "would be deleted" : "deleted");
    return 0;
}
