#include "masterconf.h"

#include "buf.h"
#include "expconf.h"
#include "fsx.h"
#include "masterpools.h"
#include "mem.h"
#include "mistakes.h"
#include "opt.h"
#include "settings.h"
#include "webhooks.h"
#include "yamljson.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 20, OPTIONS_MAX = 64 };

/* The command line: settings by the table, in its order, and what is none. */
struct flags {
    const char *setting[OPTIONS_MAX]; /* of entry i; NULL: not given */
    const char *config, *checkpoint_dir;
    bool print_config, print_example, help, version, doctor, new_life, tls_own, insecure;
    struct opt table[OPTIONS_MAX];
};

static void flags_init(struct flags *f)
{
    *f = (struct flags){0};
    const struct opt others[] = {
        {"config", 'c', OPT_STR, &f->config, "PATH", "Read settings from this master.yaml"},
        {"checkpoint-dir", 0, OPT_STR, &f->checkpoint_dir, "DIR",
         "Default checkpoint storage: a directory all agents share"},
        {"print-config", 0, OPT_FLAG, &f->print_config, NULL, "Print all settings as JSON and end"},
        {"print-example", 0, OPT_FLAG, &f->print_example, NULL,
         "Print a commented master.yaml with all settings and end"},
        {"tls-own", 0, OPT_FLAG, &f->tls_own, NULL, "The same as security.tls.own: true"},
        {"insecure", 0, OPT_FLAG, &f->insecure, NULL, "The same as security.insecure: true"},
        {"help", 'h', OPT_FLAG, &f->help, NULL, "Print this and end"},
        {"version", 0, OPT_FLAG, &f->version, NULL, "Print the version and end"},
    };
    size_t n = 0;
    for (size_t i = 0; i < settings_master.n; i++) {
        const struct setting *s = &settings_master.v[i];
        assert(n + DET_ARRAY_LEN(others) < OPTIONS_MAX && i < OPTIONS_MAX);
        if (s->option)
            f->table[n++] =
                (struct opt){s->option, s->short_name, OPT_STR, &f->setting[i], s->arg, s->help};
    }
    memcpy(f->table + n, others, sizeof others);
}

static int flags_parse(struct flags *f, int argc, char **argv, struct det_err *err)
{
    struct opt_list pos = {0};
    int rc = opt_parse(f->table, argc, argv, 1, &pos, err);
    f->doctor = rc == 0 && pos.n == 1 && strcmp(pos.v[0], "doctor") == 0;
    f->new_life = rc == 0 && pos.n == 1 && strcmp(pos.v[0], "new-life") == 0;
    if (rc == 0 && pos.n > 0 && !f->doctor && !f->new_life)
        rc = det_fail(err, DET_EINVAL, "unexpected argument \"%.80s\"; see --help", pos.v[0]);
    opt_list_finish(&pos);
    return rc;
}

static int file_read(const char *path, json_t **ret, struct mistakes *errs, struct det_err *err)
{
    struct buf text = BUF_INIT;
    JSON_OWN lines = NULL;
    int rc = fsx_read_file(AT_FDCWD, path, CONFIG_BYTES_MAX, &text, err);
    if (rc == 0)
        rc = yamljson_parse_lines(buf_str(&text), text.len, ret, &lines, err);
    buf_finish(&text);
    if (rc < 0)
        return det_wrap(err, rc, "%s", path);
    settings_check(&settings_master, *ret, lines, errs);
    return 0;
}

static const struct setting *setting_find(const char *path)
{
    const struct setting *s = settings_master.v;
    while (strcmp(s->path, path) != 0)
        s++;
    return s;
}

static void options_apply(const struct flags *f, json_t *raw, struct mistakes *errs)
{
    for (size_t i = 0; i < settings_master.n; i++) {
        const struct setting *s = &settings_master.v[i];
        det_cleanup(freep) char *label = s->option ? det_asprintf("--%s", s->option) : NULL;
        if (f->setting[i])
            settings_set_text(s, raw, label, f->setting[i], errs);
    }
    if (f->tls_own)
        settings_set_text(setting_find("security.tls.own"), raw, "--tls-own", "true", errs);
    if (f->insecure)
        settings_set_text(setting_find("security.insecure"), raw, "--insecure", "true", errs);
    if (f->checkpoint_dir)
        json_set(raw, "checkpoint_storage",
                 json_make("{s:s, s:s}", "type", "shared_fs", "host_path", f->checkpoint_dir));
}

static void storage_read(struct masterconf *c, const json_t *tree, struct mistakes *errs)
{
    const json_t *storage = json_obj(tree, "checkpoint_storage");
    struct det_err err;
    JSON_OWN whole = json_object();
    if (!storage)
        return;
    json_object_set(whole, "checkpoint_storage", (json_t *)storage);
    if (expconf_partial(whole, &c->checkpoint_storage, &err) < 0)
        mistakes_add(errs, "", "%s", err.text);
}

/* What no single setting can be blamed for. */
static void whole_check(const json_t *raw, struct mistakes *errs)
{
    const json_t *cert = json_path(raw, "security.tls.cert"),
                 *key = json_path(raw, "security.tls.key");
    if (json_is_string(cert) != json_is_string(key))
        mistakes_add(errs, json_is_string(cert) ? "security.tls.key" : "security.tls.cert",
                     "missing: HTTPS needs a certificate and its key");
    if (json_is_string(cert) && json_is_true(json_path(raw, "security.tls.own")))
        mistakes_add(errs, "security.tls.own",
                     "there is a certificate in security.tls.cert: keep one");
    const json_t *text = json_path(raw, "webhooks.networks");
    struct webhook_networks networks;
    struct det_err err;
    if (json_is_string(text) && webhook_read_networks(json_string_value(text), &networks, &err) < 0)
        mistakes_add(errs, "webhooks.networks", "%s", err.text);
}

/* All sources into one tree, every mistake gathered. */
static int tree_read(struct masterconf *c, const struct flags *f, char **env, struct det_err *err)
{
    struct mistakes errs = MISTAKES_INIT;
    JSON_OWN raw = NULL;
    int rc = f->config ? file_read(f->config, &raw, &errs, err) : 0;
    if (rc == 0) {
        if (!json_is_object(raw)) {
            json_decref(raw);
            raw = json_object();
        }
        settings_set_env(&settings_master, raw, env, &errs);
        options_apply(f, raw, &errs);
        storage_read(c, raw, &errs);
        whole_check(raw, &errs);
        masterpools_check(raw, &errs);
        rc = mistakes_report(&errs, f->config ? f->config : "settings", err);
    }
    if (rc == 0)
        c->tree = settings_fill(&settings_master, raw);
    mistakes_finish(&errs);
    return rc;
}

static enum masterconf_verb verb_of(const struct flags *f)
{
    if (f->help)
        return MASTERCONF_HELP;
    if (f->version)
        return MASTERCONF_VERSION;
    if (f->print_example)
        return MASTERCONF_PRINT_EXAMPLE;
    if (f->doctor)
        return MASTERCONF_DOCTOR;
    if (f->new_life)
        return MASTERCONF_NEW_LIFE;
    return f->print_config ? MASTERCONF_PRINT_CONFIG : MASTERCONF_SERVE;
}

int masterconf_init(struct masterconf *c, int argc, char **argv, char **env, struct det_err *err)
{
    struct flags f;
    flags_init(&f);
    *c = (struct masterconf){.core = core_options_default};
    int rc = flags_parse(&f, argc, argv, err);
    if (rc == 0)
        rc = tree_read(c, &f, env, err);
    if (rc < 0) {
        masterconf_finish(c);
        return rc;
    }
    c->verb = verb_of(&f);
    settings_bind(&settings_master, c->tree, c);
    c->core.default_pool = c->default_pool;
    masterpools_read(c);
    return 0;
}

void masterconf_finish(struct masterconf *c)
{
    settings_unbind(&settings_master, c);
    masterpools_finish(c);
    json_decref(c->checkpoint_storage);
    json_decref(c->tree);
    *c = (struct masterconf){0};
}

json_t *masterconf_json(const struct masterconf *c)
{
    return settings_mask(&settings_master, c->tree);
}

static void add_help(struct buf *out)
{
    struct flags f;
    flags_init(&f);
    buf_add_str(out, "det-master: the master of a training cluster.\n\n"
                     "usage: det-master [OPTION]...            serve\n"
                     "       det-master doctor [OPTION]...     look whether it could, and say "
                     "what to do\n"
                     "       det-master new-life [OPTION]...   this database is the one to go on "
                     "with: it was restored,\n"
                     "                                         or there were two of it\n\n");
    opt_help(f.table, out);
}

char *masterconf_text(const struct masterconf *c)
{
    struct buf out = BUF_INIT;
    JSON_OWN j = masterconf_json(c);
    if (c->verb == MASTERCONF_HELP)
        add_help(&out);
    else if (c->verb == MASTERCONF_VERSION)
        buf_add_str(&out, "det-master " DET_VERSION "\n");
    else if (c->verb == MASTERCONF_PRINT_EXAMPLE)
        settings_example(&settings_master, &out);
    else
        json_write_pretty(&out, j);
    return buf_steal(&out);
}
