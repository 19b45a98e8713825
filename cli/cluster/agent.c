/* det agent, det slot */
#include "cli.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GIB    ((double)(1 << 30))
#define IDLE_S 600

static struct {
    bool drain, all;
    int64_t minutes;
} o;

static const char *slot_type(const json_t *slot)
{
    const char *t = json_str(json_obj(slot, "device"), "type", "");
    return strncmp(t, "TYPE_", 5) == 0 ? t + 5 : t;
}

static const char *describe_switch(const json_t *agent_or_slot)
{
    if (json_flag(agent_or_slot, "enabled", false))
        return "yes";
    return json_flag(agent_or_slot, "draining", false) ? "draining" : "no";
}

/* What is not there of the stores of its pool; else how many are. */
static void stores_cell(struct table *t, const json_t *a)
{
    const json_t *stores = json_arr(a, "stores");
    struct buf away = BUF_INIT;
    size_t i;
    json_t *s;
    json_array_foreach((json_t *)stores, i, s)
    {
        if (strcmp(json_str(s, "state", ""), "PRESENT") != 0)
            buf_addf(&away, "%s%s %s", away.len ? ", " : "", json_str(s, "state", ""),
                     json_str(s, "place", ""));
    }
    if (away.len)
        table_cell(t, "%s", buf_str(&away));
    else
        table_cell(t, "%zu there", json_array_size(stores));
    buf_finish(&away);
}

/* c NULL: it has none. */
static void certificate_cell(struct table *t, const json_t *c)
{
    const char *state = json_str(c, "state", ""), *expiry = json_str(c, "expiry", NULL);
    if (strcmp(state, "REVOKED") == 0)
        table_cell(t, "revoked");
    else if (!expiry)
        table_cell(t, "none");
    else
        table_cell(t, "%s %s", strcmp(state, "EXPIRED") == 0 ? "expired" : "until",
                   show_time(expiry));
}

static bool is_here(const json_t *answer, const char *id)
{
    size_t i;
    json_t *a;
    json_array_foreach(json_arr(answer, "agents"), i, a)
    {
        if (strcmp(json_str(a, "id", ""), id) == 0)
            return true;
    }
    return false;
}

/* Who could come back, and who must not: a table of its own, of which CSV has no place. */
static void list_absent(const json_t *answer)
{
    static const char *const heads[] = {"NOT HERE", "CERTIFICATE"};
    struct table *t = NULL;
    size_t i;
    json_t *c;
    json_array_foreach(json_arr(answer, "certificates"), i, c)
    {
        const char *id = json_str(c, "agentId", "");
        if (is_here(answer, id) || table_is_csv())
            continue;
        if (!t)
            t = table_create(heads, DET_ARRAY_LEN(heads));
        table_cell(t, "%s", id);
        certificate_cell(t, c);
    }
    if (t) {
        puts("");
        table_print(t, "");
    }
}

static void agent_row(struct table *t, const json_t *a)
{
    const json_t *slots = json_obj(a, "slots");
    const char *key;
    json_t *slot;
    size_t used = 0;
    json_object_foreach((json_t *)slots, key, slot)
    {
        used += json_obj(slot, "container") != NULL;
    }
    table_cell(t, "%s", json_str(a, "id", ""));
    table_cell(t, "%s", json_str(a, "version", ""));
    table_cell(t, "%s", show_time(json_str(a, "registeredTime", NULL)));
    table_cell(t, "%zu", json_object_size(slots));
    table_cell(t, "%zu", used);
    table_cell(t, "%zu", json_object_size(json_obj(a, "containers")));
    table_cell(t, "%s", json_string_value(json_array_get(json_arr(a, "resourcePools"), 0)));
    table_cell(t, "%s", describe_switch(a));
    table_cell(t, "%s", json_string_value(json_array_get(json_arr(a, "addresses"), 0)));
    stores_cell(t, a);
    certificate_cell(t, json_obj(a, "certificate"));
}

/* What has no column: it is so of few, and then matters. */
static void tell_clock(const json_t *a)
{
    double ahead_s = json_number_value(json_object_get(a, "clockAheadSeconds"));
    if (ahead_s != 0)
        fprintf(stderr,
                "%s: its clock is %.1f s %s the master's; synchronise both hosts (chrony, "
                "systemd-timesyncd)\n",
                json_str(a, "id", ""), ahead_s < 0 ? -ahead_s : ahead_s,
                ahead_s < 0 ? "behind" : "ahead of");
}

static void tell_slots(const json_t *a)
{
    const char *key;
    json_t *slot;
    json_object_foreach((json_t *)json_obj(a, "slots"), key, slot)
    {
        const char *why = json_str(slot, "stateText", "");
        if (*why)
            fprintf(stderr, "%s: slot %s is %s: %s\n", json_str(a, "id", ""),
                    json_str(slot, "id", ""),
                    json_flag(slot, "forced", false) ? "used all the same" : "not usable", why);
    }
}

static bool is_idle(const json_t *slot)
{
    return json_num(json_obj(slot, "gpu"), "idleSeconds", 0) >= IDLE_S;
}

static void tell_idle(const json_t *a)
{
    const char *key;
    json_t *slot;
    json_object_foreach((json_t *)json_obj(a, "slots"), key, slot) if (is_idle(slot))
        fprintf(stderr, "%s: the GPU of slot %s has had no work for %.0f min; %s has it\n",
                json_str(a, "id", ""), json_str(slot, "id", ""),
                json_num(json_obj(slot, "gpu"), "idleSeconds", 0) / 60,
                json_str(json_obj(slot, "container"), "parent", "nobody"));
}

enum { TABLE_WANTED = -1 };

/* The agents, where they are not wanted as JSON: then they were printed. */
static int get_agents(struct cli *c, json_t **ret, struct det_err *err)
{
    if (cli_get(c, ret, err, "/agents") < 0)
        return CLI_FAILED;
    return cli_print_json(c, json_object_get(*ret, "agents")) ? 0 : TABLE_WANTED;
}

static int list_agents(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"AGENT",   "VERSION", "SINCE",      ">SLOTS",
                                        ">USED",   ">TASKS",  "POOL",       "ENABLED",
                                        "ADDRESS", "STORES",  "CERTIFICATE"};
    JSON_OWN answer = NULL;
    int rc = get_agents(c, &answer, err);
    if (rc != TABLE_WANTED)
        return rc;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *a;
    json_array_foreach(json_arr(answer, "agents"), i, a) agent_row(t, a);
    table_print(t, "no agents; start det-agent --master URL on a host");
    list_absent(answer);
    json_array_foreach(json_arr(answer, "agents"), i, a)
    {
        tell_clock(a);
        tell_slots(a);
        tell_idle(a);
    }
    return 0;
}

/* slot NULL: the whole agent. */
static int switch_place(struct cli *c, const char *agent, const char *slot, bool on,
                        struct det_err *err)
{
    char *a det_cleanup(freep) = cli_escaped(agent);
    char *s det_cleanup(freep) = cli_escaped(slot ? slot : "");
    char *path det_cleanup(freep) =
        det_asprintf("/agents/%s%s%s/%s", a, slot ? "/slots/" : "", s, on ? "enable" : "disable");
    JSON_OWN body = json_object();
    if (o.drain)
        json_set(body, "drain", json_true());
    if (cli_call(c, "POST", path, on ? NULL : body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "%s%s%s %s\n", agent, slot ? " slot " : "", slot ? slot : "",
            on        ? "enabled"
            : o.drain ? "is draining"
                      : "disabled");
    return 0;
}

static int switch_all(struct cli *c, bool on, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/agents") < 0)
        return CLI_FAILED;
    size_t i;
    json_t *a;
    int rc = 0;
    json_array_foreach(json_arr(answer, "agents"), i, a)
    {
        if (rc == 0)
            rc = switch_place(c, json_str(a, "id", ""), NULL, on, err);
    }
    return rc;
}

static int switch_agent(struct cli *c, bool on, struct det_err *err)
{
    if (o.all != !cli_arg(c, 0)) {
        det_fail(err, DET_EINVAL, "say one agent, or --all");
        return CLI_USAGE;
    }
    return o.all ? switch_all(c, on, err) : switch_place(c, cli_arg(c, 0), NULL, on, err);
}

static int enable_agent(struct cli *c, struct det_err *err)
{
    return switch_agent(c, true, err);
}

static int disable_agent(struct cli *c, struct det_err *err)
{
    return switch_agent(c, false, err);
}

static int switch_slot(struct cli *c, bool on, struct det_err *err)
{
    return switch_place(c, cli_arg(c, 0), cli_arg(c, 1), on, err);
}

static int enable_slot(struct cli *c, struct det_err *err)
{
    return switch_slot(c, true, err);
}

static int disable_slot(struct cli *c, struct det_err *err)
{
    return switch_slot(c, false, err);
}

static int join_token(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body = json_object();
    const char *agent = cli_arg(c, 0);
    if (agent)
        json_set(body, "agentId", json_string(agent));
    if (o.minutes)
        json_set(body, "lifespanSeconds", json_integer(o.minutes * 60));
    if (cli_call(c, "POST", "/agents/join-tokens", body, &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    fprintf(stderr, "good once, until %s, for %s: det-agent --join-token; it is not shown again:\n",
            show_time(json_str(answer, "expiry", NULL)),
            agent ? agent : "an agent of any new name");
    puts(json_str(answer, "token", ""));
    return 0;
}

static int revoke_agent(struct cli *c, struct det_err *err)
{
    char *a det_cleanup(freep) = cli_escaped(cli_arg(c, 0));
    char *path det_cleanup(freep) = det_asprintf("/agents/%s/revoke", a);
    if (cli_call(c, "POST", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "%s is revoked, until it joins anew (det agent join-token %s)\n", cli_arg(c, 0),
            cli_arg(c, 0));
    return 0;
}

/* Of masters of before there is no state. */
static void state_cell(struct table *t, const json_t *slot)
{
    const char *why = json_str(slot, "stateText", "");
    if (!*why)
        table_cell(t, "%s",
                   strcmp(json_str(slot, "state", "USABLE"), "USABLE") == 0 ? "usable"
                                                                            : "not usable");
    else
        table_cell(t, "%s%s", json_flag(slot, "forced", false) ? "used all the same: " : "", why);
}

/* "42 %, 2.0 of 80.0 GiB"; "-": not known. */
static void use_cell(struct table *t, const json_t *slot)
{
    const json_t *gpu = json_obj(slot, "gpu");
    double percent = json_num(gpu, "utilizationPercent", -1);
    double used = json_num(gpu, "memoryUsedBytes", -1), all = json_num(gpu, "memoryTotalBytes", -1);
    char share[32] = "", memory[64] = "";
    if (percent >= 0)
        snprintf(share, sizeof share, "%.0f %%", percent);
    if (used >= 0 && all > 0)
        snprintf(memory, sizeof memory, "%.1f of %.1f GiB", used / GIB, all / GIB);
    if (*share || *memory)
        table_cell(t, "%s%s%s", share, *share && *memory ? ", " : "", memory);
    else
        table_cell(t, "-");
}

static int list_slots(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"AGENT",   ">SLOT",     "TYPE", "DEVICE",
                                        "ENABLED", "CONTAINER", "USE",  "STATE"};
    JSON_OWN answer = NULL;
    int rc = get_agents(c, &answer, err);
    if (rc != TABLE_WANTED)
        return rc;
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
        table_cell(t, "%s", describe_switch(slot));
        table_cell(t, "%s", json_str(json_obj(slot, "container"), "id", "free"));
        use_cell(t, slot);
        state_cell(t, slot);
    }
    table_print(t, "no slots; start det-agent --master URL on a host");
    return 0;
}

#define ALL                                                                                        \
    {                                                                                              \
        "all", 0, OPT_FLAG, &o.all, NULL, "every agent"                                            \
    }
#define DRAIN                                                                                      \
    {                                                                                              \
        "drain", 0, OPT_FLAG, &o.drain, NULL, "let running work end first"                         \
    }
static const struct opt enable_opts[] = {ALL, {0}};
static const struct opt disable_opts[] = {ALL, DRAIN, {0}};
static const struct opt disable_slot_opts[] = {DRAIN, {0}};
static const struct opt join_token_opts[] = {
    {"minutes", 0, OPT_COUNT, &o.minutes, "N", "how long it is good, at most 1440; 15"},
    {0},
};
static const struct verb agent_verbs[] = {
    {"list", "ls", "", "agents with their slots", NULL, list_agents},
    {"enable", NULL, "[AGENT]", "use it again", enable_opts, enable_agent},
    {"disable", NULL, "[AGENT]", "give it no more work and end what runs there", disable_opts,
     disable_agent},
    {"join-token", NULL, "[AGENT]", "let one agent join, with a certificate of its own",
     join_token_opts, join_token},
    {"revoke", NULL, "AGENT", "end its link now, and refuse it until it joins anew", NULL,
     revoke_agent},
    {0},
};
static const struct verb slot_verbs[] = {
    {"list", "ls", "", "every slot and what holds it", NULL, list_slots},
    {"enable", NULL, "AGENT SLOT", "use it again", NULL, enable_slot},
    {"disable", NULL, "AGENT SLOT", "give it no more work and end what holds it", disable_slot_opts,
     disable_slot},
    {0},
};

const struct noun noun_agent = {"agent", "a", NULL, "agents: list, enable, disable, join",
                                agent_verbs};
const struct noun noun_slot = {"slot", "s", NULL, "slots: list, enable, disable", slot_verbs};
