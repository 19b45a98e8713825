/* det master retention: deletes logs and metrics that are old enough, or says how many are. */
#include "master_retention.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    bool dry_run;
} o;

const struct opt master_retention_opts[] = {
    {"dry-run", 0, OPT_FLAG, &o.dry_run, NULL, "delete nothing, only say what is due"},
    {0},
};

int master_retention(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body = json_make("{s:b}", "dryRun", o.dry_run);
    if (cli_call(c, "POST", "/master/cleanup_logs", body, &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    const char *what = o.dry_run ? "would be deleted" : "are being deleted";
    printf("%s log lines of %" PRId64 " trials %s\n%s metric reports of %" PRId64 " trials %s\n",
           json_str(answer, "removedCount", "0"), json_int(answer, "logTrials", 0), what,
           json_str(answer, "removedMetrics", "0"), json_int(answer, "metricTrials", 0), what);
    return 0;
}
