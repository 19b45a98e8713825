/* det master */
#include "cli.h"
#include "master_audit.h"
#include "master_lives.h"
#include "master_logs.h"
#include "master_retention.h"

#include <inttypes.h>
#include <stdio.h>

static int show_info(struct cli *c, struct det_err *err)
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

static int show_config(struct cli *c, struct det_err *err)
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

static int rotate_authority(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    if (cli_call(c, "POST", "/master/authority/rotate", NULL, &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    printf("it was  %s\nit is   %s\n", json_str(answer, "former", ""),
           json_str(answer, "fingerprint", ""));
    return 0;
}

static const struct verb master_verbs[] = {
    {"info", NULL, "", "version and cluster", NULL, show_info},
    {"config", NULL, "[show]", "the master's settings as JSON", NULL, show_config},
    {"logs", NULL, "", "the master's own log", master_logs_opts, master_logs},
    {"rotate-authority", NULL, "",
     "a new certificate authority of the cluster's; who trusted the "
     "one of before follows by itself",
     NULL, rotate_authority},
    {"audit", NULL, "", "who changed what, from where", master_audit_opts, master_audit},
    {"lives", NULL, "",
     "where the database comes from, and which agents are refused since it was "
     "restored",
     NULL, master_lives},
    {"strays", NULL, "[ALLOCATION]", "what tasks of another life of the cluster sent: kept aside",
     master_strays_opts, master_strays},
    {"retention", NULL, "", "delete old logs and metrics now", master_retention_opts,
     master_retention},
    {0},
};
const struct noun noun_master = {"master", "", NULL, "the master: information, settings, log",
                                 master_verbs};
