/* det agent, det slot */
#include "cli.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool drain, all;
} o;

static const char *slot_type(const json_t *slot)
{
    const char *t = json_str(json_obj(slot, "device"), "type", "");
    return strncmp(t, "TYPE_", 5) == 0 ? t + 5 : t;
}

static void agent_row(struct table *t, const json_t *a)
{
    const json_t *slots = json_obj(a, "slots");
    const char *key;
    json_t *slot;
    size_t used = 0;
    json_object_foreach((json_t *)slots, key, slot) used += json_obj(slot, "container") != NULL;
    table_cell(t, "%s", json_str(a, "id", ""));
    table_cell(t, "%s", json_str(a, "version", ""));
    table_cell(t, "%s", show_time(json_str(a, "registeredTime", NULL)));
    table_cell(t, "%zu", json_object_size(slots));
    table_cell(t, "%zu", used);
    table_cell(t, "%zu", json_object_size(json_obj(a, "containers")));
    table_cell(t, "%s", json_string_value(json_array_get(json_arr(a, "resourcePools"), 0)));
    table_cell(t, "%s",
               json_flag(a, "enabled", false)    ? "yes"
               : json_flag(a, "draining", false) ? "draining"
                                                 : "no");
    table_cell(t, "%s", json_string_value(json_array_get(json_arr(a, "addresses"), 0)));
}

static int list(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"AGENT",  "VERSION", "SINCE",   ">SLOTS", ">USED",
                                        ">TASKS", "POOL",    "ENABLED", "ADDRESS"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/agents") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_object_get(answer, "agents")))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *a;
    json_array_foreach(json_arr(answer, "agents"), i, a) agent_row(t, a);
    table_print(t, "no agents; start det-agent --master URL on a host");
    return 0;
}

static int enable_disable(struct cli *c, bool enable, struct det_err *err)
{
    const char *id = cli_arg(c, 0);
    char *path det_cleanup(freep) =
        det_asprintf("/agents/%s/%s", id, enable ? "enable" : "disable");
    JSON_OWN body = json_object();
    if (o.drain)
        json_set(body, "drain", json_true());
    if (cli_call(c, "POST", path, enable ? NULL : body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "agent %s %s\n", id, enable ? "enabled" : o.drain ? "is draining" : "disabled");
    return 0;
}

static int enable(struct cli *c, struct det_err *err)
{
    return enable_disable(c, true, err);
}

static int disable(struct cli *c, struct det_err *err)
{
    return enable_disable(c, false, err);
}

static int list_slots(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"AGENT", ">SLOT", "TYPE", "DEVICE", "ENABLED", "CONTAINER"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/agents") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_object_get(answer, "agents")))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *a, *slot;
    const char *key;
    json_array_foreach(json_arr(answer, "agents"), i, a)
        json_object_foreach(json_obj(a, "slots"), key, slot)
    {
        table_cell(t, "%s", json_str(a, "id", ""));
        table_cell(t, "%s", json_str(slot, "id", ""));
        table_cell(t, "%s", slot_type(slot));
        table_cell(t, "%s", json_str(json_obj(slot, "device"), "brand", ""));
        table_cell(t, "%s", json_flag(slot, "enabled", false) ? "yes" : "no");
        table_cell(t, "%s", json_str(json_obj(slot, "container"), "id", "free"));
    }
    table_print(t, "no slots; start det-agent --master URL on a host");
    return 0;
}

static const struct opt disable_opts[] = {
    {"drain", 0, OPT_FLAG, &o.drain, NULL, "let running work end first"},
    {0},
};
static const struct verb agent_verbs[] = {
    {"list", "ls", "", "agents with their slots", NULL, list},
    {"enable", NULL, "AGENT", "use it again", NULL, enable},
    {"disable", NULL, "AGENT", "give it no more work and end what runs there", disable_opts,
     disable},
    {0},
};
static const struct verb slot_verbs[] = {
    {"list", "ls", "", "every slot and what holds it", NULL, list_slots},
    {0},
};

const struct noun noun_agent = {"agent", "a", NULL, "agents: list, enable, disable", agent_verbs};
const struct noun noun_slot = {"slot", "s", NULL, "slots: list", slot_verbs};
