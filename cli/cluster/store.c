/* det store */
#include "cli.h"
#include "show.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

static struct {
    bool empty;
} o;

/* "agent-0; not on agent-1 (ABSENT: /ckpt has no .det-store)" */
static char *describe_sights(const json_t *store)
{
    struct buf on = BUF_INIT, off = BUF_INIT;
    size_t i;
    json_t *a;
    json_array_foreach(json_arr(store, "agents"), i, a)
    {
        const char *state = json_str(a, "state", ""), *text = json_str(a, "text", "");
        bool there = strcmp(state, "PRESENT") == 0;
        if (there)
            buf_addf(&on, "%s%s", on.len ? ", " : "", json_str(a, "agentId", ""));
        else
            buf_addf(&off, "; not on %s (%s%s%s)", json_str(a, "agentId", ""), state,
                     *text ? ": " : "", text);
    }
    buf_addf(&on, "%s", buf_str(&off) + (on.len || !off.len ? 0 : 2));
    buf_finish(&off);
    return buf_steal(&on);
}

static int list_stores(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"PLACE", "ID", "FIRST USED", "MADE ON", "AGENTS"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/checkpoint-stores") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_object_get(answer, "stores")))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *s;
    json_array_foreach(json_arr(answer, "stores"), i, s)
    {
        det_cleanup(freep) char *seen = describe_sights(s);
        table_cell(t, "%s", json_str(s, "place", ""));
        table_cell(t, "%s", json_str(s, "id", "none yet"));
        table_cell(t, "%s", show_time(json_str(s, "firstUsed", NULL)));
        table_cell(t, "%s", json_str(s, "madeOn", ""));
        table_cell(t, "%s", seen);
    }
    table_print(t, "no experiment has used a checkpoint store yet");
    return 0;
}

static int adopt_store(struct cli *c, struct det_err *err)
{
    JSON_OWN body = json_make("{s:s,s:b}", "place", cli_arg(c, 0), "empty", o.empty);
    if (cli_call(c, "POST", "/checkpoint-stores/adopt", body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "what is at %s becomes the store; det store list says when it has\n",
            cli_arg(c, 0));
    return 0;
}

static const struct opt adopt_opts[] = {
    {"empty", 0, OPT_FLAG, &o.empty, NULL, "also if none of its checkpoints is there"}, {0}};
static const struct verb verbs[] = {
    {"list", "ls", "", "the stores, and which agents have them", NULL, list_stores},
    {"adopt", NULL, "PLACE", "what lies there now is the store: it was moved, or made anew",
     adopt_opts, adopt_store},
    {0},
};

const struct noun noun_store = {"store", "", NULL, "checkpoint stores: list, adopt", verbs};
