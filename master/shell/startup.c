#include "startup.h"

#include "auth.h"
#include "clk.h"
#include "db_lives.h"
#include "db_rows.h"
#include "failpoint.h"
#include "fsx.h"
#include "http.h"
#include "lives.h"
#include "log.h"
#include "masterconf.h"
#include "mem.h"
#include "notify.h"
#include "uuid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASSWORD_BYTES = 12 };

/* The file first: were the process killed between the two, a password nobody knows would be the
 * worse rest. */
static int admin_first(struct shell *sh, struct det_err *err)
{
    char password[2 * PASSWORD_BYTES + 1], text[2 * PASSWORD_BYTES + 2], hash[AUTH_HASH_MAX];
    bool has = true, set = false;
    int rc = db_admin_has_password(sh->db, &has, err);
    if (rc < 0 || has)
        return rc;
    random_hex(password, PASSWORD_BYTES);
    int n = snprintf(text, sizeof text, "%s\n", password);
    if (sh->conf->admin_password_file)
        rc = fsx_write_atomic(AT_FDCWD, sh->conf->admin_password_file, text, (size_t)n, 0600, err);
    if (rc == 0)
        rc = auth_hash_now(password, false, hash, err);
    if (rc == 0)
        rc = db_admin_password_init(sh->db, hash, &set, err);
    if (rc == 0 && set && sh->conf->admin_password_file)
        log_info("the first password of user admin is in %s", sh->conf->admin_password_file);
    else if (rc == 0 && set)
        fprintf(stderr,
                "The password of user admin is %s (shown once; change it with: det user "
                "change-password)\n",
                password);
    return rc;
}

int startup_identity(struct shell *sh, struct db_cluster *ret, struct det_err *err)
{
    int rc = db_cluster_read(sh->db, ret, err);
    if (rc < 0)
        return rc;
    snprintf(sh->cluster_id, sizeof sh->cluster_id, "%s", ret->cluster_id);
    uuid_random(sh->master_id);
    char line[80];
    int n = snprintf(line, sizeof line, "%s\n", ret->agent_token);
    if (sh->conf->agent_token_file)
        rc = fsx_write_atomic(AT_FDCWD, sh->conf->agent_token_file, line, (size_t)n, 0600, err);
    return rc == 0 ? admin_first(sh, err) : rc;
}

int startup_lives(struct shell *sh, struct det_err *err)
{
    struct db_life *lives;
    size_t n;
    int rc = db_lives_read(sh->db, &lives, &n, err);
    if (rc < 0)
        free(lives);
    else
        sh->lives = lives_create(sh, lives, n);
    return rc;
}

/* Settings that cannot be read are as if nobody had made them. */
static int put_agent(struct core *core, const struct row_agent *r, struct det_err *err)
{
    if (core_restore_agent(core, r, err) < 0)
        log_error("the settings of agent %s are left out: %s", r->agent_id, err->text);
    return 0;
}

static int put_store(struct core *core, const struct row_store *r, struct det_err *err)
{
    if (core_restore_store(core, r, err) < 0)
        log_error("what is known of a checkpoint store is left out: %s", err->text);
    return 0;
}

static int on_row(void *arg, enum row_kind kind, const union row_any *r, struct det_err *err)
{
    struct core *core = arg;
    switch (kind) {
    case ROW_AGENT: return put_agent(core, &r->agent, err);
    case ROW_STORE: return put_store(core, &r->store, err);
    case ROW_EXPERIMENT: return core_restore_experiment(core, &r->experiment, err);
    case ROW_SEARCH_SNAPSHOT: return core_restore_search_snapshot(core, &r->search_snapshot, err);
    case ROW_SEARCH_EVENT: return core_restore_search_event(core, &r->search_event, err);
    case ROW_TRIAL: return core_restore_trial(core, &r->trial, err);
    case ROW_ALLOCATION: return core_restore_allocation(core, &r->allocation, err);
    case ROW_KIND_COUNT: break;
    }
    return 0;
}

/* One look at all rows. ret_exp: whose row could not be taken. */
static int restore_once(struct shell *sh, struct core *core, int64_t *ret_exp, struct det_err *err)
{
    int64_t last_exp, last_trial;
    *ret_exp = 0;
    core_set_life(core, db_epoch(sh->db), lives_nonce(sh->lives));
    int rc = db_restore_ids(sh->db, &last_exp, &last_trial, err);
    if (rc < 0)
        return rc;
    core_restore_ids(core, last_exp, last_trial);
    return db_restore(sh->db, on_row, core, ret_exp, err);
}

/* An experiment that cannot be rebuilt costs nobody else his: it ends in ERROR, which its rows then
 * say, and the rest is looked at again. */
static int restore_rows(struct shell *sh, const struct core_options *o, struct core **ret,
                        struct det_err *err)
{
    int64_t exp_id, last = 0;
    for (;;) {
        struct core *core = core_create(o);
        int rc = restore_once(sh, core, &exp_id, err);
        if (rc == 0) {
            *ret = core;
            return 0;
        }
        core_destroy(core);
        if (exp_id == 0 || exp_id == last)
            return rc;
        log_error("experiment %lld ends in ERROR, since its rows cannot be read back: %s",
                  (long long)exp_id, err->text);
        rc = db_park_now(sh->db, exp_id, err);
        if (rc < 0)
            return rc;
        last = exp_id;
    }
}

int startup_restore(struct shell *sh, struct core **ret, struct core_effects *owed,
                    struct det_err *err)
{
    struct core_options o = sh->conf->core;
    o.cluster_id = sh->cluster_id;
    struct core *core = NULL;
    int rc = restore_rows(sh, &o, &core, err);
    if (rc < 0)
        return det_wrap(err, rc, "rebuild the state from the database");
    core_restored(core, clk_mono_ms(), clk_wall_us(), owed);
    FAILPOINT("startup.restored");
    *ret = core;
    return 0;
}

void startup_url(const struct shell *sh, char *ret, size_t max)
{
    char name[256] = "";
    const char *host = sh->conf->host;
    if (!strcmp(host, "0.0.0.0") || !strcmp(host, "::")) {
        gethostname(name, sizeof name - 1);
        host = name;
    }
    bool v6 = strchr(host, ':') != NULL;
    snprintf(ret, max, "%s://%s%s%s:%u", masterconf_is_tls(sh->conf) ? "https" : "http",
             v6 ? "[" : "", host, v6 ? "]" : "", http_port(sh->http));
}

int startup_announce(struct shell *sh, struct det_err *err)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%u\n", http_port(sh->http)), rc = 0;
    if (sh->conf->port_file)
        rc = fsx_write_atomic(AT_FDCWD, sh->conf->port_file, text, (size_t)n, 0644, err);
    if (rc == 0 && sh->conf->ready_file)
        rc = fsx_write_atomic(AT_FDCWD, sh->conf->ready_file, "", 0, 0644, err);
    if (rc == 0)
        notify_manager("READY=1\nSTATUS=serving");
    if (rc == 0)
        log_info("ready: %s://%s:%u", masterconf_is_tls(sh->conf) ? "https" : "http",
                 sh->conf->host, http_port(sh->http));
    return rc;
}
