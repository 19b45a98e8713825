/* det resource-pool */
#include "cli.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <string.h>

/* SCHEDULER_TYPE_FAIR_SHARE -> FAIR_SHARE */
static const char *after(const char *prefix, const char *word)
{
    size_t n = strlen(prefix);
    return strncmp(word, prefix, n) == 0 ? word + n : word;
}

static void pool_row(struct table *t, const json_t *p)
{
    table_cell(t, "%s", json_str(p, "name", ""));
    table_cell(t, "%s", json_str(p, "description", ""));
    table_cell(t, "%s", json_flag(p, "defaultComputePool", false) ? "yes" : "");
    table_cell(t, "%s", after("SCHEDULER_TYPE_", json_str(p, "schedulerType", "")));
    table_cell(t, "%s", after("FITTING_POLICY_", json_str(p, "schedulerFittingPolicy", "")));
    table_cell(t, "%" PRId64, json_int(p, "numAgents", 0));
    table_cell(t, "%" PRId64, json_int(p, "slotsAvailable", 0));
    table_cell(t, "%" PRId64, json_int(p, "slotsUsed", 0));
    table_cell(t, "%" PRId64, json_int(json_obj(p, "stats"), "queuedCount", 0));
}

static int list(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"POOL",    "DESCRIPTION", "DEFAULT", "SCHEDULER", "FIT",
                                        ">AGENTS", ">SLOTS",      ">USED",   ">QUEUED"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/resource-pools") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_object_get(answer, "resourcePools")))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *p;
    json_array_foreach(json_arr(answer, "resourcePools"), i, p) pool_row(t, p);
    table_print(t, "no pools");
    return 0;
}

static const struct verb verbs[] = {
    {"list", "ls", "", "the pools, how they are run and what they hold", NULL, list},
    {0},
};

const struct noun noun_pool = {"resource-pool", "rp", NULL, "resource pools: list", verbs};
