#include "masterconf.h"

#include "buf.h"
#include "expconf.h"
#include "fsx.h"
#include "log.h"
#include "mem.h"
#include "opt.h"
#include "yamljson.h"

#include <fcntl.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 20 };

/* What options may say; absent ones keep what the file or the default says. */
struct flags {
    const char *config, *host, *db, *cluster_name, *checkpoint_dir, *task_user;
    const char *agent_token_file, *admin_password_file, *port_file, *ready_file, *log_level,
        *scheduler;
    int64_t port, stall_timeout_s, reconnect_wait_s;
    bool print_config, help, version;
};

static struct flags flags_none(void)
{
    return (struct flags){.port = -1, .stall_timeout_s = -1, .reconnect_wait_s = -1};
}

#define FLAG_ROWS 17
static void flags_table(struct flags *f, struct opt table[FLAG_ROWS + 1])
{
    const struct opt rows[FLAG_ROWS + 1] = {
        {"config", 'c', OPT_STR, &f->config, "PATH", "read settings from this master.yaml"},
        {"host", 0, OPT_STR, &f->host, "ADDRESS", "listen here (default 127.0.0.1)"},
        {"port", 'p', OPT_INT, &f->port, "N",
         "listen on this port; 0: any free one (default 8080)"},
        {"db", 0, OPT_STR, &f->db, "CONNINFO",
         "PostgreSQL, e.g. \"host=/run/pg user=det dbname=det\""},
        {"cluster-name", 0, OPT_STR, &f->cluster_name, "NAME", "shown to people"},
        {"checkpoint-dir", 0, OPT_STR, &f->checkpoint_dir, "DIR",
         "default checkpoint storage: a directory all agents share"},
        {"stall-timeout", 0, OPT_INT, &f->stall_timeout_s, "SECONDS",
         "end a trial that finishes no batch for so long; 0: never (default 600)"},
        {"agent-reconnect-wait", 0, OPT_INT, &f->reconnect_wait_s, "SECONDS",
         "how long a lost agent's tasks stay its own (default 25)"},
        {"scheduler", 0, OPT_STR, &f->scheduler, "NAME", "fair_share (default), priority or fifo"},
        {"task-user", 0, OPT_STR, &f->task_user, "NAME",
         "account of tasks whose owner has none (det)"},
        {"agent-token-file", 0, OPT_STR, &f->agent_token_file, "PATH",
         "write the agents' token there (0600)"},
        {"admin-password-file", 0, OPT_STR, &f->admin_password_file, "PATH",
         "write the first admin password there (0600)"},
        {"port-file", 0, OPT_STR, &f->port_file, "PATH",
         "write the port there once requests are served"},
        {"ready-file", 0, OPT_STR, &f->ready_file, "PATH",
         "make this file once requests are served"},
        {"log-level", 0, OPT_STR, &f->log_level, "LEVEL",
         "trace, debug, info (default), warning or error"},
        {"print-config", 0, OPT_FLAG, &f->print_config, NULL, "print the settings as JSON and end"},
        {"help", 'h', OPT_FLAG, &f->help, NULL, "print this and end"},
        {NULL, 0, OPT_FLAG, NULL, NULL, NULL},
    };
    memcpy(table, rows, sizeof rows);
}

static void set_text(char **to, const char *text)
{
    if (!text)
        return;
    free(*to);
    *to = det_strdup(text);
}

static void defaults(struct masterconf *c)
{
    *c =
        (struct masterconf){.port = 8080, .stall_timeout_ms = 600000, .core = core_options_default};
    set_text(&c->host, "127.0.0.1");
    set_text(&c->db, "dbname=det");
    set_text(&c->cluster_name, "");
    set_text(&c->task_user, "det");
    set_text(&c->log_level, "info");
    set_text(&c->default_pool, "default");
}

static int scheduler_set(struct masterconf *c, const char *where, const char *name,
                         struct det_err *err)
{
    static const char *const names[] = {"fair_share", "priority", "fifo"};
    for (size_t i = 0; i < DET_ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]))
            continue;
        c->core.scheduler = (enum core_scheduler)i;
        return 0;
    }
    return det_fail(err, DET_EINVAL, "%s: \"%.40s\" is not fair_share, priority or fifo", where,
                    name);
}

static int storage_set(struct masterconf *c, const json_t *raw, struct det_err *err)
{
    JSON_OWN whole = json_object();
    json_object_set(whole, "checkpoint_storage", (json_t *)raw);
    json_t *part = NULL;
    int rc = expconf_partial(whole, &part, err);
    if (rc < 0)
        return rc;
    json_decref(c->checkpoint_storage);
    c->checkpoint_storage = part;
    return 0;
}

/* master.yaml. */

static int text_of(const json_t *j, const char *path, char **to, struct det_err *err)
{
    const json_t *v = json_path(j, path);
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_string(v))
        return det_fail(err, DET_EINVAL, "%s: expected text", path);
    set_text(to, json_string_value(v));
    return 0;
}

static int int_of(const json_t *j, const char *path, int64_t min, int64_t scale, int64_t *to,
                  struct det_err *err)
{
    const json_t *v = json_path(j, path);
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > INT32_MAX)
        return det_fail(err, DET_EINVAL, "%s: expected an integer of at least %lld", path,
                        (long long)min);
    *to = json_integer_value(v) * scale;
    return 0;
}

static int bool_of(const json_t *j, const char *path, bool *to, struct det_err *err)
{
    const json_t *v = json_path(j, path);
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_boolean(v))
        return det_fail(err, DET_EINVAL, "%s: expected true or false", path);
    *to = json_is_true(v);
    return 0;
}

static int known_keys(const json_t *j, struct det_err *err)
{
    static const char *const keys[] = {"host",
                                       "port",
                                       "db",
                                       "cluster_name",
                                       "checkpoint_storage",
                                       "stall_timeout",
                                       "task_user",
                                       "agent_reconnect_wait",
                                       "launch_error",
                                       "log_level",
                                       "resource_manager",
                                       "agent_token_file",
                                       "admin_password_file",
                                       "port_file",
                                       "ready_file"};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)j, key, v)
    {
        bool known = false;
        for (size_t i = 0; i < DET_ARRAY_LEN(keys); i++)
            known = known || !strcmp(key, keys[i]);
        if (!known)
            return det_fail(err, DET_EINVAL, "%s: no such setting", key);
    }
    return 0;
}

static int file_texts(struct masterconf *c, const json_t *j, struct det_err *err)
{
    const struct {
        const char *path;
        char **to;
    } rows[] = {
        {"host", &c->host},
        {"db", &c->db},
        {"cluster_name", &c->cluster_name},
        {"task_user", &c->task_user},
        {"log_level", &c->log_level},
        {"agent_token_file", &c->agent_token_file},
        {"admin_password_file", &c->admin_password_file},
        {"port_file", &c->port_file},
        {"ready_file", &c->ready_file},
        {"resource_manager.default_compute_resource_pool", &c->default_pool},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < DET_ARRAY_LEN(rows); i++)
        rc = text_of(j, rows[i].path, rows[i].to, err);
    return rc;
}

static int file_numbers(struct masterconf *c, const json_t *j, struct det_err *err)
{
    int64_t priority = c->core.default_priority;
    const struct {
        const char *path;
        int64_t min, scale, *to;
    } rows[] = {
        {"port", 0, 1, &c->port},
        {"stall_timeout", 0, 1000, &c->stall_timeout_ms},
        {"agent_reconnect_wait", 0, 1000, &c->core.agent_reconnect_wait_ms},
        {"resource_manager.scheduler.priority.default_priority", 1, 1, &priority},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < DET_ARRAY_LEN(rows); i++)
        rc = int_of(j, rows[i].path, rows[i].min, rows[i].scale, rows[i].to, err);
    c->core.default_priority = (int)priority;
    return rc;
}

static int file_scheduler(struct masterconf *c, const json_t *j, struct det_err *err)
{
    det_cleanup(freep) char *type = NULL, *fitting = NULL;
    int rc = text_of(j, "resource_manager.scheduler.type", &type, err);
    if (rc == 0 && type)
        rc = scheduler_set(c, "resource_manager.scheduler.type", type, err);
    if (rc == 0)
        rc = text_of(j, "resource_manager.scheduler.fitting_policy", &fitting, err);
    if (rc == 0 && fitting && strcmp(fitting, "best") && strcmp(fitting, "worst"))
        rc = det_fail(err, DET_EINVAL, "resource_manager.scheduler.fitting_policy: best or worst");
    if (rc == 0 && fitting)
        c->core.fitting = strcmp(fitting, "best") ? CORE_FIT_WORST : CORE_FIT_BEST;
    if (rc == 0)
        rc = bool_of(j, "resource_manager.scheduler.allow_heterogeneous_fits",
                     &c->core.allow_heterogeneous_fits, err);
    if (rc == 0)
        rc = bool_of(j, "resource_manager.scheduler.priority.preemption", &c->core.preemption, err);
    return rc;
}

static int file_apply(struct masterconf *c, const char *path, struct det_err *err)
{
    struct buf text = BUF_INIT;
    JSON_OWN j = NULL;
    int rc = fsx_read_file(AT_FDCWD, path, CONFIG_BYTES_MAX, &text, err);
    if (rc == 0)
        rc = yamljson_parse(buf_str(&text), text.len, &j, err);
    buf_finish(&text);
    if (rc == 0 && !json_is_object(j))
        rc = det_fail(err, DET_EINVAL, "expected a map of settings");
    if (rc == 0)
        rc = known_keys(j, err);
    if (rc == 0)
        rc = file_texts(c, j, err);
    if (rc == 0)
        rc = file_numbers(c, j, err);
    if (rc == 0)
        rc = file_scheduler(c, j, err);
    if (rc == 0)
        rc = bool_of(j, "launch_error", &c->core.launch_error, err);
    if (rc == 0 && json_obj(j, "checkpoint_storage"))
        rc = storage_set(c, json_obj(j, "checkpoint_storage"), err);
    return rc < 0 ? det_wrap(err, rc, "%s", path) : 0;
}

/* Options. */

static int flags_apply(struct masterconf *c, const struct flags *f, struct det_err *err)
{
    set_text(&c->host, f->host);
    set_text(&c->db, f->db);
    set_text(&c->cluster_name, f->cluster_name);
    set_text(&c->task_user, f->task_user);
    set_text(&c->agent_token_file, f->agent_token_file);
    set_text(&c->admin_password_file, f->admin_password_file);
    set_text(&c->port_file, f->port_file);
    set_text(&c->ready_file, f->ready_file);
    set_text(&c->log_level, f->log_level);
    if (f->port >= 0)
        c->port = f->port;
    if (f->stall_timeout_s >= 0)
        c->stall_timeout_ms = f->stall_timeout_s * 1000;
    if (f->reconnect_wait_s >= 0)
        c->core.agent_reconnect_wait_ms = f->reconnect_wait_s * 1000;
    int rc = f->scheduler ? scheduler_set(c, "--scheduler", f->scheduler, err) : 0;
    if (rc == 0 && f->checkpoint_dir) {
        JSON_OWN s = json_make("{s:s, s:s}", "type", "shared_fs", "host_path", f->checkpoint_dir);
        rc = storage_set(c, s, err);
        if (rc < 0)
            det_wrap(err, rc, "--checkpoint-dir");
    }
    return rc;
}

static int check(const struct masterconf *c, struct det_err *err)
{
    enum log_level level;
    if (c->port > 65535)
        return det_fail(err, DET_EINVAL, "port: %lld is above 65535", (long long)c->port);
    if (log_level_parse(c->log_level, &level) < 0)
        return det_fail(err, DET_EINVAL,
                        "log_level: \"%.40s\" is not trace, debug, info, warning or error",
                        c->log_level);
    if (c->core.default_priority > 99)
        return det_fail(err, DET_EINVAL, "default_priority: expected 1 to 99");
    return 0;
}

int masterconf_init(struct masterconf *c, int argc, char **argv, struct det_err *err)
{
    struct flags f = flags_none();
    struct opt table[FLAG_ROWS + 1];
    struct opt_list pos = {0};
    flags_table(&f, table);
    defaults(c);
    int rc = opt_parse(table, argc, argv, 1, &pos, err);
    if (rc == 0 && pos.n > 0)
        rc = det_fail(err, DET_EINVAL, "unexpected argument \"%.80s\"; see --help", pos.v[0]);
    opt_list_free(&pos);
    if (rc == 0 && f.config)
        rc = file_apply(c, f.config, err);
    if (rc == 0)
        rc = flags_apply(c, &f, err);
    if (rc == 0)
        rc = check(c, err);
    c->print_config = f.print_config;
    c->help = f.help;
    c->core.default_pool = c->default_pool;
    if (rc < 0)
        masterconf_finish(c);
    return rc;
}

void masterconf_finish(struct masterconf *c)
{
    char *texts[] = {c->host,
                     c->db,
                     c->cluster_name,
                     c->task_user,
                     c->agent_token_file,
                     c->admin_password_file,
                     c->port_file,
                     c->ready_file,
                     c->log_level,
                     c->default_pool};
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++)
        free(texts[i]);
    json_decref(c->checkpoint_storage);
    *c = (struct masterconf){0};
}

json_t *masterconf_json(const struct masterconf *c)
{
    static const char *const schedulers[] = {"fair_share", "priority", "fifo"};
    json_t *j = json_object(), *rm = json_object(), *sched = json_object(), *prio = json_object();
    json_set(j, "host", json_string(c->host));
    json_set(j, "port", json_integer(c->port));
    json_set(j, "db", json_string("********"));
    json_set(j, "cluster_name", json_string(c->cluster_name));
    json_set(j, "checkpoint_storage",
             json_incref(json_obj(c->checkpoint_storage, "checkpoint_storage")));
    json_set(j, "stall_timeout", json_integer(c->stall_timeout_ms / 1000));
    json_set(j, "agent_reconnect_wait", json_integer(c->core.agent_reconnect_wait_ms / 1000));
    json_set(j, "task_user", json_string(c->task_user));
    json_set(j, "launch_error", json_boolean(c->core.launch_error));
    json_set(j, "log_level", json_string(c->log_level));
    json_set(prio, "default_priority", json_integer(c->core.default_priority));
    json_set(prio, "preemption", json_boolean(c->core.preemption));
    json_set(sched, "type", json_string(schedulers[c->core.scheduler]));
    json_set(sched, "fitting_policy",
             json_string(c->core.fitting == CORE_FIT_BEST ? "best" : "worst"));
    json_set(sched, "allow_heterogeneous_fits", json_boolean(c->core.allow_heterogeneous_fits));
    json_set(sched, "priority", prio);
    json_set(rm, "type", json_string("agent"));
    json_set(rm, "scheduler", sched);
    json_set(rm, "default_compute_resource_pool", json_string(c->default_pool));
    json_set(rm, "default_aux_resource_pool", json_string(c->default_pool));
    json_set(j, "resource_manager", rm);
    return j;
}

char *masterconf_help(void)
{
    struct flags f = flags_none();
    struct opt table[FLAG_ROWS + 1];
    struct buf out = BUF_INIT;
    flags_table(&f, table);
    buf_add_str(
        &out, "det-master: the master of a training cluster.\n\nusage: det-master [OPTION]...\n\n");
    opt_help(table, &out);
    return buf_steal(&out);
}
