/* det model: the registry of models, whose versions are checkpoints. */
#include "cli.h"
#include "named.h"
#include "place.h"
#include "show.h"
#include "table.h"
#include "wide.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct {
    const char *workspace, *workspaces, *description, *sort_by, *order_by, *version;
    const char *name, *notes, *comment, *labels, *metadata;
    bool yes;
} o = {.sort_by = "last_updated_time", .order_by = "asc", .version = "-1"};

/* "/models/NAME" and what follows; caller frees. */
static char *model_path(const struct cli *c, const char *below)
{
    char *name det_cleanup(freep) = cli_escaped(cli_arg(c, 0));
    return det_asprintf("/models/%s%s", name, below);
}

/* ---- reading ---- */

/* The first answer to path, which ends in a query, with the entries of all pages as `key`. */
static int all_pages(struct cli *c, const char *path, const char *key, json_t **ret,
                     struct det_err *err)
{
    JSON_OWN all = json_array();
    JSON_OWN first = NULL;
    for (;;) {
        JSON_OWN answer = NULL;
        char *page det_cleanup(freep) = det_asprintf("%s&offset=%zu", path, json_array_size(all));
        int rc = cli_call(c, "GET", page, NULL, &answer, err);
        if (rc < 0)
            return rc;
        const json_t *entries = json_arr(answer, key);
        json_array_extend(all, (json_t *)entries);
        if (!first)
            first = json_incref(answer);
        if (json_array_size(entries) == 0 ||
            (int64_t)json_array_size(all) >= json_int(json_obj(answer, "pagination"), "total", 0))
            break;
    }
    json_object_set(first, key, all);
    json_object_set_new(json_obj(first, "pagination"), "endIndex",
                        json_integer((json_int_t)json_array_size(all)));
    *ret = json_incref(first);
    return 0;
}

static int query_of_list(struct buf *q, struct det_err *err)
{
    static const char *const words[][2] = {{"name", "NAME"},
                                           {"description", "DESCRIPTION"},
                                           {"creation_time", "CREATION_TIME"},
                                           {"last_updated_time", "LAST_UPDATED_TIME"},
                                           {"num_versions", "NUM_VERSIONS"},
                                           {"workspace", "WORKSPACE"}};
    const char *sort = NULL;
    for (size_t i = 0; i < DET_ARRAY_LEN(words); i++)
        if (strcmp(o.sort_by, words[i][0]) == 0)
            sort = words[i][1];
    if (!sort)
        return det_fail(err, DET_EINVAL,
                        "--sort-by: \"%.40s\"; expected name, description, "
                        "creation_time, last_updated_time, num_versions or workspace",
                        o.sort_by);
    bool is_desc = strcmp(o.order_by, "desc") == 0;
    if (!is_desc && strcmp(o.order_by, "asc") != 0)
        return det_fail(err, DET_EINVAL, "--order-by: \"%.40s\"; expected asc or desc", o.order_by);
    buf_addf(q, "?sortBy=SORT_BY_%s&orderBy=ORDER_BY_%s", sort, is_desc ? "DESC" : "ASC");
    for (const char *w = o.workspaces; w && *w;) {
        size_t n = strcspn(w, ",");
        char *one det_cleanup(freep) = det_strndup(w, n);
        char *word det_cleanup(freep) = cli_escaped(one);
        buf_addf(q, "&workspaceNames=%s", word);
        w += n + (w[n] == ',');
    }
    return 0;
}

static void put_labels(struct table *t, const json_t *labels)
{
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    for (size_t i = 0; i < json_array_size(labels); i++)
        buf_addf(&text, "%s%s", i ? ", " : "", json_string_value(json_array_get(labels, i)));
    if (t)
        table_cell(t, "%s", buf_str(&text));
    else if (text.len)
        printf("  labels       %s\n", buf_str(&text));
}

static void print_models(const json_t *models, const json_t *workspaces)
{
    static const char *const heads[] = {">ID",   "MODEL",   "WORKSPACE", ">VERSIONS", "LABELS",
                                        "OWNER", "CREATED", "UPDATED",   "ARCHIVED"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(models); i++) {
        const json_t *m = json_array_get(models, i);
        table_cell(t, "%" PRId64, json_int(m, "id", 0));
        table_cell(t, "%s", json_str(m, "name", ""));
        table_cell(t, "%s", named_in(workspaces, json_int(m, "workspaceId", 0)));
        table_cell(t, "%" PRId64, json_int(m, "numVersions", 0));
        put_labels(t, json_arr(m, "labels"));
        table_cell(t, "%s", json_str(m, "username", ""));
        table_cell(t, "%s", show_time(json_str(m, "creationTime", NULL)));
        table_cell(t, "%s", show_time(json_str(m, "lastUpdatedTime", NULL)));
        table_cell(t, "%s", json_flag(m, "archived", false) ? "yes" : "");
    }
    table_print(t, "no models; det model create NAME makes one");
}

static int list_models(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN workspaces = NULL;
    det_cleanup(buf_finish) struct buf query = BUF_INIT;
    if (query_of_list(&query, err) < 0)
        return CLI_USAGE;
    char *path det_cleanup(freep) = det_asprintf("/models%s", buf_str(&query));
    if (all_pages(c, path, "models", &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_object_get(answer, "models")))
        return 0;
    if (named_all_workspaces(c, &workspaces, err) < 0)
        return CLI_FAILED;
    print_models(json_arr(answer, "models"), workspaces);
    return 0;
}

static void print_model(const json_t *m)
{
    char *metadata det_cleanup(freep) = show_hparams(json_obj(m, "metadata"), NULL);
    printf("model %" PRId64 "  %s%s\n", json_int(m, "id", 0), json_str(m, "name", ""),
           json_flag(m, "archived", false) ? ", archived" : "");
    if (*json_str(m, "description", ""))
        printf("  description  %s\n", json_str(m, "description", ""));
    printf("  owner        %s\n", json_str(m, "username", ""));
    printf("  workspace    %" PRId64 "\n", json_int(m, "workspaceId", 0));
    put_labels(NULL, json_arr(m, "labels"));
    if (*metadata)
        printf("  metadata     %s\n", metadata);
    if (*json_str(m, "notes", ""))
        printf("  notes        %s\n", json_str(m, "notes", ""));
    printf("  created      %s\n", show_time(json_str(m, "creationTime", NULL)));
    printf("  updated      %s\n", show_time(json_str(m, "lastUpdatedTime", NULL)));
    printf("  versions     %" PRId64 "\n", json_int(m, "numVersions", 0));
}

/* Their beginning: notes are pages. CSV and --json have all of them. */
static void put_notes(struct table *t, const char *notes)
{
    enum { COLUMNS = 40 };
    int n = (int)wide_cut(notes, COLUMNS);
    if (table_is_csv())
        table_cell(t, "%s", notes);
    else
        table_cell(t, "%.*s%s", n, notes, notes[n] ? "..." : "");
}

static void put_version(struct table *t, const json_t *v)
{
    const json_t *cp = json_obj(v, "checkpoint");
    char *metrics det_cleanup(freep) =
        show_metrics(json_path(cp, "training.validationMetrics.avgMetrics"));
    char *metadata det_cleanup(freep) = show_hparams(json_obj(v, "metadata"), NULL);
    table_cell(t, "%" PRId64, json_int(v, "version", 0));
    table_cell(t, "%s", json_str(v, "name", ""));
    table_cell(t, "%" PRId64, json_int(json_obj(cp, "training"), "trialId", 0));
    table_cell(t, "%" PRId64, json_int(json_obj(cp, "metadata"), "steps_completed", 0));
    table_cell(t, "%s", json_str(cp, "uuid", ""));
    table_cell(t, "%s", metrics);
    table_cell(t, "%s", metadata);
    put_labels(t, json_arr(v, "labels"));
    table_cell(t, "%s", json_str(v, "comment", ""));
    put_notes(t, json_str(v, "notes", ""));
}

/* versions: a list of model.v1.ModelVersion. */
static void print_versions(const json_t *versions)
{
    static const char *const heads[] = {">VERSION", "NAME",     ">TRIAL", ">BATCHES", "CHECKPOINT",
                                        "METRICS",  "METADATA", "LABELS", "COMMENT",  "NOTES"};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(versions); i++)
        put_version(t, json_array_get(versions, i));
    puts("");
    table_print(t, "no versions; det model register-version NAME UUID makes one");
}

static int read_version(int64_t *ret, struct det_err *err)
{
    JSON_OWN number = cli_whole(o.version);
    *ret = number ? json_integer_value(number) : 0;
    if (*ret < -1 || *ret == 0)
        return det_fail(err, DET_EINVAL,
                        "--version: \"%.40s\"; expected its number, or -1 for the newest",
                        o.version);
    return 0;
}

/* The model, and as `versions` its n-th; -1: the newest, if there is any. */
static int fetch_model(struct cli *c, int64_t n, json_t **ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN one = NULL;
    char *all det_cleanup(freep) =
        model_path(c, "/versions?limit=1&orderBy=ORDER_BY_DESC&sortBy=SORT_BY_VERSION");
    char *model det_cleanup(freep) = model_path(c, "");
    int rc = cli_call(c, "GET", all, NULL, &answer, err);
    if (rc == 0 && n > 0)
        rc = cli_get(c, &one, err, "%s/versions/%" PRId64, model, n);
    if (rc < 0)
        return rc;
    JSON_OWN versions = one ? json_make("[O]", json_obj(one, "modelVersion"))
                            : json_incref(json_object_get(answer, "modelVersions"));
    *ret = json_make("{s:O,s:O}", "model", json_obj(answer, "model"), "modelVersions", versions);
    return 0;
}

static int describe_model(struct cli *c, struct det_err *err)
{
    JSON_OWN found = NULL;
    int64_t n;
    if (read_version(&n, err) < 0)
        return CLI_USAGE;
    if (fetch_model(c, n, &found, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, json_obj(found, "model")))
        return 0;
    print_model(json_obj(found, "model"));
    print_versions(json_arr(found, "modelVersions"));
    return 0;
}

static int list_versions(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *path det_cleanup(freep) =
        model_path(c, "/versions?orderBy=ORDER_BY_DESC&sortBy=SORT_BY_VERSION");
    if (all_pages(c, path, "modelVersions", &answer, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, answer))
        return 0;
    print_model(json_obj(answer, "model"));
    print_versions(json_arr(answer, "modelVersions"));
    return 0;
}

/* ---- writing ---- */

static json_t *labels_of(const char *text)
{
    json_t *labels = json_array();
    while (*text) {
        size_t n = strcspn(text, ",");
        if (n)
            json_array_append_new(labels, json_stringn(text, n));
        text += n + (text[n] == ',');
    }
    return labels;
}

/* --labels and --metadata, where they were given. */
static int put_described(json_t *body, struct det_err *err)
{
    if (o.labels)
        json_set(body, "labels", labels_of(o.labels));
    json_t *metadata = o.metadata ? json_parse(o.metadata, strlen(o.metadata), NULL) : NULL;
    if (o.metadata && !json_is_object(metadata)) {
        json_decref(metadata);
        return det_fail(err, DET_EINVAL,
                        "--metadata: expected an object of JSON, such as "
                        "'{\"license\": \"MIT\"}', which takes the place of the former");
    }
    if (metadata)
        json_set(body, "metadata", metadata);
    return 0;
}

static void put_text(json_t *body, const char *key, const char *value)
{
    if (value)
        json_set(body, key, json_string(value));
}

static int create_model(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body = json_make("{s:s}", "name", cli_arg(c, 0));
    put_text(body, "description", o.description);
    put_text(body, "workspaceName", o.workspace);
    put_text(body, "notes", o.notes);
    if (put_described(body, err) < 0)
        return CLI_USAGE;
    if (cli_call(c, "POST", "/models", body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *m = json_obj(answer, "model");
    if (!cli_print_json(c, m))
        printf("Created model %" PRId64 "\n", json_int(m, "id", 0));
    return 0;
}

static int register_version(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body =
        json_make("{s:s,s:s}", "modelName", cli_arg(c, 0), "checkpointUuid", cli_arg(c, 1));
    char *path det_cleanup(freep) = model_path(c, "/versions");
    put_text(body, "name", o.name);
    put_text(body, "comment", o.comment);
    put_text(body, "notes", o.notes);
    if (put_described(body, err) < 0)
        return CLI_USAGE;
    if (cli_call(c, "POST", path, body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *v = json_obj(answer, "modelVersion");
    if (cli_print_json(c, v))
        return 0;
    JSON_OWN versions = json_make("[O]", v);
    print_model(json_obj(v, "model"));
    print_versions(versions);
    return 0;
}

static int move_model(struct cli *c, struct det_err *err)
{
    char *path det_cleanup(freep) = model_path(c, "");
    if (!o.workspace) {
        det_fail(err, DET_EINVAL, "--workspace-name is needed: where to");
        return CLI_USAGE;
    }
    JSON_OWN body = json_make("{s:s}", "workspaceName", o.workspace);
    if (cli_call(c, "PATCH", path, body, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "model %s moved to workspace %s\n", cli_arg(c, 0), o.workspace);
    return 0;
}

/* What --name and the others say, as the body of a change; NULL: *err says what is wrong. */
static json_t *collect_changes(bool of_version, struct det_err *err)
{
    const struct {
        const char *key, *value;
        bool other; /* it is of models where a version was named, or the other way round */
    } texts[] = {{"name", o.name, false},
                 {"notes", o.notes, false},
                 {"description", o.description, of_version},
                 {"comment", o.comment, !of_version}};
    JSON_OWN body = json_object();
    for (size_t i = 0; i < DET_ARRAY_LEN(texts); i++) {
        if (texts[i].value && texts[i].other) {
            det_fail(err, DET_EINVAL, "--%s is of a %s: %s", texts[i].key,
                     of_version ? "model" : "version",
                     of_version ? "leave --version out" : "--version N says of which");
            return NULL;
        }
        if (texts[i].value)
            json_set(body, texts[i].key, json_string(texts[i].value));
    }
    if (put_described(body, err) < 0)
        return NULL;
    if (json_object_size(body) > 0)
        return json_incref(body);
    det_fail(err, DET_EINVAL,
             "nothing to change was given: --name, --description, --notes, "
             "--labels, --metadata, and with --version --comment");
    return NULL;
}

static int edit_model(struct cli *c, struct det_err *err)
{
    bool of_version = strcmp(o.version, "-1") != 0;
    JSON_OWN number = cli_whole(o.version);
    if (of_version && (!number || json_integer_value(number) < 1)) {
        det_fail(err, DET_EINVAL, "--version: \"%.40s\"; expected its number", o.version);
        return CLI_USAGE;
    }
    JSON_OWN body = collect_changes(of_version, err);
    if (!body)
        return CLI_USAGE;
    char *below det_cleanup(freep) = det_asprintf("/versions/%s", o.version);
    char *path det_cleanup(freep) = model_path(c, of_version ? below : "");
    if (cli_call(c, "PATCH", path, body, NULL, err) < 0)
        return CLI_FAILED;
    if (of_version)
        fprintf(stderr, "version %s of model %s changed\n", o.version, cli_arg(c, 0));
    else
        fprintf(stderr, "model %s changed\n", cli_arg(c, 0));
    return 0;
}

static int post_verb(struct cli *c, const char *verb, struct det_err *err)
{
    char *path det_cleanup(freep) = model_path(c, verb);
    if (cli_call(c, "POST", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "model %s %sd\n", cli_arg(c, 0), verb + 1);
    return 0;
}

static int archive_model(struct cli *c, struct det_err *err)
{
    return post_verb(c, "/archive", err);
}

static int unarchive_model(struct cli *c, struct det_err *err)
{
    return post_verb(c, "/unarchive", err);
}

static int delete_model(struct cli *c, struct det_err *err)
{
    int64_t n = 0;
    if (cli_arg(c, 1) && cli_arg_id(c, 1, "version", &n, err) < 0)
        return CLI_USAGE;
    char *version det_cleanup(freep) = det_asprintf("/versions/%" PRId64, n);
    char *path det_cleanup(freep) = model_path(c, n ? version : "");
    char *what det_cleanup(freep) = n ? det_asprintf("version %" PRId64 " of ", n) : det_strdup("");
    char *question det_cleanup(freep) =
        det_asprintf("delete %smodel %s%s?", what, cli_arg(c, 0), n ? "" : " and all its versions");
    if (!o.yes && !cli_confirmed(question, "deleted", err))
        return CLI_FAILED;
    if (cli_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "%smodel %s deleted; checkpoints stay\n", what, cli_arg(c, 0));
    return 0;
}

static const struct opt list_opts[] = {
    {"workspace-names", 'w', OPT_STR, &o.workspaces, "A,B", "only of these workspaces"},
    {"sort-by", 0, OPT_STR, &o.sort_by, "KEY",
     "name, description, creation_time, last_updated_time (default), num_versions, workspace"},
    {"order-by", 0, OPT_STR, &o.order_by, "ORDER", "asc (default) or desc"},
    {0},
};
static const struct opt create_opts[] = {
    {"workspace-name", 'w', OPT_STR, &o.workspace, "NAME", "in this workspace"},
    {"description", 0, OPT_STR, &o.description, "TEXT", "what it is"},
    {"notes", 0, OPT_STR, &o.notes, "TEXT", "what is to be remembered"},
    {"labels", 0, OPT_STR, &o.labels, "A,B", "its labels"},
    {"metadata", 0, OPT_STR, &o.metadata, "JSON", "an object"},
    {0},
};
static const struct opt register_opts[] = {
    {"name", 0, OPT_STR, &o.name, "TEXT", "its name beside its number"},
    {"comment", 0, OPT_STR, &o.comment, "TEXT", "what it is"},
    {"notes", 0, OPT_STR, &o.notes, "TEXT", "what is to be remembered"},
    {"labels", 0, OPT_STR, &o.labels, "A,B", "its labels"},
    {"metadata", 0, OPT_STR, &o.metadata, "JSON", "an object"},
    {0},
};
static const struct opt describe_opts[] = {
    {"version", 0, OPT_STR, &o.version, "N", "show this version (-1, the default: the newest)"},
    {0},
};
static const struct opt edit_opts[] = {
    {"version", 0, OPT_STR, &o.version, "N", "a version of it, not the model"},
    {"name", 0, OPT_STR, &o.name, "TEXT", "another name"},
    {"description", 0, OPT_STR, &o.description, "TEXT", "what it is"},
    {"comment", 0, OPT_STR, &o.comment, "TEXT", "what the version is"},
    {"notes", 0, OPT_STR, &o.notes, "TEXT", "what is to be remembered"},
    {"labels", 0, OPT_STR, &o.labels, "A,B", "these, and no others"},
    {"metadata", 0, OPT_STR, &o.metadata, "JSON", "this object, in place of the former"},
    {0},
};
static const struct opt move_opts[] = {
    {"workspace-name", 'w', OPT_STR, &o.workspace, "NAME", "to this workspace"},
    {0},
};
static const struct opt delete_opts[] = {
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};
static const struct verb verbs[] = {
    {"list", "ls", "", "all models", list_opts, list_models},
    {"create", NULL, "NAME", "a new one", create_opts, create_model},
    {"describe", NULL, "NAME", "one model and a version of it", describe_opts, describe_model},
    {"list-versions", NULL, "NAME", "one model and its versions", NULL, list_versions},
    {"register-version", NULL, "NAME UUID", "make a checkpoint its next version", register_opts,
     register_version},
    {"edit", NULL, "NAME", "its labels, notes, metadata; or those of a version", edit_opts,
     edit_model},
    {"move", NULL, "NAME", "to another workspace", move_opts, move_model},
    {"archive", NULL, "NAME", "nothing of it changes any more", NULL, archive_model},
    {"unarchive", NULL, "NAME", "change it again", NULL, unarchive_model},
    {"delete", NULL, "NAME [VERSION]", "delete it, or one version; checkpoints stay", delete_opts,
     delete_model},
    {0},
};

const struct noun noun_model = {
    "model", "m", NULL, "the model registry: models, and checkpoints as their versions", verbs};
