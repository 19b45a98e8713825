#include "master_lives.h"

#include "table.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    bool remove, yes;
} o;

const struct opt master_strays_opts[] = {
    {"remove", 0, OPT_FLAG, &o.remove, NULL, "forget them, of one allocation or all"},
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "without asking"},
    {0},
};

static const char *said_of(const json_t *life)
{
    if (json_flag(life, "isChosen", false))
        return "a new life, chosen with det-master new-life";
    return json_flag(life, "isNew", false) ? "a new life: restored or moved" : "";
}

static void print_lives(const json_t *lives)
{
    static const char *const heads[] = {">LEADERSHIP", "BEGUN", ">BATCHES", "MASTER", ""};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *one;
    json_array_foreach(lives, i, one)
    {
        int64_t last = json_int(one, "lastBatch", -1);
        table_cell(t, "%" PRId64, json_int(one, "epoch", 0));
        table_cell(t, "%s", json_str(one, "begun", ""));
        if (last < 0)
            table_cell(t, "it leads");
        else
            table_cell(t, "%" PRId64, last);
        table_cell(t, "%s", json_str(one, "master", ""));
        table_cell(t, "%s", said_of(one));
    }
    table_print(t, "no leadership");
}

int master_lives(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    size_t i;
    json_t *one;
    if (cli_get(c, &answer, err, "/master/lives") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    printf("cluster %s\n\n", json_str(answer, "clusterId", ""));
    print_lives(json_arr(answer, "lives"));
    json_array_foreach(json_arr(answer, "refused"), i, one)
    {
        printf("\nagent %s is refused: %s\n", json_str(one, "agentId", ""),
               json_str(one, "reason", ""));
    }
    return 0;
}

static int remove_strays(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    const char *alloc = cli_arg(c, 0);
    det_cleanup(freep) char *escaped = cli_escaped(alloc ? alloc : "");
    det_cleanup(freep) char *path =
        det_asprintf("/master/strays%s%s", alloc ? "?allocationId=" : "", escaped);
    if (!o.yes && !cli_confirmed("Forget what tasks of other lives sent?", "forgotten", err))
        return CLI_FAILED;
    if (cli_call(c, "DELETE", path, NULL, &answer, err) < 0)
        return CLI_FAILED;
    if (!cli_print_json(c, answer))
        printf("%" PRId64 " forgotten\n", json_int(answer, "removed", 0));
    return 0;
}

int master_strays(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"TIME", "AGENT", "ALLOCATION", "WHAT", ">BYTES"};
    JSON_OWN answer = NULL;
    if (o.remove)
        return remove_strays(c, err);
    if (cli_arg(c, 0))
        return det_fail(err, DET_EINVAL, "an ALLOCATION is taken with --remove only"), CLI_USAGE;
    if (cli_get(c, &answer, err, "/master/strays?limit=1000") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *one;
    json_array_foreach(json_arr(answer, "strays"), i, one)
    {
        table_cell(t, "%s", json_str(one, "time", ""));
        table_cell(t, "%s", json_str(one, "agentId", ""));
        table_cell(t, "%s", json_str(one, "allocationId", ""));
        table_cell(t, "%s", json_str(one, "what", ""));
        table_cell(t, "%" PRId64, json_int(one, "bytes", 0));
    }
    table_print(t, "nothing of other lives is kept aside");
    return 0;
}
