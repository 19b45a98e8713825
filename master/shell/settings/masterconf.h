/*
 * The master's settings as the program uses them: the defaults of settings_table.c, then
 * master.yaml
 * (--config), then the environment, then options. Every mistake of all of them is named at once.
 */
#ifndef SHELL_MASTERCONF_H
#define SHELL_MASTERCONF_H

#include "core.h"
#include "det/err.h"
#include "json.h"
#include "log.h"
#include "may.h"
#include <stdbool.h>
#include <stdint.h>

enum masterconf_verb {
    MASTERCONF_SERVE,
    MASTERCONF_PRINT_CONFIG,
    MASTERCONF_PRINT_EXAMPLE,
    MASTERCONF_HELP,
    MASTERCONF_VERSION,
    MASTERCONF_DOCTOR,
    MASTERCONF_NEW_LIFE,
};

struct masterconf {
    json_t *tree; /* all settings, defaults filled in, as settings_table.c has them */
    enum masterconf_verb verb;
    json_t *checkpoint_storage; /* normalised part of a configuration: below every experiment's */

    /* From here on bound by settings_table.c, which explains them. Texts without one are NULL. */
    char *host, *db, *cluster_name, *task_user, *default_pool;
    int64_t port, stall_timeout_ms, unmanaged_timeout_ms, checkpoint_quarantine_ms;
    int64_t log_retention_days, metric_retention_days; /* below 0: for ever */
    int64_t audit_retention_days, slot_use_retention_days;
    int64_t token_default_days, token_max_days;
    char *tls_cert, *tls_key; /* both or neither */
    char *tls_authority_file;
    int64_t tls_own_renewal_ms;
    char *web_dir, *web_hosts;
    char *webhook_networks; /* webhook_read_networks() takes it */
    bool tls_own, insecure, agents_certificates_only, reuse_answers;
    int64_t agent_certificate_ms; /* how long one lasts */
    char *agent_token_file, *admin_password_file, *port_file, *ready_file;
    enum may_mode authz;
    enum log_level log_level;
    enum log_format log_format;
    struct core_options core;        /* its default_pool and pools are borrowed from here */
    struct core_pool_options *pools; /* of resource_pools[]; their texts are the tree's */
    struct core_quota *quotas;       /* of quotas[]; likewise */
};

static inline bool masterconf_is_tls(const struct masterconf *c)
{
    return c->tls_cert || c->tls_own;
}

/* argv and env as main got them. On success *c is to be finished; else it is already. */
DET_MUST int masterconf_init(struct masterconf *c, int argc, char **argv, char **env,
                             struct det_err *err);
void masterconf_finish(struct masterconf *c);
/* All settings, secrets masked: what --print-config and GET /api/v1/master/config show. New
 * reference. */
json_t *masterconf_json(const struct masterconf *c);
/* What the verb prints; caller frees. */
char *masterconf_text(const struct masterconf *c);

#endif
