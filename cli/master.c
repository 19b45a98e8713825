/* det master, det job */
#include "cli.h"
#include "master_logs.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>

static int info(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_get_open(c, "/api/v1/master", &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    printf("master   %s\nversion  %s\ncluster  %s (%s)\n", c->master,
           json_str(answer, "version", ""), json_str(answer, "clusterName", ""),
           json_str(answer, "clusterId", ""));
    return 0;
}

static int config(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/master/config") < 0)
        return CLI_FAILED;
    struct buf out = BUF_INIT;
    json_write_pretty(&out, json_object_get(answer, "config"));
    puts(buf_str(&out));
    buf_finish(&out);
    return 0;
}

static void job_row(struct table *t, const json_t *job)
{
    table_cell(t, "%" PRId64, json_int(json_obj(job, "summary"), "jobsAhead", 0) + 1);
    table_cell(t, "%s", json_str(job, "entityId", ""));
    table_cell(t, "%s", json_str(job, "name", ""));
    table_cell(t, "%s", json_str(job, "username", ""));
    table_cell(t, "%s", show_state(json_str(json_obj(job, "summary"), "state", "")));
    table_cell(t, "%" PRId64 "/%" PRId64, json_int(job, "allocatedSlots", 0),
               json_int(job, "requestedSlots", 0));
    table_cell(t, "%" PRId64, json_int(job, "priority", 0));
    table_cell(t, "%g", json_num(job, "weight", 1));
    table_cell(t, "%s", show_time(json_str(job, "submissionTime", NULL)));
}

static int job_list(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">#",     "EXPERIMENT", "NAME",    "OWNER",    "STATE",
                                        ">SLOTS", ">PRIORITY",  ">WEIGHT", "SUBMITTED"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/job-queues-v2?limit=100") < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_object_get(answer, "jobs")))
        return 0;
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    size_t i;
    json_t *job;
    json_array_foreach(json_arr(answer, "jobs"), i, job)
        job_row(t, json_obj(job, "full") ? json_obj(job, "full") : json_obj(job, "limited"));
    table_print(t, "nothing runs and nothing waits");
    return 0;
}

static const struct verb master_verbs[] = {
    {"info", NULL, "", "version and cluster", NULL, info},
    {"config", NULL, "", "the master's settings as JSON", NULL, config},
    {"logs", NULL, "", "the master's own log", master_logs_opts, master_logs},
    {0},
};
static const struct verb job_verbs[] = {
    {"list", "ls", "", "the queue", NULL, job_list},
    {0},
};

const struct noun noun_master = {"master", "m", NULL, "the master: information, settings, log",
                                 master_verbs};
const struct noun noun_job = {"job", "j", NULL, "the queue: list", job_verbs};
