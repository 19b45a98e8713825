#include "agentopts.h"

#include "agentlink.h"
#include "client.h"
#include "mem.h"
#include "opt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_WORK_DIR "/var/lib/det/agent"
#define DEFAULT_LOG_MIB  "64"
#define DEFAULT_PIDS     "4096"
#define TABLE_MAX        23
#define SLOT_MIB_MIN     16
#define SLOT_MIB_MAX     (1 << 30)
#define SLOT_PIDS_MIN    16
#define SLOT_PIDS_MAX    (1 << 22) /* as many as the kernel has */

static void make_table(struct agentopts *o, struct opt t[TABLE_MAX])
{
    const struct opt all[] = {
        {"master", 'm', OPT_STR, &o->master, "URL",
         "the master, http://HOST:PORT; several: with commas (DET_MASTER)"},
        {"token-file", 0, OPT_STR, &o->token_file, "PATH",
         "file with the token that all agents share (DET_AGENT_TOKEN_FILE)"},
        {"join-token", 0, OPT_STR, &o->join_token, "TOKEN",
         "what det agent join-token printed: join, unless done with it (DET_AGENT_JOIN_TOKEN)"},
        {"id", 0, OPT_STR, &o->id, "NAME", "name of this agent (DET_AGENT_ID); the host's name"},
        {"pool", 0, OPT_STR, &o->pool, "NAME",
         "resource pool (DET_AGENT_POOL); the master's default"},
        {"slots", 0, OPT_STR, &o->slots, "N|auto",
         "N: so many CPU slots; auto: one slot a GPU, else one CPU slot (DET_AGENT_SLOTS)"},
        {"work-dir", 0, OPT_STR, &o->work_dir, "DIR",
         "tasks live here (DET_AGENT_WORK_DIR); " DEFAULT_WORK_DIR},
        {"addr", 0, OPT_STR, &o->addr, "ADDRESS",
         "how other hosts reach this one (DET_AGENT_ADDR); the address towards the master"},
        {"task-uids", 0, OPT_STR, &o->task_uids, "FIRST-LAST",
         "a root agent's tasks: each user has a uid of these (DET_AGENT_TASK_UIDS); " ACCOUNT_RANGE_TEXT},
        {"task-user", 0, OPT_STR, &o->accounts.task_user, "USER",
         "instead one account for the tasks of all (DET_AGENT_TASK_USER); '': the agent's own"},
        {"hide", 0, OPT_STR, &o->hide, "PATHS",
         "files and directories that tasks do not see, with colons (DET_AGENT_HIDE)"},
        {"cert-file", 0, OPT_STR, &o->ca_file, "PATH",
         "the master's certificate (DET_MASTER_CERT_FILE)"},
        {"cert-name", 0, OPT_STR, &o->cert_name, "NAME",
         "name in that certificate (DET_MASTER_CERT_NAME)"},
        {"log-mib", 0, OPT_INT, &o->log_mib, "N",
         "keep so much of a task's output, MiB; 0: all (DET_AGENT_LOG_MIB); 64"},
        {"slot-memory-mib", 0, OPT_INT, &o->slot_memory_mib, "N",
         "memory for each slot of a task, MiB (DET_AGENT_SLOT_MEMORY_MIB); 0, no limit"},
        {"slot-pids", 0, OPT_INT, &o->slot_pids, "N",
         "processes and threads for each slot (DET_AGENT_SLOT_PIDS); " DEFAULT_PIDS
         "; 0: no limit"},
        {"log-level", 0, OPT_STR, &o->log_level, "LEVEL", "debug, info, warning or error; info"},
        {"end-tasks", 0, OPT_FLAG, &o->end_tasks, NULL,
         "end every task below --work-dir, and exit"},
        {"version", 0, OPT_FLAG, &o->version, NULL, "print the version"},
        {"help", 'h', OPT_FLAG, &o->help, NULL, "print this"},
        {0},
    };
    _Static_assert(DET_ARRAY_LEN(all) <= TABLE_MAX, "the table is too small");
    memcpy(t, all, sizeof all);
}

static const char *env_or(const char *name, const char *fallback)
{
    const char *s = getenv(name);
    return s && *s ? s : fallback;
}

/* -1: none, for check_options() to name. */
static int64_t parse_number(const char *text)
{
    char *end;
    long long n = strtoll(text, &end, 10);
    return *end ? -1 : n;
}

static void set_defaults(struct agentopts *o)
{
    if (gethostname(o->host_name, sizeof o->host_name - 1) < 0 || !link_id_is_valid(o->host_name))
        snprintf(o->host_name, sizeof o->host_name, "agent");
    o->master = env_or("DET_MASTER", NULL);
    o->token_file = env_or("DET_AGENT_TOKEN_FILE", NULL);
    o->join_token = env_or("DET_AGENT_JOIN_TOKEN", NULL);
    o->id = env_or("DET_AGENT_ID", o->host_name);
    o->pool = env_or("DET_AGENT_POOL", "");
    o->slots = env_or("DET_AGENT_SLOTS", "auto");
    o->work_dir = env_or("DET_AGENT_WORK_DIR", DEFAULT_WORK_DIR);
    o->addr = env_or("DET_AGENT_ADDR", NULL);
    o->task_uids = env_or("DET_AGENT_TASK_UIDS", ACCOUNT_RANGE_TEXT);
    o->accounts.task_user = getenv("DET_AGENT_TASK_USER"); /* "" has a meaning */
    o->hide = env_or("DET_AGENT_HIDE", "");
    o->ca_file = env_or("DET_MASTER_CERT_FILE", NULL);
    o->cert_name = env_or("DET_MASTER_CERT_NAME", NULL);
    o->log_mib = parse_number(env_or("DET_AGENT_LOG_MIB", DEFAULT_LOG_MIB));
    o->slot_memory_mib = parse_number(env_or("DET_AGENT_SLOT_MEMORY_MIB", "0"));
    o->slot_pids = parse_number(env_or("DET_AGENT_SLOT_PIDS", DEFAULT_PIDS));
    o->log_level = "info";
}

/* Host and port of the first full URL, for getaddrinfo; caller frees both. */
static void split_url(const char *url, char **ret_host, char **ret_port)
{
    const char *host = strstr(url, "://") + 3;
    bool is_v6 = *host == '[';
    host += is_v6;
    size_t n = strcspn(host, is_v6 ? "]" : ":");
    *ret_host = det_strndup(host, n);
    *ret_port = det_strndup(host + n + is_v6 + 1, strspn(host + n + is_v6 + 1, "0123456789"));
}

/* The local address that the kernel would use towards the master; nothing is sent. */
static void find_addr(struct agentopts *o)
{
    det_cleanup(freep) char *host = NULL;
    det_cleanup(freep) char *port = NULL;
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL;
    struct sockaddr_storage a;
    socklen_t len = sizeof a;
    snprintf(o->own_addr, sizeof o->own_addr, "127.0.0.1");
    split_url(o->master, &host, &port);
    if (getaddrinfo(host, port, &hints, &list) == 0) {
        det_cleanup(det_closep) int fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
            getsockname(fd, (struct sockaddr *)&a, &len) == 0 &&
            getnameinfo((struct sockaddr *)&a, len, o->own_addr, sizeof o->own_addr, NULL, 0,
                        NI_NUMERICHOST) != 0)
            snprintf(o->own_addr, sizeof o->own_addr, "127.0.0.1");
        freeaddrinfo(list);
    }
    o->addr = o->own_addr;
}

static int fill_in(struct agentopts *o, struct det_err *err)
{
    o->master = o->full_master = client_full_url(o->master, err);
    if (!o->master)
        return det_wrap(err, DET_EINVAL, "--master");
    if (o->ca_file && strcmp(o->ca_file, "noverify") != 0) {
        o->full_ca_file = realpath(o->ca_file, NULL);
        if (!o->full_ca_file)
            return det_fail_errno(err, DET_EINVAL, errno, "--cert-file %s", o->ca_file);
        o->ca_file = o->full_ca_file;
    }
    if (!o->addr)
        find_addr(o);
    return 0;
}

static int check_options(struct agentopts *o, struct det_err *err)
{
    if (!o->master)
        return det_fail(err, DET_EINVAL,
                        "--master is missing: give the master's URL, http://HOST:PORT");
    if (!link_id_is_valid(o->id) || strlen(o->id) > 64)
        return det_fail(err, DET_EINVAL, "--id %s: letters, digits, '.', '_' and '-', at most 64",
                        o->id);
    if (strlen(o->pool) > LINK_POOL_MAX)
        return det_fail(err, DET_EINVAL,
                        "--pool (DET_AGENT_POOL) has %zu bytes; the name of a pool has at most %d",
                        strlen(o->pool), LINK_POOL_MAX);
    if (o->log_mib < 0 || o->log_mib > 1 << 20)
        return det_fail(err, DET_EINVAL,
                        "--log-mib (DET_AGENT_LOG_MIB): a number of MiB, at most 1048576; "
                        "0: no limit");
    if (o->slot_memory_mib < 0 || o->slot_memory_mib > SLOT_MIB_MAX ||
        (o->slot_memory_mib > 0 && o->slot_memory_mib < SLOT_MIB_MIN))
        return det_fail(err, DET_EINVAL,
                        "--slot-memory-mib (DET_AGENT_SLOT_MEMORY_MIB): a number of MiB from %d to "
                        "%d; 0: no limit",
                        SLOT_MIB_MIN, SLOT_MIB_MAX);
    if (o->slot_pids < 0 || o->slot_pids > SLOT_PIDS_MAX ||
        (o->slot_pids > 0 && o->slot_pids < SLOT_PIDS_MIN))
        return det_fail(err, DET_EINVAL,
                        "--slot-pids (DET_AGENT_SLOT_PIDS): a number from %d to %d; 0: no limit",
                        SLOT_PIDS_MIN, SLOT_PIDS_MAX);
    if (account_range_parse(o->task_uids, &o->accounts.first, &o->accounts.last, err) < 0)
        return det_wrap(err, DET_EINVAL, "--task-uids (DET_AGENT_TASK_UIDS)");
    return fill_in(o, err);
}

void agentopts_finish(struct agentopts *o)
{
    free(o->full_master);
    free(o->full_ca_file);
}

int agentopts_parse(int argc, char **argv, struct agentopts *ret, struct det_err *err)
{
    struct opt table[TABLE_MAX];
    struct opt_list rest = {0};
    *ret = (struct agentopts){0};
    set_defaults(ret);
    make_table(ret, table);
    int rc = opt_parse(table, argc, argv, 1, &rest, err);
    ret->doctor = rc == 0 && rest.n == 1 && strcmp(rest.v[0], "doctor") == 0;
    if (rc == 0 && rest.n > 0 && !ret->doctor)
        rc = det_fail(err, DET_EINVAL, "'%s' is no option", rest.v[0]);
    opt_list_finish(&rest);
    if (rc < 0 || ret->help || ret->version || ret->end_tasks)
        return rc;
    return check_options(ret, err);
}

void agentopts_print_help(void)
{
    struct agentopts o;
    struct opt table[TABLE_MAX];
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    make_table(&o, table);
    opt_help(table, &b);
    printf("usage: det-agent --master URL --join-token TOKEN | --token-file PATH [options]\n"
           "       det-agent doctor ...    looks whether it could work, and says what to do\n\n%s",
           buf_str(&b));
}
