/* det resource-pool */
#include "cli.h"
#include "listing.h"
#include "show.h"

#include <inttypes.h>
#include <string.h>

/* SCHEDULER_TYPE_FAIR_SHARE -> FAIR_SHARE */
static const char *skip_prefix(const char *prefix, const char *word)
{
    size_t n = strlen(prefix);
    return strncmp(word, prefix, n) == 0 ? word + n : word;
}

static void pool_row(struct table *t, const json_t *p)
{
    table_cell(t, "%s", json_str(p, "name", ""));
    table_cell(t, "%s", json_str(p, "description", ""));
    table_cell(t, "%s", json_flag(p, "defaultComputePool", false) ? "yes" : "");
    table_cell(t, "%s", skip_prefix("SCHEDULER_TYPE_", json_str(p, "schedulerType", "")));
    table_cell(t, "%s", skip_prefix("FITTING_POLICY_", json_str(p, "schedulerFittingPolicy", "")));
    table_cell(t, "%" PRId64, json_int(p, "numAgents", 0));
    table_cell(t, "%" PRId64, json_int(p, "slotsAvailable", 0));
    table_cell(t, "%" PRId64, json_int(p, "slotsUsed", 0));
    table_cell(t, "%" PRId64, json_int(json_obj(p, "stats"), "queuedCount", 0));
}

static int list_pools(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"POOL",    "DESCRIPTION", "DEFAULT", "SCHEDULER", "FIT",
                                        ">AGENTS", ">SLOTS",      ">USED",   ">QUEUED"};
    static const struct listing listing = {"resourcePools", heads, DET_ARRAY_LEN(heads), pool_row,
                                           "no pools"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/resource-pools") < 0)
        return CLI_FAILED;
    return listing_print(c, answer, &listing);
}

static const struct verb verbs[] = {
    {"list", "ls", "", "the pools, how they are run and what they hold", NULL, list_pools},
    {0},
};

const struct noun noun_pool = {"resource-pool", "rp", NULL, "resource pools: list", verbs};
