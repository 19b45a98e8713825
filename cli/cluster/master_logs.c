/* det master logs: the master's own log. */
#include "cli.h"
#include "master_logs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    bool follow;
    int64_t tail;
} o;

const struct opt master_logs_opts[] = {
    {"follow", 'f', OPT_FLAG, &o.follow, NULL, "go on with each new line"},
    {"tail", 0, OPT_COUNT, &o.tail, "N", "only the last N lines"},
    {0},
};

static int print_line(void *arg, json_t *result)
{
    const json_t *e = json_obj(result, "logEntry");
    const char *level = json_str(e, "level", "");
    size_t prefix = strlen("LOG_LEVEL_");
    printf("%s %s %s\n", json_str(e, "timestamp", ""),
           strlen(level) > prefix ? level + prefix : level, json_str(e, "message", ""));
    fflush(stdout);
    return 0;
}

int master_logs(struct cli *c, struct det_err *err)
{
    char path[96];
    snprintf(path, sizeof path, "/master/logs?offset=%" PRId64 "&follow=%s",
             o.tail > 0 ? -o.tail : 0, o.follow ? "true" : "false");
    return cli_stream(c, path, print_line, NULL, err) < 0 ? CLI_FAILED : 0;
}
