/* The retention of logs and metrics by hand: begins a round, or only says what it would delete. */
#include "api_handlers.h"
#include "api_util.h"
#include "retention.h"
#include "shell.h"
#include <inttypes.h>

struct cleanup {
    struct shell *sh;
    struct http_req *req;
    bool dry_run;
};

static void on_counted(void *arg, const struct db_result *r)
{
    struct cleanup *c = arg;
    if (api_failed(c->req, r))
        return;
    if (!c->dry_run)
        retention_now(c->sh->retention);
    api_reply_json(c->req,
                   json_make("{s:s,s:I,s:s,s:I,s:b}", "removedCount", db_text(r, 0, COUNT_LOGS),
                             "logTrials", (json_int_t)db_i64(r, 0, COUNT_LOG_TRIALS),
                             "removedMetrics", db_text(r, 0, COUNT_METRICS), "metricTrials",
                             (json_int_t)db_i64(r, 0, COUNT_METRIC_TRIALS), "dryRun", c->dry_run));
}

struct cleanup_body {
    int dry_run;
};
static const struct wire_field cleanup_fields[] = {
    {"dryRun", WIRE_BOOL, offsetof(struct cleanup_body, dry_run), 0, NULL},
};

void api_cleanup_logs(struct shell *sh, struct http_req *req)
{
    struct cleanup_body b = {0};
    JSON_OWN body = NULL;
    if (!api_decode(req, cleanup_fields, DET_ARRAY_LEN(cleanup_fields), &b, &body))
        return;
    struct cleanup *c = http_mem(req, sizeof *c);
    *c = (struct cleanup){.sh = sh, .req = req, .dry_run = b.dry_run == 1};
    struct db_retention keep = retention_keep(sh);
    db_retention_count(sh->db, &keep, on_counted, c);
}
