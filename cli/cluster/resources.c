/* det resources: who used how many slots, and when. */
#include "buf.h"
#include "cli.h"

#include <stdio.h>

enum { CSV_MAX = 256 << 20 };

static bool by_month;

static const struct opt aggregated_opts[] = {
    {"monthly", 0, OPT_FLAG, &by_month, NULL, "by month, START and END as 2026-01"},
    {0},
};

/* CSV as it comes, or the API's own answer. */
static int print_report(struct cli *c, const char *path, struct det_err *err)
{
    if (c->json) {
        JSON_OWN answer = NULL;
        if (cli_get(c, &answer, err, "%s", path) < 0)
            return CLI_FAILED;
        cli_print_json(c, json_object_get(answer, "resourceEntries"));
        return 0;
    }
    det_cleanup(buf_finish) struct buf csv = BUF_INIT;
    if (cli_download(c, path, "text/csv", CSV_MAX, &csv, err) < 0)
        return CLI_FAILED;
    fwrite(buf_str(&csv), 1, csv.len, stdout);
    return 0;
}

static int report_raw(struct cli *c, struct det_err *err)
{
    det_cleanup(freep) char *after = cli_escaped(cli_arg(c, 0));
    det_cleanup(freep) char *before = cli_escaped(cli_arg(c, 1));
    det_cleanup(freep) char *path = det_asprintf(
        "/resources/allocation/raw?timestamp_after=%s&timestamp_before=%s", after, before);
    return print_report(c, path, err);
}

static int report_aggregated(struct cli *c, struct det_err *err)
{
    det_cleanup(freep) char *start = cli_escaped(cli_arg(c, 0));
    det_cleanup(freep) char *end = cli_escaped(cli_arg(c, 1));
    det_cleanup(freep) char *path =
        det_asprintf("/resources/allocation/aggregated?start_date=%s&end_date=%s"
                     "&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_%s",
                     start, end, by_month ? "MONTHLY" : "DAILY");
    return print_report(c, path, err);
}

static const struct verb verbs[] = {
    {"raw", NULL, "AFTER BEFORE",
     "each run that had slots between two times (2026-01-31T08:00:00Z), as CSV", NULL, report_raw},
    {"aggregated", "agg", "START END",
     "slot seconds of each day from START to END (2026-01-31), by user, label, pool and workspace, "
     "as CSV",
     aggregated_opts, report_aggregated},
    {0},
};

const struct noun noun_resources = {"resources", "res", NULL,
                                    "who used how many slots, and when: raw, aggregated", verbs};
