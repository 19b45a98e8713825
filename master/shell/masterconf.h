/*
 * The master's settings: defaults, then master.yaml (--config), then options. Every mistake is
 * named with its path or option. Durations are seconds in the file and on the command line.
 */
#ifndef SHELL_MASTERCONF_H
#define SHELL_MASTERCONF_H

#include "core.h"
#include "det/err.h"
#include "json.h"
#include <stdbool.h>
#include <stdint.h>

struct masterconf {
    char *host;   /* "127.0.0.1" */
    int64_t port; /* 8080; 0: any free one */
    char *db;     /* libpq's conninfo */
    char *cluster_name;
    json_t *checkpoint_storage; /* normalised part of a configuration: below every experiment's */
    int64_t stall_timeout_ms;   /* 600,000; 0: never */
    char *task_user;            /* "det": whom tasks run as when their owner has no account */
    char *agent_token_file, *admin_password_file, *port_file, *ready_file; /* NULL: none */
    char *log_level;
    struct core_options core; /* default_pool is borrowed from here: */
    char *default_pool;
    bool print_config, help, version;
};

/* argv as main got it. On success *c is to be finished; else it is already. */
int masterconf_init(struct masterconf *c, int argc, char **argv, struct det_err *err);
void masterconf_finish(struct masterconf *c);
/* As GET /api/v1/master/config shows it: secrets masked. New reference. */
json_t *masterconf_json(const struct masterconf *c);
/* The --help text; caller frees. */
char *masterconf_help(void);

#endif
