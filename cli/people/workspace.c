/* det workspace */
#include "cli.h"
#include "listing.h"
#include "place.h"

#include <inttypes.h>
#include <stdio.h>

static struct {
    const char *name; /* NULL: not given */
    bool yes;
} o;

int place_workspace(struct cli *c, const char *name, json_t **ret, struct det_err *err)
{
    JSON_OWN answer = NULL;
    char *word det_cleanup(freep) = cli_escaped(name);
    int rc = cli_get(c, &answer, err, "/workspaces?name=%s", word);
    json_t *found = json_array_get(json_arr(answer, "workspaces"), 0);
    if (rc == 0 && (!found || !*name))
        rc = det_fail(err, DET_ENOENT,
                      "workspace \"%.80s\" not found; det workspace list shows all", name);
    if (rc == 0)
        *ret = json_incref(found);
    return rc;
}

int place_switch(struct cli *c, const char *kind, const json_t *place, bool archive,
                 struct det_err *err)
{
    char *path det_cleanup(freep) = det_asprintf(
        "/%ss/%" PRId64 "/%s", kind, json_int(place, "id", 0), archive ? "archive" : "unarchive");
    if (cli_call(c, "POST", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "%s %s %s\n", kind, json_str(place, "name", ""),
            archive ? "archived" : "unarchived");
    return 0;
}

int place_delete(struct cli *c, const char *kind, const json_t *place, bool is_sure,
                 struct det_err *err)
{
    const char *name = json_str(place, "name", "");
    char *question det_cleanup(freep) = det_asprintf("Delete %s %s?", kind, name);
    char *path det_cleanup(freep) = det_asprintf("/%ss/%" PRId64, kind, json_int(place, "id", 0));
    if ((!is_sure && !cli_confirmed(question, "deleted", err)) ||
        cli_call(c, "DELETE", path, NULL, NULL, err) < 0)
        return CLI_FAILED;
    fprintf(stderr, "%s %s deleted\n", kind, name);
    return 0;
}

static void workspace_row(struct table *t, const json_t *w)
{
    table_cell(t, "%" PRId64, json_int(w, "id", 0));
    table_cell(t, "%s", json_str(w, "name", ""));
    table_cell(t, "%s", json_str(w, "username", ""));
    table_cell(t, "%" PRId64, json_int(w, "numProjects", 0));
    table_cell(t, "%" PRId64, json_int(w, "numExperiments", 0));
    table_cell(t, "%s", json_flag(w, "archived", false) ? "yes" : "");
}

static int list_workspaces(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">ID",       "WORKSPACE",    "OWNER",
                                        ">PROJECTS", ">EXPERIMENTS", "ARCHIVED"};
    static const struct listing listing = {"workspaces", heads, DET_ARRAY_LEN(heads), workspace_row,
                                           "no workspaces"};
    JSON_OWN answer = NULL;
    if (cli_get(c, &answer, err, "/workspaces") < 0)
        return CLI_FAILED;
    return listing_print(c, answer, &listing);
}

static void project_row(struct table *t, const json_t *p)
{
    table_cell(t, "%" PRId64, json_int(p, "id", 0));
    table_cell(t, "%s", json_str(p, "name", ""));
    table_cell(t, "%s", json_str(p, "description", ""));
    table_cell(t, "%s", json_str(p, "username", ""));
    table_cell(t, "%" PRId64, json_int(p, "numExperiments", 0));
    table_cell(t, "%" PRId64, json_int(p, "numActiveExperiments", 0));
    table_cell(t, "%s", json_flag(p, "archived", false) ? "yes" : "");
}

static int list_projects(struct cli *c, struct det_err *err)
{
    static const char *const heads[] = {">ID",          "PROJECT", "DESCRIPTION", "OWNER",
                                        ">EXPERIMENTS", ">ACTIVE", "ARCHIVED"};
    static const struct listing listing = {
        "projects", heads, DET_ARRAY_LEN(heads), project_row,
        "no projects; det project create WORKSPACE NAME makes one"};
    JSON_OWN w = NULL;
    JSON_OWN answer = NULL;
    if (place_workspace(c, cli_arg(c, 0), &w, err) < 0 ||
        cli_get(c, &answer, err, "/workspaces/%" PRId64 "/projects", json_int(w, "id", 0)) < 0)
        return CLI_FAILED;
    return listing_print(c, answer, &listing);
}

static int create_workspace(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    JSON_OWN body = json_make("{s:s}", "name", cli_arg(c, 0));
    if (cli_call(c, "POST", "/workspaces", body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *w = json_obj(answer, "workspace");
    if (!cli_print_json(c, w))
        printf("Created workspace %" PRId64 "\n", json_int(w, "id", 0));
    return 0;
}

static int describe_workspace(struct cli *c, struct det_err *err)
{
    JSON_OWN w = NULL;
    if (place_workspace(c, cli_arg(c, 0), &w, err) < 0)
        return CLI_FAILED;
    if (cli_print_json(c, w))
        return 0;
    printf("workspace %" PRId64 "  %s%s\n", json_int(w, "id", 0), json_str(w, "name", ""),
           json_flag(w, "archived", false) ? ", archived" : "");
    printf("  owner        %s\n", json_str(w, "username", ""));
    printf("  projects     %" PRId64 "\n", json_int(w, "numProjects", 0));
    printf("  experiments  %" PRId64 "\n", json_int(w, "numExperiments", 0));
    return 0;
}

static int edit_workspace(struct cli *c, struct det_err *err)
{
    JSON_OWN w = NULL;
    JSON_OWN answer = NULL;
    if (!o.name) {
        det_fail(err, DET_EINVAL, "a change is needed: --name NAME");
        return CLI_USAGE;
    }
    JSON_OWN body = json_make("{s:s}", "name", o.name);
    if (place_workspace(c, cli_arg(c, 0), &w, err) < 0)
        return CLI_FAILED;
    char *path det_cleanup(freep) = det_asprintf("/workspaces/%" PRId64, json_int(w, "id", 0));
    if (cli_call(c, "PATCH", path, body, &answer, err) < 0)
        return CLI_FAILED;
    const json_t *now = json_obj(answer, "workspace");
    if (!cli_print_json(c, now))
        fprintf(stderr, "workspace %s changed\n", json_str(now, "name", ""));
    return 0;
}

static int set_archived(struct cli *c, bool on, struct det_err *err)
{
    JSON_OWN w = NULL;
    if (place_workspace(c, cli_arg(c, 0), &w, err) < 0)
        return CLI_FAILED;
    return place_switch(c, "workspace", w, on, err);
}

static int archive_workspace(struct cli *c, struct det_err *err)
{
    return set_archived(c, true, err);
}

static int unarchive_workspace(struct cli *c, struct det_err *err)
{
    return set_archived(c, false, err);
}

static int delete_workspace(struct cli *c, struct det_err *err)
{
    JSON_OWN w = NULL;
    if (place_workspace(c, cli_arg(c, 0), &w, err) < 0)
        return CLI_FAILED;
    return place_delete(c, "workspace", w, o.yes, err);
}

static const struct opt delete_opts[] = {
    {"yes", 'y', OPT_FLAG, &o.yes, NULL, "do not ask"},
    {0},
};
static const struct opt edit_opts[] = {
    {"name", 0, OPT_STR, &o.name, "NAME", "its name from now on"},
    {0},
};
static const struct verb verbs[] = {
    {"list", "ls", "", "all workspaces", NULL, list_workspaces},
    {"list-projects", NULL, "NAME", "its projects", NULL, list_projects},
    {"create", NULL, "NAME", "a new one", NULL, create_workspace},
    {"describe", NULL, "NAME", "one workspace", NULL, describe_workspace},
    {"edit", NULL, "NAME", "another name", edit_opts, edit_workspace},
    {"archive", NULL, "NAME", "nothing is added to it any more", NULL, archive_workspace},
    {"unarchive", NULL, "NAME", "use it again", NULL, unarchive_workspace},
    {"delete", NULL, "NAME", "if nothing is in it", delete_opts, delete_workspace},
    {0},
};

const struct noun noun_workspace = {
    "workspace", "w", NULL, "workspaces: list, create, edit, archive, delete, their projects",
    verbs};
