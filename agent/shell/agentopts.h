/* det-agent's options: the command line, else DET_* of the environment, else the default. */
#ifndef AGENTOPTS_H
#define AGENTOPTS_H

#include "account.h"
#include "det/err.h"
#include <stdbool.h>
#include <stdint.h>

struct agentopts {
    const char *master;     /* URLs in full, commas between */
    const char *token_file; /* of the token that all agents share; NULL: none */
    const char *join_token; /* NULL: none */
    const char *id;         /* default: the host's name */
    const char *pool;       /* "": the default pool */
    const char *slots;      /* "auto", or a number of CPU slots */
    const char *work_dir;
    const char *addr; /* how other hosts reach this one; default: the address towards the master */
    const char *task_uids;        /* FIRST-LAST */
    struct account_rule accounts; /* of a root agent: whom tasks run as */
    const char *hide;             /* paths that no task may see, with colons; "" none */
    const char *ca_file, *cert_name;
    const char *log_level;
    int64_t slot_memory_mib, slot_pids; /* of a task, for each of its slots; 0: no limit */
    int64_t log_mib; /* how much of a task's output is kept on each host, MiB; 0: all */
    bool end_tasks, help, version, doctor; /* doctor: the verb */
    char host_name[256], own_addr[64];
    char *full_master, *full_ca_file; /* owned: what master and ca_file point at once checked */
};
/* Strings are borrowed from argv and the environment; master and ca_file are made full, as tasks
 * run in other directories. DET_EINVAL names the option. */
DET_MUST int agentopts_parse(int argc, char **argv, struct agentopts *ret, struct det_err *err);
void agentopts_finish(struct agentopts *o);
void agentopts_print_help(void);

#endif
