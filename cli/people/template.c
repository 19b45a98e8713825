/* det template: named parts of configurations that experiments start from. */
#include "cli.h"
#include "experiment.h"
#include "listing.h"
#include "yamljson.h"

#include <stdio.h>

static struct {
    bool details;
} o;

/* "/templates/NAME"; caller frees. */
static char *template_path(const struct cli *c)
{
    char *name det_cleanup(freep) = cli_escaped(cli_arg(c, 0));
    return det_asprintf("/templates/%s", name);
}

static void template_row(struct table *t, const json_t *one)
{
    table_cell(t, "%s", json_str(one, "name", ""));
    if (o.details) {
        char *text det_cleanup(freep) = json_text(json_object_get(one, "config"));
        table_cell(t, "%s", text);
    }
}

static int list_templates(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {"TEMPLATE", "CONFIGURATION"};
    const struct listing listing = {"templates", heads, o.details ? 2 : 1, template_row,
                                    "no templates; det template set NAME FILE makes one"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/templates?limit=-1") < 0)
        return CLI_FAILED;
    return listing_print(c, answer, &listing);
}

static int describe_template(struct cli *c, struct det_err *err)
{
    char *path det_cleanup(freep) = template_path(c);
    JSON_OWN answer = NULL;
    if (cli_call(c, "GET", path, NULL, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *template = json_obj(answer, "template");
    if (cli_print_json(c, template))
        return 0;
    struct buf out = BUF_INIT;
    json_write_pretty(&out, json_object_get(template, "config"));
    puts(buf_str(&out));
    buf_finish(&out);
    return 0;
}

static int read_config(const char *path, json_t **ret_config, struct det_err *err)
{
    struct buf text = BUF_INIT;
    int rc = experiment_read_config(path, &text, err);
    if (rc == 0) {
        rc = yamljson_parse(buf_str(&text), text.len, ret_config, err);
        if (rc < 0)
            det_wrap(err, rc, "%s", path);
    }
    buf_finish(&text);
    return rc;
}

static int write_template(struct cli *c, const char *method, const char *done, struct det_err *err)
{
    char *path det_cleanup(freep) = template_path(c);
    json_t *config = NULL;
    JSON_OWN body = json_make("{s:s}", "name", cli_arg(c, 0));
    if (read_config(cli_arg(c, 1), &config, err) < 0)
        return CLI_FAILED;
    json_set(body, "config", config);
    if (cli_call(c, method, path, body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "template %s %s\n", cli_arg(c, 0), done);
    return 0;
}

static int create_template(struct cli *c, struct det_err *err)
{
    return write_template(c, "POST", "created", err);
}

static int set_template(struct cli *c, struct det_err *err)
{
    return write_template(c, "PUT", "set", err);
}

static int remove_template(struct cli *c, struct det_err *err)
{
    char *path det_cleanup(freep) = template_path(c);
    if (cli_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "template %s removed\n", cli_arg(c, 0));
    return 0;
}

static const struct opt list_opts[] = {
    {"details", 'd', OPT_FLAG, &o.details, NULL, "what is in them too"},
    {0},
};
static const struct verb verbs[] = {
    {"list", "ls", "", "all templates", list_opts, list_templates},
    {"describe", "d", "NAME", "its configuration as JSON", NULL, describe_template},
    {"create", NULL, "NAME FILE", "a new one from a YAML file (-: standard input)", NULL,
     create_template},
    {"set", NULL, "NAME FILE", "a new one, or another configuration for it", NULL, set_template},
    {"remove", "rm", "NAME", "remove it; experiments keep what they took from it", NULL,
     remove_template},
    {0},
};

const struct noun noun_template = {"template", "tpl", NULL,
                                   "templates: parts of configurations to start from", verbs};
