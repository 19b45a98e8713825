/* det version: this det's, and that of the master where it answers, as YAML that people and scripts
 * read. */
#include "cli.h"

#include "mem.h"
#include "plain.h"
#include <stdio.h>
#include <string.h>

static bool is_word(const char *text)
{
    return *text && strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789.-_") == strlen(text);
}

/* What is no plain word is JSON, which YAML takes as well. Caller frees. */
static char *yaml_of(const json_t *value)
{
    const char *word = json_string_value(value);
    return word && is_word(word) ? det_strdup(word) : json_text(value);
}

static void print_value(const char *key, const json_t *value)
{
    JSON_OWN name = json_string(key);
    det_cleanup(freep) char *left = yaml_of(name);
    det_cleanup(freep) char *text = yaml_of(value);
    printf("  %s: %s\n", left, text);
}

static json_t *versions_of(const struct cli *c, json_t *info)
{
    json_t *v = json_object(), *own = json_object();
    json_set(own, "version", json_string(DET_VERSION));
    json_set(v, "client", own);
    json_set(v, "master", json_incref(info));
    json_set(v, "master_address", json_string(c->master ? c->master : ""));
    return v;
}

/* As an answer of /info begins, for a master that gives none. */
static json_t *unknown_info(void)
{
    json_t *info = json_object();
    json_set(info, "cluster_id", json_string(""));
    json_set(info, "master_id", json_string(""));
    json_set(info, "version", json_string(""));
    return info;
}

static int ask_info(struct cli *c, json_t **ret, struct det_err *err)
{
    int rc = cli_get_open(c, "/info", ret, err);
    return rc < 0 || json_is_object(*ret)
               ? rc
               : det_fail(err, DET_ECORRUPT, "GET /info: expected an object");
}

static int show_versions(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    const char *key;
    json_t *value;
    if (ask_info(c, &answer, err) < 0) {
        plain_say("the master does not say its version: ", err->text);
        json_decref(answer);
        answer = unknown_info();
    }
    JSON_OWN all = versions_of(c, answer);
    if (cli_print_json(c, all))
        return 0;
    puts("client:\n  version: " DET_VERSION "\nmaster:");
    json_object_foreach(answer, key, value) print_value(key, value);
    printf("master_address: %s\n", json_str(all, "master_address", ""));
    return 0;
}

static const struct verb verbs[] = {
    {"", NULL, "", "the versions of det and of the master", NULL, show_versions},
    {0},
};

const struct noun noun_version = {"version", "version", NULL, "of det and of the master", verbs};
